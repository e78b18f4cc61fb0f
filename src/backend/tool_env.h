/* SPDX-License-Identifier: MIT */
/*
 * The environment that compilers and hooks get: nothing but PATH, HOME, TMPDIR and
 * LD_LIBRARY_PATH from the snapshot, LC_ALL=C, the variables that the compiler declares as keyed,
 * and those named in JIT_COMPILER_ENV (separated by colons or commas).
 */
#ifndef DJ_BACKEND_TOOL_ENV_H
#define DJ_BACKEND_TOOL_ENV_H

#include "base/env.h"

/* Fills the empty list with all of it as NAME=value, sorted: usable as envp. `keyed` is
 * NULL-terminated or NULL.
 * INVALID_ARGUMENT if JIT_COMPILER_ENV is malformed. */
dj_status dj__tool_env(const dj__env *env, const char *const *keyed, dj__strlist *envp,
                       dj_error *err);

/* The same without what is not keyed: `keyed` and JIT_COMPILER_ENV only. */
dj_status dj__tool_env_keyed(const dj__env *env, const char *const *keyed, dj__strlist *out,
                             dj_error *err);

#endif
