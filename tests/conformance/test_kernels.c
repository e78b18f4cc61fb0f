/* SPDX-License-Identifier: MIT */
/* Real kernels: what goes in and what must come out, on every back end. */
#include "conformance.h"

static const dj_dim3 one = {1, 1, 1};

static void scale(void **state)
{
    (void)state;
    enum { N = 1000 };
    float in[N];
    float before[N];
    float want[N];
    for (int i = 0; i < N; i++) {
        in[i] = (float)i - 17.5f;
        before[i] = -1.0f;
        want[i] = i < N - 1 ? 2.0f * in[i] : -1.0f;
    }
    dj_kernel *kernel = suite_compile(
        "scale",
        KERNEL_HEADER "DJ_KERNEL(scale, (float *, out), (const float *, in), "
                      "(int, n)) {\n" GLOBAL_INDEX "if (i < n) { out[i] = 2.0f * in[i]; }\n}\n",
        NULL);
    assert_string_equal(dj_kernel_name(kernel), "scale");
    float *out_memory = suite_upload(before, sizeof(before));
    float *in_memory = suite_upload(in, sizeof(in));
    int n = N - 1;
    suite_launch(kernel, (dj_dim3){(N + 255) / 256, 1, 1}, (dj_dim3){256, 1, 1}, 0,
                 DJ_ARGS(out_memory, in_memory, n));
    suite_expect(out_memory, want, sizeof(want));
    dj_mem_free(suite_runtime, out_memory, NULL);
    dj_mem_free(suite_runtime, in_memory, NULL);
    dj_kernel_release(kernel);
}

typedef struct quad {
    int32_t a, b, c, d;
} quad;

/* Every width, a 16-byte struct and null pointers: each must arrive whole. */
static void mixed_arguments(void **state)
{
    (void)state;
    dj_kernel *kernel = suite_compile(
        "mixed",
        KERNEL_HEADER
        "typedef struct quad { int32_t a, b, c, d; } quad;\n"
        "DJ_KERNEL(mixed, (double *, out), (const void *, null_pointer), (int8_t, a),\n"
        "          (uint16_t, b), (int32_t, c), (uint32_t, d), (int64_t, e), (uint64_t, f),\n"
        "          (float, g), (double, h), (bool, k), (quad, q)) {\n"
        "  out[0] = null_pointer == 0 ? 1 : 0;\n"
        "  out[1] = a; out[2] = b; out[3] = c; out[4] = d; out[5] = (double)e;\n"
        "  out[6] = (double)f; out[7] = g; out[8] = h; out[9] = k;\n"
        "  out[10] = q.a; out[11] = q.b; out[12] = q.c; out[13] = q.d;\n}\n",
        NULL);
    const double before[14] = {0};
    double *out = suite_upload(before, sizeof(before));
    void *null_pointer = NULL;
    int8_t a = -7;
    uint16_t b = 65533;
    int32_t c = -2000000000;
    uint32_t d = 4000000000u;
    int64_t e = -((int64_t)1 << 40);
    uint64_t f = (uint64_t)1 << 50;
    float g = 0.125f;
    double h = -1e300;
    bool k = true;
    quad q = {1, -2, 3, -4};
    suite_launch(kernel, one, one, 0, DJ_ARGS(out, null_pointer, a, b, c, d, e, f, g, h, k, q));
    const double want[14] = {1,
                             -7,
                             65533,
                             -2000000000.0,
                             4000000000.0,
                             -(double)((int64_t)1 << 40),
                             (double)((uint64_t)1 << 50),
                             0.125,
                             -1e300,
                             1,
                             1,
                             -2,
                             3,
                             -4};
    suite_expect(out, want, sizeof(want));
    dj_mem_free(suite_runtime, out, NULL);
    dj_kernel_release(kernel);
}

typedef struct big {
    int32_t values[256];
} big;

static void large_struct_by_value(void **state)
{
    (void)state;
    dj_kernel *kernel =
        suite_compile("large",
                      KERNEL_HEADER "typedef struct big { int32_t values[256]; } big;\n"
                                    "DJ_KERNEL(large, (int64_t *, out), (big, data)) {\n"
                                    "  int64_t sum = 0;\n"
                                    "  for (int i = 0; i < 256; i++) { sum += data.values[i]; }\n"
                                    "  out[0] = sum;\n}\n",
                      NULL);
    big data;
    int64_t want = 0;
    for (int i = 0; i < 256; i++) {
        data.values[i] = i * i - 77;
        want += data.values[i];
    }
    const int64_t before = 0;
    int64_t *out = suite_upload(&before, sizeof(before));
    suite_launch(kernel, one, one, 0, DJ_ARGS(out, data));
    suite_expect(out, &want, sizeof(want));
    dj_mem_free(suite_runtime, out, NULL);
    dj_kernel_release(kernel);
}

static void no_arguments(void **state)
{
    (void)state;
    dj_kernel *kernel = suite_compile("noop", KERNEL_HEADER "DJ_KERNEL(noop) { }\n", NULL);
    assert_int_equal(dj_kernel_num_params(kernel), 0);
    suite_launch(kernel, (dj_dim3){3, 2, 1}, (dj_dim3){4, 1, 1}, 0, DJ_NO_ARGS);
    assert_int_equal(dj_synchronize(suite_runtime, NULL), DJ_OK);
    dj_kernel_release(kernel);
}

static void three_dimensions(void **state)
{
    (void)state;
    enum { GX = 2, GY = 3, GZ = 2, BX = 4, BY = 2, BZ = 2, N = GX * GY * GZ * BX * BY * BZ };
    dj_kernel *kernel = suite_compile(
        "dims",
        KERNEL_HEADER "DJ_KERNEL(dims, (int *, out)) {\n"
                      "  const int x = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;\n"
                      "  const int y = DJ_BLOCK_IDX_Y * DJ_BLOCK_DIM_Y + DJ_THREAD_IDX_Y;\n"
                      "  const int z = DJ_BLOCK_IDX_Z * DJ_BLOCK_DIM_Z + DJ_THREAD_IDX_Z;\n"
                      "  const int width = DJ_GRID_DIM_X * DJ_BLOCK_DIM_X;\n"
                      "  const int height = DJ_GRID_DIM_Y * DJ_BLOCK_DIM_Y;\n"
                      "  out[(z * height + y) * width + x] = x + 100 * y + 10000 * z + 1000000 * "
                      "DJ_GRID_DIM_Z;\n}\n",
        NULL);
    int want[N];
    memset(want, 0xff, sizeof(want));
    int *out = suite_upload(want, sizeof(want));
    suite_launch(kernel, (dj_dim3){GX, GY, GZ}, (dj_dim3){BX, BY, BZ}, 0, DJ_ARGS(out));
    for (int i = 0; i < N; i++) {
        const int x = i % (GX * BX);
        const int y = i / (GX * BX) % (GY * BY);
        const int z = i / (GX * BX * GY * BY);
        want[i] = x + 100 * y + 10000 * z + 1000000 * GZ;
    }
    suite_expect(out, want, sizeof(want));
    dj_mem_free(suite_runtime, out, NULL);
    dj_kernel_release(kernel);
}

static const char reduction[] = KERNEL_HEADER
    "DJ_BLOCK_KERNEL(block_sum, (const int *, in), (int64_t *, out), (int, n)) {\n"
    "  DJ_SHARED(int64_t, partial[256]);\n"
    "  DJ_FOR_THREADS {\n" GLOBAL_INDEX "    partial[DJ_THREAD_IDX_X] = i < n ? in[i] : 0;\n  }\n"
    "  for (int half = DJ_BLOCK_DIM_X / 2; half > 0; half /= 2) {\n"
    "    DJ_FOR_THREADS {\n"
    "      if (DJ_THREAD_IDX_X >= half) { continue; }\n"
    "      partial[DJ_THREAD_IDX_X] += partial[DJ_THREAD_IDX_X + half];\n    }\n"
    "  }\n"
    "  DJ_FOR_THREADS {\n"
    "    if (DJ_THREAD_IDX_X == 0) { out[DJ_BLOCK_IDX_X] = partial[0]; }\n  }\n}\n";

static void reduction_in_phases(void **state)
{
    (void)state;
    enum { N = 10000, BLOCKS = (N + 255) / 256 };
    static int in[N];
    int64_t want[BLOCKS] = {0};
    for (int i = 0; i < N; i++) {
        in[i] = (i * 7919) % 1000 - 500;
    }
    dj_kernel *kernel = suite_compile("block_sum", reduction, NULL);
    int *in_memory = suite_upload(in, sizeof(in));
    int64_t *out = suite_upload(want, sizeof(want));
    int n = N;
    suite_launch(kernel, (dj_dim3){BLOCKS, 1, 1}, (dj_dim3){256, 1, 1}, 0,
                 DJ_ARGS(in_memory, out, n));
    for (int i = 0; i < N; i++) {
        want[i / 256] += in[i];
    }
    suite_expect(out, want, sizeof(want));
    dj_mem_free(suite_runtime, in_memory, NULL);
    dj_mem_free(suite_runtime, out, NULL);
    dj_kernel_release(kernel);
}

static void dynamic_shared_memory(void **state)
{
    (void)state;
    dj_kernel *kernel = suite_compile(
        "reverse",
        KERNEL_HEADER "DJ_BLOCK_KERNEL(reverse, (int *, data)) {\n"
                      "  DJ_DYNAMIC_SHARED(int, copy);\n"
                      "  DJ_FOR_THREADS {\n" GLOBAL_INDEX "    copy[DJ_THREAD_IDX_X] = data[i];\n"
                      "  }\n"
                      "  DJ_FOR_THREADS {\n" GLOBAL_INDEX
                      "    data[i] = copy[DJ_BLOCK_DIM_X - 1 - DJ_THREAD_IDX_X];\n  }\n}\n",
        NULL);
    enum { BLOCKS = 5, THREADS = 64, N = BLOCKS * THREADS };
    int data[N];
    for (int i = 0; i < N; i++) {
        data[i] = i;
    }
    int *memory = suite_upload(data, sizeof(data));
    suite_launch(kernel, (dj_dim3){BLOCKS, 1, 1}, (dj_dim3){THREADS, 1, 1}, THREADS * 4,
                 DJ_ARGS(memory));
    for (int i = 0; i < N; i++) {
        data[i] = i / THREADS * THREADS + THREADS - 1 - i % THREADS;
    }
    suite_expect(memory, data, sizeof(data));
    dj_device device = DJ_DEVICE_INIT;
    assert_int_equal(dj_device_info(suite_runtime, &device, NULL), DJ_OK);
    assert_true(device.max_shared_bytes >= 48 * 1024);
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid = options.block = one;
    options.shared_bytes = (int64_t)device.max_shared_bytes + 1;
    dj_error err;
    assert_int_equal(dj_launch(kernel, &options, DJ_ARGS(memory), &err), DJ_INVALID_ARGUMENT);
    dj_mem_free(suite_runtime, memory, NULL);
    dj_kernel_release(kernel);
}

static void specialised_by_definitions(void **state)
{
    (void)state;
    static const char source[] = KERNEL_HEADER
        "DJ_KERNEL(add_bias, (INDEX_TYPE *, out), (INDEX_TYPE, x)) { out[0] = x + BIAS; }\n";
    const char *const narrow[] = {"-DINDEX_TYPE=int", "-DBIAS=4000"};
    const char *const wide[] = {"-DINDEX_TYPE=int64_t", "-DBIAS=8000"};
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.num_extra_flags = 2;
    options.extra_flags = narrow;
    dj_kernel *a = suite_compile("add_bias", source, &options);
    options.extra_flags = wide;
    dj_kernel *b = suite_compile("add_bias", source, &options);
    assert_ptr_not_equal(a, b);
    const int want_a = 4017;
    const int64_t want_b = 8023;
    const int64_t before = 0;
    int *out_a = suite_upload(&before, sizeof(want_a));
    int64_t *out_b = suite_upload(&before, sizeof(want_b));
    int value_a = 17;
    int64_t value_b = 23;
    suite_launch(a, one, one, 0, DJ_ARGS(out_a, value_a));
    suite_launch(b, one, one, 0, DJ_ARGS(out_b, value_b));
    suite_expect(out_a, &want_a, sizeof(want_a));
    suite_expect(out_b, &want_b, sizeof(want_b));
    dj_error err;
    dj_launch_options launch = DJ_LAUNCH_OPTIONS_INIT;
    launch.grid = launch.block = one;
    assert_int_equal(dj_launch(b, &launch, DJ_ARGS(out_b, value_a), &err), DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "argument 1"));
    dj_mem_free(suite_runtime, out_a, NULL);
    dj_mem_free(suite_runtime, out_b, NULL);
    dj_kernel_release(a);
    dj_kernel_release(b);
}

static void exactly_one_kernel(void **state)
{
    (void)state;
    static const char *const sources[] = {
        KERNEL_HEADER "int nothing_here;\n",
        KERNEL_HEADER "DJ_KERNEL(a, (int, x)) { (void)x; }\nDJ_KERNEL(b, (int, x)) { (void)x; }\n"};
    static const char *const tags[] = {"no_kernel", "multiple_kernels"};
    for (int i = 0; i < 2; i++) {
        dj_kernel *kernel = NULL;
        dj_error err;
        assert_int_equal(
            dj_compile(suite_runtime, tags[i], sources[i], strlen(sources[i]), NULL, &kernel, &err),
            DJ_INVALID_ARGUMENT);
        assert_null(kernel);
        assert_non_null(strstr(err.message, "expected exactly one kernel"));
        dj_artifact *artifact = NULL;
        assert_int_equal(
            dj_build(suite_runtime, tags[i], sources[i], strlen(sources[i]), NULL, &artifact, &err),
            DJ_OK);
        dj_artifact_release(artifact);
    }
}

static void source_that_does_not_compile(void **state)
{
    (void)state;
    static const char source[] = KERNEL_HEADER "DJ_KERNEL(bad, (int, x)) { undeclared = x; }\n";
    dj_kernel *kernel = NULL;
    dj_error err;
    assert_int_equal(dj_compile(suite_runtime, "bad", source, strlen(source), NULL, &kernel, &err),
                     DJ_COMPILE);
    /* The first line is the compiler's first error, with the caller's own line number. */
    const char *end = strchr(err.message, '\n');
    const char *found = strstr(err.message, "undeclared");
    assert_non_null(end);
    assert_non_null(found);
    assert_true(found < end);
    assert_non_null(strstr(err.message, "kernel.c")); /* or kernel.cu */
    assert_non_null(strstr(err.message, "command failed with exit code"));
}

static void block_limits(void **state)
{
    (void)state;
    dj_kernel *kernel = suite_compile("noop", KERNEL_HEADER "DJ_KERNEL(noop) { }\n", NULL);
    dj_device device = DJ_DEVICE_INIT;
    assert_int_equal(dj_device_info(suite_runtime, &device, NULL), DJ_OK);
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid = one;
    options.block = (dj_dim3){device.max_block_threads, 2, 1};
    dj_error err;
    assert_int_equal(dj_launch(kernel, &options, DJ_NO_ARGS, &err), DJ_INVALID_ARGUMENT);
    char limit[32];
    snprintf(limit, sizeof(limit), "%u", device.max_block_threads);
    assert_non_null(strstr(err.message, limit));
    options.block = one;
    options.grid = (dj_dim3){1, device.max_grid[1] + 1, 1};
    assert_int_equal(dj_launch(kernel, &options, DJ_NO_ARGS, &err), DJ_INVALID_ARGUMENT);
    options.grid = (dj_dim3){UINT32_MAX, UINT32_MAX, UINT32_MAX};
    assert_int_equal(dj_launch(kernel, &options, DJ_NO_ARGS, &err), DJ_INVALID_ARGUMENT);
    options.block = (dj_dim3){UINT32_MAX, UINT32_MAX, UINT32_MAX};
    assert_int_equal(dj_launch(kernel, &options, DJ_NO_ARGS, &err), DJ_INVALID_ARGUMENT);
    dj_kernel_release(kernel);
}

static void float_bits_survive(void **state)
{
    (void)state;
    static const char *const literals[] = {"0x1.4p+3f", "-0x1.4p+3f", "-0x0p+0f", "0x1p-3f"};
    static const float values[] = {10.0f, -10.0f, -0.0f, 0.125f};
    for (int i = 0; i < 4; i++) {
        char source[256];
        snprintf(source, sizeof(source),
                 KERNEL_HEADER "DJ_KERNEL(literal, (float *, out)) { out[0] = %s; }\n",
                 literals[i]);
        dj_kernel *kernel = suite_compile("literal", source, NULL);
        const float before = 1;
        float *out = suite_upload(&before, sizeof(before));
        suite_launch(kernel, one, one, 0, DJ_ARGS(out));
        suite_expect(out, &values[i], sizeof(values[i]));
        dj_mem_free(suite_runtime, out, NULL);
        dj_kernel_release(kernel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale),
        cmocka_unit_test(mixed_arguments),
        cmocka_unit_test(large_struct_by_value),
        cmocka_unit_test(no_arguments),
        cmocka_unit_test(three_dimensions),
        cmocka_unit_test(reduction_in_phases),
        cmocka_unit_test(dynamic_shared_memory),
        cmocka_unit_test(specialised_by_definitions),
        cmocka_unit_test(exactly_one_kernel),
        cmocka_unit_test(source_that_does_not_compile),
        cmocka_unit_test(block_limits),
        cmocka_unit_test(float_bits_survive),
    };
    return cmocka_run_group_tests_name("kernels", tests, suite_setup, suite_teardown);
}
