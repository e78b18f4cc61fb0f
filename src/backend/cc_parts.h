/* SPDX-License-Identifier: MIT */
/*
 * What a gcc or clang, or a wrapper of one, consists of: found by asking it, so that the files
 * which decide its output can be hashed. Shared by the back ends that use a C or C++ compiler.
 */
#ifndef DJ_BACKEND_CC_PARTS_H
#define DJ_BACKEND_CC_PARTS_H

#include "base/env.h"
#include "base/process.h"

/* A compiler to be asked, and the environment that it gets; see tool_env.h for `keyed`. */
typedef struct dj__cc {
    const dj__env *env;
    const char *const *keyed;
    const char *program; /* absolute */
} dj__cc;

/* Runs the program with one or two arguments (`second` may be NULL) and puts its output in
 * `output`, and in *result how it ended. `extra` is one more environment string, or NULL. A
 * program that hangs is ended after a minute, or after what JIT_COMPILE_TIMEOUT allows if that is
 * less: TIMEOUT. */
dj_status dj__tool_run(const dj__cc *cc, const char *first, const char *second, const char *extra,
                       dj__strbuf *output, dj__process_result *result, dj_error *err);

/* The same; the output of a program that fails does not count. */
dj_status dj__tool_query(const dj__cc *cc, const char *first, const char *second, const char *extra,
                         dj__strbuf *output, dj_error *err);

/* Appends the file unless it is listed already, whatever names lead to it. It is listed under the
 * name that led to it, so that a link which is turned elsewhere is noticed. */
dj_status dj__add_tool_file(const char *path, dj__strlist *files, dj_error *err);

/* Finds a part of the compiler by name; *out is NULL if it has no such file. `on_path`: also where
 * the compiler answers with the name alone, as gcc does for what it would look for on PATH. */
dj_status dj__cc_part(const dj__cc *cc, const char *name, bool on_path, char **out, dj_error *err);

/* Appends what reads the source and generates code: gcc's `front` ("cc1", "cc1plus"); of clang the
 * program itself, if `cc->program` is but a wrapper of it, and its shared libraries. */
dj_status dj__cc_add_generator(const dj__cc *cc, const char *front, dj__strlist *files,
                               dj_error *err);

#endif
