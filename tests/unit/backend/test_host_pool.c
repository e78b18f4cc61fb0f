/* SPDX-License-Identifier: MIT */
/* The pool: each block once, who runs it, several launches at once, forks. */
#include "backend/host/host_pool.h"
#include "base/thread.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEST_POOL_BLOCKS = 4096, TEST_POOL_LAUNCHERS = 6, TEST_POOL_ROUNDS = 50 };

typedef struct test_pool_counts {
    _Atomic unsigned runs[TEST_POOL_BLOCKS];
    pthread_t caller;
    atomic_bool elsewhere; /* a block ran on another thread than the caller's */
    atomic_bool misplaced;
} test_pool_counts;

static void test_pool_count(const dj_host_block *block, const void *const *args)
{
    test_pool_counts *counts = *(test_pool_counts *const *)args[0];
    const int32_t *grid = block->grid;
    const int32_t *index = block->index;
    if (index[0] < 0 || index[0] >= grid[0] || index[1] < 0 || index[1] >= grid[1] ||
        index[2] < 0 || index[2] >= grid[2] || block->shared != NULL) {
        atomic_store(&counts->misplaced, true);
        return;
    }
    atomic_fetch_add(&counts->runs[(index[2] * grid[1] + index[1]) * grid[0] + index[0]], 1);
    if (!pthread_equal(pthread_self(), counts->caller)) {
        atomic_store(&counts->elsewhere, true);
    }
}

static dj__host_pool *test_pool_new(unsigned threads)
{
    dj__host_pool *pool = NULL;
    assert_int_equal(dj__host_pool_create(threads, &pool, NULL), DJ_OK);
    assert_int_equal(dj__host_pool_size(pool), threads);
    assert_int_equal(dj__host_pool_started(pool), 0);
    return pool;
}

/* True if each of the x * y * z blocks ran once. */
static bool test_pool_covers(dj__host_pool *pool, int x, int y, int z, uint32_t max_threads,
                             bool *elsewhere)
{
    test_pool_counts *counts = calloc(1, sizeof *counts);
    const void *const args[] = {&counts};
    const dj__host_work work = {.run = test_pool_count,
                                .args = args,
                                .block = {.grid = {x, y, z}, .block = {1, 1, 1}},
                                .max_threads = max_threads};
    if (counts == NULL) {
        return false;
    }
    counts->caller = pthread_self();
    dj__host_pool_run(pool, &work);
    bool right = !counts->misplaced;
    for (int i = 0; i < TEST_POOL_BLOCKS; i++) {
        right = right && counts->runs[i] == (i < x * y * z ? 1u : 0u);
    }
    if (elsewhere != NULL) {
        *elsewhere = counts->elsewhere;
    }
    free(counts);
    return right;
}

static void test_pool_blocks(void **state)
{
    (void)state;
    static const int grids[][3] = {{1, 1, 1},  {2, 1, 1},   {1, 1, 2},   {3, 5, 7},
                                   {1, 64, 2}, {31, 1, 33}, {4096, 1, 1}};
    static const unsigned sizes[] = {1, 2, 3, 8};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        dj__host_pool *pool = test_pool_new(sizes[s]);
        for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
            assert_true(test_pool_covers(pool, grids[i][0], grids[i][1], grids[i][2], 0, NULL));
            assert_int_equal(dj__host_pool_started(pool), i > 0 ? sizes[s] - 1 : 0);
        }
        dj__host_pool_destroy(pool);
    }
    dj__host_pool_destroy(NULL);
}

static void test_pool_one_thread(void **state)
{
    (void)state;
    bool elsewhere = true;
    dj__host_pool *pool = test_pool_new(4);
    assert_true(test_pool_covers(pool, 100, 3, 1, 1, &elsewhere));
    assert_false(elsewhere);
    assert_int_equal(dj__host_pool_started(pool), 0);
    dj__host_pool_destroy(pool);
}

static void test_pool_meet(const dj_host_block *block, const void *const *args)
{
    (void)block;
    (void)pthread_barrier_wait(*(pthread_barrier_t *const *)args[0]);
}

/* Blocks that wait for each other end only if that many threads run them at the same time. */
static void test_pool_together(void **state)
{
    (void)state;
    dj__host_pool *pool = test_pool_new(3);
    for (unsigned threads = 2; threads <= 3; threads++) {
        pthread_barrier_t barrier;
        pthread_barrier_t *const address = &barrier;
        const void *const args[] = {&address};
        assert_int_equal(pthread_barrier_init(&barrier, NULL, threads), 0);
        const dj__host_work work = {.run = test_pool_meet,
                                    .args = args,
                                    .block = {.grid = {(int32_t)threads, 1, 1}},
                                    .max_threads = threads};
        dj__host_pool_run(pool, &work);
        (void)pthread_barrier_destroy(&barrier);
    }
    dj__host_pool_destroy(pool);
}

typedef struct test_pool_gate {
    dj__host_pool *pool;
    sem_t entered;
    sem_t leave;
} test_pool_gate;

static void test_pool_hold(const dj_host_block *block, const void *const *args)
{
    test_pool_gate *gate = *(test_pool_gate *const *)args[0];
    if (block->index[0] == 0) {
        (void)sem_post(&gate->entered);
        while (sem_wait(&gate->leave) != 0) {
        }
    }
}

static void *test_pool_holder(void *arg)
{
    test_pool_gate *gate = arg;
    const void *const args[] = {&gate};
    const dj__host_work work = {.run = test_pool_hold, .args = args, .block = {.grid = {2, 1, 1}}};
    dj__host_pool_run(gate->pool, &work);
    return NULL;
}

/* While one launch keeps the pool, another runs on its own thread. */
static void test_pool_busy(void **state)
{
    (void)state;
    bool elsewhere = true;
    pthread_t thread;
    test_pool_gate gate = {.pool = test_pool_new(2)};
    assert_int_equal(sem_init(&gate.entered, 0, 0), 0);
    assert_int_equal(sem_init(&gate.leave, 0, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, test_pool_holder, &gate), 0);
    while (sem_wait(&gate.entered) != 0) {
    }
    assert_true(test_pool_covers(gate.pool, 64, 2, 1, 0, &elsewhere));
    assert_false(elsewhere);
    assert_int_equal(sem_post(&gate.leave), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(test_pool_covers(gate.pool, 64, 2, 1, 0, NULL));
    (void)sem_destroy(&gate.entered);
    (void)sem_destroy(&gate.leave);
    dj__host_pool_destroy(gate.pool);
}

static void *test_pool_launcher(void *arg)
{
    bool right = true;
    for (int i = 0; i < TEST_POOL_ROUNDS; i++) {
        right = right && test_pool_covers(arg, 1 + i % 7, 1 + i % 5, 3, (uint32_t)(i % 4), NULL);
    }
    return right ? arg : NULL;
}

static void test_pool_many_launchers(void **state)
{
    (void)state;
    pthread_t threads[TEST_POOL_LAUNCHERS];
    dj__host_pool *pool = test_pool_new(3);
    for (int i = 0; i < TEST_POOL_LAUNCHERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, test_pool_launcher, pool), 0);
    }
    for (int i = 0; i < TEST_POOL_LAUNCHERS; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, pool);
    }
    dj__host_pool_destroy(pool);
}

/* Each block fills its shared memory, and finds it as it left it. */
static void test_pool_use_shared(const dj_host_block *block, const void *const *args)
{
    unsigned char *bytes = block->shared;
    bool right = bytes != NULL && (uintptr_t)bytes % 64 == 0;
    const int value = block->index[0] & 0xff;
    if (right) {
        memset(bytes, value, block->shared_bytes);
        for (uint32_t i = 0; i < block->shared_bytes; i++) {
            right = right && bytes[i] == value;
        }
    }
    if (right) {
        atomic_fetch_add(*(_Atomic unsigned *const *)args[0], 1);
    }
}

static void test_pool_shared(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 4096, DJ__HOST_MAX_SHARED};
    dj__host_pool *pool = test_pool_new(3);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        _Atomic unsigned right = 0;
        _Atomic unsigned *const address = &right;
        const void *const args[] = {&address};
        const dj__host_work work = {.run = test_pool_use_shared,
                                    .args = args,
                                    .block = {.grid = {50, 1, 1}, .shared_bytes = sizes[i]}};
        dj__host_pool_run(pool, &work);
        assert_int_equal(right, 50);
    }
    dj__host_pool_destroy(pool);
}

/* ThreadSanitizer cannot follow a thread started in the child of a threaded process. */
#if defined(__SANITIZE_THREAD__)
#define TEST_POOL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_POOL_TSAN 1
#endif
#endif

static void test_pool_fork(void **state)
{
    (void)state;
#ifdef TEST_POOL_TSAN
    skip();
#endif
    dj__host_pool *pool = test_pool_new(3);
    assert_true(test_pool_covers(pool, 10, 10, 1, 0, NULL));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dj__host_pool_after_fork(pool);
        bool right = dj__host_pool_started(pool) == 0;
        right = test_pool_covers(pool, 10, 10, 1, 0, NULL) && right;
        right = dj__host_pool_started(pool) == 2 && right;
        dj__host_pool_destroy(pool);
        _exit(right ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(test_pool_covers(pool, 10, 10, 1, 0, NULL));
    dj__host_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_blocks),         cmocka_unit_test(test_pool_one_thread),
        cmocka_unit_test(test_pool_together),       cmocka_unit_test(test_pool_busy),
        cmocka_unit_test(test_pool_many_launchers), cmocka_unit_test(test_pool_shared),
        cmocka_unit_test(test_pool_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
