/* SPDX-License-Identifier: MIT */
/*
 * Functions of a kernel in contexts. Making one asks the driver for all that launches compare
 * with, in the relaxed capture mode, so that nothing is left to do while a stream is captured.
 */
#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_module.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

typedef struct slot_facts {
    int max_threads;
    int static_shared;
    int max_dynamic_shared;
} slot_facts;

static dj__cu_result slot_ask(const dj__cuda_api *api, dj__cu_function function, slot_facts *out)
{
    dj__cu_result result =
        api->cuFuncGetAttribute(&out->max_threads, DJ__CU_FUNC_MAX_THREADS_PER_BLOCK, function);
    if (result == DJ__CU_SUCCESS) {
        result =
            api->cuFuncGetAttribute(&out->static_shared, DJ__CU_FUNC_SHARED_SIZE_BYTES, function);
    }
    if (result == DJ__CU_SUCCESS) {
        result = api->cuFuncGetAttribute(&out->max_dynamic_shared,
                                         DJ__CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
    }
    return result;
}

static uint32_t slot_count(int32_t value)
{
    return value > 0 ? (uint32_t)value : 0;
}

static uint32_t slot_less(uint32_t value, uint32_t part)
{
    return value > part ? value - part : 0;
}

/* Dynamic shared memory that a launch gets without further ado. The attribute alone is not enough:
 * until it is set it may say 48 KiB, of which the kernel's own shared memory takes its part. */
static uint32_t slot_allowed(const dj_cuda_device *device, const slot_facts *facts)
{
    const uint32_t attribute = slot_count(facts->max_dynamic_shared);
    const uint32_t plain = slot_count(device->shared_bytes);
    const uint32_t rest = slot_less(plain, slot_count(facts->static_shared));
    return attribute > plain || attribute < rest ? attribute : rest;
}

/* The kernel's own shared memory. Since 9.0 what the driver says may include the system's part,
 * which the device's limit leaves out; the cubin tells them apart. */
static uint32_t slot_static_shared(const dj_module *module, const slot_facts *facts)
{
    const uint32_t told = slot_count(facts->static_shared);
    const int64_t read = module->cubin.info.kernels[0].shared_bytes;
    return read >= 0 && read < told ? (uint32_t)read : told;
}

static uint32_t slot_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* 2^n - 1, at most `limit`: two numbers are within it if their bits together are. */
static uint32_t slot_bits(uint32_t limit)
{
    uint32_t bits = UINT32_MAX;
    while (bits > limit) {
        bits >>= 1;
    }
    return bits;
}

/* One comparison stands for several here; the limits themselves must be filled in. */
static void slot_fill_usual(dj__cuda_slot *slot)
{
    slot->usual_threads =
        slot_min(slot->max_threads, slot_min(slot->max_block[0], slot->max_block[1]));
    slot->usual_block_z = slot->max_block[2];
    slot->usual_grid_x = slot->max_grid[0];
    slot->usual_grid_yz = slot_bits(slot_min(slot->max_grid[1], slot->max_grid[2]));
}

static void slot_fill(const dj_module *module, dj__cuda_slot *slot, unsigned long long context,
                      dj__cu_function function, const dj_cuda_device *device,
                      const slot_facts *facts)
{
    slot->context = context;
    slot->function = function;
    slot->device = device;
    slot->static_shared = slot_static_shared(module, facts);
    slot->max_threads = slot_count(facts->max_threads);
    slot->max_shared = slot_less(slot_count(device->shared_optin_bytes), slot->static_shared);
    for (int i = 0; i < 3; i++) {
        slot->max_block[i] = slot_count(device->max_block[i]);
        slot->max_grid[i] = slot_count(device->max_grid[i]);
    }
    slot_fill_usual(slot);
    atomic_init(&slot->shared_allowed, slot_min(slot_allowed(device, facts), slot->max_shared));
    atomic_init(&slot->nonportable, false);
}

/* Puts a slot for this function in front, or mends the one that has it. The lock is held. */
static dj_status slot_put(dj_module *module, unsigned long long context, dj__cu_function function,
                          const dj_cuda_device *device, const slot_facts *facts,
                          dj__cuda_slot **out, dj_error *err)
{
    dj__cuda_slot *slot = dj__cuda_slot_find(module, context);
    if (slot != NULL && slot->function == function) {
        /* The same function again, or, after a reset, another one at its address. */
        atomic_store_explicit(&slot->shared_allowed,
                              slot_min(slot_allowed(device, facts), slot->max_shared),
                              memory_order_release);
        atomic_store_explicit(&slot->nonportable, false, memory_order_release);
        *out = slot;
        return DJ_OK;
    }
    dj__cuda_slot *front = atomic_load_explicit(&module->slots, memory_order_relaxed);
    slot = front == NULL ? &module->first : calloc(1, sizeof(*slot));
    if (slot == NULL) {
        return dj__fail_memory(err);
    }
    slot_fill(module, slot, context, function, device, facts);
    slot->next = front;
    atomic_store_explicit(&module->slots, slot, memory_order_release);
    *out = slot;
    return DJ_OK;
}

/* The lock is held. */
static dj_status slot_make(dj_driver *driver, dj_module *module, bool lost, dj__cuda_slot **out,
                           dj_error *err)
{
    const dj__cuda_api *api = &driver->api;
    const dj_cuda_device *device = NULL;
    dj__cu_context context = NULL;
    dj__cu_function function = NULL;
    unsigned long long id = 0;
    dj__cu_result result = DJ__CU_CONTEXT_IS_DESTROYED;
    slot_facts facts;
    for (int attempt = lost ? 1 : 0; attempt < 2 && dj__cuda_error_is_stale(result); attempt++) {
        const dj_status status = attempt == 0 ? dj__cuda_context(driver, &context, err)
                                              : dj__cuda_context_renew(driver, &context, err);
        if (status != DJ_OK) {
            return status;
        }
        const int mode = dj__cuda_relax(api);
        result = api->cuKernelGetFunction(&function, module->kernel);
        if (result == DJ__CU_SUCCESS) {
            result = slot_ask(api, function, &facts);
        }
        if (result == DJ__CU_SUCCESS) {
            result = api->cuCtxGetId(NULL, &id);
        }
        dj__cuda_unrelax(api, mode);
    }
    dj_status status = dj__cuda_device(driver, dj__cuda_context_ordinal(driver), &device, err);
    if (status != DJ_OK) {
        return status;
    }
    if (dj__cuda_error_is_image(result) || result == DJ__CU_NOT_FOUND) {
        return dj__cuda_module_refused(driver, module, device, result, err);
    }
    if (result != DJ__CU_SUCCESS) {
        return dj__cuda_fail(api, err, result, "%s: cannot load kernel '%s' on %s", module->path,
                             module->name, device->name);
    }
    return slot_put(module, id, function, device, &facts, out, err);
}

dj_status dj__cuda_slot_get(dj_driver *driver, dj_module *module, dj__cuda_slot **out,
                            dj_error *err)
{
    dj__cu_context context = NULL;
    *out = NULL;
    dj_status status = dj__cuda_context(driver, &context, err);
    if (status != DJ_OK) {
        return status;
    }
    pthread_mutex_lock(&module->lock);
    /* Another thread may have been here. */
    *out = dj__cuda_slot_find(module, dj__cuda_context_id(&driver->api));
    if (*out == NULL) {
        status = slot_make(driver, module, false, out, err);
    }
    pthread_mutex_unlock(&module->lock);
    return status;
}

dj_status dj__cuda_slot_renew(dj_driver *driver, dj_module *module, bool lost, dj__cuda_slot **out,
                              dj_error *err)
{
    *out = NULL;
    pthread_mutex_lock(&module->lock);
    const dj_status status = slot_make(driver, module, lost, out, err);
    pthread_mutex_unlock(&module->lock);
    return status;
}

dj__cu_result dj__cuda_slot_allow_shared(const dj__cuda_api *api, dj_module *module,
                                         dj__cuda_slot *slot, uint32_t bytes)
{
    dj__cu_result result = DJ__CU_SUCCESS;
    pthread_mutex_lock(&module->lock);
    if (atomic_load_explicit(&slot->shared_allowed, memory_order_relaxed) < bytes) {
        result = api->cuFuncSetAttribute(slot->function, DJ__CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         (int)bytes);
        if (result == DJ__CU_SUCCESS) {
            atomic_store_explicit(&slot->shared_allowed, bytes, memory_order_release);
        }
    }
    pthread_mutex_unlock(&module->lock);
    return result;
}

dj__cu_result dj__cuda_slot_allow_nonportable(const dj__cuda_api *api, dj_module *module,
                                              dj__cuda_slot *slot)
{
    dj__cu_result result = DJ__CU_SUCCESS;
    pthread_mutex_lock(&module->lock);
    if (!atomic_load_explicit(&slot->nonportable, memory_order_relaxed)) {
        result = api->cuFuncSetAttribute(slot->function,
                                         DJ__CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
        if (result == DJ__CU_SUCCESS) {
            atomic_store_explicit(&slot->nonportable, true, memory_order_release);
        }
    }
    pthread_mutex_unlock(&module->lock);
    return result;
}

void dj__cuda_slots_free(dj_module *module)
{
    dj__cuda_slot *slot = atomic_load_explicit(&module->slots, memory_order_relaxed);
    while (slot != NULL) {
        dj__cuda_slot *next = slot->next;
        if (slot != &module->first) {
            free(slot);
        }
        slot = next;
    }
    atomic_store_explicit(&module->slots, NULL, memory_order_relaxed);
}
