/* SPDX-License-Identifier: MIT */
/*
 * The .committed file: what was published, and the proof that it is complete.
 *
 *   deepjit-entry 1
 *   tag <tag>
 *   digest <32 hex>
 *   backend <name>
 *   arch <name>
 *   binary <file name>
 *   file <size> <32 hex XXH3-128> <file name>      one line a file, sorted by name
 *   end deepjit-entry 1 <32 hex XXH3-128 of everything before this line>
 *
 * The format stands at both ends so that one damaged byte cannot make our marker look like
 * somebody else's: agreement of both on another version, or neither, is FOREIGN; anything else
 * that does not parse or verify is DAMAGED.
 */
#ifndef DJ_CACHE_MARKER_H
#define DJ_CACHE_MARKER_H

#include "base/hash.h"
#include "base/strbuf.h"
#include <deepjit/sys/store.h>

#define DJ__MARKER_NAME ".committed"
#define DJ__MARKER_LIMIT (1u << 20)

typedef struct dj__marker_file {
    char *name; /* a plain file name */
    uint64_t size;
    char xxh[DJ__HEX_SIZE];
} dj__marker_file;

typedef struct dj__marker {
    char *block; /* what was parsed, with all strings in it; NULL: each has its own memory */
    char *tag;
    char digest[DJ__HEX_SIZE];
    char *backend;
    char *arch;
    char *binary;
    dj__marker_file *files;
    size_t num_files;
} dj__marker;

/* GOOD fills `out`; otherwise `out` is empty and `problem` says what is wrong (static text). */
dj_entry_state dj__marker_parse(const char *data, size_t size, dj__marker *out,
                                const char **problem, dj_error *err);
/* `files` sorted by name. */
dj_status dj__marker_write(const dj__marker *marker, dj__strbuf *out, dj_error *err);
void dj__marker_fini(dj__marker *marker);
const dj__marker_file *dj__marker_find(const dj__marker *marker, const char *name);

#endif
