/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing .committed; the grammar is in marker.h.
 *
 * There is one way to write a given marker (fixed order, sorted files, canonical numbers), and
 * the parser accepts nothing else. It works on bytes, so a NUL in damaged data ends nothing early.
 */
#include "cache/marker.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MARKER_HEAD "deepjit-entry "
#define MARKER_TAIL "end deepjit-entry "
#define MARKER_VERSION "1"

static const char marker_no_memory[] = "out of memory";

/* A piece of the text that is being parsed. */
typedef struct marker_span {
    const char *data;
    size_t size;
} marker_span;

static bool marker_skip(marker_span *span, const char *prefix)
{
    const size_t size = strlen(prefix);
    if (span->size < size || memcmp(span->data, prefix, size) != 0) {
        return false;
    }
    span->data += size;
    span->size -= size;
    return true;
}

/* Takes the text up to `stop`, which must be there, and steps over it. */
static bool marker_take(marker_span *span, char stop, marker_span *out)
{
    const char *end = span->size == 0 ? NULL : memchr(span->data, stop, span->size);
    if (end == NULL) {
        return false;
    }
    out->data = span->data;
    out->size = (size_t)(end - span->data);
    span->data = end + 1;
    span->size -= out->size + 1;
    return true;
}

static bool marker_number(marker_span digits, uint64_t *out)
{
    if (digits.size == 0 || (digits.size > 1 && digits.data[0] == '0')) {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9') {
            return false;
        }
        const uint64_t digit = (uint64_t)(digits.data[i] - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static bool marker_text_ok(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)data[i];
        if (c < 0x20 || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool marker_name_ok(const char *data, size_t size)
{
    return size > 0 && size <= 255 && marker_text_ok(data, size) &&
           memchr(data, '/', size) == NULL && !(size == 1 && data[0] == '.') &&
           !(size == 2 && memcmp(data, "..", 2) == 0) &&
           !(size == strlen(DJ__MARKER_NAME) && memcmp(data, DJ__MARKER_NAME, size) == 0);
}

static bool marker_is_version_1(marker_span version)
{
    return version.size == 1 && version.data[0] == MARKER_VERSION[0];
}

/* The version that the first line names; false if it is no line of this family. */
static bool marker_head(marker_span text, marker_span *version)
{
    uint64_t number;
    return marker_skip(&text, MARKER_HEAD) && marker_take(&text, '\n', version) &&
           marker_number(*version, &number);
}

/* The same of the last line; `body` gets what it covers, `hash` its checksum. */
static bool marker_tail(marker_span text, marker_span *version, marker_span *body,
                        marker_span *hash)
{
    if (text.size == 0 || text.data[text.size - 1] != '\n') {
        return false;
    }
    const char *before = text.size < 2 ? NULL : memrchr(text.data, '\n', text.size - 1);
    const char *last = before == NULL ? text.data : before + 1;
    marker_span line = {last, (size_t)(text.data + text.size - last)};
    *body = (marker_span){text.data, (size_t)(last - text.data)};
    uint64_t number;
    return marker_skip(&line, MARKER_TAIL) && marker_take(&line, ' ', version) &&
           marker_number(*version, &number) && marker_take(&line, '\n', hash);
}

/* Whose it is. GOOD means: claims to be ours, version 1. A beginning of our first line is a
 * marker of ours that was cut short. */
static dj_entry_state marker_family(marker_span text, marker_span *body, marker_span *hash,
                                    const char **problem)
{
    static const char first_line[] = MARKER_HEAD MARKER_VERSION "\n";
    marker_span head = {NULL, 0};
    marker_span tail = {NULL, 0};
    const bool has_head = marker_head(text, &head);
    const bool has_tail = marker_tail(text, &tail, body, hash);
    if (!has_head && !has_tail) {
        if (text.size > 0 && text.size < sizeof(first_line) &&
            memcmp(text.data, first_line, text.size) == 0) {
            *problem = "marker is cut short";
            return DJ_ENTRY_DAMAGED;
        }
        *problem = text.size == 0 ? "empty marker: published by another program"
                                  : "marker of another program";
        return DJ_ENTRY_FOREIGN;
    }
    if (!has_head || !has_tail || head.size != tail.size ||
        memcmp(head.data, tail.data, head.size) != 0) {
        *problem = "marker is damaged or cut short";
        return DJ_ENTRY_DAMAGED;
    }
    if (!marker_is_version_1(head)) {
        *problem = "marker of another format version";
        return DJ_ENTRY_FOREIGN;
    }
    return DJ_ENTRY_GOOD;
}

typedef enum marker_result { MARKER_OK, MARKER_BAD, MARKER_NO_MEMORY } marker_result;

/* A piece of the block as a string: a NUL takes the place of the stop behind it. */
static char *marker_string(const dj__marker *marker, marker_span span)
{
    char *text = marker->block + (span.data - marker->block);
    text[span.size] = '\0';
    return text;
}

/* "<field> <text>", with the blank in `field`. */
static marker_result marker_field(const dj__marker *marker, marker_span *body, const char *field,
                                  char **out)
{
    marker_span value;
    if (!marker_skip(body, field) || !marker_take(body, '\n', &value) ||
        !marker_text_ok(value.data, value.size)) {
        return MARKER_BAD;
    }
    *out = marker_string(marker, value);
    return MARKER_OK;
}

static marker_result marker_parse_file(marker_span *body, dj__marker *marker)
{
    marker_span size;
    marker_span hash;
    marker_span name;
    uint64_t number;
    if (!marker_skip(body, "file ") || !marker_take(body, ' ', &size) ||
        !marker_number(size, &number) || !marker_take(body, ' ', &hash) ||
        !dj__is_hex32(hash.data, hash.size) || !marker_take(body, '\n', &name) ||
        !marker_name_ok(name.data, name.size)) {
        return MARKER_BAD;
    }
    dj__marker_file *file = &marker->files[marker->num_files++];
    file->name = marker_string(marker, name);
    file->size = number;
    memcpy(file->xxh, hash.data, 32);
    file->xxh[32] = '\0';
    const bool sorted = marker->num_files == 1 || strcmp(file[-1].name, file->name) < 0;
    return sorted ? MARKER_OK : MARKER_BAD;
}

/* `text` starts after the first line. */
static marker_result marker_parse_body(marker_span text, dj__marker *out)
{
    static const size_t least_line = sizeof("file 0  n") + DJ__HEX_SIZE - 1;
    char *digest = NULL;
    out->block = malloc(text.size + 1);
    if (out->block == NULL) {
        return MARKER_NO_MEMORY;
    }
    memcpy(out->block, text.data, text.size);
    marker_span body = {out->block, text.size};
    marker_result result = marker_field(out, &body, "tag ", &out->tag);
    if (result == MARKER_OK) {
        result = marker_field(out, &body, "digest ", &digest);
    }
    if (result == MARKER_OK && !dj__is_hex32(digest, strlen(digest))) {
        result = MARKER_BAD;
    }
    if (result == MARKER_OK) {
        memcpy(out->digest, digest, DJ__HEX_SIZE);
        result = marker_field(out, &body, "backend ", &out->backend);
    }
    if (result == MARKER_OK) {
        result = marker_field(out, &body, "arch ", &out->arch);
    }
    if (result == MARKER_OK) {
        result = marker_field(out, &body, "binary ", &out->binary);
    }
    if (result != MARKER_OK) {
        return result;
    }
    out->files = calloc(body.size / least_line + 1, sizeof(*out->files));
    if (out->files == NULL) {
        return MARKER_NO_MEMORY;
    }
    while (result == MARKER_OK && body.size > 0) {
        result = marker_parse_file(&body, out);
    }
    if (result == MARKER_OK && dj__marker_find(out, out->binary) == NULL) {
        result = MARKER_BAD;
    }
    return result;
}

dj_entry_state dj__marker_parse(const char *data, size_t size, dj__marker *out,
                                const char **problem, dj_error *err)
{
    memset(out, 0, sizeof(*out));
    *problem = "";
    marker_span body;
    marker_span hash;
    const dj_entry_state family = marker_family((marker_span){data, size}, &body, &hash, problem);
    if (family != DJ_ENTRY_GOOD) {
        return family;
    }
    char actual[DJ__HEX_SIZE];
    dj__xxh128_hex(body.data, body.size, actual);
    if (hash.size != 32 || memcmp(hash.data, actual, 32) != 0) {
        *problem = "marker does not match its checksum";
        return DJ_ENTRY_DAMAGED;
    }
    if (!marker_skip(&body, MARKER_HEAD MARKER_VERSION "\n")) {
        *problem = "marker cannot be parsed";
        return DJ_ENTRY_DAMAGED;
    }
    const marker_result result = marker_parse_body(body, out);
    if (result == MARKER_OK) {
        return DJ_ENTRY_GOOD;
    }
    dj__marker_fini(out);
    if (result == MARKER_NO_MEMORY) {
        /* Not known to be damaged, so nobody may move it. */
        (void)dj__fail_memory(err);
        *problem = marker_no_memory;
        return DJ_ENTRY_FOREIGN;
    }
    *problem = "marker cannot be parsed";
    return DJ_ENTRY_DAMAGED;
}

static dj_status marker_check(const dj__marker *marker, dj_error *err)
{
    const char *const fields[] = {marker->tag, marker->backend, marker->arch, marker->binary};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (fields[i] == NULL || !marker_text_ok(fields[i], strlen(fields[i]))) {
            return dj__fail(err, DJ_INVALID_ARGUMENT,
                            "tag, back end, architecture or binary name of an entry is missing or "
                            "has control characters");
        }
    }
    if (!dj__is_hex32(marker->digest, strlen(marker->digest))) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "digest of an entry is not 32 hex characters");
    }
    for (size_t i = 0; i < marker->num_files; i++) {
        const dj__marker_file *file = &marker->files[i];
        if (!marker_name_ok(file->name, strlen(file->name))) {
            return dj__fail(err, DJ_INVALID_ARGUMENT, "file name not allowed in a cache entry: %s",
                            file->name);
        }
        if (i > 0 && strcmp(file[-1].name, file->name) >= 0) {
            return dj__fail(err, DJ_INTERNAL, "files of a marker are not sorted: %s", file->name);
        }
    }
    if (dj__marker_find(marker, marker->binary) == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "no file %s in the staging directory",
                        marker->binary);
    }
    return DJ_OK;
}

dj_status dj__marker_write(const dj__marker *marker, dj__strbuf *out, dj_error *err)
{
    const dj_status status = marker_check(marker, err);
    if (status != DJ_OK) {
        return status;
    }
    dj__strbuf_clear(out);
    dj__strbuf_printf(out, MARKER_HEAD MARKER_VERSION "\ntag %s\ndigest %s\nbackend %s\narch %s\n",
                      marker->tag, marker->digest, marker->backend, marker->arch);
    dj__strbuf_printf(out, "binary %s\n", marker->binary);
    for (size_t i = 0; i < marker->num_files; i++) {
        const dj__marker_file *file = &marker->files[i];
        dj__strbuf_printf(out, "file %" PRIu64 " %s %s\n", file->size, file->xxh, file->name);
    }
    char hash[DJ__HEX_SIZE];
    dj__xxh128_hex(dj__strbuf_str(out), out->size, hash);
    dj__strbuf_printf(out, MARKER_TAIL MARKER_VERSION " %s\n", hash);
    return dj__strbuf_ok(out, err);
}

void dj__marker_fini(dj__marker *marker)
{
    if (marker->block == NULL) {
        for (size_t i = 0; i < marker->num_files; i++) {
            free(marker->files[i].name);
        }
        free(marker->tag);
        free(marker->backend);
        free(marker->arch);
        free(marker->binary);
    }
    free(marker->block);
    free(marker->files);
    memset(marker, 0, sizeof(*marker));
}

const dj__marker_file *dj__marker_find(const dj__marker *marker, const char *name)
{
    for (size_t i = 0; i < marker->num_files; i++) {
        if (strcmp(marker->files[i].name, name) == 0) {
            return &marker->files[i];
        }
    }
    return NULL;
}
