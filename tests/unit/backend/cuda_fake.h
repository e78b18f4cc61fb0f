/* SPDX-License-Identifier: MIT */
/*
 * A CUDA driver inside the test: the functions of dj__cuda_api, kept simple, with a world that the
 * test can look into and change. Tests that include this are linked with
 * --wrap=dj__cubin_read,--wrap=dj__cubin_fini: a "cubin" is whatever fake.kernels says.
 */
#ifndef DJ_TESTS_CUDA_FAKE_H
#define DJ_TESTS_CUDA_FAKE_H

#include "backend/cuda/cuda_plan.h"
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    FAKE_DEVICES = 2,
    FAKE_CONTEXTS = 4, /* the first FAKE_DEVICES are the primary ones */
    FAKE_FUNCTIONS = 64,
    FAKE_PARAMS = 128,
    FAKE_OPTIN = 232448,
    FAKE_RESERVED = 1024
};

typedef struct fake_function {
    int context;
    atomic_bool valid;
    atomic_int shared_allowed;
    atomic_int nonportable;
} fake_function;

typedef struct fake_context {
    int device;
    atomic_bool alive;
    atomic_int lives; /* a context that comes back has another id */
} fake_context;

/* Everything starts at zero; fake_reset gives two devices of architecture 9.0. */
static struct {
    int major, minor;
    int cooperative, cluster;
    int max_block_x, max_grid_yz;
    int version;
    int devices;
    int static_shared;
    int kernel_threads;
    fake_context contexts[FAKE_CONTEXTS];
    fake_function functions[FAKE_FUNCTIONS];
    atomic_int num_functions;
    pthread_mutex_t lock;
    /* What dj__cubin_read finds. */
    dj_kernel_info kernels[3];
    size_t num_kernels;
    dj_status cubin_status;
    dj_param_info params[FAKE_PARAMS];
    size_t num_params;
    unsigned count; /* kernels by the driver */
    /* Forced results; 0: none. */
    atomic_int load_result, unload_result, launch_result, function_result, set_result;
    bool capturing; /* calls outside the relaxed mode spoil it */
    atomic_bool capture_spoiled;
    /* What was called. */
    atomic_int retains, set_currents, get_functions, sets, launches, loads, unloads, syncs;
    atomic_int set_attribute, set_value;
    /* The last launch; tests with threads look at the counts only. */
    dj__cu_launch_config config;
    dj__cu_launch_attribute attributes[4];
    const void *function;
    const void *params_seen;
    uint64_t values[FAKE_PARAMS];
} fake;

static _Thread_local int fake_current; /* 1 + index of the context */
static _Thread_local int fake_mode;    /* 0 GLOBAL, 2 RELAXED */

static dj__cu_context fake_handle(int index)
{
    return (dj__cu_context)(void *)&fake.contexts[index];
}

static int fake_spoils(void)
{
    if (fake.capturing && fake_mode != DJ__CU_CAPTURE_MODE_RELAXED) {
        atomic_store(&fake.capture_spoiled, true);
        return DJ__CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    return 0;
}

static dj__cu_result fake_cuInit(unsigned flags)
{
    return flags == 0 ? 0 : DJ__CU_INVALID_VALUE;
}

static dj__cu_result fake_cuDriverGetVersion(int *version)
{
    *version = fake.version;
    return 0;
}

static dj__cu_result fake_cuGetErrorName(dj__cu_result error, const char **name)
{
    *name = error == 1     ? "CUDA_ERROR_INVALID_VALUE"
            : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                           : "CUDA_ERROR_OTHER";
    return 0;
}

static dj__cu_result fake_cuGetErrorString(dj__cu_result error, const char **text)
{
    *text = error == 1 ? "invalid argument" : "some text";
    return 0;
}

static dj__cu_result fake_cuGetProcAddress(const char *symbol, void **function, int version,
                                           uint64_t flags, int *found)
{
    assert_int_equal(flags, 0);
    *found = strcmp(symbol, "cuEncode") != 0 ? 1 : version < 12000 ? 2 : 0;
    *function = *found == 0 ? (void *)&fake : NULL;
    return *found == 0 ? 0 : DJ__CU_NOT_FOUND;
}

static dj__cu_result fake_cuDeviceGetCount(int *count)
{
    *count = fake.devices;
    return 0;
}

/* Handles that are no ordinals, so that mixing them up shows. */
static dj__cu_result fake_cuDeviceGet(dj__cu_device *device, int ordinal)
{
    *device = 40 + ordinal;
    return 0;
}

static dj__cu_result fake_cuDeviceGetName(char *name, int size, dj__cu_device device)
{
    (void)snprintf(name, (size_t)size, "Fake %d", device - 40);
    return 0;
}

static dj__cu_result fake_cuDeviceGetUuid(dj__cu_uuid *uuid, dj__cu_device device)
{
    memset(uuid->bytes, device, sizeof uuid->bytes);
    return 0;
}

static dj__cu_result fake_cuDeviceTotalMem(size_t *bytes, dj__cu_device device)
{
    *bytes = (size_t)device << 30;
    return 0;
}

static dj__cu_result fake_cuDeviceGetAttribute(int *value, int attribute, dj__cu_device device)
{
    static const int values[][2] = {
        {DJ__CU_DEV_MAX_THREADS_PER_BLOCK, 1024},
        {DJ__CU_DEV_MAX_BLOCK_DIM_Y, 1024},
        {DJ__CU_DEV_MAX_BLOCK_DIM_Z, 64},
        {DJ__CU_DEV_MAX_GRID_DIM_X, 2147483647},
        {DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {DJ__CU_DEV_WARP_SIZE, 32},
        {DJ__CU_DEV_CLOCK_RATE, 1980000},
        {DJ__CU_DEV_MULTIPROCESSOR_COUNT, 132},
        {DJ__CU_DEV_L2_CACHE_SIZE, 50 << 20},
        {DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, FAKE_OPTIN},
        {DJ__CU_DEV_RESERVED_SHARED_MEMORY_PER_BLOCK, FAKE_RESERVED},
        {DJ__CU_DEV_MAX_REGISTERS_PER_BLOCK, 65536},
    };
    assert_true(device >= 40 && device < 40 + FAKE_DEVICES);
    const int chosen[][2] = {{DJ__CU_DEV_COMPUTE_CAPABILITY_MAJOR, fake.major},
                             {DJ__CU_DEV_COMPUTE_CAPABILITY_MINOR, fake.minor},
                             {DJ__CU_DEV_MAX_BLOCK_DIM_X, fake.max_block_x},
                             {DJ__CU_DEV_MAX_GRID_DIM_Y, fake.max_grid_yz},
                             {DJ__CU_DEV_MAX_GRID_DIM_Z, fake.max_grid_yz},
                             {DJ__CU_DEV_COOPERATIVE_LAUNCH, fake.cooperative},
                             {DJ__CU_DEV_CLUSTER_LAUNCH, fake.cluster}};
    for (size_t i = 0; i < sizeof chosen / sizeof chosen[0]; i++) {
        if (chosen[i][0] == attribute) {
            *value = chosen[i][1];
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (values[i][0] == attribute) {
            *value = values[i][1];
            return 0;
        }
    }
    return DJ__CU_INVALID_VALUE;
}

static dj__cu_result fake_cuDevicePrimaryCtxRetain(dj__cu_context *context, dj__cu_device device)
{
    const int spoiled = fake_spoils();
    if (spoiled != 0) {
        return spoiled;
    }
    atomic_fetch_add(&fake.retains, 1);
    if (!atomic_exchange(&fake.contexts[device - 40].alive, true)) {
        atomic_fetch_add(&fake.contexts[device - 40].lives, 1);
    }
    *context = fake_handle(device - 40);
    return 0;
}

static dj__cu_result fake_cuCtxGetCurrent(dj__cu_context *context)
{
    *context = fake_current != 0 ? fake_handle(fake_current - 1) : NULL;
    return 0;
}

static dj__cu_result fake_cuCtxSetCurrent(dj__cu_context context)
{
    atomic_fetch_add(&fake.set_currents, 1);
    const fake_context *record = (const fake_context *)(void *)context;
    if (!atomic_load(&record->alive)) {
        return DJ__CU_CONTEXT_IS_DESTROYED;
    }
    fake_current = 1 + (int)(record - fake.contexts);
    return 0;
}

static dj__cu_result fake_check(void)
{
    if (fake_current == 0) {
        return DJ__CU_INVALID_CONTEXT;
    }
    return atomic_load(&fake.contexts[fake_current - 1].alive) ? 0 : DJ__CU_CONTEXT_IS_DESTROYED;
}

static dj__cu_result fake_cuCtxGetId(dj__cu_context context, unsigned long long *id)
{
    assert_null(context); /* the current one is asked for */
    const dj__cu_result result = fake_check();
    if (result == 0) {
        *id = (unsigned long long)(fake_current +
                                   FAKE_CONTEXTS *
                                       atomic_load(&fake.contexts[fake_current - 1].lives));
    }
    return result;
}

static dj__cu_result fake_cuCtxGetDevice(dj__cu_device *device)
{
    if (fake_current == 0) {
        return DJ__CU_INVALID_CONTEXT;
    }
    *device = 40 + fake.contexts[fake_current - 1].device;
    return 0;
}

static dj__cu_result fake_cuCtxSynchronize(void)
{
    return fake_check();
}

static dj__cu_result fake_cuStreamSynchronize(dj__cu_stream stream)
{
    assert_int_equal((uintptr_t)stream, 1);
    atomic_fetch_add(&fake.syncs, 1);
    return fake_check();
}

static dj__cu_result fake_cuThreadExchangeStreamCaptureMode(int *mode)
{
    const int before = fake_mode;
    fake_mode = *mode;
    *mode = before;
    return 0;
}

static dj__cu_result fake_cuMemAlloc(dj__cu_deviceptr *memory, size_t size)
{
    const int spoiled = fake_spoils();
    if (spoiled != 0 || fake_check() != 0) {
        return spoiled != 0 ? spoiled : fake_check();
    }
    if (size == 0) {
        return DJ__CU_INVALID_VALUE;
    }
    if (size > (size_t)1 << 40) {
        return DJ__CU_OUT_OF_MEMORY;
    }
    *memory = (dj__cu_deviceptr)(uintptr_t)malloc(size);
    return 0;
}

static dj__cu_result fake_cuMemFree(dj__cu_deviceptr memory)
{
    free((void *)(uintptr_t)memory);
    return fake_check();
}

static dj__cu_result fake_cuMemcpy(dj__cu_deviceptr to, dj__cu_deviceptr from, size_t size)
{
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
    return fake_check();
}

static dj__cu_result fake_cuLibraryLoadData(dj__cu_library *library, const void *code,
                                            int *jit_options, void **jit_values, unsigned num_jit,
                                            int *options, void **values, unsigned num_options)
{
    (void)jit_options;
    (void)jit_values;
    (void)options;
    (void)values;
    assert_int_equal(num_jit + num_options, 0);
    assert_non_null(code);
    const int spoiled = fake_spoils();
    if (spoiled != 0 || fake.load_result != 0) {
        *library = (dj__cu_library)(void *)&fake; /* a failing driver may leave anything here */
        return spoiled != 0 ? spoiled : fake.load_result;
    }
    *library = (dj__cu_library)(void *)(uintptr_t)(0x1000 + atomic_fetch_add(&fake.loads, 1));
    return 0;
}

static dj__cu_result fake_cuLibraryUnload(dj__cu_library library)
{
    assert_true((uintptr_t)library >= 0x1000 && (uintptr_t)library < 0x100000);
    const int spoiled = fake_spoils();
    const int result = spoiled != 0 ? spoiled : atomic_load(&fake.unload_result);
    if (result != 0) {
        return result;
    }
    atomic_fetch_add(&fake.unloads, 1);
    return 0;
}

static dj__cu_result fake_cuLibraryGetKernel(dj__cu_kernel *kernel, dj__cu_library library,
                                             const char *name)
{
    assert_non_null(library);
    assert_string_equal(name, fake.kernels[0].name);
    *kernel = (dj__cu_kernel)(void *)&fake.kernels;
    return 0;
}

static dj__cu_result fake_cuLibraryGetGlobal(dj__cu_deviceptr *address, size_t *size,
                                             dj__cu_library library, const char *name)
{
    assert_non_null(library);
    if (strcmp(name, "table") != 0) {
        return DJ__CU_NOT_FOUND;
    }
    *address = 0x7000;
    *size = 48;
    return fake_check();
}

static dj__cu_result fake_cuLibraryGetKernelCount(unsigned *count, dj__cu_library library)
{
    assert_non_null(library);
    *count = fake.count;
    return 0;
}

static dj__cu_result fake_cuKernelGetParamInfo(dj__cu_kernel kernel, size_t index, size_t *offset,
                                               size_t *size)
{
    assert_non_null(kernel);
    if (index >= fake.num_params) {
        return DJ__CU_INVALID_VALUE;
    }
    *offset = fake.params[index].offset;
    *size = fake.params[index].size;
    return 0;
}

/* One function for each context, until it is reset. */
static dj__cu_result fake_cuKernelGetFunction(dj__cu_function *function, dj__cu_kernel kernel)
{
    assert_ptr_equal(kernel, &fake.kernels);
    dj__cu_result result = fake_spoils();
    result = result != 0 ? result : fake_check();
    result = result != 0 ? result : fake.function_result;
    if (result != 0) {
        return result;
    }
    atomic_fetch_add(&fake.get_functions, 1);
    pthread_mutex_lock(&fake.lock);
    int at = 0;
    while (at < fake.num_functions && (fake.functions[at].context != fake_current - 1 ||
                                       !atomic_load(&fake.functions[at].valid))) {
        at++;
    }
    if (at == fake.num_functions) {
        fake.functions[at].context = fake_current - 1;
        fake.functions[at].shared_allowed = 49152;
        atomic_store(&fake.functions[at].valid, true);
        fake.num_functions++;
    }
    pthread_mutex_unlock(&fake.lock);
    *function = (dj__cu_function)(void *)&fake.functions[at];
    return 0;
}

static dj__cu_result fake_cuFuncGetAttribute(int *value, int attribute, dj__cu_function function)
{
    fake_function *record = (fake_function *)(void *)function;
    if (!atomic_load(&record->valid)) {
        return DJ__CU_INVALID_HANDLE;
    }
    switch (attribute) {
    case DJ__CU_FUNC_MAX_THREADS_PER_BLOCK:
        *value = fake.kernel_threads;
        return 0;
    case DJ__CU_FUNC_SHARED_SIZE_BYTES:
        *value = fake.static_shared;
        return 0;
    case DJ__CU_FUNC_NUM_REGS:
        *value = 40;
        return 0;
    case DJ__CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = record->shared_allowed;
        return 0;
    default:
        return DJ__CU_INVALID_VALUE;
    }
}

static dj__cu_result fake_cuFuncSetAttribute(dj__cu_function function, int attribute, int value)
{
    fake_function *record = (fake_function *)(void *)function;
    if (!atomic_load(&record->valid)) {
        return DJ__CU_INVALID_HANDLE;
    }
    if (fake.set_result != 0) {
        return fake.set_result;
    }
    atomic_fetch_add(&fake.sets, 1);
    fake.set_attribute = attribute;
    fake.set_value = value;
    if (attribute == DJ__CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        record->shared_allowed = value;
    } else if (attribute == DJ__CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
        record->nonportable = value;
    } else {
        return DJ__CU_INVALID_VALUE;
    }
    return 0;
}

static dj__cu_result fake_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                      dj__cu_function function,
                                                                      int block_threads,
                                                                      size_t shared_bytes)
{
    assert_non_null(function);
    *blocks = shared_bytes > 100000 ? 1 : 2048 / block_threads;
    return 0;
}

static dj__cu_result fake_cuOccupancyMaxActiveClusters(int *clusters, dj__cu_function function,
                                                       const dj__cu_launch_config *config)
{
    assert_non_null(function);
    *clusters = config->num_attributes > 0 ? 132 / (int)config->attributes[0].value.cluster[0] : 7;
    return 0;
}

static void fake_record(const dj__cu_launch_config *config, void **params, const void *function)
{
    fake.config = *config;
    fake.function = function;
    fake.params_seen = params;
    memset(fake.attributes, 0, sizeof fake.attributes);
    for (unsigned i = 0; i < config->num_attributes; i++) {
        fake.attributes[i] = config->attributes[i];
    }
    for (size_t i = 0; i < fake.num_params && params != NULL; i++) {
        memcpy(&fake.values[i], params[i], fake.params[i].size);
    }
}

static dj__cu_result fake_cuLaunchKernelEx(const dj__cu_launch_config *config,
                                           dj__cu_function function, void **params, void **extra)
{
    assert_null(extra);
    const fake_function *record = (const fake_function *)(const void *)function;
    const dj__cu_result context = fake_check();
    if (context != 0) {
        return context;
    }
    if (!atomic_load(&record->valid) || record->context != fake_current - 1) {
        return DJ__CU_INVALID_HANDLE;
    }
    if (fake.launch_result != 0) {
        return fake.launch_result;
    }
    if ((int)config->shared_bytes > record->shared_allowed) {
        return DJ__CU_INVALID_VALUE;
    }
    pthread_mutex_lock(&fake.lock);
    fake_record(config, params, function);
    pthread_mutex_unlock(&fake.lock);
    atomic_fetch_add(&fake.launches, 1);
    return 0;
}

static const dj__cuda_api fake_api = {
#define CUDA_SYMBOL(need, name, exported, since, params) .name = fake_##name,
#include "backend/cuda/cuda_symbols.def"
#undef CUDA_SYMBOL
};

/* ---- the cubin ---- */

dj_status __wrap_dj__cubin_read(const void *data, size_t size, dj__cubin *out, dj_error *err);
dj_status __wrap_dj__cubin_read(const void *data, size_t size, dj__cubin *out, dj_error *err)
{
    assert_true(data != NULL && size > 0);
    memset(out, 0, sizeof *out);
    if (fake.cubin_status != DJ_OK) {
        return dj__fail(err, fake.cubin_status, "the bytes are PTX text, not a cubin");
    }
    (void)snprintf(out->info.arch, sizeof out->info.arch, "80");
    out->info.kernels = fake.kernels;
    out->info.num_kernels = fake.num_kernels;
    out->memory = malloc(1); /* a leak shows */
    return DJ_OK;
}

void __wrap_dj__cubin_fini(dj__cubin *cubin);
void __wrap_dj__cubin_fini(dj__cubin *cubin)
{
    free(cubin->memory);
}

/* ---- a driver and a module ---- */

typedef struct cuda_fixture {
    dj__env *env;
    dj_backend_context context;
    dj_driver *driver;
    dj_module *module;
    dj_module_info info;
    dj_error err;
} cuda_fixture;

static inline void fake_params(size_t count, uint32_t size)
{
    fake.num_params = count;
    for (size_t i = 0; i < count; i++) {
        fake.params[i] = (dj_param_info){"", "", (uint32_t)i * size, size, size < 8 ? size : 8};
    }
    fake.kernels[0].params = fake.params;
    fake.kernels[0].num_params = count;
}

static inline void fake_reset(void)
{
    memset(&fake, 0, sizeof fake);
    pthread_mutex_init(&fake.lock, NULL);
    fake.major = 9;
    fake.cooperative = 1;
    fake.max_block_x = 1024;
    fake.max_grid_yz = 65535;
    fake.cluster = 1;
    fake.version = 13000;
    fake.devices = FAKE_DEVICES;
    fake.kernel_threads = 1024;
    fake.count = 1;
    fake.num_kernels = 1;
    fake.kernels[0] = (dj_kernel_info){.name = "scale", .shared_bytes = -1};
    for (int i = 0; i < FAKE_CONTEXTS; i++) {
        fake.contexts[i].device = i % FAKE_DEVICES;
    }
    fake_params(2, 8);
    fake_current = 0;
    fake_mode = 0;
}

static inline void cuda_fixture_env(cuda_fixture *fixture, const char *variable)
{
    const char *variables[] = {variable, NULL};
    memset(fixture, 0, sizeof *fixture);
    assert_int_equal(dj__env_create(NULL, (char *const *)variables, &fixture->env, NULL), DJ_OK);
    fixture->context = (dj_backend_context){.size = sizeof fixture->context, .env = fixture->env};
}

/* The fake library's handle is the process itself. */
static inline dj_status cuda_fixture_open(cuda_fixture *fixture, const char *variable)
{
    dj__cuda_library library = {.name = "fake", .version = fake.version};
    cuda_fixture_env(fixture, variable);
    return dj__cuda_driver_create(&fixture->context, &library, &fake_api, &fixture->driver,
                                  &fixture->err);
}

static inline dj_status cuda_fixture_load(cuda_fixture *fixture)
{
    static const char bytes[] = "cubin";
    const dj_binary binary = {bytes, sizeof bytes, "/cache/k.1/kernel.cubin"};
    return dj__cuda_driver_ops.load(fixture->driver, &binary, &fixture->module, &fixture->info,
                                    &fixture->err);
}

static inline void cuda_fixture_start(cuda_fixture *fixture)
{
    assert_int_equal(cuda_fixture_open(fixture, NULL), DJ_OK);
    if (cuda_fixture_load(fixture) != DJ_OK) {
        fail_msg("%s", fixture->err.message);
    }
}

static inline void cuda_fixture_stop(cuda_fixture *fixture)
{
    if (fixture->module != NULL) {
        dj__cuda_driver_ops.unload(fixture->driver, fixture->module);
    }
    dj__cuda_driver_ops.close(fixture->driver);
    dj__env_destroy(fixture->env);
}

static inline void cuda_fixture_says(const cuda_fixture *fixture, const char *text)
{
    if (strstr(fixture->err.message, text) == NULL) {
        fail_msg("expected '%s' in '%s'", text, fixture->err.message);
    }
}

/* ---- launches ---- */

typedef struct cuda_call {
    dj_dim3 grid, block;
    uint64_t shared;
    void *stream;
    const dj_cuda_launch_options *call, *defaults;
} cuda_call;

static inline dj_status cuda_fixture_launch(cuda_fixture *fixture, const cuda_call *call)
{
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    dj_launch_options defaults = DJ_LAUNCH_OPTIONS_INIT;
    options.cuda = call->call;
    defaults.cuda = call->defaults;
    const dj_launch_config config = {call->grid,   call->block, call->shared,
                                     call->stream, &options,    &defaults};
    uint64_t values[FAKE_PARAMS];
    const void *args[FAKE_PARAMS];
    for (size_t i = 0; i < fake.num_params; i++) {
        values[i] = 100 + i;
        args[i] = &values[i];
    }
    memset(&fixture->err, 0, sizeof fixture->err);
    return dj__cuda_driver_ops.launch(fixture->driver, fixture->module, &config, args,
                                      fake.num_params, &fixture->err);
}

#endif
