/* SPDX-License-Identifier: MIT */
/* Writing JSON. The caller nests correctly; commas are put here. */
#include "base/json.h"

#include <inttypes.h>
#include <string.h>

void dj__json_init(dj__json *json, dj__strbuf *out)
{
    *json = (dj__json){.out = out};
}

/* Before every value and key. */
static void json_separate(dj__json *json)
{
    if (json->need_comma) {
        dj__strbuf_putc(json->out, ',');
    }
    json->need_comma = true;
}

static void json_open(dj__json *json, char bracket)
{
    json_separate(json);
    dj__strbuf_putc(json->out, bracket);
    json->need_comma = false;
}

static void json_close(dj__json *json, char bracket)
{
    dj__strbuf_putc(json->out, bracket);
    json->need_comma = true;
}

void dj__json_begin_object(dj__json *json)
{
    json_open(json, '{');
}

void dj__json_end_object(dj__json *json)
{
    json_close(json, '}');
}

void dj__json_begin_array(dj__json *json)
{
    json_open(json, '[');
}

void dj__json_end_array(dj__json *json)
{
    json_close(json, ']');
}

void dj__json_key(dj__json *json, const char *key)
{
    dj__json_string(json, key);
    dj__strbuf_putc(json->out, ':');
    json->need_comma = false;
}

/* Bytes of the UTF-8 sequence at `text`, or 0 if there is no valid one: overlong forms,
 * surrogates and values above U+10FFFF are none (Unicode standard, table 3-7). */
static size_t json_utf8_length(const unsigned char *text, size_t size)
{
    const unsigned char first = text[0];
    size_t length;
    unsigned char low = 0x80; /* range of the second byte */
    unsigned char high = 0xBF;
    if (first < 0x80) {
        return 1;
    } else if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        low = first == 0xE0 ? 0xA0 : low;
        high = first == 0xED ? 0x9F : high;
    } else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        low = first == 0xF0 ? 0x90 : low;
        high = first == 0xF4 ? 0x8F : high;
    } else {
        return 0;
    }
    if (size < length || text[1] < low || text[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return length;
}

/* The escape of a control character, quote or backslash; 0 if it has no short one. */
static char json_short_escape(unsigned char c)
{
    switch (c) {
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '"':
    case '\\':
        return (char)c;
    default:
        return '\0';
    }
}

void dj__json_bytes(dj__json *json, const void *data, size_t size)
{
    const unsigned char *text = data;
    json_separate(json);
    dj__strbuf_putc(json->out, '"');
    size_t copied = 0; /* text[copied..i) needs no change and waits to be appended at once */
    size_t i = 0;
    while (i < size) {
        const unsigned char c = text[i];
        const size_t length = json_utf8_length(text + i, size - i);
        if (length > 0 && c >= 0x20 && c != '"' && c != '\\') {
            i += length;
            continue;
        }
        dj__strbuf_append(json->out, text + copied, i - copied);
        const char escape = json_short_escape(c);
        if (escape != '\0') {
            const char pair[2] = {'\\', escape};
            dj__strbuf_append(json->out, pair, sizeof(pair));
        } else if (length > 0) {
            dj__strbuf_printf(json->out, "\\u%04x", c);
        } else {
            dj__strbuf_puts(json->out, "\\ufffd");
        }
        copied = ++i;
    }
    if (size > copied) {
        dj__strbuf_append(json->out, text + copied, size - copied);
    }
    dj__strbuf_putc(json->out, '"');
}

void dj__json_string(dj__json *json, const char *text)
{
    if (text == NULL) {
        dj__json_null(json);
    } else {
        dj__json_bytes(json, text, strlen(text));
    }
}

void dj__json_int(dj__json *json, int64_t value)
{
    json_separate(json);
    dj__strbuf_printf(json->out, "%" PRId64, value);
}

void dj__json_uint(dj__json *json, uint64_t value)
{
    json_separate(json);
    dj__strbuf_printf(json->out, "%" PRIu64, value);
}

void dj__json_bool(dj__json *json, bool value)
{
    json_separate(json);
    dj__strbuf_puts(json->out, value ? "true" : "false");
}

void dj__json_null(dj__json *json)
{
    json_separate(json);
    dj__strbuf_puts(json->out, "null");
}

void dj__json_strings(dj__json *json, const char *const *items, size_t count)
{
    dj__json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        dj__json_string(json, items[i]);
    }
    dj__json_end_array(json);
}
