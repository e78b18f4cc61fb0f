/* SPDX-License-Identifier: MIT */
/* What goes into a kernel's parameters arrives whole, whatever their number, types and size. */
#include "gpu_test.h"

typedef struct quad {
    int32_t a, b, c, d;
} quad;

static void mixed_types(void)
{
    dj_kernel *const kernel = gpu_compile("mixed.cu", NULL);
    CHECK_INT(dj_kernel_num_params(kernel), 14);
    const int32_t hundred = 100;
    int32_t *const out = gpu_upload(NULL, sizeof(*out));
    int32_t *const in = gpu_upload(&hundred, sizeof(hundred));
    void *const nothing = NULL;
    const int8_t a = -3;
    const uint16_t b = 40;
    const int32_t c = -8;
    const uint32_t d = 30;
    const int64_t e = 50;
    const uint64_t f = 60;
    const float g = 1.5f;
    const double h = 2.25;
    const bool k = true;
    const quad q = {1, 2, 3, 4};
    const quad r = {5, 6, 7, 8};
    const dj_launch_options options = gpu_shape(1, 1);
    gpu_launch(kernel, &options, DJ_ARGS(out, in, nothing, a, b, c, d, e, f, g, h, k, q, r));
    int32_t got = 0;
    gpu_download(&got, out, sizeof(got));
    CHECK_INT(got, 339);
    dj_kernel_release(kernel);
}

/* One source, two types of a parameter: two kernels, each checks the size of its own. */
static void types_by_macro(void)
{
    static const char *const flags[][1] = {{"-DINDEX_BITS=32"}, {"-DINDEX_BITS=64"}};
    dj_kernel *kernels[2];
    for (int i = 0; i < 2; i++) {
        dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
        options.extra_flags = flags[i];
        options.num_extra_flags = 1;
        kernels[i] = gpu_compile("index_bits.cu", &options);
    }
    CHECK(kernels[0] != kernels[1]);
    const int32_t small = 17;
    const int64_t large = 23;
    int64_t got[2] = {0, 0};
    int64_t *const out = gpu_upload(got, sizeof(got));
    int64_t *const second = out + 1;
    const dj_launch_options options = gpu_shape(1, 1);
    gpu_launch(kernels[0], &options, DJ_ARGS(out, small));
    gpu_launch(kernels[1], &options, DJ_ARGS(second, large));
    gpu_download(got, out, sizeof(got));
    CHECK_INT(got[0], 4017);
    CHECK_INT(got[1], 8023);
    dj_error err;
    CHECK_ERROR(dj_launch(kernels[0], &options, DJ_ARGS(out, large), &err), DJ_INVALID_ARGUMENT,
                "8 bytes");
    dj_kernel_release(kernels[0]);
    dj_kernel_release(kernels[1]);
}

enum { MAPS = 18 };
typedef struct tensor_map {
    _Alignas(64) unsigned char bytes[128];
} tensor_map;

/* A map of a matrix of floats with `columns` columns at `memory`. */
static void encode(tensor_map *out, void *memory, uint32_t columns)
{
    if (gpu_device()->major < 9) {
        memset(out, (int)columns, sizeof(*out));
        return;
    }
    enum { FLOAT32 = 7 };
    const uint64_t dims[2] = {columns, 16};
    const uint64_t strides[1] = {4 * (uint64_t)columns};
    const uint32_t box[2] = {columns < 32 ? columns : 32, 8};
    const uint32_t steps[2] = {1, 1};
    CHECK_CU(gpu_driver()->cuTensorMapEncodeTiled(out, FLOAT32, 2, memory, dims, strides, box,
                                                  steps, 0, 0, 0, 0));
}

static void large_structures(void)
{
    dj_kernel *const kernel = gpu_compile("large.cu", NULL);
    unsigned char big[1024];
    for (size_t i = 0; i < sizeof(big); i++) {
        big[i] = (unsigned char)(i * 7 + 3);
    }
    char *const memory = gpu_upload(NULL, 1 << 20);
    tensor_map maps[MAPS];
    dj_arg args[MAPS + 4] = {{big, sizeof(big), 1}};
    uint32_t want = gpu_fnv(GPU_FNV_START, big, sizeof(big));
    for (uint32_t i = 0; i < MAPS; i++) {
        encode(&maps[i], memory + 1024 * (size_t)i, 4 * (i + 1));
        args[1 + i] = DJ_ARG(maps[i]);
        want = gpu_fnv(want, &maps[i], sizeof(maps[i]));
    }
    const unsigned char last[12] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 255, 128};
    want = gpu_fnv(want, last, sizeof(last));
    void *const nothing = NULL;
    uint32_t *const out = gpu_upload(NULL, 8);
    args[MAPS + 1] = DJ_ARG(last);
    args[MAPS + 2] = DJ_ARG(nothing);
    args[MAPS + 3] = DJ_ARG(out);
    const dj_launch_options options = gpu_shape(1, 1);
    gpu_launch(kernel, &options, args, MAPS + 4);
    uint32_t got[2] = {0, 0};
    gpu_download(got, out, sizeof(got));
    CHECK_INT(got[0], want);
    CHECK_INT(got[1], 1);
    dj_kernel_release(kernel);
}

static void more_than_64(void)
{
    enum { N = 100 };
    dj_kernel *const kernel = gpu_compile("many.cu", NULL);
    CHECK_INT(dj_kernel_num_params(kernel), N + 1);
    int32_t *const out = gpu_upload(NULL, 4);
    int32_t values[N];
    dj_arg args[N + 1] = {DJ_ARG(out)};
    int32_t want = 0;
    for (int i = 0; i < N; i++) {
        values[i] = i * i - 1000;
        args[1 + i] = DJ_ARG(values[i]);
        want += (i + 1) * values[i];
    }
    const dj_launch_options options = gpu_shape(1, 1);
    gpu_launch(kernel, &options, args, N + 1);
    int32_t got = 0;
    gpu_download(&got, out, sizeof(got));
    CHECK_INT(got, want);
    dj_error err;
    CHECK_ERROR(dj_launch(kernel, &options, args, N, &err), DJ_INVALID_ARGUMENT, "101 arguments");
    dj_kernel_release(kernel);
}

/* 8 + 4 * 8189 = 32764 bytes, all there is; one more integer does not compile. */
static void whole_parameter_block(void)
{
    enum { INTS = 8189 };
    static const char *const fits[] = {"-DINTS=8189"};
    static const char *const too_large[] = {"-DINTS=8190"};
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.extra_flags = fits;
    options.num_extra_flags = 1;
    dj_kernel *const kernel = gpu_compile("block.cu", &options);
    static int32_t values[INTS];
    int64_t want = 0;
    for (int i = 0; i < INTS; i++) {
        values[i] = (i * 7919) % 1000 - 500;
        want += (int64_t)(i + 1) * values[i];
    }
    int64_t *const out = gpu_upload(NULL, 8);
    const dj_launch_options shape = gpu_shape(1, 1);
    gpu_launch(kernel, &shape, DJ_ARGS(out, values));
    int64_t got = 0;
    gpu_download(&got, out, sizeof(got));
    CHECK_INT(got, want);
    dj_kernel_release(kernel);

    options.extra_flags = too_large;
    char *const source = gpu_source("block.cu");
    dj_kernel *none = NULL;
    dj_error err;
    CHECK_ERROR(dj_compile(gpu_runtime(), "block", source, strlen(source), &options, &none, &err),
                DJ_COMPILE, "arameter");
    CHECK(none == NULL);
    free(source);
}

/* No parameters; what the kernel did is read from its variable. */
static void no_arguments(void)
{
    dj_kernel *const kernel = gpu_compile("counter.cu", NULL);
    CHECK_INT(dj_kernel_num_params(kernel), 0);
    const dj_launch_options options = gpu_shape(1, 1);
    void *address = NULL;
    size_t size = 0;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_cuda_global(kernel, "counter", &address, &size, &err));
    CHECK_INT(size, 4);
    gpu_launch(kernel, &options, DJ_NO_ARGS);
    gpu_launch(kernel, &options, DJ_NO_ARGS);
    int32_t got = 0;
    gpu_download(&got, address, sizeof(got));
    CHECK_INT(got, 7);

    const int32_t ten = 10;
    CHECK_OK(dj_cuda_global(kernel, "step", &address, &size, &err));
    CHECK_OK(dj_mem_copy(gpu_runtime(), address, &ten, sizeof(ten), &err));
    gpu_launch(kernel, &options, DJ_NO_ARGS);
    CHECK_OK(dj_cuda_global(kernel, "counter", &address, NULL, &err));
    gpu_download(&got, address, sizeof(got));
    CHECK_INT(got, 17);
    CHECK_ERROR(dj_cuda_global(kernel, "no_such_variable", &address, &size, &err), DJ_NOT_FOUND,
                "no_such_variable");
    dj_kernel_release(kernel);
}

static void three_dimensions(void)
{
    enum { BLOCKS = 2 * 3 * 2, THREADS = 4 * 2 * 2, N = BLOCKS * THREADS };
    dj_kernel *const kernel = gpu_compile("index.cu", NULL);
    uint32_t got[N];
    memset(got, 0xff, sizeof(got));
    uint32_t *const out = gpu_upload(got, sizeof(got));
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid = (dj_dim3){2, 3, 2};
    options.block = (dj_dim3){4, 2, 2};
    gpu_launch(kernel, &options, DJ_ARGS(out));
    gpu_download(got, out, sizeof(got));
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t block = i / THREADS;
        const uint32_t thread = i % THREADS;
        const uint32_t want = block % 2 | block / 2 % 3 << 4 | block / 6 << 8 | thread % 4 << 12 |
                              thread / 4 % 2 << 16 | thread / 8 << 20;
        CHECK_INT(got[i], want);
    }
    dj_kernel_release(kernel);
}

static const gpu_case cases[] = {
    {"mixed_types", mixed_types, 0},
    {"types_by_macro", types_by_macro, 0},
    {"large_structures", large_structures, 0},
    {"more_than_64", more_than_64, 0},
    {"whole_parameter_block", whole_parameter_block, 0},
    {"no_arguments", no_arguments, 0},
    {"three_dimensions", three_dimensions, 0},
};
GPU_MAIN(cases)
