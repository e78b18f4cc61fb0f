/* SPDX-License-Identifier: MIT */
/* link: -ldl */
/* What reaches the driver: arguments byte by byte, launch options, devices, contexts that come and
 * go; runtimes side by side; and the calls of deepjit/cuda.h on a driver that checks them. */
#include "cuda_maker.h"
#include <pthread.h>

static const char scale[] = "kernel scale 8:8 8:8 4:4\n";

static void must(dj_status status, const dj_error *err)
{
    if (status != DJ_OK) {
        fail_msg("%s", err->message);
    }
}

static dj_status launch_scale(dj_kernel *kernel, dj_error *err)
{
    const dj_launch_options options = maker_one_thread();
    void *out = NULL;
    void *in = NULL;
    int n = 17;
    return dj_launch(kernel, &options, DJ_ARGS(out, in, n), err);
}

static standin_cuda_launch last_launch(void)
{
    standin_cuda_launch last;
    assert_int_equal(cu.last_launch(&last), 1);
    return last;
}

/* ---- arguments ---- */

static void hundred_arguments(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    char source[1024] = "kernel hundred";
    int values[COUNT];
    dj_arg args[COUNT];
    for (int i = 0; i < COUNT; i++) {
        strcat(source, " 4:4");
        values[i] = 1000 - 7 * i;
        args[i] = (dj_arg){&values[i], sizeof(int), 0};
    }
    strcat(source, "\n");
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, source);
    const dj_launch_options options = maker_one_thread();
    dj_error err = DJ_ERROR_INIT;
    must(dj_launch(kernel, &options, args, COUNT, &err), &err);
    const standin_cuda_launch last = last_launch();
    assert_int_equal(last.num_params, COUNT);
    assert_memory_equal(last.bytes, values, sizeof(values));
    maker_expect(dj_launch(kernel, &options, args, COUNT - 1, &err), DJ_INVALID_ARGUMENT, &err,
                 "takes 100 arguments, got 99");
    assert_int_equal(cu.launches(), 1);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

typedef struct tensor_map {
    _Alignas(64) unsigned char bytes[128];
} tensor_map;

typedef struct big {
    int32_t values[256];
} big;

/* A structure of 1 KiB, 18 tensor maps and a null pointer, in one launch. */
static void large_arguments(void **state)
{
    (void)state;
    enum { MAPS = 18, COUNT = 1 + MAPS + 1 };
    char source[512] = "kernel maps 1024:4";
    for (int i = 0; i < MAPS; i++) {
        strcat(source, " 128:64");
    }
    strcat(source, " 8:8\n");
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, source);
    dj_error err = DJ_ERROR_INIT;
    dj__cu_result (*encode)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *,
                            const uint32_t *, const uint32_t *, int, int, int, int) = NULL;
    void *symbol = NULL;
    must(dj_cuda_symbol(runtime, "cuTensorMapEncodeTiled", 12000, &symbol, &err), &err);
    memcpy(&encode, &symbol, sizeof(symbol));
    big data;
    tensor_map maps[MAPS];
    dj_arg args[COUNT] = {{&data, sizeof(data), 0}};
    void *null_pointer = NULL;
    const uint64_t stride = 256;
    const uint32_t one[] = {1, 1};
    for (int i = 0; i < 256; i++) {
        data.values[i] = i * i - 77;
    }
    for (int i = 0; i < MAPS; i++) {
        const uint64_t dims[] = {64, (uint64_t)i + 1};
        assert_int_equal(encode(&maps[i], 7, 2, (void *)(uintptr_t)(4096 * (i + 1)), dims, &stride,
                                one, one, 0, 0, 0, 0),
                         0);
        args[1 + i] = (dj_arg){&maps[i], sizeof(maps[i]), 0};
    }
    args[COUNT - 1] = (dj_arg){&null_pointer, sizeof(null_pointer), 0};
    const dj_launch_options options = maker_one_thread();
    must(dj_launch(kernel, &options, args, COUNT, &err), &err);
    const standin_cuda_launch last = last_launch();
    assert_memory_equal(last.bytes + last.offset[0], &data, sizeof(data));
    for (int i = 0; i < MAPS; i++) {
        assert_memory_equal(last.bytes + last.offset[1 + i], &maps[i], sizeof(maps[i]));
    }
    assert_memory_equal(last.bytes + last.offset[COUNT - 1], &null_pointer, sizeof(void *));
    args[3].size = 64;
    maker_expect(dj_launch(kernel, &options, args, COUNT, &err), DJ_INVALID_ARGUMENT, &err,
                 "argument 3 has 64 bytes, the kernel expects 128");
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

static void no_arguments(void **state)
{
    (void)state;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, "kernel noop\n");
    const dj_launch_options options = maker_one_thread();
    dj_error err = DJ_ERROR_INIT;
    int extra = 0;
    assert_int_equal(dj_kernel_num_params(kernel), 0);
    must(dj_launch(kernel, &options, DJ_NO_ARGS, &err), &err);
    assert_int_equal(last_launch().num_params, 0);
    assert_int_equal(dj_launch(kernel, &options, DJ_ARGS(extra), &err), DJ_INVALID_ARGUMENT);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

/* The driver refuses nothing in an ordinary life. */
static void nothing_is_refused(void **state)
{
    (void)state;
    char name[64];
    int code = 0;
    void *memory = NULL;
    int n = 3;
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, scale);
    must(dj_mem_alloc(runtime, 4, &memory, &err), &err);
    must(dj_mem_copy(runtime, memory, &n, 4, &err), &err);
    n = 0;
    must(dj_mem_copy(runtime, &n, memory, 4, &err), &err);
    assert_int_equal(n, 3);
    must(dj_mem_free(runtime, memory, &err), &err);
    must(launch_scale(kernel, &err), &err);
    must(dj_synchronize(runtime, &err), &err);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    if (cu.refused(name, &code) != 0) {
        fail_msg("%zu calls refused, the last is %s with %d", cu.refused(NULL, NULL), name, code);
    }
}

/* ---- options ---- */

static void launch_options(void **state)
{
    (void)state;
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    dj_launch_options options = maker_one_thread();
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, "shared 1000\nkernel k\n");
    dj_error err = DJ_ERROR_INIT;
    options.grid = (dj_dim3){32, 2, 1};
    options.block = (dj_dim3){64, 2, 0};
    options.shared_bytes = 60000;
    options.cuda = &cuda;
    must(dj_launch(kernel, &options, DJ_NO_ARGS, &err), &err);
    standin_cuda_launch last = last_launch();
    assert_int_equal(last.cluster[0], 0); /* not asked for, not passed */
    assert_int_not_equal(last.cooperative, 1);
    assert_int_not_equal(last.pdl, 1);
    cuda.cluster.x = 16;
    cuda.cooperative = DJ_ON;
    cuda.enable_pdl = DJ_ON;
    cuda.nonportable_cluster = DJ_ON;
    must(dj_launch(kernel, &options, DJ_NO_ARGS, &err), &err);
    last = last_launch();
    const uint32_t grid[3] = {32, 2, 1};
    const uint32_t block[3] = {64, 2, 1};
    const uint32_t cluster[3] = {16, 1, 1};
    assert_memory_equal(last.grid, grid, sizeof(grid));
    assert_memory_equal(last.block, block, sizeof(block));
    assert_memory_equal(last.cluster, cluster, sizeof(cluster));
    assert_int_equal(last.shared_bytes, 60000);
    assert_int_equal(last.cooperative, 1);
    assert_int_equal(last.pdl, 1);
    options.shared_bytes = 232448 - 1000;
    must(dj_launch(kernel, &options, DJ_NO_ARGS, &err), &err);
    options.shared_bytes++;
    maker_expect(dj_launch(kernel, &options, DJ_NO_ARGS, &err), DJ_INVALID_ARGUMENT, &err,
                 "232448");
    options.shared_bytes = 0;
    options.grid.x = 1600000;
    maker_expect(dj_launch(kernel, &options, DJ_NO_ARGS, &err), DJ_DEVICE, &err,
                 "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE (720)");
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

static void streams(void **state)
{
    (void)state;
    dj__cu_stream a = NULL;
    dj__cu_stream b = NULL;
    dj_launch_options options = maker_one_thread();
    dj_launch_options defaults = DJ_LAUNCH_OPTIONS_INIT;
    dj_config config = DJ_CONFIG_INIT;
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *first = maker_runtime(NULL);
    dj_kernel_release(maker_kernel_of(first, "kernel k\n")); /* makes a context current */
    assert_int_equal(cu.cuStreamCreate(&a, 0), 0);
    assert_int_equal(cu.cuStreamCreate(&b, 1), 0);
    defaults.stream = a;
    config.launch_defaults = &defaults;
    dj_runtime *runtime = maker_runtime(&config);
    dj_kernel *kernel = maker_kernel_of(runtime, "kernel k\n");
    must(dj_launch(kernel, &options, DJ_NO_ARGS, &err), &err);
    assert_ptr_equal(last_launch().stream, a);
    options.stream = b;
    must(dj_launch(kernel, &options, DJ_NO_ARGS, &err), &err);
    assert_ptr_equal(last_launch().stream, b);
    options.stream = NULL;
    options.stream_set = true;
    must(dj_launch(kernel, &options, DJ_NO_ARGS, &err), &err);
    assert_null(last_launch().stream);
    options.stream = &options;
    assert_int_equal(dj_launch(kernel, &options, DJ_NO_ARGS, &err), DJ_DEVICE);
    assert_int_equal(err.native, 400);
    assert_int_equal(cu.cuStreamDestroy_v2(a), 0);
    assert_int_equal(cu.cuStreamDestroy_v2(b), 0);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    dj_runtime_release(first);
}

/* ---- devices and contexts ---- */

static void a_kernel_runs_where_the_thread_is(void **state)
{
    (void)state;
    dj__cu_context second = NULL;
    dj__cu_context own = NULL;
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, scale);
    must(launch_scale(kernel, &err), &err);
    assert_int_equal(last_launch().device, 0);
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&second, 1), 0);
    assert_int_equal(cu.cuCtxPushCurrent_v2(second), 0);
    must(launch_scale(kernel, &err), &err);
    assert_int_equal(last_launch().device, 1);
    assert_ptr_equal(last_launch().context, second);
    assert_int_equal(cu.cuCtxPopCurrent_v2(NULL), 0);
    assert_int_equal(cu.cuCtxCreate_v2(&own, 0, 1), 0);
    must(launch_scale(kernel, &err), &err);
    assert_ptr_equal(last_launch().context, own);
    assert_int_equal(cu.cuCtxDestroy_v2(own), 0);
    must(launch_scale(kernel, &err), &err);
    assert_int_equal(last_launch().device, 0);
    assert_int_equal(cu.cuDevicePrimaryCtxRelease_v2(1), 0);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

static void another_architecture_is_refused_there(void **state)
{
    (void)state;
    dj__cu_context second = NULL;
    dj_error err = DJ_ERROR_INIT;
    cu.set_arch(1, 8, 0);
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, scale);
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&second, 1), 0);
    assert_int_equal(cu.cuCtxPushCurrent_v2(second), 0);
    maker_expect(launch_scale(kernel, &err), DJ_INCOMPATIBLE, &err, "Stand-in GPU 1");
    assert_int_equal(cu.cuCtxPopCurrent_v2(NULL), 0);
    must(launch_scale(kernel, &err), &err);
    assert_int_equal(cu.cuDevicePrimaryCtxRelease_v2(1), 0);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

static void the_primary_context_is_reset(void **state)
{
    (void)state;
    dj_error err = DJ_ERROR_INIT;
    void *memory = NULL;
    dj_launch_options options = maker_one_thread();
    options.shared_bytes = 100000;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, "kernel k\n");
    must(dj_launch(kernel, &options, DJ_NO_ARGS, &err), &err);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cu.cuDevicePrimaryCtxReset_v2(0), 0);
        must(dj_launch(kernel, &options, DJ_NO_ARGS, &err), &err);
        must(dj_mem_alloc(runtime, 8, &memory, &err), &err);
        must(dj_mem_free(runtime, memory, &err), &err);
        must(dj_synchronize(runtime, &err), &err);
    }
    assert_int_equal(cu.cuDevicePrimaryCtxReset_v2(0), 0);
    dj_kernel *other = maker_kernel_of(runtime, scale); /* the first call after a reset */
    must(launch_scale(other, &err), &err);
    dj_kernel_release(other);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

static void *launch_in_new_thread(void *arg)
{
    dj_error err = DJ_ERROR_INIT;
    if (launch_scale(arg, &err) != DJ_OK) {
        fprintf(stderr, "%s\n", err.message);
        return arg;
    }
    return NULL;
}

static void a_thread_without_context(void **state)
{
    (void)state;
    pthread_t thread;
    void *failed = NULL;
    setenv("DJ_JIT_CUDA_DEVICE", "1", 1);
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, scale);
    assert_int_equal(pthread_create(&thread, NULL, launch_in_new_thread, kernel), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(last_launch().device, 1); /* the runtime's */
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    assert_int_equal(cu.cuCtxSetCurrent(NULL), 0);
}

/* ---- runtimes ---- */

static void runtimes_with_different_prefixes(void **state)
{
    (void)state;
    dj_config config = DJ_CONFIG_INIT;
    dj_error err = DJ_ERROR_INIT;
    config.env_prefix = "AA";
    dj_runtime *a = maker_runtime(&config);
    config.env_prefix = "BB";
    dj_runtime *b = maker_runtime(&config);
    dj_kernel *in_a = maker_kernel_of(a, scale);
    dj_kernel *in_b = maker_kernel_of(b, scale);
    assert_ptr_not_equal(in_a, in_b);
    assert_int_equal(atomic_load(&maker.compiles), 1); /* the entry is shared */
    assert_int_equal(maker_stats(b).disk_hits, 1);
    dj_kernel *again = maker_kernel_of(a, scale);
    assert_ptr_equal(again, in_a);
    dj_kernel_release(again);
    dj_runtime_release(a); /* kernels outlive their runtime */
    must(launch_scale(in_a, &err), &err);
    must(launch_scale(in_b, &err), &err);
    standin_cuda_live live;
    cu.live_now(&live);
    assert_int_equal(live.libraries, 2);
    dj_kernel_release(in_a);
    cu.live_now(&live);
    assert_int_equal(live.libraries, 1);
    must(launch_scale(in_b, &err), &err);
    dj_runtime_release(b);
    must(launch_scale(in_b, &err), &err);
    assert_int_equal(cu.launches(), 4);
    dj_kernel_release(in_b);
}

/* ---- deepjit/cuda.h ---- */

static void native_handles(void **state)
{
    (void)state;
    dj_cuda_handles handles = DJ_CUDA_HANDLES_INIT;
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, "kernel k\n");
    must(dj_cuda_kernel_handles(kernel, &handles, &err), &err);
    unsigned count = 0;
    const char *name = NULL;
    assert_int_equal(cu.cuLibraryGetKernelCount(&count, handles.library), 0);
    assert_int_equal(count, 1);
    assert_int_equal(cu.cuKernelGetName(&name, handles.kernel), 0);
    assert_string_equal(name, "k");
    assert_int_equal(cu.cuFuncGetName(&name, handles.function), 0);
    const dj__cu_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    assert_int_equal(cu.cuLaunchKernelEx(&config, handles.function, NULL, NULL), 0);
    void *before = handles.function;
    assert_int_equal(cu.cuDevicePrimaryCtxReset_v2(0), 0);
    must(dj_cuda_kernel_handles(kernel, &handles, &err), &err);
    assert_ptr_not_equal(handles.function, before);
    assert_int_equal(cu.cuLaunchKernelEx(&config, handles.function, NULL, NULL), 0);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

static void attributes_and_occupancy(void **state)
{
    (void)state;
    dj_launch_options options = maker_one_thread();
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    dj_error err = DJ_ERROR_INIT;
    int value = 0;
    int blocks = 0;
    int clusters = -1;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, "kernel k\n");
    must(dj_cuda_kernel_attribute(kernel, DJ__CU_FUNC_NUM_REGS, &value, &err), &err);
    assert_int_equal(value, 32);
    maker_expect(dj_cuda_kernel_attribute(kernel, 999, &value, &err), DJ_INVALID_ARGUMENT, &err,
                 "999");
    maker_expect(dj_cuda_kernel_set_attribute(kernel, DJ__CU_FUNC_NUM_REGS, 3, &err),
                 DJ_INVALID_ARGUMENT, &err, "attribute 4");
    must(dj_cuda_device_attribute(runtime, 1, DJ__CU_DEV_MULTIPROCESSOR_COUNT, &value, &err), &err);
    assert_int_equal(value, 132);
    maker_expect(dj_cuda_device_attribute(runtime, 2, 1, &value, &err), DJ_NOT_FOUND, &err, "2");
    options.block.x = 256;
    must(dj_cuda_occupancy(kernel, &options, &blocks, &clusters, &err), &err);
    assert_int_equal(blocks, 8); /* 2048 threads, and 65536 registers for 32 each */
    assert_int_equal(clusters, 0);
    options.shared_bytes = 100000;
    options.grid.x = 2;
    options.cuda = &cuda;
    cuda.cluster.x = 2;
    must(dj_cuda_occupancy(kernel, &options, &blocks, &clusters, &err), &err);
    assert_int_equal(blocks, 2);
    assert_int_equal(clusters, 132);
    assert_int_equal(cu.launches(), 0);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

static void symbols_and_globals(void **state)
{
    (void)state;
    dj_error err = DJ_ERROR_INIT;
    void *symbol = NULL;
    void *address = NULL;
    size_t size = 0;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, "kernel k\n");
    must(dj_cuda_symbol(runtime, "cuMemAlloc", 12000, &symbol, &err), &err);
    assert_memory_equal(&symbol, &cu.cuMemAlloc_v2, sizeof(symbol));
    must(dj_cuda_symbol(runtime, "cuMemAlloc_v2", 0, &symbol, &err), &err);
    assert_memory_equal(&symbol, &cu.cuMemAlloc_v2, sizeof(symbol));
    maker_expect(dj_cuda_symbol(runtime, "cuNoSuchThing", 12000, &symbol, &err), DJ_NOT_FOUND, &err,
                 "cuNoSuchThing");
    assert_null(symbol);
    maker_expect(dj_cuda_symbol(runtime, "cuNoSuchThing", 0, &symbol, &err), DJ_NOT_FOUND, &err,
                 "13.0");
    maker_expect(dj_cuda_global(kernel, "no_variable", &address, &size, &err), DJ_NOT_FOUND, &err,
                 "no_variable");
    assert_null(address);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

/* What a call that fails leaves in its outputs, whatever is wrong. */
static void outputs_of_failures(void **state)
{
    (void)state;
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *host = NULL;
    int one = 7;
    int two = 7;
    size_t size = 7;
    void *pointer = &one;
    must(dj_runtime_create(dj_backend_find("host"), NULL, &host, &err), &err);
    maker_expect(dj_cuda_device_attribute(host, 0, 1, &one, &err), DJ_UNSUPPORTED, &err, "host");
    assert_int_equal(one, 0);
    maker_expect(dj_cuda_symbol(host, "cuInit", 0, &pointer, &err), DJ_UNSUPPORTED, &err, "host");
    assert_null(pointer);
    pointer = &one;
    maker_expect(dj_cuda_symbol(host, NULL, 0, &pointer, &err), DJ_INVALID_ARGUMENT, &err, "name");
    assert_null(pointer);
    dj_runtime_release(host);
    one = 7;
    maker_expect(dj_cuda_kernel_attribute(NULL, 4, &one, &err), DJ_INVALID_ARGUMENT, &err,
                 "kernel");
    assert_int_equal(one, 0);
    one = 7;
    maker_expect(dj_cuda_occupancy(NULL, NULL, &one, &two, &err), DJ_INVALID_ARGUMENT, &err,
                 "kernel");
    assert_int_equal(one, 0);
    assert_int_equal(two, 0);
    pointer = &one;
    maker_expect(dj_cuda_global(NULL, NULL, &pointer, &size, &err), DJ_INVALID_ARGUMENT, &err,
                 "name");
    assert_null(pointer);
    assert_int_equal(size, 0);
}

/* ---- what only a real compiler makes ---- */

static const char with_globals[] = "__device__ int table[4] = {10, 20, 30, 40};\n"
                                   "__constant__ float factor;\n"
                                   "extern \"C\" __global__ void __launch_bounds__(64) "
                                   "__cluster_dims__(2) use(float *out, int n)\n"
                                   "{ out[n] = factor * table[n & 3]; }\n";

static void compiled_by_nvcc(void **state)
{
    (void)state;
    dj_runtime *runtime = NULL;
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    must(dj_runtime_create(dj_backend_find("cuda"), NULL, &runtime, &err), &err);
    const dj_status status = maker_try(runtime, with_globals, &kernel, &err);
    if (status == DJ_UNAVAILABLE) {
        print_message("skipped, there is no nvcc: %s\n", err.message);
        dj_runtime_release(runtime);
        skip();
    }
    must(status, &err);
    void *address = NULL;
    size_t size = 0;
    int table[4] = {0};
    float *out = NULL;
    int n = 1;
    must(dj_cuda_global(kernel, "table", &address, &size, &err), &err);
    assert_int_equal(size, sizeof(table));
    must(dj_mem_copy(runtime, table, address, size, &err), &err);
    assert_int_equal(table[3], 40);
    must(dj_cuda_global(kernel, "factor", &address, &size, &err), &err);
    assert_int_equal(size, sizeof(float));
    dj_launch_options options = maker_one_thread();
    options.grid.x = 4;
    options.block.x = 64;
    must(dj_launch(kernel, &options, DJ_ARGS(out, n), &err), &err);
    options.block.x = 65;
    maker_expect(dj_launch(kernel, &options, DJ_ARGS(out, n), &err), DJ_INVALID_ARGUMENT, &err,
                 "this kernel allows at most 64");
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
    const struct CMUnitTest tests[] = {
        TEST(hundred_arguments),
        TEST(large_arguments),
        TEST(no_arguments),
        TEST(nothing_is_refused),
        TEST(launch_options),
        TEST(streams),
        TEST(a_kernel_runs_where_the_thread_is),
        TEST(another_architecture_is_refused_there),
        TEST(the_primary_context_is_reset),
        TEST(a_thread_without_context),
        TEST(runtimes_with_different_prefixes),
        TEST(native_handles),
        TEST(attributes_and_occupancy),
        TEST(symbols_and_globals),
        TEST(outputs_of_failures),
        TEST(compiled_by_nvcc),
    };
    return cmocka_run_group_tests_name("CUDA: run", tests, maker_group, NULL);
}
