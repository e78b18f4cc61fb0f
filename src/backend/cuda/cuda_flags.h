/* SPDX-License-Identifier: MIT */
/* nvcc's flags: which ones the options mean, and which may not be given. */
#ifndef DJ_BACKEND_CUDA_FLAGS_H
#define DJ_BACKEND_CUDA_FLAGS_H

#include "base/env.h"
#include <deepjit/cuda.h>

/* Appends the effective flags in their fixed order. options->cuda is complete. */
dj_status dj__cuda_flags(const dj_compile_options *options, const char *arch, bool clang,
                         dj__strlist *out, dj_error *err);

/*
 * INVALID_ARGUMENT for a flag that
 *   - nvcc would hand to its shell so that it is run, cut or changed (nvcc quotes only what it
 *     takes for definitions and directories, and even these without care for $, ` and \), or
 *   - changes what is produced or where, or means something the key cannot see.
 * `origin` says whose flags these are, `loud` which check reads ptxas's warnings (NULL: none), so
 * that they may not be switched off.
 */
dj_status dj__cuda_check_flags(const char *origin, const char *const *flags, size_t count,
                               const char *loud, dj_error *err);

/* Only the first of these, for flags that are complete: the last look before nvcc gets them. */
dj_status dj__cuda_check_shell(const char *const *flags, size_t count, dj_error *err);

/* The same as dj__cuda_check_flags for what nvcc adds to its command lines from its environment, a
 * list of NAME=value. NVCC_*_FLAGS may also choose the host compiler, see cuda_toolkit.h. */
dj_status dj__cuda_check_env(const dj__strlist *env, const char *loud, dj_error *err);

/* The check that reads ptxas's warnings; NULL if none is on. */
const char *dj__cuda_flags_loud(const dj_cuda_compile_options *cuda);

/* What the flags take in a command line of nvcc's, about. */
size_t dj__cuda_flags_size(const char *const *flags, size_t count);

/* True if a flag of the list names the language's standard. */
bool dj__cuda_flags_have_standard(const char *const *flags, size_t count);
/* True if a flag asks for line or debug information. */
bool dj__cuda_flags_have_lines(const char *const *flags, size_t count);

#endif
