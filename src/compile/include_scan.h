/* SPDX-License-Identifier: MIT */
/*
 * The include scanner: finds `#include <name>` lines whose name starts with a tracked prefix,
 * line by line, recursively, and reports each tracked file once, in first-seen order. It is not
 * a preprocessor: comments, #if and macros are not understood.
 *
 * Rules and texts of the original: quoted includes, a blank after < or before >, an empty name or
 * mismatched delimiters are "non-standard include"; a tracked file that is in no include dir is
 * "failed to open"; a cycle is "circular include". A line without closing delimiter, a macro, a
 * comment before < and a backslash are no includes. Ours on top: tracked names that are absolute,
 * have ".." or resolve (through links) to outside their include dir are refused.
 *
 * No state is kept between scans: any number of threads may scan, and every scan reads the files
 * as they are now.
 */
#ifndef DJ_COMPILE_INCLUDE_SCAN_H
#define DJ_COMPILE_INCLUDE_SCAN_H

#include "base/strbuf.h"

typedef struct dj__scan_config {
    const char *const *dirs;
    size_t num_dirs;
    const char *const *prefixes;
    size_t num_prefixes;
} dj__scan_config;

/* Called for each tracked file after its own includes, with its whole content. */
typedef void (*dj__scan_fn)(void *user, const char *name, const char *path, const void *data,
                            size_t size);

/* INVALID_ARGUMENT, with "<file>:<line>:" before the message ("<source>" for the source);
 * PERMISSION or IO if a file cannot be read. A tracked file has at most 64 MiB. With no prefixes
 * nothing is scanned and OK is returned. */
dj_status dj__include_scan(const dj__scan_config *config, const char *source, size_t size,
                           dj__scan_fn visit, void *user, dj_error *err);

/* One line: 1 with the name inside <>, 0 if it is not a tracked include, -1 if non-standard. */
int dj__include_parse(const char *line, size_t size, const dj__scan_config *config,
                      const char **name, size_t *name_size);

#endif
