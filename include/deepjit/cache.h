/* SPDX-License-Identifier: MIT */
/*
 * deepjit/cache.h: looking at the cache roots of a runtime and cleaning them.
 * The format is described in docs/cache-protocol.md.
 */
#ifndef DEEPJIT_CACHE_H
#define DEEPJIT_CACHE_H

#include <deepjit/runtime.h>

DJ_BEGIN_DECLS

typedef enum dj_entry_state {
    DJ_ENTRY_GOOD = 0,    /* marker readable; contents checked only by dj_cache_verify */
    DJ_ENTRY_DAMAGED = 1, /* ours, but a marker or file is not what was published */
    DJ_ENTRY_FOREIGN = 2  /* another program's or a future version's: never touched */
} dj_entry_state;

typedef struct dj_cache_entry {
    const char *root; /* cache root, as configured */
    const char *path; /* absolute */
    const char *tag;
    const char *digest;
    const char *backend; /* "" unless GOOD */
    const char *arch;    /* "" unless GOOD */
    dj_entry_state state;
    const char *problem; /* why it is not GOOD; "" otherwise */
    uint64_t bytes;      /* sum of the sizes of its files, the marker not counted */
    uint64_t files;
    int64_t used; /* last use or publication, seconds since 1970, to the hour */
} dj_cache_entry;

/* Return false to stop. The strings are valid during the call. */
typedef bool (*dj_cache_entry_fn)(void *user, const dj_cache_entry *entry);

/* Visits the entries of every root, root by root, each root sorted by name. Roots that cannot
 * be read are skipped with a warning. */
DJ_API dj_status dj_cache_list(dj_runtime *runtime, dj_cache_entry_fn visit, void *user,
                               dj_error *err);
/* The same, and reads every file of every entry. Changes nothing. */
DJ_API dj_status dj_cache_verify(dj_runtime *runtime, dj_cache_entry_fn visit, void *user,
                                 dj_error *err);
/* Removes entries from the first root: those of `tag`, or all if NULL, and the copies of sources
 * that were kept for their debug information. Foreign entries stay.
 * `removed` (may be NULL) gets their number. */
DJ_API dj_status dj_cache_clear(dj_runtime *runtime, const char *tag, size_t *removed,
                                dj_error *err);

/* A cache root as this runtime sees it. */
typedef struct dj_cache_root {
    const char *path;
    bool readable;
    bool writable;      /* only ever true of the first one */
    const char *reason; /* why not, and what to set; "" if nothing is wrong */
} dj_cache_root;
typedef void (*dj_cache_root_fn)(void *user, const dj_cache_root *root);
/* Visits the roots in order, without creating any. */
DJ_API dj_status dj_cache_roots(dj_runtime *runtime, dj_cache_root_fn visit, void *user,
                                dj_error *err);

/* One finding about this machine: a program or directory that was looked for. */
typedef struct dj_finding {
    const char *what; /* "compiler", "device", "cache root", ... */
    bool found;
    const char *detail; /* path and version, or where was looked and what to set; lines */
    bool needed;        /* false: if it is missing, only what `detail` says is missing with it */
} dj_finding;
typedef void (*dj_finding_fn)(void *user, const dj_finding *finding);
/* Looks for everything the runtime would need and reports each in turn. */
DJ_API dj_status dj_doctor(dj_runtime *runtime, dj_finding_fn visit, void *user, dj_error *err);

DJ_END_DECLS

#endif
