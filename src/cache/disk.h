/* SPDX-License-Identifier: MIT */
/*
 * The disk cache: one root (disk.c), and several in order as one store (tiered.c).
 * The protocol is docs/cache-protocol.md; trust is trust.h.
 */
#ifndef DJ_CACHE_DISK_H
#define DJ_CACHE_DISK_H

#include "base/env.h"
#include "base/log.h"
#include "cache/marker.h"
#include <stdatomic.h>

typedef enum dj__fsync_mode { DJ__FSYNC_NONE, DJ__FSYNC_FILE, DJ__FSYNC_FULL } dj__fsync_mode;

/* Counters the stores add to; owned by the core. */
typedef struct dj__store_counters {
    _Atomic uint64_t healed;
    _Atomic uint64_t lost_races;
    _Atomic uint64_t unpublished;
    _Atomic uint64_t bytes_read;
    _Atomic uint64_t bytes_written;
} dj__store_counters;

typedef struct dj__store_config {
    const char *const *roots; /* absolute, in order; the first one is written. May be empty */
    size_t num_roots;
    const char *no_root_reason; /* why there is none, and what to set */
    const char *const *trust;   /* from JIT_CACHE_TRUST: "owner", "group", user names, numbers */
    size_t num_trust;
    dj__fsync_mode fsync;
    const char *tmpdir; /* for private staging; NULL: /tmp */
    const dj__env *env; /* for the names of settings in messages */
    dj__log *log;
    dj__store_counters *counters;
    int64_t (*now_ns)(void); /* monotonic clock; NULL: dj__now_ns */
} dj__store_config;

/* The tiered store. Copies everything but `env`, `log` and `counters`, which must outlive it.
 * Touches no directory yet. */
dj_status dj__tiered_open(const dj__store_config *config, dj_store **out, dj_error *err);

/* Sub-directories of roots for other users of them ("toolchains", "src"). `writable`: that of the
 * first root, created if needed; `index` is ignored. Else that of root `index`, creating nothing:
 * NOT_FOUND only past the last root, UNAVAILABLE if this root has none or cannot be used. The
 * absolute path is for free(3). */
dj_status dj__tiered_subdir(dj_store *store, const char *name, bool writable, size_t index,
                            char **path, dj_error *err);

void dj__entry_fini(dj_entry *entry);
void dj__staging_fini(dj_staging *staging); /* removes the directory if it still exists */

#endif
