/* SPDX-License-Identifier: MIT */
/*
 * The marker's parser. The input is tried as it is, and as the body of a marker whose checksum is
 * right, so that the grammar behind the checksum is reached. What is accepted must be written
 * back byte for byte: there is one text for one marker.
 */
#include "cache/marker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_marker_parse(const char *text, size_t size)
{
    dj__marker marker;
    const char *problem = NULL;
    const dj_entry_state state = dj__marker_parse(text, size, &marker, &problem, NULL);
    if (problem == NULL || (problem[0] == '\0') != (state == DJ_ENTRY_GOOD)) {
        abort();
    }
    if (state != DJ_ENTRY_GOOD) {
        if (marker.files != NULL || marker.tag != NULL) {
            abort();
        }
        return;
    }
    dj__strbuf back;
    dj__strbuf_init(&back, DJ__MARKER_LIMIT);
    const dj_status status = dj__marker_write(&marker, &back, NULL);
    if (status != DJ_OK || back.size != size || memcmp(back.data, text, size) != 0 ||
        dj__marker_find(&marker, marker.binary) == NULL) {
        abort();
    }
    dj__strbuf_fini(&back);
    dj__marker_fini(&marker);
}

/* An exact copy, so that a sanitizer sees every byte read too far. */
static void fuzz_marker_copy(const void *data, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    if (copy != NULL) {
        if (size > 0) {
            memcpy(copy, data, size);
        }
        fuzz_marker_parse(copy, size);
        free(copy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char head[] = "deepjit-entry 1\n";
    if (size > 1 << 16) {
        return 0;
    }
    fuzz_marker_copy(data, size);

    dj__strbuf text;
    char hash[DJ__HEX_SIZE];
    dj__strbuf_init(&text, 1 << 17);
    dj__strbuf_puts(&text, head);
    dj__strbuf_append(&text, data, size);
    if (size > 0 && data[size - 1] != '\n') {
        dj__strbuf_putc(&text, '\n');
    }
    dj__xxh128_hex(text.data, text.size, hash);
    dj__strbuf_printf(&text, "end deepjit-entry 1 %s\n", hash);
    if (dj__strbuf_ok(&text, NULL) == DJ_OK) {
        fuzz_marker_copy(text.data, text.size);
    }
    dj__strbuf_fini(&text);
    return 0;
}
