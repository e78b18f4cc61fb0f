/* SPDX-License-Identifier: MIT */
/*
 * The memory cache: raw request (source and keyed options) to loaded value, without locks on a
 * hit.
 *
 * Slots, request copies and values live as long as the cache, so a reader may look at them at
 * any time; what goes away is only what a value has loaded. A reader takes a reference by
 * "increment if not zero": zero means the value is not loaded (any more).
 */
#ifndef DJ_CACHE_MEMORY_H
#define DJ_CACHE_MEMORY_H

#include <deepjit/compile.h>
#include <stdatomic.h>

/* First member of whatever is cached. What holds it should start on a cache line of its own
 * (aligned_alloc): threads on distinct values then never meet. */
typedef struct dj__cached {
    _Atomic int64_t refs; /* the cache holds one reference while the value is in it */
    _Atomic uint64_t hits;
    _Atomic uint64_t used;   /* the cache's clock at the last use, coarse */
    bool in_cache;           /* under the cache's lock */
    char key[33];            /* request key */
    struct dj__cached *next; /* in one of the cache's lists */
} dj__cached;

typedef struct dj__memory dj__memory;

/* A request as the caller gave it. `options` never NULL. `hash` from dj__memory_hash. */
typedef struct dj__memory_request {
    const char *source;
    size_t size;
    const dj_compile_options *options;
    uint64_t hash;
} dj__memory_request;

/* Length and sampled windows of the source, seeded with a hash of the keyed options. */
uint64_t dj__memory_hash(const char *source, size_t size, uint64_t options_hash);

typedef struct dj__memory_ops {
    /* Keyed options as the caller gave them, compared field by field. */
    bool (*options_equal)(const dj_compile_options *a, const dj_compile_options *b);
    /* A deep copy, freed by options_free. NULL without memory. */
    dj_compile_options *(*options_copy)(const dj_compile_options *options);
    void (*options_free)(dj_compile_options *options);
    /* Drops one reference, unloading with the last. */
    void (*release)(dj__cached *value);
    /* Frees a value's memory when the cache is destroyed. */
    void (*destroy)(dj__cached *value);
} dj__memory_ops;

/* `limit`: loaded values kept by the cache; 0 means no limit. */
dj_status dj__memory_create(const dj__memory_ops *ops, size_t limit, dj__memory **out,
                            dj_error *err);
/* Frees everything. Nobody may hold a value any more. */
void dj__memory_destroy(dj__memory *memory);

/* A hit with a reference taken, or NULL. Lock-free, allocates nothing, no system call. */
dj__cached *dj__memory_find(dj__memory *memory, const dj__memory_request *request);
/* By request key; takes the lock. A reference is taken, or NULL. Not counted as a hit. */
dj__cached *dj__memory_find_key(dj__memory *memory, const char key[33]);
/*
 * Makes `request` find `value` from now on, and keeps a reference of its own to it, dropping
 * the least recently used value above the limit. The caller holds a reference.
 *
 * A value is adopted by its first insert, whatever comes of it (no memory, closed): from then
 * on only dj__memory_destroy frees its memory, also if it was unloaded and another value for
 * the same key has taken its place. Without memory the request is not remembered, no more.
 */
void dj__memory_insert(dj__memory *memory, const dj__memory_request *request, dj__cached *value);
/* Drops the cache's references; later inserts only adopt. */
void dj__memory_close(dj__memory *memory);

/* Increment if not zero. */
bool dj__cached_retain(dj__cached *value);

/* Of dj__memory_find. */
uint64_t dj__memory_hits(dj__memory *memory);
uint64_t dj__memory_evictions(dj__memory *memory);
/* In a forked child: locks are free again. */
void dj__memory_after_fork(dj__memory *memory);

#endif
