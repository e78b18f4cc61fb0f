/* SPDX-License-Identifier: MIT */
/*
 * Toolchain identity: a digest of the contents of the programs and files that decide the code.
 *
 * Hashing them takes time, so digests are memoised in <root>/toolchains/ under (machine, device,
 * inode, size, mtime, ctime) of each file; a warm process starts no compiler. Where no toolchain
 * is found, the recorded identities, newest first, stand in for it.
 */
#ifndef DJ_COMPILE_TOOLCHAIN_H
#define DJ_COMPILE_TOOLCHAIN_H

#include "base/env.h"
#include "base/hash.h"
#include "base/log.h"
#include <deepjit/sys/compiler.h>

typedef struct dj__toolchain {
    char identity[DJ__HEX_SIZE];
    char *path;    /* main program */
    char *version; /* first line for people, may be "" */
    char *files; /* what it was read from, as a memo lists it; NULL: too new to be told by times */
} dj__toolchain;

void dj__toolchain_fini(dj__toolchain *toolchain);

/* Memo directories: where to write (NULL: nowhere) and where to look, in order. */
typedef struct dj__toolchain_dirs {
    const char *write;
    const char *const *read;
    size_t num_read;
    /* What else decides which files ops->describe finds (keyed environment, PATH), as text: a
     * memo made under another one is not used. May be NULL. */
    const char *scope;
} dj__toolchain_dirs;

/* Forwards UNAVAILABLE from ops->locate. */
dj_status dj__toolchain_identify(const dj_compiler_ops *ops, dj_compiler *compiler,
                                 const char *backend, const dj__toolchain_dirs *dirs, dj__log *log,
                                 dj__toolchain *out, dj_error *err);

/* True if the compiler that would be found now has the files that were read for `toolchain`. Starts
 * no process and reads no file: false only means that it must be identified again. */
bool dj__toolchain_is_current(const dj_compiler_ops *ops, dj_compiler *compiler,
                              const dj__toolchain *toolchain);

/* Identities recorded for `backend`, newest first, without repeats. */
dj_status dj__toolchain_recorded(const char *backend, const dj__toolchain_dirs *dirs,
                                 dj__strlist *identities, dj_error *err);

#endif
