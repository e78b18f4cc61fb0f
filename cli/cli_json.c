/* SPDX-License-Identifier: MIT */
/*
 * A thin layer over jansson: any bytes become valid strings, and failures, which can only be
 * missing memory, end the program.
 */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 sequence at `text`, 0 if it is none. */
static size_t utf8_length(const unsigned char *text, size_t size)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80) {
        return 1;
    }
    const size_t length = (text[0] & 0xe0) == 0xc0   ? 2
                          : (text[0] & 0xf0) == 0xe0 ? 3
                          : (text[0] & 0xf8) == 0xf0 ? 4
                                                     : 0;
    if (length == 0 || length > size) {
        return 0;
    }
    uint32_t code = text[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (text[i] & 0x3f);
    }
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < smallest[length] || code > 0x10ffff || surrogate ? 0 : length;
}

bool cli_is_plain_text(const void *data, size_t size)
{
    const unsigned char *const text = data;
    for (size_t i = 0; i < size;) {
        const size_t length = utf8_length(text + i, size - i);
        if (length == 0 || (text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f) {
            return false;
        }
        i += length;
    }
    return true;
}

json_t *cli_json_bytes(const void *data, size_t size)
{
    const unsigned char *const text = data;
    cli_buffer clean = {0};
    for (size_t i = 0; i < size;) {
        const size_t length = utf8_length(text + i, size - i);
        if (length == 0) {
            cli_buffer_append(&clean, "\xef\xbf\xbd", 3);
            i++;
        } else {
            cli_buffer_append(&clean, text + i, length);
            i += length;
        }
    }
    json_t *const value = json_stringn(clean.data != NULL ? clean.data : "", clean.size);
    cli_buffer_fini(&clean);
    return value;
}

json_t *cli_json_text(const char *text)
{
    return cli_json_bytes(text, strlen(text));
}

static void json_check(int result)
{
    if (result != 0) {
        cli_error("out of memory");
        exit(CLI_FAILURE);
    }
}

void cli_json_set(json_t *object, const char *key, json_t *value)
{
    json_check(json_object_set_new(object, key, value));
}

void cli_json_append(json_t *array, json_t *value)
{
    json_check(json_array_append_new(array, value));
}

void cli_json_print(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(value);
}

void cli_json_print_line(json_t *value)
{
    json_dumpf(value, stdout, 0);
    putchar('\n');
    fflush(stdout);
    json_decref(value);
}
