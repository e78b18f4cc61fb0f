/* SPDX-License-Identifier: MIT */
/*
 * Writing JSON, compact, in insertion order. The library reads no JSON.
 * Strings: \b \f \n \r \t \\ \" and \u00xx below 0x20; bytes from 0x20 up are copied, except
 * that bytes which are not UTF-8 become \ufffd, so that every document parses.
 */
#ifndef DJ_BASE_JSON_H
#define DJ_BASE_JSON_H

#include "base/strbuf.h"

typedef struct dj__json {
    dj__strbuf *out;
    bool need_comma;
} dj__json;

void dj__json_init(dj__json *json, dj__strbuf *out);
void dj__json_begin_object(dj__json *json);
void dj__json_end_object(dj__json *json);
void dj__json_begin_array(dj__json *json);
void dj__json_end_array(dj__json *json);
void dj__json_key(dj__json *json, const char *key);
void dj__json_string(dj__json *json, const char *text); /* NULL: null */
void dj__json_bytes(dj__json *json, const void *data, size_t size);
void dj__json_int(dj__json *json, int64_t value);
void dj__json_uint(dj__json *json, uint64_t value);
void dj__json_bool(dj__json *json, bool value);
void dj__json_null(dj__json *json);
void dj__json_strings(dj__json *json, const char *const *items, size_t count);

#endif
