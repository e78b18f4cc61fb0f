/* SPDX-License-Identifier: MIT */
/*
 * What happens while the first root cannot be written: builds go to private directories under
 * TMPDIR, people are told once, and the root is tried again after a minute.
 *
 * No lock: a process may fork at any time. Reasons are interned and live as long as the store,
 * so a reader may hold one without owning it.
 */
#ifndef DJ_CACHE_FALLBACK_H
#define DJ_CACHE_FALLBACK_H

#include "cache/root.h"

typedef struct dj__fallback_reason {
    struct dj__fallback_reason *next;
    char text[];
} dj__fallback_reason;

typedef struct dj__fallback {
    const dj__store_shared *shared;
    char *tmpdir;
    int64_t (*now_ns)(void);
    _Atomic int64_t retry_at; /* the first root is left alone until then */
    _Atomic(dj__fallback_reason *) reasons;
    _Atomic(const char *) reason; /* the latest */
    _Atomic bool warned;
} dj__fallback;

dj_status dj__fallback_init(dj__fallback *fallback, const dj__store_shared *shared,
                            const char *tmpdir, int64_t (*now_ns)(void), dj_error *err);
void dj__fallback_fini(dj__fallback *fallback);

/* The first root cannot be written; gives the reason to quote. */
const char *dj__fallback_enter(dj__fallback *fallback, const char *reason);
/* The reason while the first root is to be left alone, else NULL. */
const char *dj__fallback_active(dj__fallback *fallback);
/* The one warning of a store; later ones are for debugging. */
void dj__fallback_warn(dj__fallback *fallback, const char *reason);

/* dj_store_ops.stage and .put without a root. */
dj_status dj__fallback_stage(dj__fallback *fallback, const char *reason, dj_staging *out,
                             dj_error *err);
dj_status dj__fallback_put(dj__fallback *fallback, dj_staging *staging, const dj_manifest *what,
                           dj_entry *out, dj_error *err);

#endif
