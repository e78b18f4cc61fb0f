/* SPDX-License-Identifier: MIT */
/*
 * The .npy header is a Python dict in text: {'descr': '<f4', 'fortran_order': False, 'shape':
 * (3, 4), }. The parser takes just that, keys in any order, and trusts no number in it.
 */
#include "cli_npy.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct npy_cursor {
    const char *at;
    const char *end;
    char *message;
} npy_cursor;

static bool npy_fail(const npy_cursor *cursor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool npy_fail(const npy_cursor *cursor, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(cursor->message, CLI_NPY_MESSAGE, format, args);
    va_end(args);
    return false;
}

static void npy_skip_blanks(npy_cursor *cursor)
{
    while (cursor->at < cursor->end &&
           (*cursor->at == ' ' || *cursor->at == '\n' || *cursor->at == '\t')) {
        cursor->at++;
    }
}

static bool npy_take(npy_cursor *cursor, char wanted)
{
    npy_skip_blanks(cursor);
    if (cursor->at == cursor->end || *cursor->at != wanted) {
        return false;
    }
    cursor->at++;
    return true;
}

/* A quoted string without escapes. */
static bool npy_string(npy_cursor *cursor, const char **text, size_t *size)
{
    npy_skip_blanks(cursor);
    if (cursor->at == cursor->end || (*cursor->at != '\'' && *cursor->at != '"')) {
        return false;
    }
    const char quote = *cursor->at++;
    const char *const close = memchr(cursor->at, quote, (size_t)(cursor->end - cursor->at));
    if (close == NULL) {
        return false;
    }
    *text = cursor->at;
    *size = (size_t)(close - cursor->at);
    cursor->at = close + 1;
    return true;
}

static bool npy_word(npy_cursor *cursor, const char *word)
{
    const size_t size = strlen(word);
    npy_skip_blanks(cursor);
    if ((size_t)(cursor->end - cursor->at) < size || memcmp(cursor->at, word, size) != 0) {
        return false;
    }
    cursor->at += size;
    return true;
}

static bool npy_descr(npy_cursor *cursor, cli_npy *out)
{
    const char *text;
    size_t size;
    if (!npy_string(cursor, &text, &size)) {
        return npy_fail(cursor, "structured elements are not supported");
    }
    const bool plain = size == 3 && text[2] >= '1' && text[2] <= '8';
    if (plain && text[0] == '>' && text[2] != '1') {
        return npy_fail(cursor,
                        "big-endian elements (%.3s) are not supported; save it with "
                        "a.astype('<%.2s')",
                        text, text + 1);
    }
    if (!plain || strchr("<|=>", text[0]) == NULL ||
        !cli_elem_from_numpy(text[1], (size_t)(text[2] - '0'), &out->elem)) {
        return npy_fail(cursor, "elements of type '%.*s' are not supported",
                        size > 16 ? 16 : (int)size, text);
    }
    return true;
}

static bool npy_dimension(npy_cursor *cursor, size_t *value)
{
    npy_skip_blanks(cursor);
    const char *const start = cursor->at;
    size_t number = 0;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        const size_t digit = (size_t)(*cursor->at - '0');
        if (number > (SIZE_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    if (cursor->at == start) {
        return false;
    }
    if (cursor->at < cursor->end && *cursor->at == 'L') { /* Python 2 wrote long integers so */
        cursor->at++;
    }
    *value = number;
    return true;
}

static bool npy_shape(npy_cursor *cursor, cli_npy *out)
{
    if (!npy_take(cursor, '(')) {
        return npy_fail(cursor, "the shape is not a tuple");
    }
    out->num_dims = 0;
    while (!npy_take(cursor, ')')) {
        if (out->num_dims == CLI_NPY_DIMS) {
            return npy_fail(cursor, "more than %d dimensions", CLI_NPY_DIMS);
        }
        if (!npy_dimension(cursor, &out->shape[out->num_dims])) {
            return npy_fail(cursor, "the shape is not a tuple of numbers");
        }
        out->num_dims++;
        if (!npy_take(cursor, ',')) {
            if (!npy_take(cursor, ')')) {
                return npy_fail(cursor, "the shape is not a tuple of numbers");
            }
            break;
        }
    }
    return true;
}

typedef struct npy_seen {
    bool descr, order, shape;
    bool fortran;
} npy_seen;

static bool npy_item(npy_cursor *cursor, cli_npy *out, npy_seen *seen)
{
    const char *key;
    size_t size;
    if (!npy_string(cursor, &key, &size) || !npy_take(cursor, ':')) {
        return npy_fail(cursor, "the header is not a dict");
    }
    if (size == 5 && memcmp(key, "descr", 5) == 0) {
        seen->descr = true;
        return npy_descr(cursor, out);
    }
    if (size == 5 && memcmp(key, "shape", 5) == 0) {
        seen->shape = true;
        return npy_shape(cursor, out);
    }
    if (size == 13 && memcmp(key, "fortran_order", 13) == 0) {
        seen->order = true;
        seen->fortran = npy_word(cursor, "True");
        if (!seen->fortran && !npy_word(cursor, "False")) {
            return npy_fail(cursor, "fortran_order is neither True nor False");
        }
        return true;
    }
    return npy_fail(cursor, "unknown key '%.*s' in the header", size > 16 ? 16 : (int)size, key);
}

static bool npy_dict(npy_cursor *cursor, cli_npy *out)
{
    npy_seen seen = {false, false, false, false};
    if (!npy_take(cursor, '{')) {
        return npy_fail(cursor, "the header is not a dict");
    }
    while (!npy_take(cursor, '}')) {
        if (!npy_item(cursor, out, &seen)) {
            return false;
        }
        if (!npy_take(cursor, ',')) {
            if (!npy_take(cursor, '}')) {
                return npy_fail(cursor, "the header is not a dict");
            }
            break;
        }
    }
    if (!seen.descr || !seen.order || !seen.shape) {
        return npy_fail(cursor, "the header lacks descr, fortran_order or shape");
    }
    if (seen.fortran && out->num_dims > 1) {
        return npy_fail(cursor, "Fortran order is not supported; save it with "
                                "numpy.ascontiguousarray(a)");
    }
    return true;
}

bool cli_npy_count(cli_elem elem, const size_t *shape, size_t num_dims, size_t *count)
{
    const size_t limit = SIZE_MAX / 2 / cli_elem_size(elem);
    size_t product = 1;
    for (size_t i = 0; i < num_dims; i++) {
        if (shape[i] == 0) {
            *count = 0;
            return true;
        }
    }
    for (size_t i = 0; i < num_dims; i++) {
        if (product > limit / shape[i]) {
            return false;
        }
        product *= shape[i];
    }
    *count = product;
    return true;
}

bool cli_npy_parse(const void *file, size_t size, cli_npy *out, char message[CLI_NPY_MESSAGE])
{
    const unsigned char *const bytes = file;
    npy_cursor cursor = {file, file, message};
    *out = (cli_npy){.num_dims = 0};
    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0) {
        return npy_fail(&cursor, "not a .npy file");
    }
    const unsigned version = bytes[6];
    if (version < 1 || version > 3) {
        return npy_fail(&cursor, ".npy version %u is not supported", version);
    }
    const size_t start = version == 1 ? 10 : 12;
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1 && size >= start) {
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (size < start || length > size - start) {
        return npy_fail(&cursor, "truncated in the header");
    }
    cursor.at = (const char *)file + start;
    cursor.end = cursor.at + length;
    if (!npy_dict(&cursor, out)) {
        return false;
    }
    npy_skip_blanks(&cursor);
    if (cursor.at != cursor.end) {
        return npy_fail(&cursor, "text after the header's dict");
    }
    if (!cli_npy_count(out->elem, out->shape, out->num_dims, &out->count)) {
        return npy_fail(&cursor, "the shape is too large");
    }
    out->offset = start + length;
    out->data_size = out->count * cli_elem_size(out->elem);
    if (size - out->offset != out->data_size) {
        return npy_fail(&cursor, "%zu bytes of data where the header says %zu", size - out->offset,
                        out->data_size);
    }
    return true;
}

size_t cli_npy_header(cli_elem elem, const size_t *shape, size_t num_dims, char *out, size_t room)
{
    char dict[1024];
    const size_t bytes = cli_elem_size(elem);
    int used =
        snprintf(dict, sizeof dict, "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (",
                 bytes == 1 ? '|' : '<', cli_elem_kind(elem), bytes);
    for (size_t i = 0; i < num_dims && used > 0 && (size_t)used < sizeof dict; i++) {
        used += snprintf(dict + used, sizeof dict - (size_t)used, "%zu,%s", shape[i],
                         i + 1 < num_dims ? " " : "");
    }
    if (used > 0 && (size_t)used < sizeof dict) {
        used += snprintf(dict + used, sizeof dict - (size_t)used, "), }");
    }
    if (used < 0 || (size_t)used >= sizeof dict) {
        return 0;
    }
    /* Ten bytes before the dict, a newline at its end, padded so that the data is aligned. */
    const size_t total = ((size_t)used + 10 + 1 + 63) / 64 * 64;
    if (total > room) {
        return 0;
    }
    memset(out, ' ', total);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((total - 10) & 0xff);
    out[9] = (char)((total - 10) >> 8);
    memcpy(out + 10, dict, (size_t)used);
    out[total - 1] = '\n';
    return total;
}
