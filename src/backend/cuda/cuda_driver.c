/* SPDX-License-Identifier: MIT */
/* The CUDA driver's table, and opening: the library, the devices, ours among them. */
#include "backend/cuda/cuda_driver.h"
#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_module.h"
#include "backend/cuda/cuda_report.h"
#include "base/error.h"
#include "base/thread.h"
#include <stdlib.h>

static dj_status driver_find_devices(dj_driver *driver, dj_error *err)
{
    const dj__cuda_api *api = &driver->api;
    dj__cu_result result = api->cuDeviceGetCount(&driver->num_devices);
    if (result == DJ__CU_SUCCESS && driver->num_devices <= 0) {
        return dj__fail(err, DJ_UNAVAILABLE, "no CUDA device: the driver (%s) finds none",
                        driver->library.name);
    }
    if (result == DJ__CU_SUCCESS) {
        driver->devices = calloc((size_t)driver->num_devices, sizeof(*driver->devices));
        if (driver->devices == NULL) {
            return dj__fail_memory(err);
        }
    }
    for (int i = 0; result == DJ__CU_SUCCESS && i < driver->num_devices; i++) {
        result = api->cuDeviceGet(&driver->devices[i].handle, i);
    }
    return result == DJ__CU_SUCCESS ? DJ_OK
                                    : dj__cuda_fail(api, err, result, "cannot list CUDA devices");
}

/* JIT_CUDA_DEVICE, else that of the context in which the opening thread works, else the first. */
static dj_status driver_choose_device(dj_driver *driver, dj_error *err)
{
    const dj__env *env = driver->context->env;
    int64_t ordinal = -1;
    const dj_status status = dj__env_int(env, "JIT_CUDA_DEVICE", 0, INT32_MAX, &ordinal, err);
    if (status != DJ_OK) {
        return status;
    }
    if (ordinal >= driver->num_devices) {
        char setting[256];
        (void)dj__env_setting(env, "JIT_CUDA_DEVICE", setting);
        return dj__fail(err, DJ_UNAVAILABLE,
                        "%s is %lld, but the devices of this process are 0 to %d", setting,
                        (long long)ordinal, driver->num_devices - 1);
    }
    driver->ordinal = ordinal >= 0 ? (int)ordinal : dj__cuda_context_ordinal(driver);
    return DJ_OK;
}

bool dj__cuda_driver_usable(const dj_driver *driver)
{
    return driver->generation == dj__fork_generation();
}

static void driver_free(dj_driver *driver)
{
    for (int i = 0; driver->devices != NULL && i < driver->num_devices; i++) {
        free(atomic_load_explicit(&driver->devices[i].info, memory_order_relaxed));
    }
    free(driver->devices);
    if (dj__cuda_driver_usable(driver)) {
        (void)pthread_mutex_destroy(&driver->lock); /* in a child, its owner may not exist */
    }
    free(driver);
}

dj_status dj__cuda_driver_create(const dj_backend_context *context, const dj__cuda_library *library,
                                 const dj__cuda_api *api, dj_driver **out, dj_error *err)
{
    *out = NULL;
    dj_driver *driver = calloc(1, sizeof(*driver));
    if (driver == NULL) {
        return dj__fail_memory(err);
    }
    driver->context = context;
    driver->library = *library;
    driver->api = *api;
    driver->generation = dj__fork_generation();
    dj__mutex_init(&driver->lock);
    dj_status status = driver_find_devices(driver, err);
    if (status == DJ_OK) {
        status = driver_choose_device(driver, err);
    }
    if (status != DJ_OK) {
        driver_free(driver);
        return status;
    }
    dj__cuda_streams_look(&driver->streams);
    *out = driver;
    return DJ_OK;
}

static dj_status driver_open(const dj_backend_context *context, dj_driver **out, dj_error *err)
{
    *out = NULL;
    dj__cuda_library library;
    dj__cuda_api api;
    const dj_status status = dj__cuda_library_open(context->env, &library, &api, err);
    return status == DJ_OK ? dj__cuda_driver_create(context, &library, &api, out, err) : status;
}

static void driver_close(dj_driver *driver)
{
    if (driver != NULL) {
        dj__cuda_modules_drop_deferred(driver);
        driver_free(driver);
    }
}

static dj_status driver_load(dj_driver *driver, const dj_binary *binary, dj_module **out,
                             dj_module_info *info, dj_error *err)
{
    dj__cuda_streams_look(&driver->streams);
    return dj__cuda_module_load(driver, binary, out, info, err);
}

const dj_driver_ops dj__cuda_driver_ops = {
    .size = sizeof(dj_driver_ops),
    .open = driver_open,
    .close = driver_close,
    .device_info = dj__cuda_device_info,
    .mem_alloc = dj__cuda_mem_alloc,
    .mem_free = dj__cuda_mem_free,
    .mem_copy = dj__cuda_mem_copy,
    .load = driver_load,
    .launch = dj__cuda_launch,
    .synchronize = dj__cuda_synchronize,
    .unload = dj__cuda_module_unload,
    .current_stream = dj__cuda_current_stream,
    .report = dj__cuda_report_driver,
};
