/* SPDX-License-Identifier: MIT */
/* The stand-in driver: start, errors, version and two pretended devices. */
#include "standin_cuda_state.h"
#include <stdio.h>
#include <string.h>

static const struct {
    int code;
    const char *name;
    const char *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "API call requires newer driver"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for the device"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "unsupported PTX version"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the stream is not part of the capture"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "dependency created on uncaptured work"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "capture was not begun by this thread"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static dj__cu_result describe_error(dj__cu_result code, const char **name, const char **text)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].code == code) {
            *(name != NULL ? name : text) = name != NULL ? errors[i].name : errors[i].text;
            return DJ__CU_SUCCESS;
        }
    }
    *(name != NULL ? name : text) = NULL;
    return DJ__CU_INVALID_VALUE;
}

/* Neither needs the driver's state, so they also work after a fork; no rule strikes them. */
dj__cu_result cuGetErrorName(dj__cu_result error, const char **name)
{
    return name != NULL ? describe_error(error, name, NULL) : DJ__CU_INVALID_VALUE;
}

dj__cu_result cuGetErrorString(dj__cu_result error, const char **text)
{
    return text != NULL ? describe_error(error, NULL, text) : DJ__CU_INVALID_VALUE;
}

dj__cu_result cuInit(unsigned flags)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_STARTS);
    if (result == DJ__CU_SUCCESS && flags != 0) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS && standin_device_count() <= 0) {
        result = DJ__CU_NO_DEVICE;
    }
    if (result == DJ__CU_SUCCESS) {
        standin_mark_initialised();
    }
    return standin_leave(result);
}

dj__cu_result cuDriverGetVersion(int *version)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_STARTS);
    if (result == DJ__CU_SUCCESS && version == NULL) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        *version = standin_version();
    }
    return standin_leave(result);
}

/* An ordinal is its own handle, as in the real driver. */
static dj__cu_result check_device(int device, const void *out)
{
    if (out == NULL) {
        return DJ__CU_INVALID_VALUE;
    }
    return device >= 0 && device < standin_device_count() ? DJ__CU_SUCCESS : STANDIN_INVALID_DEVICE;
}

dj__cu_result cuDeviceGetCount(int *count)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS && count == NULL) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        *count = standin_device_count();
    }
    return standin_leave(result);
}

dj__cu_result cuDeviceGet(dj__cu_device *device, int ordinal)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        result = check_device(ordinal, device);
    }
    if (result == DJ__CU_SUCCESS) {
        *device = ordinal;
    }
    return standin_leave(result);
}

dj__cu_result cuDeviceGetName(char *name, int size, dj__cu_device device)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        result = size > 0 ? check_device(device, name) : DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        (void)snprintf(name, (size_t)size, "Stand-in GPU %d", device);
    }
    return standin_leave(result);
}

dj__cu_result cuDeviceGetUuid_v2(dj__cu_uuid *uuid, dj__cu_device device)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        result = check_device(device, uuid);
    }
    if (result == DJ__CU_SUCCESS) {
        for (size_t i = 0; i < sizeof uuid->bytes; i++) {
            uuid->bytes[i] = (uint8_t)(0x10 * (unsigned)device + i + 1);
        }
    }
    return standin_leave(result);
}

dj__cu_result cuDeviceTotalMem_v2(size_t *bytes, dj__cu_device device)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        result = check_device(device, bytes);
    }
    if (result == DJ__CU_SUCCESS) {
        *bytes = STANDIN_MEMORY;
    }
    return standin_leave(result);
}

int standin_device_attribute(int device, int attribute)
{
    static const struct {
        int attribute;
        int value;
    } fixed[] = {
        {DJ__CU_DEV_MAX_THREADS_PER_BLOCK, 1024},
        {DJ__CU_DEV_MAX_BLOCK_DIM_X, 1024},
        {DJ__CU_DEV_MAX_BLOCK_DIM_Y, 1024},
        {DJ__CU_DEV_MAX_BLOCK_DIM_Z, 64},
        {DJ__CU_DEV_MAX_GRID_DIM_X, 2147483647},
        {DJ__CU_DEV_MAX_GRID_DIM_Y, 65535},
        {DJ__CU_DEV_MAX_GRID_DIM_Z, 65535},
        {DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {DJ__CU_DEV_WARP_SIZE, 32},
        {DJ__CU_DEV_MAX_REGISTERS_PER_BLOCK, 65536},
        {DJ__CU_DEV_CLOCK_RATE, 1980000},
        {DJ__CU_DEV_MULTIPROCESSOR_COUNT, 132},
        {DJ__CU_DEV_L2_CACHE_SIZE, 52428800},
        {DJ__CU_DEV_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {DJ__CU_DEV_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
        {DJ__CU_DEV_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {DJ__CU_DEV_COOPERATIVE_LAUNCH, 1},
        {DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
        {DJ__CU_DEV_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
        {DJ__CU_DEV_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    };
    int major = 0;
    int minor = 0;
    standin_arch(device, &major, &minor);
    switch (attribute) {
    case DJ__CU_DEV_COMPUTE_CAPABILITY_MAJOR:
        return major;
    case DJ__CU_DEV_COMPUTE_CAPABILITY_MINOR:
        return minor;
    case DJ__CU_DEV_CLUSTER_LAUNCH:
        return major >= 9;
    default:
        for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
            if (fixed[i].attribute == attribute) {
                return fixed[i].value;
            }
        }
        return attribute > 0 && attribute < 150 ? 0 : -1;
    }
}

dj__cu_result cuDeviceGetAttribute(int *value, int attribute, dj__cu_device device)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        result = check_device(device, value);
    }
    if (result == DJ__CU_SUCCESS) {
        const int found = standin_device_attribute(device, attribute);
        result = found >= 0 ? DJ__CU_SUCCESS : DJ__CU_INVALID_VALUE;
        *value = found >= 0 ? found : *value;
    }
    return standin_leave(result);
}
