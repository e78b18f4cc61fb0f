/* SPDX-License-Identifier: MIT */
/* Which stream a launch goes to, from which thread and in which context it may come. */
#include "gpu_test.h"
#include <pthread.h>

/* How many kernels `launch` puts into a capture of `stream`. */
static size_t captured(void *stream, dj_kernel *kernel, const dj_launch_options *options,
                       const dj_arg *args, size_t num_args)
{
    const hand_driver *const driver = gpu_driver();
    void *graph = NULL;
    CHECK_CU(driver->cuStreamBeginCapture_v2(stream, HAND_CAPTURE_RELAXED));
    gpu_launch(kernel, options, args, num_args);
    CHECK_CU(driver->cuStreamEndCapture(stream, &graph));
    const size_t nodes = gpu_kernel_nodes(graph);
    gpu_replay(graph, stream);
    return nodes;
}

static void *provide(void *user)
{
    return *(void **)user;
}

/* Explicit beats default beats provider; an explicit NULL is the default stream. */
static void order_of_streams(void)
{
    void *const one = gpu_stream();
    void *two = gpu_stream();
    dj_launch_options defaults = DJ_LAUNCH_OPTIONS_INIT;
    defaults.stream = one;
    dj_config config = DJ_CONFIG_INIT;
    config.current_stream = provide;
    config.current_stream_user = &two;
    dj_runtime *const by_provider = gpu_new_runtime(&config);
    config.launch_defaults = &defaults;
    dj_runtime *const by_default = gpu_new_runtime(&config);

    dj_kernel *const plain = gpu_compile("scale.cu", NULL);
    dj_kernel *const provided = gpu_compile_in(by_provider, "scale.cu", NULL);
    dj_kernel *const defaulted = gpu_compile_in(by_default, "scale.cu", NULL);
    const int in_value = 3;
    int *const in = gpu_upload(&in_value, 4);
    int *const out = gpu_upload(NULL, 4);
    const int factor = 5;
    const int n = 1;
    const dj_launch_options unset = gpu_shape(1, 1);
    dj_launch_options explicit_one = unset;
    explicit_one.stream = one;
    dj_launch_options explicit_null = unset;
    explicit_null.stream_set = true;

    CHECK_INT(captured(two, provided, &unset, DJ_ARGS(out, in, factor, n)), 1);
    CHECK_INT(captured(one, provided, &unset, DJ_ARGS(out, in, factor, n)), 0);
    CHECK_INT(captured(one, provided, &explicit_one, DJ_ARGS(out, in, factor, n)), 1);
    CHECK_INT(captured(two, provided, &explicit_null, DJ_ARGS(out, in, factor, n)), 0);
    CHECK_INT(captured(one, defaulted, &unset, DJ_ARGS(out, in, factor, n)), 1);
    CHECK_INT(captured(two, defaulted, &unset, DJ_ARGS(out, in, factor, n)), 0);
    CHECK_INT(captured(one, defaulted, &explicit_null, DJ_ARGS(out, in, factor, n)), 0);
    CHECK_INT(captured(one, plain, &unset, DJ_ARGS(out, in, factor, n)), 0);
    CHECK_INT(captured(one, plain, &explicit_one, DJ_ARGS(out, in, factor, n)), 1);
    /* The provider is asked at each launch. */
    two = one;
    CHECK_INT(captured(one, provided, &unset, DJ_ARGS(out, in, factor, n)), 1);
    int got = 0;
    gpu_download(&got, out, sizeof(got));
    CHECK_INT(got, 15);
    dj_kernel_release(plain);
    dj_kernel_release(provided);
    dj_kernel_release(defaulted);
    dj_runtime_release(by_provider);
    dj_runtime_release(by_default);
}

/* Launches of one stream run in order. */
static void order_within_a_stream(void)
{
    dj_kernel *const slow = gpu_compile("slow.cu", NULL);
    dj_kernel *const scale = gpu_compile("scale.cu", NULL);
    int *const memory = gpu_upload(NULL, 8);
    int *const out = memory + 1;
    const int value = 11;
    const int factor = 3;
    const int n = 1;
    const long long ticks = 20000000;
    dj_launch_options options = gpu_shape(1, 1);
    options.stream = gpu_stream();
    gpu_launch(slow, &options, DJ_ARGS(memory, value, ticks));
    gpu_launch(scale, &options, DJ_ARGS(out, memory, factor, n));
    CHECK_CU(gpu_driver()->cuStreamSynchronize(options.stream));
    int got[2] = {0, 0};
    gpu_download(got, memory, sizeof(got));
    CHECK_INT(got[0], 11);
    CHECK_INT(got[1], 33);
    dj_kernel_release(slow);
    dj_kernel_release(scale);
}

typedef struct thread_job {
    dj_kernel *kernel;
    int *out;
    int *in;
    void *stream;
    dj_status status;
    dj_error err;
    bool had_context;
    bool has_context;
} thread_job;

static void *launch_in_thread(void *argument)
{
    thread_job *const job = argument;
    void *context = NULL;
    job->had_context = gpu_driver()->cuCtxGetCurrent(&context) == 0 && context != NULL;
    const int factor = 4;
    const int n = 1;
    dj_launch_options options = gpu_shape(1, 1);
    options.stream = job->stream;
    job->status =
        dj_launch(job->kernel, &options, DJ_ARGS(job->out, job->in, factor, n), &job->err);
    if (job->status == DJ_OK) {
        job->status = dj_synchronize(gpu_runtime(), &job->err);
    }
    job->has_context = gpu_driver()->cuCtxGetCurrent(&context) == 0 && context != NULL;
    return NULL;
}

static void thread_without_context(void)
{
    (void)gpu_driver(); /* looks up in this thread what the other one calls */
    dj_kernel *const kernel = gpu_compile("scale.cu", NULL);
    const int in_value = 8;
    int *const in = gpu_upload(&in_value, 4);
    for (int i = 0; i < 2; i++) {
        int *const out = gpu_upload(NULL, 4);
        thread_job job = {
            .kernel = kernel, .out = out, .in = in, .stream = i == 0 ? NULL : gpu_stream()};
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, launch_in_thread, &job) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(!job.had_context);
        dj_error err = job.err;
        CHECK_OK(job.status);
        CHECK(job.has_context);
        int got = 0;
        gpu_download(&got, out, sizeof(got));
        CHECK_INT(got, 32);
    }
    dj_kernel_release(kernel);
}

/* Everything of the device is gone, the kernel is not. */
static void primary_context_reset(void)
{
    const hand_driver *const driver = gpu_driver();
    dj_kernel *const kernel = gpu_compile("scale.cu", NULL);
    const int factor = 6;
    const int n = 1;
    const dj_launch_options options = gpu_shape(1, 1);
    for (int round = 0; round < 3; round++) {
        const int in_value = 7 + round;
        int *const in = gpu_upload(&in_value, 4);
        int *const out = gpu_upload(NULL, 4);
        gpu_launch(kernel, &options, DJ_ARGS(out, in, factor, n));
        int got = 0;
        gpu_download(&got, out, sizeof(got));
        CHECK_INT(got, 6 * in_value);
        CHECK_CU(driver->cuDevicePrimaryCtxReset_v2(gpu_device()->ordinal));
        void *context = NULL;
        CHECK_CU(driver->cuDevicePrimaryCtxRetain(&context, gpu_device()->ordinal));
        CHECK_CU(driver->cuCtxSetCurrent(context));
    }
    dj_kernel_release(kernel);
}

/* The kernel is let go while it runs. */
static void released_right_after_launch(void)
{
    const hand_driver *const driver = gpu_driver();
    uint64_t out = 0;
    CHECK_CU(driver->cuMemAlloc_v2(&out, 4));
    for (int round = 0; round < 3; round++) {
        dj_runtime *const runtime = gpu_new_runtime(NULL);
        dj_kernel *const kernel = gpu_compile_in(runtime, "slow.cu", NULL);
        const int value = 70 + round;
        const long long ticks = 200000000;
        dj_launch_options options = gpu_shape(1, 1);
        options.stream = gpu_stream();
        gpu_launch(kernel, &options, DJ_ARGS(out, value, ticks));
        dj_kernel_release(kernel);
        dj_runtime_release(runtime);
        CHECK_CU(driver->cuStreamSynchronize(options.stream));
        int got = 0;
        CHECK_CU(driver->cuMemcpyDtoH_v2(&got, out, 4));
        CHECK_INT(got, value);
    }
}

enum { THREADS = 8, LAUNCHES = 500 };

static void *many_launches(void *argument)
{
    thread_job *const job = argument;
    const int factor = 2;
    const int n = 1;
    dj_launch_options options = gpu_shape(1, 1);
    options.stream = job->stream;
    for (int i = 0; i < LAUNCHES && job->status == DJ_OK; i++) {
        job->status =
            dj_launch(job->kernel, &options, DJ_ARGS(job->out, job->in, factor, n), &job->err);
    }
    if (job->status == DJ_OK) {
        job->status = dj_synchronize(gpu_runtime(), &job->err);
    }
    return NULL;
}

/* One kernel, many threads; each with memory and a stream of its own. */
static void threads_share_a_kernel(void)
{
    dj_kernel *const kernel = gpu_compile("scale.cu", NULL);
    thread_job jobs[THREADS];
    pthread_t threads[THREADS];
    memset(jobs, 0, sizeof(jobs));
    for (int i = 0; i < THREADS; i++) {
        jobs[i].kernel = kernel;
        jobs[i].in = gpu_upload(&i, 4);
        jobs[i].out = gpu_upload(NULL, 4);
        jobs[i].stream = gpu_stream();
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, many_launches, &jobs[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        dj_error err = jobs[i].err;
        CHECK_OK(jobs[i].status);
        int got = -1;
        gpu_download(&got, jobs[i].out, sizeof(got));
        CHECK_INT(got, 2 * i);
    }
    dj_kernel_release(kernel);
}

static const gpu_case cases[] = {
    {"order_of_streams", order_of_streams, 0},
    {"order_within_a_stream", order_within_a_stream, 0},
    {"thread_without_context", thread_without_context, 0},
    {"primary_context_reset", primary_context_reset, GPU_ALONE},
    {"released_right_after_launch", released_right_after_launch, 0},
    {"threads_share_a_kernel", threads_share_a_kernel, 0},
};
GPU_MAIN(cases)
