/* SPDX-License-Identifier: MIT */
/*
 * Device memory in the current context. All calls are made in the relaxed capture mode: a stream
 * that some thread captures is no reason to refuse them, as long as they do not touch it.
 */
#include "backend/cuda/cuda_driver.h"
#include "backend/cuda/cuda_error.h"
#include <string.h>

/* CU_STREAM_LEGACY: the stream that copies without one use, also where the program was built with
 * per-thread default streams. */
static dj__cu_stream memory_legacy_stream(void)
{
    const uintptr_t value = 1;
    dj__cu_stream stream = NULL;
    memcpy(&stream, &value, sizeof(stream));
    return stream;
}

static dj__cu_deviceptr memory_address(const void *memory)
{
    return (dj__cu_deviceptr)(uintptr_t)memory;
}

/* True once, if the primary context was reset and has been brought back: what failed is worth a
 * second attempt. */
static bool memory_try_again(dj_driver *driver, dj__cu_result result, bool *tried)
{
    dj__cu_context context = NULL;
    if (*tried || (result != DJ__CU_INVALID_CONTEXT && result != DJ__CU_CONTEXT_IS_DESTROYED)) {
        return false;
    }
    *tried = true;
    return dj__cuda_context_renew(driver, &context, NULL) == DJ_OK;
}

dj_status dj__cuda_mem_alloc(dj_driver *driver, size_t size, void **out, dj_error *err)
{
    const dj__cuda_api *api = &driver->api;
    dj__cu_context context = NULL;
    dj__cu_deviceptr memory = 0;
    *out = NULL;
    const dj_status status = dj__cuda_context(driver, &context, err);
    if (status != DJ_OK) {
        return status;
    }
    bool tried = false;
    dj__cu_result result;
    do {
        const int mode = dj__cuda_relax(api);
        result = api->cuMemAlloc(&memory, size > 0 ? size : 1);
        dj__cuda_unrelax(api, mode);
    } while (memory_try_again(driver, result, &tried));
    if (result != DJ__CU_SUCCESS) {
        return dj__cuda_fail(api, err, result, "cannot allocate %zu bytes on CUDA device %d", size,
                             dj__cuda_context_ordinal(driver));
    }
    *out = (void *)(uintptr_t)memory;
    return DJ_OK;
}

dj_status dj__cuda_mem_free(dj_driver *driver, void *memory, dj_error *err)
{
    const dj__cuda_api *api = &driver->api;
    dj__cu_context context = NULL;
    const dj_status status = memory != NULL ? dj__cuda_context(driver, &context, err) : DJ_OK;
    if (status != DJ_OK || memory == NULL) {
        return status;
    }
    const int mode = dj__cuda_relax(api);
    const dj__cu_result result = api->cuMemFree(memory_address(memory));
    dj__cuda_unrelax(api, mode);
    return result == DJ__CU_SUCCESS
               ? DJ_OK
               : dj__cuda_fail(api, err, result, "cannot free device memory at %p", memory);
}

dj_status dj__cuda_mem_copy(dj_driver *driver, void *to, const void *from, size_t size,
                            dj_error *err)
{
    const dj__cuda_api *api = &driver->api;
    dj__cu_context context = NULL;
    const dj_status status = dj__cuda_context(driver, &context, err);
    if (status != DJ_OK || size == 0) {
        return status;
    }
    const int mode = dj__cuda_relax(api);
    dj__cu_result result = api->cuMemcpy(memory_address(to), memory_address(from), size);
    if (result == DJ__CU_SUCCESS) {
        /* Copies within a device, and small ones from pageable memory, return before the end. */
        result = api->cuStreamSynchronize(memory_legacy_stream());
    }
    dj__cuda_unrelax(api, mode);
    return result == DJ__CU_SUCCESS
               ? DJ_OK
               : dj__cuda_fail(api, err, result, "cannot copy %zu bytes from %p to %p", size, from,
                               to);
}

dj_status dj__cuda_synchronize(dj_driver *driver, dj_error *err)
{
    const dj__cuda_api *api = &driver->api;
    dj__cu_context context = NULL;
    const dj_status status = dj__cuda_context(driver, &context, err);
    if (status != DJ_OK) {
        return status;
    }
    bool tried = false;
    dj__cu_result result;
    do {
        const int mode = dj__cuda_relax(api);
        result = api->cuCtxSynchronize();
        dj__cuda_unrelax(api, mode);
    } while (memory_try_again(driver, result, &tried));
    return result == DJ__CU_SUCCESS
               ? DJ_OK
               : dj__cuda_fail(api, err, result, "waiting for CUDA device %d failed",
                               dj__cuda_context_ordinal(driver));
}
