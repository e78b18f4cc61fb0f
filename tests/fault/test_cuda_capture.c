/* SPDX-License-Identifier: MIT */
/* link: -ldl */
/* Compiling, loading, launching and releasing while a stream is captured: the capture stays
 * valid, the thread's capture mode is what it was, and only what should be is in the graph. */
#include "cuda_maker.h"
#include <pthread.h>

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2, NON_BLOCKING = 1 };

static const char scale[] = "kernel scale 8:8 8:8 4:4\n";

static dj_status launch_on(dj_kernel *kernel, void *stream, bool set, int64_t shared, dj_error *err)
{
    dj_launch_options options = maker_one_thread();
    void *out = NULL;
    void *in = NULL;
    int n = 17;
    options.stream = stream;
    options.stream_set = set;
    options.shared_bytes = shared;
    return dj_launch(kernel, &options, DJ_ARGS(out, in, n), err);
}

static void must(dj_status status, const dj_error *err)
{
    if (status != DJ_OK) {
        fail_msg("%s", err->message);
    }
}

static int capture_mode(void)
{
    int mode = RELAXED;
    assert_int_equal(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
    const int before = mode;
    assert_int_equal(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
    return before;
}

static dj__cu_stream begin(unsigned flags, int mode)
{
    dj__cu_context context = NULL;
    dj__cu_stream stream = NULL;
    assert_int_equal(cu.cuInit(0), 0);
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cu.cuCtxSetCurrent(context), 0);
    assert_int_equal(cu.cuStreamCreate(&stream, flags), 0);
    assert_int_equal(cu.cuStreamBeginCapture_v2(stream, mode), 0);
    return stream;
}

/* Number of nodes in the graph. */
static size_t end(dj__cu_stream stream)
{
    void *graph = NULL;
    size_t nodes = 0;
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), 0);
    assert_int_equal(cu.cuGraphGetNodes(graph, NULL, &nodes), 0);
    assert_int_equal(cu.cuGraphDestroy(graph), 0);
    assert_int_equal(cu.cuStreamDestroy_v2(stream), 0);
    return nodes;
}

/* From nothing to a launch, all of it in the capture. */
static void everything_in_a_capture(void **state)
{
    (void)state;
    for (int mode = GLOBAL; mode <= RELAXED; mode++) {
        char source[64];
        snprintf(source, sizeof(source), "%s# %d\n", scale, mode);
        dj__cu_stream stream = begin(0, mode);
        dj_runtime *runtime = maker_runtime(NULL);
        dj_kernel *kernel = NULL;
        dj_error err = DJ_ERROR_INIT;
        void *memory = NULL;
        must(maker_try(runtime, source, &kernel, &err), &err);
        must(launch_on(kernel, stream, false, 0, &err), &err);
        must(launch_on(kernel, stream, false, 200000, &err), &err);
        must(dj_mem_alloc(runtime, 100, &memory, &err), &err);
        must(dj_mem_free(runtime, memory, &err), &err);
        dj_kernel_release(kernel);
        dj_runtime_release(runtime);
        assert_int_equal(capture_mode(), GLOBAL);
        assert_int_equal(end(stream), 2);
        standin_cuda_launch last;
        assert_int_equal(cu.last_launch(&last), 1);
        assert_int_equal(last.captured, 1);
        assert_int_equal(last.shared_bytes, 200000);
    }
}

/* What is loaded in one capture is also the thread's mode when it is not GLOBAL. */
static void mode_of_the_thread_is_kept(void **state)
{
    (void)state;
    int mode = THREAD_LOCAL;
    assert_int_equal(cu.cuInit(0), 0);
    assert_int_equal(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, scale);
    dj_error err = DJ_ERROR_INIT;
    must(launch_on(kernel, NULL, true, 0, &err), &err);
    must(dj_synchronize(runtime, &err), &err);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    assert_int_equal(capture_mode(), THREAD_LOCAL);
    assert_int_equal(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
}

static void launches_beside_a_capture(void **state)
{
    (void)state;
    dj__cu_stream captured = begin(NON_BLOCKING, GLOBAL);
    dj__cu_stream other = NULL;
    assert_int_equal(cu.cuStreamCreate(&other, NON_BLOCKING), 0);
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, scale);
    dj_error err = DJ_ERROR_INIT;
    must(launch_on(kernel, other, false, 0, &err), &err);
    must(launch_on(kernel, NULL, true, 0, &err), &err); /* the default stream is not blocked */
    must(launch_on(kernel, captured, false, 0, &err), &err);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    assert_int_equal(end(captured), 1);
    assert_int_equal(cu.cuStreamDestroy_v2(other), 0);
}

/* The default stream must not be used while a blocking stream is captured; that is the caller's
 * mistake, and it is told so. */
static void default_stream_beside_a_blocking_capture(void **state)
{
    (void)state;
    void *graph = NULL;
    dj__cu_stream stream = begin(0, RELAXED);
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, scale);
    dj_error err = DJ_ERROR_INIT;
    maker_expect(launch_on(kernel, NULL, true, 0, &err), DJ_DEVICE, &err,
                 "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT (906)");
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), 901);
    must(launch_on(kernel, NULL, true, 0, &err), &err);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    assert_int_equal(cu.cuStreamDestroy_v2(stream), 0);
}

static void *compile_elsewhere(void *arg)
{
    dj_runtime *runtime = arg;
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    dj_status status = maker_try(runtime, "kernel elsewhere 8:8 8:8 4:4\n", &kernel, &err);
    if (status == DJ_OK) {
        status = launch_on(kernel, NULL, true, 0, &err);
    }
    dj_kernel_release(kernel);
    return status == DJ_OK ? NULL : arg;
}

static void another_thread_compiles_during_a_capture(void **state)
{
    (void)state;
    for (int mode = GLOBAL; mode <= RELAXED; mode++) {
        dj__cu_stream stream = begin(NON_BLOCKING, mode);
        dj_runtime *runtime = maker_runtime(NULL);
        pthread_t thread;
        void *failed = NULL;
        assert_int_equal(pthread_create(&thread, NULL, compile_elsewhere, runtime), 0);
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
        dj_runtime_release(runtime);
        assert_int_equal(end(stream), 0);
    }
}

/* An unload that is forbidden all the same is done later, and the kernel's memory is ours. */
static void forbidden_unload_is_made_up_for(void **state)
{
    (void)state;
    standin_cuda_live live;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    setenv("DJ_JIT_MEM_CACHE_MAX", "1", 1);
    dj_runtime *bounded = maker_runtime(NULL);
    unsetenv("DJ_JIT_MEM_CACHE_MAX");
    must(maker_try(bounded, scale, &kernel, &err), &err);
    dj_kernel_release(kernel);
    cu.fail_call("cuLibraryUnload", 1, 900);
    must(maker_try(bounded, "kernel second 4\n", &kernel, &err), &err); /* drops the first */
    dj_kernel_release(kernel);
    must(maker_try(bounded, "kernel third 4\n", &kernel, &err), &err);
    dj_kernel_release(kernel);
    cu.live_now(&live);
    assert_int_equal(live.libraries, 1);
    cu.reset();
    cu.fail_call("cuLibraryUnload", 1, 900);
    dj_runtime_release(bounded); /* closes the driver, which tries once more */
    cu.live_now(&live);
    assert_int_equal(live.libraries, 0);
    dj_runtime_release(runtime);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
    const struct CMUnitTest tests[] = {
        TEST(everything_in_a_capture),
        TEST(mode_of_the_thread_is_kept),
        TEST(launches_beside_a_capture),
        TEST(default_stream_beside_a_blocking_capture),
        TEST(another_thread_compiles_during_a_capture),
        TEST(forbidden_unload_is_made_up_for),
    };
    return cmocka_run_group_tests_name("CUDA: capture", tests, maker_group, NULL);
}
