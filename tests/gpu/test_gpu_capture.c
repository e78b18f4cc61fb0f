/* SPDX-License-Identifier: MIT */
/*
 * Everything the library does is allowed while a stream of the process is being captured, leaves
 * the capture valid and the thread's capture mode as it was, in each of the three modes.
 */
#include "gpu_test.h"

static const int modes[] = {HAND_CAPTURE_GLOBAL, HAND_CAPTURE_THREAD_LOCAL, HAND_CAPTURE_RELAXED};

/* The thread's mode; exchanging it twice changes nothing. */
static int thread_mode(const hand_driver *driver)
{
    int mode = HAND_CAPTURE_RELAXED;
    CHECK_CU(driver->cuThreadExchangeStreamCaptureMode(&mode));
    int back = mode;
    CHECK_CU(driver->cuThreadExchangeStreamCaptureMode(&back));
    return mode;
}

static void check_active(void *stream)
{
    int status = -1;
    CHECK_CU(gpu_driver()->cuStreamIsCapturing(stream, &status));
    CHECK_INT(status, HAND_CAPTURE_ACTIVE);
}

/* Compiles (cold or from disk), launches on the captured stream, drops another kernel and its
 * runtime; the replayed graph must do what was launched. */
static void everything_inside(void)
{
    const hand_driver *const driver = gpu_driver();
    void *const stream = gpu_stream();
    const int in_value = 9;
    int *const in = gpu_upload(&in_value, 4);
    const int n = 1;
    const int before = thread_mode(driver);
    for (int round = 0; round < 6; round++) {
        char bias[32];
        snprintf(bias, sizeof(bias), "-DBIAS=%d", 1000 + round / 2);
        const char *const flags[] = {bias};
        dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
        options.extra_flags = flags; /* even rounds compile, odd ones find it on disk */
        options.num_extra_flags = 1;
        int *const out = gpu_upload(NULL, 4);
        const int factor = 10 + round;
        dj_launch_options shape = gpu_shape(1, 1);
        shape.stream = stream;

        void *graph = NULL;
        CHECK_CU(driver->cuStreamBeginCapture_v2(stream, modes[round % 3]));
        dj_runtime *const runtime = gpu_new_runtime(NULL);
        dj_kernel *const kernel = gpu_compile_in(runtime, "scale.cu", &options);
        check_active(stream);
        gpu_launch(kernel, &shape, DJ_ARGS(out, in, factor, n));
        check_active(stream);
        dj_runtime *const other = gpu_new_runtime(NULL);
        dj_kernel *const dropped = gpu_compile_in(other, "scale.cu", &options);
        dj_kernel_release(dropped);
        dj_runtime_release(other);
        check_active(stream);
        CHECK_INT(thread_mode(driver), before);
        CHECK_CU(driver->cuStreamEndCapture(stream, &graph));

        CHECK_INT(gpu_kernel_nodes(graph), 1);
        int got = -1;
        gpu_download(&got, out, sizeof(got));
        CHECK_INT(got, 0); /* captured, not run */
        gpu_replay(graph, stream);
        gpu_download(&got, out, sizeof(got));
        CHECK_INT(got, factor * in_value + 1000 + round / 2);
        dj_kernel_release(kernel);
        dj_runtime_release(runtime);
    }
}

/* Raising dynamic shared memory happens at a launch, so also within a capture. */
static void shared_memory_inside(void)
{
    const hand_driver *const driver = gpu_driver();
    void *const stream = gpu_stream();
    const int bytes = gpu_device()->shared_optin_bytes;
    for (int i = 0; i < 3; i++) {
        dj_runtime *const runtime = gpu_new_runtime(NULL);
        uint32_t *const out = gpu_upload(NULL, 4);
        dj_launch_options options = gpu_shape(1, 128);
        options.stream = stream;
        options.shared_bytes = bytes;
        void *graph = NULL;
        CHECK_CU(driver->cuStreamBeginCapture_v2(stream, modes[i]));
        dj_kernel *const kernel = gpu_compile_in(runtime, "shared.cu", NULL);
        gpu_launch(kernel, &options, DJ_ARGS(out, bytes));
        check_active(stream);
        CHECK_CU(driver->cuStreamEndCapture(stream, &graph));
        CHECK_INT(gpu_kernel_nodes(graph), 1);
        gpu_replay(graph, stream);
        uint32_t got = 0;
        uint32_t want = 0;
        for (int k = 0; k < bytes; k++) {
            want += (uint32_t)(k % 251);
        }
        gpu_download(&got, out, sizeof(got));
        CHECK_INT(got, want);
        dj_kernel_release(kernel);
        dj_runtime_release(runtime);
    }
}

/* A launch on a stream that is not captured runs at once and is not in the graph. */
static void other_stream_meanwhile(void)
{
    const hand_driver *const driver = gpu_driver();
    void *const stream = gpu_stream();
    const int in_value = 12;
    int *const in = gpu_upload(&in_value, 4);
    const int n = 1;
    for (int i = 0; i < 3; i++) {
        int *const out = gpu_upload(NULL, 8);
        int *const second = out + 1;
        const int factor = 3 + i;
        dj_launch_options on_captured = gpu_shape(1, 1);
        on_captured.stream = stream;
        dj_launch_options on_other = gpu_shape(1, 1);
        on_other.stream = gpu_stream();
        dj_runtime *const runtime = gpu_new_runtime(NULL);
        void *graph = NULL;
        CHECK_CU(driver->cuStreamBeginCapture_v2(stream, modes[i]));
        dj_kernel *const kernel = gpu_compile_in(runtime, "scale.cu", NULL);
        gpu_launch(kernel, &on_other, DJ_ARGS(second, in, factor, n));
        gpu_launch(kernel, &on_captured, DJ_ARGS(out, second, factor, n));
        CHECK_CU(driver->cuStreamEndCapture(stream, &graph));
        CHECK_INT(gpu_kernel_nodes(graph), 1);
        int got[2] = {-1, -1};
        gpu_download(got, out, sizeof(got));
        CHECK_INT(got[0], 0);
        CHECK_INT(got[1], factor * in_value);
        gpu_replay(graph, stream);
        gpu_download(got, out, sizeof(got));
        CHECK_INT(got[0], factor * factor * in_value);
        dj_kernel_release(kernel);
        dj_runtime_release(runtime);
    }
}

/* The library's very first use in a process, while a stream that the program made by hand is being
 * captured. */
static void first_use_inside(int mode)
{
    hand_driver driver;
    CHECK(hand_open(&driver, NULL));
    CHECK_CU(hand_start(&driver));
    void *stream = NULL;
    void *graph = NULL;
    int status = -1;
    CHECK_CU(driver.cuStreamCreate(&stream, HAND_STREAM_NON_BLOCKING));
    CHECK_CU(driver.cuStreamBeginCapture_v2(stream, mode));
    CHECK(gpu_device()->multiprocessors > 0);
    CHECK(gpu_device()->clock_khz > 0);
    CHECK_CU(driver.cuStreamIsCapturing(stream, &status));
    CHECK_INT(status, HAND_CAPTURE_ACTIVE);
    dj_kernel *const kernel = gpu_compile("counter.cu", NULL);
    dj_launch_options options = gpu_shape(1, 1);
    options.stream = stream;
    gpu_launch(kernel, &options, DJ_NO_ARGS);
    CHECK_INT(thread_mode(&driver), HAND_CAPTURE_GLOBAL);
    CHECK_CU(driver.cuStreamEndCapture(stream, &graph));
    CHECK_INT(gpu_kernel_nodes(graph), 1);
    gpu_replay(graph, stream);
    void *address = NULL;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_cuda_global(kernel, "counter", &address, NULL, &err));
    int got = 0;
    gpu_download(&got, address, sizeof(got));
    CHECK_INT(got, 6);
    dj_kernel_release(kernel);
}

static void first_use_inside_global(void)
{
    first_use_inside(HAND_CAPTURE_GLOBAL);
}

static void first_use_inside_thread_local(void)
{
    first_use_inside(HAND_CAPTURE_THREAD_LOCAL);
}

static void first_use_inside_relaxed(void)
{
    first_use_inside(HAND_CAPTURE_RELAXED);
}

static const gpu_case cases[] = {
    /* Not under compute-sanitizer: with it any cuLibraryUnload in a capture ends the capture. */
    {"everything_inside", everything_inside, GPU_ALONE},
    {"shared_memory_inside", shared_memory_inside, 0},
    {"other_stream_meanwhile", other_stream_meanwhile, 0},
    {"first_use_inside_global", first_use_inside_global, GPU_ALONE},
    {"first_use_inside_thread_local", first_use_inside_thread_local, GPU_ALONE},
    {"first_use_inside_relaxed", first_use_inside_relaxed, GPU_ALONE},
};
GPU_MAIN(cases)
