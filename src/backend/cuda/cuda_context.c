/* SPDX-License-Identifier: MIT */
/*
 * Contexts. We use the one that is current, as the CUDA runtime does, so that memory of the
 * hosting framework is valid in our launches.
 *
 * The primary context that we retain is never released. Others use it without retaining it (a
 * thread in which we have made it current, a library that found it current), and the release of
 * the last reference would destroy their memory and streams under them. The CUDA runtime keeps it
 * for the same reason.
 */
#include "backend/cuda/cuda_driver.h"
#include "backend/cuda/cuda_error.h"

/* Retains the primary context and makes it current. `lost`: the one we have is not valid any
 * more, our reference to it went with the reset. */
static dj_status context_use_primary(dj_driver *driver, bool lost, dj__cu_context *out,
                                     dj_error *err)
{
    const dj__cuda_api *api = &driver->api;
    dj__cu_result result = DJ__CU_SUCCESS;
    pthread_mutex_lock(&driver->lock);
    dj__cu_context primary = atomic_load_explicit(&driver->primary, memory_order_relaxed);
    const int mode = dj__cuda_relax(api);
    if (primary == NULL || lost) {
        result = api->cuDevicePrimaryCtxRetain(&primary, driver->devices[driver->ordinal].handle);
        if (result == DJ__CU_SUCCESS) {
            atomic_store_explicit(&driver->primary, primary, memory_order_release);
        }
    }
    if (result == DJ__CU_SUCCESS) {
        result = api->cuCtxSetCurrent(primary);
    }
    dj__cuda_unrelax(api, mode);
    pthread_mutex_unlock(&driver->lock);
    if (result != DJ__CU_SUCCESS && !lost && dj__cuda_error_is_stale(result)) {
        return context_use_primary(driver, true, out, err);
    }
    if (result != DJ__CU_SUCCESS) {
        return dj__cuda_fail(api, err, result, "cannot use the primary context of CUDA device %d",
                             driver->ordinal);
    }
    *out = primary;
    return DJ_OK;
}

dj_status dj__cuda_context(dj_driver *driver, dj__cu_context *out, dj_error *err)
{
    *out = NULL;
    const dj__cu_result result = driver->api.cuCtxGetCurrent(out);
    if (result != DJ__CU_SUCCESS) {
        *out = NULL;
        return dj__cuda_fail(&driver->api, err, result, "cannot ask for the current CUDA context");
    }
    return *out != NULL ? DJ_OK : context_use_primary(driver, false, out, err);
}

/* True if `context` is our device's primary one, whoever retained it. To ask is to retain it; it
 * then is ours, as it would be had we been first. */
static bool context_is_primary(dj_driver *driver, dj__cu_context context)
{
    const dj__cuda_api *api = &driver->api;
    dj__cu_context primary = atomic_load_explicit(&driver->primary, memory_order_acquire);
    if (primary != NULL) {
        return primary == context;
    }
    pthread_mutex_lock(&driver->lock);
    const int mode = dj__cuda_relax(api);
    if (api->cuDevicePrimaryCtxRetain(&primary, driver->devices[driver->ordinal].handle) ==
        DJ__CU_SUCCESS) {
        atomic_store_explicit(&driver->primary, primary, memory_order_release);
    } else {
        primary = NULL;
    }
    dj__cuda_unrelax(api, mode);
    pthread_mutex_unlock(&driver->lock);
    return primary == context;
}

dj_status dj__cuda_context_renew(dj_driver *driver, dj__cu_context *out, dj_error *err)
{
    const dj_status status = dj__cuda_context(driver, out, err);
    if (status != DJ_OK || !context_is_primary(driver, *out)) {
        return status;
    }
    return context_use_primary(driver, true, out, err);
}

int dj__cuda_context_ordinal(const dj_driver *driver)
{
    dj__cu_context context = NULL;
    dj__cu_device device = 0;
    if (driver->api.cuCtxGetCurrent(&context) == DJ__CU_SUCCESS && context != NULL &&
        driver->api.cuCtxGetDevice(&device) == DJ__CU_SUCCESS) {
        for (int i = 0; i < driver->num_devices; i++) {
            if (driver->devices[i].handle == device) {
                return i;
            }
        }
    }
    return driver->ordinal;
}
