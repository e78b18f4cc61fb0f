/* SPDX-License-Identifier: MIT */
/*
 * Which nvcc, and which host compiler it uses.
 *
 * nvcc: JIT_NVCC_COMPILER, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda, then what pip installed
 * (cuda_sites.h). What a setting names is used or is an error, never skipped.
 * Host compiler, which only preprocesses: -ccbin in NVCC_APPEND_FLAGS or NVCC_PREPEND_FLAGS, else
 * NVCC_CCBIN, else gcc on PATH (where there is none: g++ or c++).
 */
#ifndef DJ_BACKEND_CUDA_TOOLKIT_H
#define DJ_BACKEND_CUDA_TOOLKIT_H

#include "base/env.h"

typedef struct dj__cuda_toolkit {
    char *nvcc;        /* absolute, normalised */
    char *nvcc_source; /* the setting that names it or the place where it was, for people */
    char *bin;         /* its directory */
    char *host;        /* absolute, normalised */
    char *host_source;
    bool host_in_flags; /* NVCC_*_FLAGS name it: a -ccbin of ours would only make nvcc warn */
} dj__cuda_toolkit;

/* Starts no process. UNAVAILABLE with every place searched and the settings to use. */
dj_status dj__cuda_toolkit_find(const dj__env *env, dj__cuda_toolkit *out, dj_error *err);
void dj__cuda_toolkit_fini(dj__cuda_toolkit *toolkit);

/* True if a setting names the host compiler as clang does. Keys depend on it, so nothing is run and
 * PATH is not looked at: a clang by another name, cc or a wrapper, is not known. */
bool dj__cuda_host_is_clang(const dj__env *env);

/* A program of the toolkit beside nvcc, else on PATH; NULL if there is none. */
char *dj__cuda_toolkit_program(const dj__env *env, const dj__cuda_toolkit *toolkit,
                               const char *name);

/* Appends every file that decides the generated code, and nvcc's version line. Starts processes.
 * INCOMPATIBLE below 12.9, UNAVAILABLE if a part is missing. `keyed`: see tool_env.h. */
dj_status dj__cuda_toolkit_describe(const dj__env *env, const char *const *keyed,
                                    const dj__cuda_toolkit *toolkit, dj__strlist *files,
                                    dj__strbuf *version, dj_error *err);

/* Finds "release X.Y" in what nvcc --version prints; *line gets the start of that line. */
bool dj__cuda_parse_version(const char *text, int *major, int *minor, const char **line);

#endif
