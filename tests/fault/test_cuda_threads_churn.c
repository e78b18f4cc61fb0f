/* SPDX-License-Identifier: MIT */
/* link: -ldl */
/* Threads that compile, launch and release the same few kernels on two devices at once, while the
 * memory cache is too small for them: every launch arrives, nothing is left in the driver. */
#include "cuda_maker.h"
#include <pthread.h>

enum { THREADS = 8, ROUNDS = 40, KERNELS = 4 };

static dj_runtime *runtime;
static atomic_int failures;
static pthread_barrier_t start_line;

static bool once(int which, int shared)
{
    char source[64];
    int n = which;
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    dj_launch_options options = maker_one_thread();
    options.shared_bytes = shared;
    snprintf(source, sizeof(source), "kernel k%d 4:4\n", which);
    const bool ok = maker_try(runtime, source, &kernel, &err) == DJ_OK &&
                    dj_launch(kernel, &options, DJ_ARGS(n), &err) == DJ_OK;
    dj_kernel_release(kernel);
    if (!ok) {
        fprintf(stderr, "%s\n", err.message);
    }
    return ok;
}

static void *work(void *arg)
{
    const int index = *(const int *)arg;
    dj__cu_context context = NULL;
    pthread_barrier_wait(&start_line);
    if (index % 2 == 1 && (cu.cuInit(0) != 0 || cu.cuDevicePrimaryCtxRetain(&context, 1) != 0 ||
                           cu.cuCtxSetCurrent(context) != 0)) {
        atomic_fetch_add(&failures, 1);
    }
    for (int i = 0; i < ROUNDS; i++) {
        /* Shared memory beyond what needs no asking, in a different order for each thread. */
        if (!once((index + i) % KERNELS, (index * 7919 + i * 104729) % 200000)) {
            atomic_fetch_add(&failures, 1);
        }
    }
    return NULL;
}

static void threads_on_two_devices(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    setenv("DJ_JIT_MEM_CACHE_MAX", "2", 1);
    runtime = maker_runtime(NULL);
    unsetenv("DJ_JIT_MEM_CACHE_MAX");
    pthread_barrier_init(&start_line, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    pthread_barrier_destroy(&start_line);
    dj_runtime_release(runtime);
    assert_int_equal(atomic_load(&failures), 0);
    assert_int_equal(cu.launches(), THREADS * ROUNDS);
    assert_in_range(atomic_load(&maker.compiles), KERNELS, THREADS * KERNELS);
}

static dj_kernel *shared_kernel;

static void *launch_only(void *arg)
{
    const int index = *(const int *)arg;
    dj_launch_options options = maker_one_thread();
    dj_error err = DJ_ERROR_INIT;
    pthread_barrier_wait(&start_line);
    for (int i = 0; i < ROUNDS; i++) {
        options.shared_bytes = (index * 31 + i * 4999) % 200000;
        if (dj_launch(shared_kernel, &options, DJ_ARGS(i), &err) != DJ_OK) {
            fprintf(stderr, "%s\n", err.message);
            atomic_fetch_add(&failures, 1);
        }
    }
    dj_kernel_release(shared_kernel);
    return NULL;
}

/* One kernel, whose first launches come from everywhere at once; its last user unloads it. */
static void one_kernel_in_many_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    runtime = maker_runtime(NULL);
    shared_kernel = maker_kernel_of(runtime, "kernel k 4:4\n");
    pthread_barrier_init(&start_line, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        (void)dj_kernel_retain(shared_kernel);
        assert_int_equal(pthread_create(&threads[i], NULL, launch_only, &numbers[i]), 0);
    }
    dj_kernel_release(shared_kernel);
    dj_runtime_release(runtime);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    pthread_barrier_destroy(&start_line);
    assert_int_equal(atomic_load(&failures), 0);
    assert_int_equal(cu.launches(), THREADS * ROUNDS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
    const struct CMUnitTest tests[] = {TEST(threads_on_two_devices),
                                       TEST(one_kernel_in_many_threads)};
    return cmocka_run_group_tests_name("CUDA: threads", tests, maker_group, NULL);
}
