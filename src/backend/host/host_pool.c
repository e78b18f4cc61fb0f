/* SPDX-License-Identifier: MIT */
/*
 * The pool. A launch lives on the stack of the thread that launches; `busy` belongs to that
 * thread while it is set, everything else is under the mutex. Blocks are handed out in chunks by
 * an atomic counter, so that the mutex is taken twice per thread and launch, not per block.
 */
#include "backend/host/host_pool.h"
#include "base/error.h"
#include "base/fp.h"
#include "base/thread.h"
#include <stdlib.h>

/* Chunks per thread: enough to even out blocks that take different time. */
#define POOL_CHUNKS 8u

struct dj__host_pool {
    atomic_bool busy;
    unsigned size;
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* a launch has openings, or stop */
    pthread_cond_t idle; /* no thread is left in the launch */
    struct pool_launch *launch;
    bool stop;
    unsigned started;
    pthread_t threads[];
};

typedef struct pool_launch {
    const dj__host_work *work;
    uint64_t total; /* blocks */
    uint64_t chunk;
    uint64_t fp;       /* the launching thread's floating-point state */
    unsigned openings; /* threads that may still join */
    unsigned active;   /* threads that joined and have not left */
    _Alignas(DJ__CACHE_LINE) _Atomic uint64_t next;
} pool_launch;

static void pool_run_chunk(const dj__host_work *work, uint64_t first, uint64_t end, void *shared)
{
    dj_host_block block = work->block;
    const uint64_t width = (uint64_t)block.grid[0];
    const uint64_t height = (uint64_t)block.grid[1];
    block.shared = shared;
    block.index[0] = (int32_t)(first % width);
    block.index[1] = (int32_t)(first / width % height);
    block.index[2] = (int32_t)(first / width / height);
    for (uint64_t i = first; i < end; i++) {
        work->run(&block, work->args);
        if (++block.index[0] == block.grid[0]) {
            block.index[0] = 0;
            if (++block.index[1] == block.grid[1]) {
                block.index[1] = 0;
                block.index[2]++;
            }
        }
    }
}

static void pool_run_chunks(pool_launch *launch, void *shared)
{
    for (;;) {
        const uint64_t first =
            atomic_fetch_add_explicit(&launch->next, launch->chunk, memory_order_relaxed);
        if (first >= launch->total) {
            return;
        }
        const uint64_t left = launch->total - first;
        pool_run_chunk(launch->work, first, first + (left < launch->chunk ? left : launch->chunk),
                       shared);
    }
}

/* Apart, so that launches without shared memory do not touch 64 KiB of stack. */
static __attribute__((noinline)) void pool_run_chunks_shared(pool_launch *launch)
{
    _Alignas(64) unsigned char shared[DJ__HOST_MAX_SHARED];
    pool_run_chunks(launch, shared);
}

static void pool_take_part(pool_launch *launch)
{
    if (launch->work->block.shared_bytes == 0) {
        pool_run_chunks(launch, NULL);
    } else {
        pool_run_chunks_shared(launch);
    }
}

static void *pool_thread(void *arg)
{
    dj__host_pool *pool = arg;
    pthread_mutex_lock(&pool->mutex);
    while (!pool->stop) {
        pool_launch *launch = pool->launch;
        if (launch == NULL || launch->openings == 0) {
            pthread_cond_wait(&pool->wake, &pool->mutex);
            continue;
        }
        launch->openings--;
        launch->active++;
        pthread_mutex_unlock(&pool->mutex);
        dj__fp_set(launch->fp);
        pool_take_part(launch);
        pthread_mutex_lock(&pool->mutex);
        if (--launch->active == 0) {
            pthread_cond_signal(&pool->idle);
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

dj_status dj__host_pool_create(unsigned threads, dj__host_pool **out, dj_error *err)
{
    *out = calloc(1, sizeof(dj__host_pool) + (threads - 1) * sizeof(pthread_t));
    if (*out == NULL) {
        return dj__fail_memory(err);
    }
    (*out)->size = threads;
    dj__mutex_init(&(*out)->mutex);
    dj__cond_init(&(*out)->wake);
    dj__cond_init(&(*out)->idle);
    return DJ_OK;
}

void dj__host_pool_destroy(dj__host_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    pool->stop = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->started; i++) {
        pthread_join(pool->threads[i], NULL);
    }
    pthread_cond_destroy(&pool->idle);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

unsigned dj__host_pool_size(const dj__host_pool *pool)
{
    return pool->size;
}

unsigned dj__host_pool_started(dj__host_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    const unsigned started = pool->started;
    pthread_mutex_unlock(&pool->mutex);
    return started;
}

/* Starts the threads that do not run yet. Where the system refuses, fewer have to do; the next
 * launch tries again. */
static void pool_start(dj__host_pool *pool)
{
    while (pool->started < pool->size - 1 &&
           dj__thread_start(&pool->threads[pool->started], "deepjit-host", pool_thread, pool) ==
               0) {
        pool->started++;
    }
}

static void pool_run_shared_out(dj__host_pool *pool, pool_launch *launch, unsigned helpers)
{
    pthread_mutex_lock(&pool->mutex);
    pool_start(pool);
    launch->openings = helpers < pool->started ? helpers : pool->started;
    pool->launch = launch;
    for (unsigned i = 0; i < launch->openings; i++) {
        pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->mutex);

    pool_take_part(launch);

    pthread_mutex_lock(&pool->mutex);
    pool->launch = NULL;
    while (launch->active > 0) {
        pthread_cond_wait(&pool->idle, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
}

void dj__host_pool_run(dj__host_pool *pool, const dj__host_work *work)
{
    const int32_t *grid = work->block.grid;
    const uint64_t total = (uint64_t)grid[0] * (uint64_t)grid[1] * (uint64_t)grid[2];
    pool_launch launch = {.work = work, .total = total, .chunk = total, .fp = dj__fp_get()};
    uint64_t threads =
        work->max_threads == 0 || work->max_threads > pool->size ? pool->size : work->max_threads;
    threads = threads < total ? threads : total;
    if (threads == 1 || atomic_exchange_explicit(&pool->busy, true, memory_order_acquire)) {
        pool_take_part(&launch);
        return;
    }
    launch.chunk = total / (threads * POOL_CHUNKS);
    launch.chunk += launch.chunk == 0;
    pool_run_shared_out(pool, &launch, (unsigned)threads - 1);
    atomic_store_explicit(&pool->busy, false, memory_order_release);
}

void dj__host_pool_after_fork(dj__host_pool *pool)
{
    dj__mutex_init(&pool->mutex);
    dj__cond_init(&pool->wake);
    dj__cond_init(&pool->idle);
    pool->launch = NULL;
    pool->stop = false;
    pool->started = 0;
    atomic_store_explicit(&pool->busy, false, memory_order_relaxed);
}
