/* SPDX-License-Identifier: MIT */
/*
 * Dynamic loading: of binaries held in memory, and of symbols in libraries that are already in
 * the process.
 */
#ifndef DJ_BASE_DL_H
#define DJ_BASE_DL_H

#include <deepjit/base.h>

/*
 * Loads a shared object from memory under a file name that no other load shares while the
 * process lives: dlopen(3) takes two files of one name for the same library, and cache roots can
 * be mounted noexec. A memfd is used, else a file in a private directory under `tmpdir` (NULL:
 * /tmp) that is removed at once. INCOMPATIBLE if the loader refuses the bytes.
 */
dj_status dj__dl_load(const void *data, size_t size, const char *tmpdir, void **handle,
                      dj_error *err);
/* NULL if there is no such symbol. */
void *dj__dl_symbol(void *handle, const char *name);
void dj__dl_unload(void *handle);
/* A symbol exported by any library that the process has already loaded; NULL if none. */
void *dj__dl_global_symbol(const char *name);

#endif
