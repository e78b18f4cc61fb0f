/* SPDX-License-Identifier: MIT */
/*
 * A CUDA driver that does nothing as fast as it can: what is left of a launch is the library's own
 * time. One device of compute capability 9.0, one context, memory of the host; any kernel that is
 * asked for exists. For JIT_CUDA_LIBRARY of bench/gpu_launch; nothing runs.
 */
#include "cuda_api.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every row is declared here; a row whose form changes does not compile, and the library
 * names one that is missing when it opens this driver. */
#define CUDA_SYMBOL(need, name, exported, since, params) dj__cu_result exported params;
#include "cuda_symbols.def"
#undef CUDA_SYMBOL

static int null_object; /* its address stands for every handle */

static void *null_handle(void)
{
    return &null_object;
}

dj__cu_result cuInit(unsigned flags)
{
    return flags == 0 ? DJ__CU_SUCCESS : DJ__CU_INVALID_VALUE;
}

dj__cu_result cuDriverGetVersion(int *version)
{
    *version = 13000;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuGetErrorName(dj__cu_result error, const char **name)
{
    *name = error == DJ__CU_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR";
    return DJ__CU_SUCCESS;
}

dj__cu_result cuGetErrorString(dj__cu_result error, const char **text)
{
    return cuGetErrorName(error, text);
}

/* Nothing but what is exported. */
dj__cu_result cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                  int *found)
{
    (void)symbol;
    (void)version;
    (void)flags;
    *function = NULL;
    if (found != NULL) {
        *found = 1;
    }
    return DJ__CU_NOT_FOUND;
}

dj__cu_result cuDeviceGetCount(int *count)
{
    *count = 1;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuDeviceGet(dj__cu_device *device, int ordinal)
{
    *device = 0;
    return ordinal == 0 ? DJ__CU_SUCCESS : DJ__CU_INVALID_VALUE;
}

dj__cu_result cuDeviceGetName(char *name, int size, dj__cu_device device)
{
    (void)device;
    snprintf(name, (size_t)size, "null");
    return DJ__CU_SUCCESS;
}

dj__cu_result cuDeviceGetUuid_v2(dj__cu_uuid *uuid, dj__cu_device device)
{
    (void)device;
    memset(uuid, 1, sizeof(*uuid));
    return DJ__CU_SUCCESS;
}

dj__cu_result cuDeviceTotalMem_v2(size_t *bytes, dj__cu_device device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuDeviceGetAttribute(int *value, int attribute, dj__cu_device device)
{
    (void)device;
    switch (attribute) {
    case DJ__CU_DEV_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        break;
    case DJ__CU_DEV_COMPUTE_CAPABILITY_MINOR:
        *value = 0;
        break;
    case DJ__CU_DEV_MAX_GRID_DIM_X:
        *value = 2147483647;
        break;
    case DJ__CU_DEV_COOPERATIVE_LAUNCH:
    case DJ__CU_DEV_CLUSTER_LAUNCH:
        *value = 1;
        break;
    case DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = 48 * 1024;
        break;
    case DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = 227 * 1024;
        break;
    default:
        *value = 1024;
    }
    return DJ__CU_SUCCESS;
}

dj__cu_result cuDevicePrimaryCtxRetain(dj__cu_context *context, dj__cu_device device)
{
    (void)device;
    *context = null_handle();
    return DJ__CU_SUCCESS;
}

dj__cu_result cuCtxGetCurrent(dj__cu_context *context)
{
    *context = null_handle();
    return DJ__CU_SUCCESS;
}

dj__cu_result cuCtxGetId(dj__cu_context context, unsigned long long *id)
{
    (void)context;
    *id = 1;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuCtxSetCurrent(dj__cu_context context)
{
    (void)context;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuCtxGetDevice(dj__cu_device *device)
{
    *device = 0;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuCtxSynchronize(void)
{
    return DJ__CU_SUCCESS;
}

dj__cu_result cuStreamSynchronize(dj__cu_stream stream)
{
    (void)stream;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    *mode = 0;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuMemAlloc_v2(dj__cu_deviceptr *memory, size_t size)
{
    void *const block = malloc(size);
    *memory = (uintptr_t)block;
    return block != NULL ? DJ__CU_SUCCESS : DJ__CU_OUT_OF_MEMORY;
}

dj__cu_result cuMemFree_v2(dj__cu_deviceptr memory)
{
    free((void *)(uintptr_t)memory);
    return DJ__CU_SUCCESS;
}

dj__cu_result cuMemcpy(dj__cu_deviceptr to, dj__cu_deviceptr from, size_t size)
{
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
    return DJ__CU_SUCCESS;
}

dj__cu_result cuLibraryLoadData(dj__cu_library *library, const void *code, int *jit_options,
                                void **jit_values, unsigned num_jit, int *options, void **values,
                                unsigned num_options)
{
    (void)code;
    (void)jit_options;
    (void)jit_values;
    (void)num_jit;
    (void)options;
    (void)values;
    (void)num_options;
    *library = null_handle();
    return DJ__CU_SUCCESS;
}

dj__cu_result cuLibraryUnload(dj__cu_library library)
{
    (void)library;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuLibraryGetKernel(dj__cu_kernel *kernel, dj__cu_library library, const char *name)
{
    (void)library;
    (void)name;
    *kernel = null_handle();
    return DJ__CU_SUCCESS;
}

dj__cu_result cuLibraryGetGlobal(dj__cu_deviceptr *address, size_t *size, dj__cu_library library,
                                 const char *name)
{
    (void)address;
    (void)size;
    (void)library;
    (void)name;
    return DJ__CU_NOT_FOUND;
}

dj__cu_result cuLibraryGetKernelCount(unsigned *count, dj__cu_library library)
{
    (void)library;
    *count = 1;
    return DJ__CU_SUCCESS;
}

/* As for a driver that does not know: parameters come from the cubin. */
dj__cu_result cuKernelGetParamInfo(dj__cu_kernel kernel, size_t index, size_t *offset, size_t *size)
{
    (void)kernel;
    (void)index;
    (void)offset;
    (void)size;
    return DJ__CU_CALL_REQUIRES_NEWER_DRIVER;
}

dj__cu_result cuKernelGetFunction(dj__cu_function *function, dj__cu_kernel kernel)
{
    (void)kernel;
    *function = null_handle();
    return DJ__CU_SUCCESS;
}

dj__cu_result cuFuncGetAttribute(int *value, int attribute, dj__cu_function function)
{
    (void)function;
    *value = attribute == DJ__CU_FUNC_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuFuncSetAttribute(dj__cu_function function, int attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, dj__cu_function function,
                                                          int block_threads, size_t shared_bytes)
{
    (void)function;
    (void)block_threads;
    (void)shared_bytes;
    *blocks = 1;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuOccupancyMaxActiveClusters(int *clusters, dj__cu_function function,
                                           const dj__cu_launch_config *config)
{
    (void)function;
    (void)config;
    *clusters = 1;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuLaunchKernelEx(const dj__cu_launch_config *config, dj__cu_function function,
                               void **params, void **extra)
{
    (void)config;
    (void)function;
    (void)params;
    (void)extra;
    return DJ__CU_SUCCESS;
}
