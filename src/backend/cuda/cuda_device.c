/* SPDX-License-Identifier: MIT */
/*
 * Devices. Nothing here needs a context, so asking for the architecture of a device costs no
 * memory on it. A description is made once for each device and published by compare-and-swap:
 * readers take no lock.
 */
#include "backend/cuda/cuda_driver.h"
#include "backend/cuda/cuda_error.h"
#include "base/error.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct device_row {
    int attribute;
    size_t offset; /* of an int32_t in dj_cuda_device */
} device_rows[] = {
    {DJ__CU_DEV_COMPUTE_CAPABILITY_MAJOR, offsetof(dj_cuda_device, major)},
    {DJ__CU_DEV_COMPUTE_CAPABILITY_MINOR, offsetof(dj_cuda_device, minor)},
    {DJ__CU_DEV_MULTIPROCESSOR_COUNT, offsetof(dj_cuda_device, multiprocessors)},
    {DJ__CU_DEV_WARP_SIZE, offsetof(dj_cuda_device, warp_size)},
    {DJ__CU_DEV_CLOCK_RATE, offsetof(dj_cuda_device, clock_khz)},
    {DJ__CU_DEV_L2_CACHE_SIZE, offsetof(dj_cuda_device, l2_bytes)},
    {DJ__CU_DEV_MAX_THREADS_PER_BLOCK, offsetof(dj_cuda_device, max_block_threads)},
    {DJ__CU_DEV_MAX_THREADS_PER_MULTIPROCESSOR,
     offsetof(dj_cuda_device, max_multiprocessor_threads)},
    {DJ__CU_DEV_MAX_BLOCKS_PER_MULTIPROCESSOR, offsetof(dj_cuda_device, max_multiprocessor_blocks)},
    {DJ__CU_DEV_MAX_BLOCK_DIM_X, offsetof(dj_cuda_device, max_block[0])},
    {DJ__CU_DEV_MAX_BLOCK_DIM_Y, offsetof(dj_cuda_device, max_block[1])},
    {DJ__CU_DEV_MAX_BLOCK_DIM_Z, offsetof(dj_cuda_device, max_block[2])},
    {DJ__CU_DEV_MAX_GRID_DIM_X, offsetof(dj_cuda_device, max_grid[0])},
    {DJ__CU_DEV_MAX_GRID_DIM_Y, offsetof(dj_cuda_device, max_grid[1])},
    {DJ__CU_DEV_MAX_GRID_DIM_Z, offsetof(dj_cuda_device, max_grid[2])},
    {DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK, offsetof(dj_cuda_device, shared_bytes)},
    {DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, offsetof(dj_cuda_device, shared_optin_bytes)},
    {DJ__CU_DEV_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
     offsetof(dj_cuda_device, shared_multiprocessor_bytes)},
    {DJ__CU_DEV_RESERVED_SHARED_MEMORY_PER_BLOCK, offsetof(dj_cuda_device, shared_reserved_bytes)},
    {DJ__CU_DEV_MAX_REGISTERS_PER_BLOCK, offsetof(dj_cuda_device, block_registers)},
    {DJ__CU_DEV_MAX_REGISTERS_PER_MULTIPROCESSOR,
     offsetof(dj_cuda_device, multiprocessor_registers)},
    {DJ__CU_DEV_COOPERATIVE_LAUNCH, offsetof(dj_cuda_device, cooperative_launch)},
    {DJ__CU_DEV_CLUSTER_LAUNCH, offsetof(dj_cuda_device, cluster_launch)},
};

/* The rules of the original: code for a whole family of devices where there are families (10.0
 * on), for exactly this device at 9.x, whose "a" has what its plain number lacks. */
static void device_arch(dj_cuda_device *device)
{
    const int number = device->major * 10 + device->minor;
    const char *family = device->major < 9 ? "" : device->major == 9 ? "a" : "f";
    snprintf(device->arch_number, sizeof(device->arch_number), "%d", number);
    snprintf(device->arch, sizeof(device->arch), "%d%s", number, family);
    snprintf(device->arch_exact, sizeof(device->arch_exact), "%d%s", number,
             device->major < 9 ? "" : "a");
}

static dj__cu_result device_query(const dj__cuda_api *api, dj__cu_device handle,
                                  dj_cuda_device *out)
{
    dj__cu_result result = api->cuDeviceGetName(out->name, sizeof(out->name), handle);
    out->name[sizeof(out->name) - 1] = '\0';
    if (result == DJ__CU_SUCCESS) {
        dj__cu_uuid uuid = {{0}};
        result = api->cuDeviceGetUuid(&uuid, handle);
        memcpy(out->uuid, uuid.bytes, sizeof(out->uuid));
    }
    if (result == DJ__CU_SUCCESS) {
        size_t bytes = 0;
        result = api->cuDeviceTotalMem(&bytes, handle);
        out->memory_bytes = bytes;
    }
    for (size_t i = 0; i < sizeof(device_rows) / sizeof(device_rows[0]); i++) {
        int value = 0;
        if (result == DJ__CU_SUCCESS) {
            result = api->cuDeviceGetAttribute(&value, device_rows[i].attribute, handle);
            if (result ==
                DJ__CU_INVALID_VALUE) { /* an attribute that this driver has not heard of */
                result = DJ__CU_SUCCESS;
                value = 0;
            }
        }
        const int32_t field = value;
        memcpy((char *)out + device_rows[i].offset, &field, sizeof(field));
    }
    return result;
}

static dj_status device_make(dj_driver *driver, int ordinal, dj_cuda_device **out, dj_error *err)
{
    dj_cuda_device *device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return dj__fail_memory(err);
    }
    device->size = sizeof(*device);
    device->ordinal = ordinal;
    device->driver_version = driver->library.version;
    const dj__cu_result result =
        device_query(&driver->api, driver->devices[ordinal].handle, device);
    if (result != DJ__CU_SUCCESS) {
        free(device);
        return dj__cuda_fail(&driver->api, err, result, "cannot describe CUDA device %d", ordinal);
    }
    if (device->shared_optin_bytes < device->shared_bytes) {
        device->shared_optin_bytes = device->shared_bytes; /* before 7.0 there is nothing to ask */
    }
    device_arch(device);
    *out = device;
    return DJ_OK;
}

static dj_status device_find(const dj_driver *driver, int *ordinal, dj_error *err)
{
    if (*ordinal == -1) {
        *ordinal = driver->ordinal;
    }
    if (*ordinal >= 0 && *ordinal < driver->num_devices) {
        return DJ_OK;
    }
    return dj__fail(err, DJ_NOT_FOUND,
                    "there is no CUDA device %d: the devices of this process are 0 to %d", *ordinal,
                    driver->num_devices - 1);
}

dj_status dj__cuda_device(dj_driver *driver, int ordinal, const dj_cuda_device **out, dj_error *err)
{
    *out = NULL;
    dj_status status = device_find(driver, &ordinal, err);
    if (status != DJ_OK) {
        return status;
    }
    dj__cuda_ordinal *entry = &driver->devices[ordinal];
    dj_cuda_device *device = atomic_load_explicit(&entry->info, memory_order_acquire);
    if (device == NULL) {
        dj_cuda_device *made = NULL;
        status = device_make(driver, ordinal, &made, err);
        if (status != DJ_OK) {
            return status;
        }
        if (atomic_compare_exchange_strong(&entry->info, &device, made)) {
            device = made;
        } else {
            free(made); /* another thread was first; `device` now is its */
        }
    }
    *out = device;
    return DJ_OK;
}

dj_status dj__cuda_describe(dj_driver *driver, int ordinal, dj_cuda_device *out, dj_error *err)
{
    const dj_cuda_device *device = NULL;
    const dj_status status = dj__cuda_device(driver, ordinal, &device, err);
    if (status == DJ_OK) {
        *out = *device;
    }
    return status;
}

dj_status dj__cuda_device_attribute(dj_driver *driver, int ordinal, int attribute, int *value,
                                    dj_error *err)
{
    *value = 0;
    const dj_status status = device_find(driver, &ordinal, err);
    if (status != DJ_OK) {
        return status;
    }
    const dj__cu_result result =
        driver->api.cuDeviceGetAttribute(value, attribute, driver->devices[ordinal].handle);
    if (result == DJ__CU_INVALID_VALUE) {
        *value = 0;
        return dj__fail_native(err, DJ_INVALID_ARGUMENT, DJ__CUDA_ORIGIN, result,
                               "the driver (CUDA %d.%d) knows no device attribute %d",
                               DJ__CUDA_VERSION(driver->library.version), attribute);
    }
    if (result != DJ__CU_SUCCESS) {
        return dj__cuda_fail(&driver->api, err, result, "cannot get attribute %d of CUDA device %d",
                             attribute, ordinal);
    }
    return DJ_OK;
}

static uint32_t device_count(int32_t value)
{
    return value > 0 ? (uint32_t)value : 0;
}

dj_status dj__cuda_device_info(dj_driver *driver, dj_device *out, dj_error *err)
{
    const dj_cuda_device *device = NULL;
    const dj_status status = dj__cuda_device(driver, -1, &device, err);
    if (status != DJ_OK) {
        return status;
    }
    *out = (dj_device){
        .size = out->size,
        .compute_units = device_count(device->multiprocessors),
        .max_block_threads = device_count(device->max_block_threads),
        .max_shared_bytes = device_count(device->shared_optin_bytes),
        .memory_bytes = device->memory_bytes,
        .cache_bytes = device_count(device->l2_bytes),
        .clock_hz = (uint64_t)device_count(device->clock_khz) * 1000,
    };
    for (int i = 0; i < 3; i++) {
        out->max_block[i] = device_count(device->max_block[i]);
        out->max_grid[i] = device_count(device->max_grid[i]);
    }
    snprintf(out->name, sizeof(out->name), "%s", device->name);
    snprintf(out->arch, sizeof(out->arch), "%s", device->arch);
    return DJ_OK;
}
