/* SPDX-License-Identifier: MIT */
/*
 * The threads that run blocks. They start with the first launch of more than one block, sleep
 * between launches, and serve one launch at a time; a launch that finds them busy runs on its
 * own thread.
 */
#ifndef DJ_BACKEND_HOST_POOL_H
#define DJ_BACKEND_HOST_POOL_H

#include <deepjit/host.h>

#define DJ__HOST_MAX_SHARED 65536u /* bytes of dynamic shared memory of one block */

typedef struct dj__host_pool dj__host_pool;

/* One launch. `block` is complete except for index and shared. */
typedef struct dj__host_work {
    dj_host_block_fn run;
    const void *const *args;
    dj_host_block block;
    uint32_t max_threads; /* 0: all */
} dj__host_work;

/* `threads` counts the launching one: at least 1. Starts nothing. */
dj_status dj__host_pool_create(unsigned threads, dj__host_pool **out, dj_error *err);
/* Ends and joins the threads. No launch may be running. */
void dj__host_pool_destroy(dj__host_pool *pool);
unsigned dj__host_pool_size(const dj__host_pool *pool);
/* Threads that exist now, without the launching one. */
unsigned dj__host_pool_started(dj__host_pool *pool);
/* Runs every block and returns when all are done. Any number of threads may call it. */
void dj__host_pool_run(dj__host_pool *pool, const dj__host_work *work);
/* In a forked child: forgets threads and launches that do not exist here. */
void dj__host_pool_after_fork(dj__host_pool *pool);

#endif
