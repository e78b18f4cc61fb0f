/* SPDX-License-Identifier: MIT */
/* link: -Wl,--wrap=dj__cubin_read,--wrap=dj__cubin_fini */
/* One kernel launched, loaded and unloaded by several threads at once, in several contexts. */
#include "cuda_fake.h"

enum { THREADS = 4, ROUNDS = 2000 };

typedef struct thread_work {
    cuda_fixture *fixture;
    int index;
    int failures;
    char message[256];
} thread_work;

static void thread_keep(thread_work *work, dj_status status, const dj_error *err)
{
    if (status != DJ_OK && work->failures++ == 0) {
        (void)snprintf(work->message, sizeof work->message, "%.200s", err->message);
    }
}

/* Once: a launch that is hit by a second reset in its second attempt may fail. */
static void fake_reset_contexts(void)
{
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < fake.num_functions; i++) {
        atomic_store(&fake.functions[i].valid, false);
    }
    pthread_mutex_unlock(&fake.lock);
}

static void *thread_launches(void *arg)
{
    thread_work *work = arg;
    const dj_cuda_launch_options cuda = {.size = sizeof cuda, .nonportable_cluster = DJ_ON};
    dj_launch_options call = DJ_LAUNCH_OPTIONS_INIT;
    const dj_launch_options none = DJ_LAUNCH_OPTIONS_INIT;
    uint64_t value = 5;
    const void *args[] = {&value, &value};
    call.cuda = work->index % 2 == 0 ? &cuda : NULL;
    for (int i = 0; i < ROUNDS; i++) {
        dj_error err = DJ_ERROR_INIT;
        dj_launch_config config = {
            .grid = {1, 1, 1}, .block = {32, 1, 1}, .call = &call, .defaults = &none};
        config.shared_bytes = (uint64_t)(49000 + 50 * i);
        fake_current = i % 3 == 0 ? 0 : 1 + (i + work->index) % 2;
        thread_keep(work,
                    dj__cuda_driver_ops.launch(work->fixture->driver, work->fixture->module,
                                               &config, args, 2, &err),
                    &err);
        if (work->index == 0 && i == ROUNDS / 2) {
            fake_reset_contexts();
        }
    }
    return NULL;
}

static void *thread_loads(void *arg)
{
    thread_work *work = arg;
    static const char bytes[] = "cubin";
    const dj_binary binary = {bytes, sizeof bytes, "kernel.cubin"};
    for (int i = 0; i < ROUNDS / 10; i++) {
        dj_module *module = NULL;
        dj_module_info info;
        dj_error err = DJ_ERROR_INIT;
        dj_cuda_device device = DJ_CUDA_DEVICE_INIT;
        thread_keep(work, dj__cuda_describe(work->fixture->driver, i % 2, &device, &err), &err);
        atomic_store(&fake.unload_result, i % 2 == 0 ? 900 : 0);
        const dj_status status =
            dj__cuda_driver_ops.load(work->fixture->driver, &binary, &module, &info, &err);
        thread_keep(work, status, &err);
        if (status == DJ_OK) {
            dj__cuda_driver_ops.unload(work->fixture->driver, module);
        }
    }
    return NULL;
}

static void run_threads(cuda_fixture *fixture, void *(*run)(void *))
{
    pthread_t threads[THREADS];
    thread_work work[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work[i] = (thread_work){.fixture = fixture, .index = i};
        assert_int_equal(pthread_create(&threads[i], NULL, run, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (work[i].failures != 0) {
            fail_msg("%d failures, the first: %s", work[i].failures, work[i].message);
        }
    }
}

static void launches(void **state)
{
    (void)state;
    cuda_fixture fixture;
    fake_reset();
    cuda_fixture_start(&fixture);
    atomic_store(&fake.contexts[1].alive, true);
    run_threads(&fixture, thread_launches);
    assert_int_equal(fake.launches, THREADS * ROUNDS);
    assert_true(fake.num_functions == 4);
    cuda_fixture_stop(&fixture);
}

static void loads_and_unloads(void **state)
{
    (void)state;
    cuda_fixture fixture;
    fake_reset();
    assert_int_equal(cuda_fixture_open(&fixture, NULL), DJ_OK);
    run_threads(&fixture, thread_loads);
    atomic_store(&fake.unload_result, 0);
    cuda_fixture_stop(&fixture);
    assert_int_equal(fake.loads, THREADS * ROUNDS / 10);
    assert_int_equal(fake.unloads, fake.loads); /* what had to wait went with the driver */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches),
        cmocka_unit_test(loads_and_unloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
