/* SPDX-License-Identifier: MIT */
/* Launch options and their limits: shared memory, cooperative, clusters, dependent launches. */
#include "gpu_test.h"

static int64_t shared_want(int bytes)
{
    int64_t sum = 0;
    for (int i = 0; i < bytes; i++) {
        sum += i % 251;
    }
    return sum;
}

static void check_shared(dj_kernel *kernel, uint32_t *out, int bytes)
{
    dj_launch_options options = gpu_shape(2, 128);
    options.shared_bytes = bytes;
    gpu_launch(kernel, &options, DJ_ARGS(out, bytes));
    uint32_t got[2] = {0, 0};
    gpu_download(got, out, sizeof(got));
    CHECK_INT(got[0], shared_want(bytes));
    CHECK_INT(got[1], shared_want(bytes));
}

/* Small, over 48 KiB, all there is, and small again. */
static void all_shared_memory(void)
{
    dj_kernel *const kernel = gpu_compile("shared.cu", NULL);
    uint32_t *const out = gpu_upload(NULL, 8);
    const int most = gpu_device()->shared_optin_bytes;
    CHECK(most > 48 * 1024);
    check_shared(kernel, out, 4);
    check_shared(kernel, out, 48 * 1024 + 4);
    check_shared(kernel, out, most);
    check_shared(kernel, out, 1000);

    dj_launch_options options = gpu_shape(1, 32);
    options.shared_bytes = (int64_t)most + 1;
    char limit[32];
    snprintf(limit, sizeof(limit), "%d", most);
    dj_error err;
    CHECK_ERROR(dj_launch(kernel, &options, DJ_ARGS(out, most), &err), DJ_INVALID_ARGUMENT, limit);
    check_shared(kernel, out, most);
    dj_kernel_release(kernel);
}

/* Every limit is named before the driver sees the launch, and the next launch works. */
static void limits_are_named(void)
{
    dj_kernel *const kernel = gpu_compile("scale.cu", NULL);
    const int in_value = 21;
    int *const out = gpu_upload(NULL, 4);
    int *const in = gpu_upload(&in_value, 4);
    const int two = 2;
    const int n = 1;
    static const struct {
        dj_dim3 grid, block;
        int64_t shared;
        const char *text;
    } bad[] = {
        {{0, 0, 0}, {1, 1, 1}, 0, "grid dimension must be specified"},
        {{1, 1, 1}, {0, 0, 0}, 0, "block dimension must be specified"},
        {{0, 2, 1}, {1, 1, 1}, 0, "grid dimensions must be positive"},
        {{1, 1, 1}, {0, 2, 1}, 0, "block dimensions must be positive"},
        {{1, 1, 1}, {1, 1, 1}, -1, "shared-memory size must not be negative"},
        {{1, 1, 1}, {2048, 1, 1}, 0, "1024"},
        {{1, 1, 1}, {64, 64, 1}, 0, "1024"},
        {{1, 1, 1}, {1, 1, 65}, 0, "64"},
        {{1, 65536, 1}, {1, 1, 1}, 0, "65535"},
        {{1, 1, 65536}, {1, 1, 1}, 0, "65535"},
    };
    dj_error err;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
        options.grid = bad[i].grid;
        options.block = bad[i].block;
        options.shared_bytes = bad[i].shared;
        CHECK_ERROR(dj_launch(kernel, &options, DJ_ARGS(out, in, two, n), &err),
                    DJ_INVALID_ARGUMENT, bad[i].text);
    }
    const dj_launch_options good = gpu_shape(1, 1);
    CHECK_ERROR(dj_launch(NULL, &good, DJ_ARGS(out, in, two, n), &err), DJ_INVALID_ARGUMENT,
                "kernel must not be null");
    CHECK_ERROR(dj_launch(kernel, &good, DJ_ARGS(out, in, two), &err), DJ_INVALID_ARGUMENT,
                "4 arguments");
    gpu_launch(kernel, &good, DJ_ARGS(out, in, two, n));
    int got = 0;
    gpu_download(&got, out, sizeof(got));
    CHECK_INT(got, 42);
    dj_kernel_release(kernel);
}

static void cooperative_launch(void)
{
    if (gpu_device()->cooperative_launch == 0) {
        gpu_skip("the device has no cooperative launches");
    }
    dj_kernel *const kernel = gpu_compile("cooperative.cu", NULL);
    const int blocks = gpu_device()->multiprocessors;
    int *const memory = gpu_upload(NULL, 3 * sizeof(int));
    int *const sum = memory + 1;
    int *const total = memory + 2;
    dj_launch_options options = gpu_shape((uint32_t)blocks, 64);
    int got[3];

    gpu_launch(kernel, &options, DJ_ARGS(memory, sum, total));
    gpu_download(got, memory, sizeof(got));
    CHECK_INT(got[0], 0); /* an ordinary launch has no valid grid group */
    CHECK_INT(got[2], 0);

    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda.cooperative = DJ_ON;
    options.cuda = &cuda;
    gpu_launch(kernel, &options, DJ_ARGS(memory, sum, total));
    gpu_download(got, memory, sizeof(got));
    CHECK_INT(got[0], 1);
    CHECK_INT(got[2], blocks * (blocks + 1) / 2);

    options.grid.x = 1u << 20;
    dj_error err;
    const dj_status status = dj_launch(kernel, &options, DJ_ARGS(memory, sum, total), &err);
    CHECK(status == DJ_INVALID_ARGUMENT || status == DJ_DEVICE);
    CHECK(strstr(err.message, "ooperative") != NULL || strstr(err.message, "COOPERATIVE") != NULL);
    dj_kernel_release(kernel);
}

static void check_cluster(dj_kernel *kernel, uint32_t width, dj_tri nonportable, uint32_t blocks)
{
    int got[64];
    memset(got, 0xff, sizeof(got));
    int *const out = gpu_upload(got, sizeof(got));
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda.cluster = (dj_dim3){width, 1, 1};
    cuda.nonportable_cluster = nonportable;
    dj_launch_options options = gpu_shape(blocks, 32);
    options.cuda = &cuda;
    gpu_launch(kernel, &options, DJ_ARGS(out));
    gpu_download(got, out, sizeof(got));
    for (uint32_t i = 0; i < blocks; i++) {
        CHECK_INT(got[2 * i], 100 + i / width * width + (i + 1) % width);
        CHECK_INT(got[2 * i + 1], width);
    }
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_mem_free(gpu_runtime(), out, &err));
}

static void clusters(void)
{
    if (gpu_device()->cluster_launch == 0) {
        gpu_skip("the device has no clusters");
    }
    dj_kernel *const kernel = gpu_compile("cluster.cu", NULL);
    check_cluster(kernel, 1, DJ_DEFAULT, 2);
    check_cluster(kernel, 2, DJ_DEFAULT, 4);
    check_cluster(kernel, 8, DJ_OFF, 16);

    int *const out = gpu_upload(NULL, 1024);
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda.cluster = (dj_dim3){16, 1, 1};
    dj_launch_options options = gpu_shape(16, 32);
    options.cuda = &cuda;
    dj_error err;
    CHECK(dj_launch(kernel, &options, DJ_ARGS(out), &err) != DJ_OK);
    CHECK(strstr(err.message, "nonportable_cluster") != NULL);
    check_cluster(kernel, 16, DJ_ON, 16);

    cuda.cluster = (dj_dim3){1, 2, 1};
    CHECK_ERROR(dj_launch(kernel, &options, DJ_ARGS(out), &err), DJ_INVALID_ARGUMENT,
                "only one-dimensional CUDA clusters are supported");
    cuda.cluster = (dj_dim3){3, 1, 1}; /* 16 blocks are no multiple of 3 */
    CHECK(dj_launch(kernel, &options, DJ_ARGS(out), &err) != DJ_OK);
    CHECK(err.message[0] != '\0');
    check_cluster(kernel, 2, DJ_DEFAULT, 4);
    dj_kernel_release(kernel);
}

/* The second kernel may start while the first runs; it must still see what the first writes. */
static void dependent_launch(void)
{
    if (gpu_device()->major < 9) {
        gpu_skip("the device has no programmatic dependent launches");
    }
    enum { N = 64, ROUNDS = 20 };
    dj_kernel *const first = gpu_compile("pdl_first.cu", NULL);
    dj_kernel *const second = gpu_compile("pdl_second.cu", NULL);
    int *const data = gpu_upload(NULL, N * sizeof(int));
    int *const out = gpu_upload(NULL, ROUNDS * N * sizeof(int));
    dj_launch_options options = gpu_shape(1, N);
    options.stream = gpu_stream();
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda.enable_pdl = DJ_ON;
    dj_launch_options dependent = options;
    dependent.cuda = &cuda;
    const long long ticks = 100000;
    for (int round = 0; round < ROUNDS; round++) {
        int *const place = out + (size_t)round * N;
        gpu_launch(first, &options, DJ_ARGS(data, round, ticks));
        gpu_launch(second, &dependent, DJ_ARGS(place, data));
    }
    int got[ROUNDS * N];
    gpu_download(got, out, sizeof(got));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) {
            CHECK_INT(got[round * N + i], 2 * (round + i));
        }
    }
    dj_kernel_release(first);
    dj_kernel_release(second);
}

/* Cluster, cooperative, nonportable and dynamic shared memory in one launch. */
static void all_options_at_once(void)
{
    if (gpu_device()->cluster_launch == 0 || gpu_device()->cooperative_launch == 0) {
        gpu_skip("the device lacks clusters or cooperative launches");
    }
    dj_kernel *const kernel = gpu_compile("shared.cu", NULL);
    uint32_t *const out = gpu_upload(NULL, 8);
    const int bytes = 100000;
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda.cluster = (dj_dim3){2, 1, 1};
    cuda.cooperative = DJ_ON;
    cuda.nonportable_cluster = DJ_ON;
    dj_launch_options options = gpu_shape(2, 32);
    options.shared_bytes = bytes;
    options.cuda = &cuda;
    gpu_launch(kernel, &options, DJ_ARGS(out, bytes));
    uint32_t got[2] = {0, 0};
    gpu_download(got, out, sizeof(got));
    CHECK_INT(got[0], shared_want(bytes));
    CHECK_INT(got[1], shared_want(bytes));
    dj_kernel_release(kernel);
}

static void occupancy(void)
{
    dj_kernel *const kernel = gpu_compile("scale.cu", NULL);
    dj_launch_options options = gpu_shape(64, 1024);
    int blocks = -1;
    int clusters = -1;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_cuda_occupancy(kernel, &options, &blocks, &clusters, &err));
    CHECK_INT(blocks, gpu_device()->max_multiprocessor_threads / 1024);
    CHECK_INT(clusters, 0);
    CHECK_OK(dj_cuda_occupancy(kernel, &options, NULL, NULL, &err));
    /* So much shared memory that one block fills the multiprocessor. */
    options.shared_bytes = gpu_device()->shared_optin_bytes;
    CHECK_OK(dj_cuda_occupancy(kernel, &options, &blocks, NULL, &err));
    CHECK_INT(blocks, 1);
    if (gpu_device()->cluster_launch != 0) {
        dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
        cuda.cluster = (dj_dim3){2, 1, 1};
        options.shared_bytes = 0;
        options.cuda = &cuda;
        CHECK_OK(dj_cuda_occupancy(kernel, &options, &blocks, &clusters, &err));
        CHECK(clusters > 0);
    }
    dj_kernel_release(kernel);
}

static void attributes_and_handles(void)
{
    enum { MAX_THREADS = 0, REGISTERS = 4, BINARY_VERSION = 6, CARVEOUT = 9 };
    dj_kernel *const kernel = gpu_compile("scale.cu", NULL);
    dj_error err = DJ_ERROR_INIT;
    int value = 0;
    CHECK_OK(dj_cuda_kernel_attribute(kernel, MAX_THREADS, &value, &err));
    CHECK_INT(value, gpu_device()->max_block_threads);
    CHECK_OK(dj_cuda_kernel_attribute(kernel, REGISTERS, &value, &err));
    CHECK(value > 0 && value <= 255);
    CHECK_OK(dj_cuda_kernel_attribute(kernel, BINARY_VERSION, &value, &err));
    CHECK_INT(value, 10 * gpu_device()->major + gpu_device()->minor);
    CHECK_OK(dj_cuda_kernel_set_attribute(kernel, CARVEOUT, 50, &err));
    CHECK_OK(dj_cuda_kernel_attribute(kernel, CARVEOUT, &value, &err));
    CHECK_INT(value, 50);
    CHECK(dj_cuda_kernel_attribute(kernel, 9999, &value, &err) != DJ_OK);

    /* The handles are the driver's own: a launch by hand works with them. */
    dj_cuda_handles handles = DJ_CUDA_HANDLES_INIT;
    CHECK_OK(dj_cuda_kernel_handles(kernel, &handles, &err));
    CHECK(handles.library != NULL && handles.kernel != NULL && handles.function != NULL);
    const int in_value = 5;
    void *out = gpu_upload(NULL, 4);
    void *in = gpu_upload(&in_value, 4);
    int factor = 9;
    int n = 1;
    void *params[] = {&out, &in, &factor, &n};
    const hand_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    CHECK_CU(gpu_driver()->cuLaunchKernelEx(&config, handles.function, params, NULL));
    int got = 0;
    gpu_download(&got, out, sizeof(got));
    CHECK_INT(got, 45);
    dj_kernel_release(kernel);
}

static const gpu_case cases[] = {
    {"all_shared_memory", all_shared_memory, 0},
    {"limits_are_named", limits_are_named, 0},
    {"cooperative_launch", cooperative_launch, 0},
    {"clusters", clusters, 0},
    {"dependent_launch", dependent_launch, 0},
    {"all_options_at_once", all_options_at_once, 0},
    {"occupancy", occupancy, 0},
    {"attributes_and_handles", attributes_and_handles, 0},
};
GPU_MAIN(cases)
