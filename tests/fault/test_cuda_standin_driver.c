/* SPDX-License-Identifier: MIT */
/* link: -ldl */
/*
 * The stand-in driver itself: that it refuses what the real one refuses, with the same numbers.
 * The numbers were measured on an H200 with driver 580, or are those of the documentation.
 */
#include "standin_fixture.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

static const cubin_param two_params[] = {{8, 8}, {4, 4}};

static void *small_cubin(int sm, char suffix, size_t num_kernels, size_t *size)
{
    const cubin_kernel kernels[] = {
        {.name = "first", .params = two_params, .num_params = 2, .registers = 16, .shared = 512},
        {.name = "second", .params = two_params, .num_params = 2, .registers = 16},
    };
    const cubin_spec spec = {
        .sm = sm, .suffix = suffix, .kernels = kernels, .num_kernels = num_kernels};
    return cubin_build(&spec, size);
}

static dj__cu_context context;
static dj__cu_library library;
static dj__cu_kernel kernel;
static dj__cu_function function;

static dj__cu_result load(const void *code, dj__cu_library *out)
{
    return cu.cuLibraryLoadData(out, code, NULL, NULL, 0, NULL, NULL, 0);
}

static void unload_quietly(dj__cu_library loaded)
{
    int mode = RELAXED;
    assert_int_equal(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(cu.cuLibraryUnload(loaded), 0);
    assert_int_equal(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
}

static int setup(void **state)
{
    (void)state;
    cu.reset();
    size_t size = 0;
    void *code = small_cubin(90, 'a', 1, &size);
    assert_int_equal(cu.cuInit(0), 0);
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cu.cuCtxSetCurrent(context), 0);
    assert_int_equal(load(code, &library), 0);
    assert_int_equal(cu.cuLibraryGetKernel(&kernel, library, "first"), 0);
    assert_int_equal(cu.cuKernelGetFunction(&function, kernel), 0);
    free(code);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cu.reset();
    assert_int_equal(cu.cuLibraryUnload(library), 0);
    assert_int_equal(cu.cuDevicePrimaryCtxReset_v2(0), 0);
    assert_int_equal(cu.cuDevicePrimaryCtxRelease_v2(0), 0);
    assert_int_equal(cu.cuCtxSetCurrent(NULL), 0);
    standin_cuda_live live;
    cu.live_now(&live);
    assert_int_equal(live.libraries, 0);
    assert_int_equal(live.allocations, 0);
    assert_int_equal(live.streams, 0);
    assert_int_equal(live.graphs, 0);
    return 0;
}

static dj__cu_result launch(dj__cu_function what, uint32_t grid, uint32_t block, uint32_t shared,
                            dj__cu_stream stream)
{
    uint64_t pointer = 0x1122334455667788u;
    int32_t number = -5;
    void *params[] = {&pointer, &number};
    const dj__cu_launch_config config = {
        .grid = {grid, 1, 1}, .block = {block, 1, 1}, .shared_bytes = shared, .stream = stream};
    return cu.cuLaunchKernelEx(&config, what, params, NULL);
}

static void before_init(void **state)
{
    (void)state;
    int count = 0;
    const char *name = NULL;
    dj__cu_context none = NULL;
    assert_int_equal(cu.cuDeviceGetCount(&count), 3);
    assert_int_equal(cu.cuCtxGetCurrent(&none), 3);
    assert_int_equal(cu.cuDriverGetVersion(&count), 0);
    assert_int_equal(count, 13000);
    assert_int_equal(cu.cuGetErrorName(700, &name), 0);
    assert_string_equal(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_int_equal(cu.cuGetErrorName(12345, &name), 1);
    cu.set_devices(0);
    assert_int_equal(cu.cuInit(0), 100);
    assert_int_equal(cu.cuDeviceGetCount(&count), 3);
}

static void no_context(void **state)
{
    (void)state;
    dj__cu_deviceptr memory = 0;
    dj__cu_function unused = NULL;
    dj__cu_stream stream = NULL;
    assert_int_equal(cu.cuStreamCreate(&stream, 0), 0);
    assert_int_equal(cu.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(launch(function, 1, 1, 0, NULL), 201);
    assert_int_equal(launch(function, 1, 1, 0, stream), 0);
    assert_int_equal(cu.cuMemAlloc_v2(&memory, 16), 201);
    assert_int_equal(cu.cuKernelGetFunction(&unused, kernel), 201);
    assert_int_equal(cu.cuCtxSynchronize(), 201);
    assert_int_equal(cu.cuCtxSetCurrent(context), 0);
    assert_int_equal(cu.cuStreamDestroy_v2(stream), 0);
    assert_int_equal(launch(function, 1, 1, 0, stream), 400);
}

static void loads_like_the_real_one(void **state)
{
    (void)state;
    static const char zeros[4096];
    size_t size = 0;
    void *other = small_cubin(80, 0, 1, &size);
    void *family = small_cubin(100, 'f', 1, &size);
    void *both = small_cubin(90, 0, 2, &size);
    const struct {
        const void *code;
        unsigned count;
    } loose[] = {{zeros, 0},
                 {"#error nothing to see\n", 0},
                 {"//\n.version 8.0\n.visible .entry k()\n", 1},
                 {other, 0},
                 {family, 0},
                 {both, 2}};
    for (size_t i = 0; i < sizeof(loose) / sizeof(loose[0]); i++) {
        dj__cu_library loaded = NULL;
        unsigned count = 99;
        assert_int_equal(load(loose[i].code, &loaded), 0);
        assert_int_equal(cu.cuLibraryGetKernelCount(&count, loaded), 0);
        assert_int_equal(count, loose[i].count);
        assert_int_equal(cu.cuLibraryUnload(loaded), 0);
        assert_int_equal(cu.cuLibraryUnload(loaded), 400);
    }
    cu.set_arch(0, 10, 3);
    dj__cu_library loaded = NULL;
    unsigned count = 0;
    assert_int_equal(load(family, &loaded), 0);
    assert_int_equal(cu.cuLibraryGetKernelCount(&count, loaded), 0);
    assert_int_equal(count, 1);
    assert_int_equal(cu.cuLibraryUnload(loaded), 0);
    memset((char *)both + 64, 0, 512);
    assert_int_equal(load(both, &loaded), 200);
    free(other);
    free(family);
    free(both);
}

static void kernels_and_parameters(void **state)
{
    (void)state;
    dj__cu_kernel unused = NULL;
    size_t offset = 0;
    size_t size = 0;
    int value = 0;
    assert_int_equal(cu.cuLibraryGetKernel(&unused, library, "no such kernel"), 500);
    assert_int_equal(cu.cuKernelGetParamInfo(kernel, 1, &offset, &size), 0);
    assert_int_equal(offset, 8);
    assert_int_equal(size, 4);
    assert_int_equal(cu.cuKernelGetParamInfo(kernel, 2, &offset, &size), 1);
    assert_int_equal(cu.cuFuncGetAttribute(&value, DJ__CU_FUNC_NUM_REGS, function), 0);
    assert_int_equal(value, 16);
    assert_int_equal(cu.cuFuncGetAttribute(&value, DJ__CU_FUNC_SHARED_SIZE_BYTES, function), 0);
    assert_int_equal(value, 512);
    assert_int_equal(cu.cuFuncGetAttribute(&value, 99, function), 1);
    assert_int_equal(cu.cuFuncSetAttribute(function, DJ__CU_FUNC_NUM_REGS, 8), 1);
    assert_int_equal(cu.cuFuncGetAttribute(&value, 4, (dj__cu_function)kernel), 400);
    assert_int_equal(cu.cuKernelGetParamInfo((dj__cu_kernel)&value, 0, &offset, &size), 400);
}

static void launches_are_recorded(void **state)
{
    (void)state;
    assert_int_equal(launch(function, 3, 4, 64, NULL), 0);
    standin_cuda_launch last;
    assert_int_equal(cu.last_launch(&last), 1);
    assert_string_equal(last.kernel, "first");
    assert_int_equal(last.grid[0], 3);
    assert_int_equal(last.block[0], 4);
    assert_int_equal(last.shared_bytes, 64);
    assert_int_equal(last.cooperative, -1);
    assert_int_equal(last.cluster[0], 0);
    assert_int_equal(last.num_params, 2);
    uint64_t pointer = 0;
    int32_t number = 0;
    memcpy(&pointer, last.bytes + last.offset[0], sizeof(pointer));
    memcpy(&number, last.bytes + last.offset[1], sizeof(number));
    assert_true(pointer == 0x1122334455667788u);
    assert_int_equal(number, -5);
    assert_int_equal(launch((dj__cu_function)kernel, 1, 1, 0, NULL), 0); /* a kernel as it is */
    assert_int_equal(cu.launches(), 2);
}

static void launches_that_are_refused(void **state)
{
    (void)state;
    enum { OPT_IN = 232448, STATIC = 512, UNASKED = 49152 - STATIC };
    dj__cu_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    assert_int_equal(launch(function, 0, 1, 0, NULL), 1);
    assert_int_equal(launch(function, 1, 0, 0, NULL), 1);
    assert_int_equal(launch(function, 1, 2048, 0, NULL), 1);
    assert_int_equal(launch(NULL, 1, 1, 0, NULL), 400);
    assert_int_equal(launch(function, 1, 1, 0, (dj__cu_stream)&config), 400);
    assert_int_equal(cu.cuLaunchKernelEx(&config, function, NULL, NULL), 1);
    assert_int_equal(launch(function, 1, 1, UNASKED, NULL), 0);
    assert_int_equal(launch(function, 1, 1, UNASKED + 1, NULL), 1);
    assert_int_equal(cu.cuFuncSetAttribute(function, 8, OPT_IN - STATIC + 1), 1);
    assert_int_equal(cu.cuFuncSetAttribute(function, 8, OPT_IN - STATIC), 0);
    assert_int_equal(launch(function, 1, 1, OPT_IN - STATIC, NULL), 0);
    assert_int_equal(cu.launches(), 2);
}

static dj__cu_result launch_with(uint32_t grid, dj__cu_launch_attribute *attributes, uint32_t count)
{
    uint64_t pointer = 0;
    int32_t number = 0;
    void *params[] = {&pointer, &number};
    const dj__cu_launch_config config = {.grid = {grid, 1, 1},
                                         .block = {256, 1, 1},
                                         .attributes = attributes,
                                         .num_attributes = count};
    return cu.cuLaunchKernelEx(&config, function, params, NULL);
}

static void attributes_of_a_launch(void **state)
{
    (void)state;
    dj__cu_launch_attribute list[3] = {
        {.id = DJ__CU_LAUNCH_COOPERATIVE, .value.flag = 1},
        {.id = DJ__CU_LAUNCH_CLUSTER_DIMENSION, .value.cluster = {2, 1, 1}},
        {.id = DJ__CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, .value.flag = 1}};
    assert_int_equal(launch_with(4, list, 3), 0);
    standin_cuda_launch last;
    assert_int_equal(cu.last_launch(&last), 1);
    assert_int_equal(last.cooperative, 1);
    assert_int_equal(last.cluster[0], 2);
    assert_int_equal(last.pdl, 1);
    assert_int_equal(launch_with(5, list, 3), 1); /* 2 does not divide 5 */
    assert_int_equal(launch_with(4, NULL, 1), 1);
    assert_int_equal(launch_with(1000000, list, 1), 720);
    list[1].value.cluster[0] = 16;
    assert_int_equal(launch_with(16, list + 1, 1), 912);
    assert_int_equal(
        cu.cuFuncSetAttribute(function, DJ__CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1), 0);
    assert_int_equal(launch_with(16, list + 1, 1), 0);
    list[1].value.cluster[0] = 0;
    assert_int_equal(launch_with(16, list + 1, 1), 1);
    list[1].id = 77;
    assert_int_equal(launch_with(16, list + 1, 1), 1);
    list[1] = list[0];
    assert_int_equal(launch_with(16, list, 2), 1); /* twice */
}

static void memory(void **state)
{
    (void)state;
    dj__cu_deviceptr a = 0;
    dj__cu_deviceptr b = 0;
    char text[16] = "a test of copy";
    char back[16] = "";
    const dj__cu_deviceptr from = (dj__cu_deviceptr)(uintptr_t)text;
    const dj__cu_deviceptr to = (dj__cu_deviceptr)(uintptr_t)back;
    assert_int_equal(cu.cuMemAlloc_v2(&a, 0), 1);
    assert_int_equal(cu.cuMemAlloc_v2(&a, (size_t)1 << 40), 2);
    assert_int_equal(cu.cuMemAlloc_v2(&a, 16), 0);
    assert_int_equal(cu.cuMemAlloc_v2(&b, 16), 0);
    assert_int_equal(cu.cuMemcpy(a, from, 16), 0);
    assert_int_equal(cu.cuMemcpy(b, a, 16), 0);
    assert_int_equal(cu.cuMemcpy(to, b, 16), 0);
    assert_string_equal(back, text);
    assert_int_equal(cu.cuMemcpy(a, from, 17), 1);
    assert_int_equal(cu.cuMemcpy(a + 8, from, 8), 0);
    assert_int_equal(cu.cuMemcpy(a + 8, from, 9), 1);
    assert_int_equal(cu.cuMemFree_v2(a + 8), 1);
    assert_int_equal(cu.cuMemFree_v2(a), 0);
    assert_int_equal(cu.cuMemFree_v2(a), 1);
    assert_int_equal(cu.cuMemcpy(to, a, 1), 1);
    assert_int_equal(cu.cuMemFree_v2(from), 1);
    assert_int_equal(cu.cuMemFree_v2(b), 0);
}

static void contexts_that_end(void **state)
{
    (void)state;
    dj__cu_context again = NULL;
    dj__cu_context other = NULL;
    dj__cu_function there = NULL;
    assert_int_equal(cu.cuDevicePrimaryCtxReset_v2(0), 0);
    assert_int_equal(launch(function, 1, 1, 0, NULL), 709);
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&again, 0), 0);
    assert_ptr_equal(again, context);
    assert_int_equal(launch(function, 1, 1, 0, NULL), 400);
    assert_int_equal(launch((dj__cu_function)kernel, 1, 1, 0, NULL), 0);
    assert_int_equal(cu.cuKernelGetFunction(&function, kernel), 0);
    assert_int_equal(launch(function, 1, 1, 0, NULL), 0);
    assert_int_equal(cu.cuDevicePrimaryCtxRelease_v2(0), 0);

    assert_int_equal(cu.cuCtxCreate_v2(&other, 0, 1), 0);
    assert_int_equal(launch(function, 1, 1, 0, NULL), 400); /* of the other device */
    assert_int_equal(cu.cuKernelGetFunction(&there, kernel), 0);
    assert_int_equal(launch(there, 1, 1, 0, NULL), 0);
    assert_int_equal(cu.cuCtxDestroy_v2(other), 0);
    assert_int_equal(launch(there, 1, 1, 0, NULL), 709);
    assert_int_equal(launch(function, 1, 1, 0, NULL), 0);
    assert_int_equal(cu.cuCtxSetCurrent(other), 709);
    assert_int_equal(cu.cuCtxDestroy_v2(context), 201); /* a primary one is not destroyed so */
}

static void captures(void **state)
{
    (void)state;
    size_t size = 0;
    void *code = small_cubin(90, 'a', 1, &size);
    for (int mode = GLOBAL; mode <= RELAXED; mode++) {
        dj__cu_stream stream = NULL;
        dj__cu_library more = NULL;
        void *graph = NULL;
        size_t nodes = 0;
        int status = 0;
        assert_int_equal(cu.cuStreamCreate(&stream, 1), 0);
        assert_int_equal(cu.cuStreamBeginCapture_v2(stream, mode), 0);
        int relaxed = RELAXED;
        assert_int_equal(cu.cuThreadExchangeStreamCaptureMode(&relaxed), 0);
        assert_int_equal(relaxed, GLOBAL);
        assert_int_equal(load(code, &more), 0);
        assert_int_equal(cu.cuThreadExchangeStreamCaptureMode(&relaxed), 0);
        assert_int_equal(launch(function, 1, 1, 0, stream), 0);
        assert_int_equal(launch(function, 1, 1, 0, NULL), 0); /* the stream does not block it */
        unload_quietly(more);
        assert_int_equal(cu.cuStreamIsCapturing(stream, &status), 0);
        assert_int_equal(status, 1);
        assert_int_equal(cu.cuStreamEndCapture(stream, &graph), 0);
        assert_int_equal(cu.cuGraphGetNodes(graph, NULL, &nodes), 0);
        assert_int_equal(nodes, 1);
        assert_int_equal(cu.cuGraphDestroy(graph), 0);

        assert_int_equal(load(code, &more), 0);
        assert_int_equal(cu.cuStreamBeginCapture_v2(stream, mode), 0);
        const bool forbidden = mode != RELAXED;
        assert_int_equal(cu.cuLibraryUnload(more), forbidden ? 900 : 0);
        assert_int_equal(cu.cuStreamIsCapturing(stream, &status), 0);
        assert_int_equal(status, forbidden ? 2 : 1);
        assert_int_equal(cu.cuStreamEndCapture(stream, &graph), forbidden ? 901 : 0);
        if (forbidden) {
            assert_null(graph);
            assert_int_equal(cu.cuLibraryUnload(more), 0);
        } else {
            assert_int_equal(cu.cuGraphDestroy(graph), 0);
        }
        assert_int_equal(cu.cuStreamDestroy_v2(stream), 0);
    }
    free(code);
}

static void legacy_stream_beside_a_capture(void **state)
{
    (void)state;
    dj__cu_stream stream = NULL;
    void *graph = NULL;
    int status = 0;
    assert_int_equal(cu.cuStreamCreate(&stream, 0), 0);
    assert_int_equal(cu.cuStreamBeginCapture_v2(stream, RELAXED), 0);
    assert_int_equal(cu.cuStreamIsCapturing(NULL, &status), 906);
    assert_int_equal(cu.cuStreamIsCapturing(stream, &status), 0);
    assert_int_equal(status, 1);
    assert_int_equal(launch(function, 1, 1, 0, NULL), 906);
    assert_int_equal(cu.cuStreamIsCapturing(stream, &status), 0);
    assert_int_equal(status, 2);
    assert_int_equal(launch(function, 1, 1, 0, stream), 901);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), 901);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), 903);
    assert_int_equal(cu.cuStreamBeginCapture_v2(NULL, RELAXED), 900);
    assert_int_equal(cu.cuStreamBeginCapture_v2(stream, THREAD_LOCAL), 0);
    assert_int_equal(cu.cuStreamSynchronize(stream), 900);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), 901);
    assert_int_equal(cu.cuStreamDestroy_v2(stream), 0);
}

static void *load_elsewhere(void *arg)
{
    dj__cu_library loaded = NULL;
    size_t size = 0;
    void *code = small_cubin(90, 0, 1, &size);
    *(int *)arg = load(code, &loaded);
    free(code);
    if (*(int *)arg == 0) {
        (void)cu.cuLibraryUnload(loaded);
    }
    return NULL;
}

/* Only a capture in GLOBAL mode looks at other threads. */
static void captures_of_other_threads(void **state)
{
    (void)state;
    for (int mode = GLOBAL; mode <= RELAXED; mode++) {
        dj__cu_stream stream = NULL;
        void *graph = NULL;
        pthread_t thread;
        int result = -1;
        assert_int_equal(cu.cuStreamCreate(&stream, 1), 0);
        assert_int_equal(cu.cuStreamBeginCapture_v2(stream, mode), 0);
        assert_int_equal(pthread_create(&thread, NULL, load_elsewhere, &result), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(result, mode == GLOBAL ? 900 : 0);
        assert_int_equal(cu.cuStreamEndCapture(stream, &graph), mode == GLOBAL ? 901 : 0);
        if (graph != NULL) {
            assert_int_equal(cu.cuGraphDestroy(graph), 0);
        }
        assert_int_equal(cu.cuStreamDestroy_v2(stream), 0);
    }
}

static void failures_as_asked(void **state)
{
    (void)state;
    int count = 0;
    dj__cu_deviceptr address = 0;
    cu.reset();
    cu.fail_call("cuDeviceGetCount", 2, 999);
    cu.fail_call("cuMemAlloc", 0, 2);
    assert_int_equal(cu.cuDeviceGetCount(&count), 0);
    assert_int_equal(cu.cuDeviceGetCount(&count), 999);
    assert_int_equal(cu.cuDeviceGetCount(&count), 0);
    assert_int_equal(cu.cuMemAlloc_v2(&address, 1), 2);
    assert_int_equal(cu.cuMemAlloc_v2(&address, 1), 2);
    assert_int_equal(cu.fired(NULL), 3);
    assert_int_equal(cu.calls("cuDeviceGetCount"), 3);
    assert_int_equal(cu.calls("*"), 5);
    assert_int_equal(cu.refused(NULL, NULL), 0);
    cu.reset();
    cu.fail_call("cuLaunchKernelEx", 1, 719); /* the device is lost, and stays so */
    assert_int_equal(launch(function, 1, 1, 0, NULL), 719);
    assert_int_equal(launch(function, 1, 1, 0, NULL), 719);
    assert_int_equal(cu.cuCtxSynchronize(), 719);
    cu.reset();
    assert_int_equal(launch(function, 1, 1, 0, NULL), 0);
}

static void after_fork(void **state)
{
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) {
        int count = 0;
        _exit(cu.cuInit(0) == 3 && cu.cuDeviceGetCount(&count) == 3 &&
                      launch(function, 1, 1, 0, NULL) == 3
                  ? 0
                  : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void functions_by_name(void **state)
{
    (void)state;
    void *found = NULL;
    void *expected = NULL;
    int how = -1;
    memcpy(&expected, &cu.cuMemAlloc_v2, sizeof(expected));
    assert_int_equal(cu.cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, &how), 0);
    assert_ptr_equal(found, expected);
    assert_int_equal(how, 0);
    assert_int_equal(cu.cuGetProcAddress_v2("cuNoSuch", &found, 12000, 0, &how), 0);
    assert_null(found);
    assert_int_equal(how, 1);
    assert_int_equal(cu.cuGetProcAddress_v2("cuLibraryLoadData", &found, 11000, 0, &how), 0);
    assert_null(found);
    assert_int_equal(how, 2);
}

static void tensor_maps(void **state)
{
    (void)state;
    _Alignas(64) unsigned char a[128];
    _Alignas(64) unsigned char b[128];
    const uint64_t dims[] = {64, 32};
    const uint64_t strides[] = {256};
    const uint32_t box[] = {16, 8};
    const uint32_t ones[] = {1, 1};
    void *base = (void *)(uintptr_t)4096;
    assert_int_equal(cu.cuTensorMapEncodeTiled(a, 7, 2, base, dims, strides, box, ones, 0, 1, 2, 0),
                     0);
    assert_int_equal(cu.cuTensorMapEncodeTiled(b, 7, 2, base, dims, strides, box, ones, 0, 1, 2, 0),
                     0);
    assert_memory_equal(a, b, sizeof(a));
    assert_int_equal(cu.cuTensorMapEncodeTiled(a, 7, 6, base, dims, strides, box, ones, 0, 1, 2, 0),
                     1);
    assert_int_equal(
        cu.cuTensorMapEncodeTiled(a + 1, 7, 2, base, dims, strides, box, ones, 0, 1, 2, 0), 1);
}

static void the_old_one(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof(path), "%s/standin_cuda/libcuda_old.so.1", getenv("DJ_TEST_BIN_DIR"));
    void *old = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(old);
    assert_null(dlsym(old, "cuLibraryLoadData"));
    assert_null(dlsym(old, "cuKernelGetFunction"));
    assert_non_null(dlsym(old, "cuLaunchKernelEx"));
    void *symbol = dlsym(old, "cuDriverGetVersion");
    assert_non_null(symbol);
    dj__cu_result (*get_version)(int *) = NULL;
    memcpy(&get_version, &symbol, sizeof(symbol));
    int version = 0;
    assert_int_equal(get_version(&version), 0);
    assert_int_equal(version, 11080);
    dlclose(old);
}

static int open_group(void **state)
{
    (void)state;
    standin_open();
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_init), /* first: nothing can undo cuInit */
        cmocka_unit_test(the_old_one),
        TEST(no_context),
        TEST(loads_like_the_real_one),
        TEST(kernels_and_parameters),
        TEST(launches_are_recorded),
        TEST(launches_that_are_refused),
        TEST(attributes_of_a_launch),
        TEST(memory),
        TEST(contexts_that_end),
        TEST(captures),
        TEST(legacy_stream_beside_a_capture),
        TEST(captures_of_other_threads),
        TEST(failures_as_asked),
        TEST(after_fork),
        TEST(functions_by_name),
        TEST(tensor_maps),
    };
    return cmocka_run_group_tests_name("stand-in driver", tests, open_group, NULL);
}
