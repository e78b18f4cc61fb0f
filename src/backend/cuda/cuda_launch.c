/* SPDX-License-Identifier: MIT */
/*
 * A launch: the current context, the kernel's function in it, the driver's call. No lock, no
 * allocation, no log, unless something happens for the first time or goes wrong.
 *
 * A context that others have reset has another id, so its old functions are not used. If the
 * driver refuses a handle or the context all the same, the launch is tried once more with a new
 * function.
 */
#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_plan.h"
#include "base/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One call, as both attempts need it. */
typedef struct launch_call {
    dj_driver *driver;
    dj_module *module;
    const dj_launch_config *config;
    void **params; /* NULL: none */
    dj__cuda_plan plan;
    bool started; /* the failure is the launch's, not that of an attribute */
} launch_call;

static inline dj__cu_result launch_try(launch_call *call, dj__cuda_slot *slot)
{
    const dj__cuda_api *api = &call->driver->api;
    const dj__cu_result result = dj__cuda_plan_allow(api, call->module, slot, &call->plan);
    call->started = result == DJ__CU_SUCCESS;
    return call->started
               ? api->cuLaunchKernelEx(&call->plan.config, slot->function, call->params, NULL)
               : result;
}

/* ---- when it fails ---- */

DJ_PRINTF(2, 3) static void launch_hint(dj_error *err, const char *format, ...)
{
    const size_t used = strlen(err->message);
    va_list args;
    va_start(args, format);
    vsnprintf(err->message + used, sizeof(err->message) - used, format, args);
    va_end(args);
}

static void launch_hint_cooperative(const launch_call *call, const dj__cuda_slot *slot,
                                    dj_error *err)
{
    const dj__cu_launch_config *config = &call->plan.config;
    const uint64_t threads = (uint64_t)config->block[0] * config->block[1] * config->block[2];
    int blocks = 0;
    if (call->driver->api.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, slot->function, (int)threads, config->shared_bytes) == DJ__CU_SUCCESS) {
        launch_hint(err,
                    "; all blocks of a cooperative launch must run at once: %s has %d "
                    "multiprocessors with room for %d such blocks each",
                    slot->device->name, slot->device->multiprocessors, blocks);
    }
}

static void launch_hint_resources(const launch_call *call, const dj__cuda_slot *slot, dj_error *err)
{
    int registers = 0;
    if (call->driver->api.cuFuncGetAttribute(&registers, DJ__CU_FUNC_NUM_REGS, slot->function) ==
        DJ__CU_SUCCESS) {
        launch_hint(err,
                    "; the kernel uses %d registers a thread, and a block has at most %d: use "
                    "smaller blocks, or compile with __launch_bounds__",
                    registers, slot->device->block_registers);
    }
}

static void launch_hint_cluster(const launch_call *call, dj_error *err)
{
    const uint32_t *compiled = call->module->cluster;
    if (compiled[0] != 0) {
        launch_hint(err,
                    "; the kernel was compiled for clusters of (%u, %u, %u): the grid must be a "
                    "multiple of that, and no other cluster can be asked for",
                    compiled[0], compiled[1], compiled[2]);
    } else if (call->plan.cluster > 1) {
        launch_hint(err,
                    "; clusters have at most %d blocks everywhere, and more only where the device "
                    "has room for them (dj_cuda_occupancy tells)",
                    DJ__CUDA_PORTABLE_CLUSTER);
    }
}

/* What probably is wrong, where the driver's text does not say it. */
static void launch_add_hint(const launch_call *call, const dj__cuda_slot *slot,
                            dj__cu_result result, dj_error *err)
{
    const dj__cu_launch_config *config = &call->plan.config;
    switch (result) {
    case DJ__CU_INVALID_VALUE:
        if (config->shared_bytes > 0) {
            launch_hint(err,
                        "; of the %d bytes of shared memory that %s allows a block the kernel "
                        "takes %u",
                        slot->device->shared_optin_bytes, slot->device->name, slot->static_shared);
        }
        launch_hint_cluster(call, err);
        break;
    case DJ__CU_INVALID_HANDLE:
        launch_hint(err, "; the stream may not be one of the current context");
        break;
    case DJ__CU_LAUNCH_OUT_OF_RESOURCES:
        launch_hint_resources(call, slot, err);
        break;
    case DJ__CU_COOPERATIVE_LAUNCH_TOO_LARGE:
        launch_hint_cooperative(call, slot, err);
        break;
    case DJ__CU_INVALID_CLUSTER_SIZE:
        launch_hint_cluster(call, err);
        break;
    default:
        break;
    }
}

static dj_status launch_fail(const launch_call *call, const dj__cuda_slot *slot,
                             dj__cu_result result, dj_error *err)
{
    const dj__cuda_plan *plan = &call->plan;
    const uint32_t *grid = plan->config.grid;
    const uint32_t *block = plan->config.block;
    if (!call->started && result == DJ__CU_INVALID_VALUE && !plan->nonportable) {
        return dj__cuda_plan_fail_shared(call->module, slot, plan->config.shared_bytes, result,
                                         err);
    }
    char cluster[48] = "";
    if (plan->cluster > 1) {
        snprintf(cluster, sizeof(cluster), ", clusters of %u", plan->cluster);
    }
    const dj_status status = dj__cuda_fail(
        &call->driver->api, err, result,
        "kernel '%s': %s with grid (%u, %u, %u), block (%u, %u, %u), %u bytes of dynamic shared "
        "memory%s%s%s",
        call->module->name, call->started ? "launch failed" : "launch could not be prepared",
        grid[0], grid[1], grid[2], block[0], block[1], block[2], plan->config.shared_bytes, cluster,
        plan->cooperative ? ", cooperative" : "", plan->pdl ? ", dependent" : "");
    if (err != NULL) {
        launch_add_hint(call, slot, result, err);
    }
    return status;
}

/* The second attempt, if there is hope; else the words. */
static dj_status launch_again(launch_call *call, dj__cuda_slot *slot, dj__cu_result result,
                              dj_error *err)
{
    if (dj__cuda_error_is_stale(result)) {
        dj_status status = dj__cuda_slot_renew(call->driver, call->module,
                                               result != DJ__CU_INVALID_HANDLE, &slot, err);
        if (status == DJ_OK) {
            status = dj__cuda_plan_make(call->module, slot, call->config, &call->plan, err);
        }
        if (status != DJ_OK) {
            return status;
        }
        result = launch_try(call, slot);
    }
    return result == DJ__CU_SUCCESS ? DJ_OK : launch_fail(call, slot, result, err);
}

/* ---- every launch but the usual ones ---- */

static __attribute__((noinline)) dj_status launch_planned(dj_driver *driver, dj_module *module,
                                                          const dj_launch_config *config,
                                                          void **params, dj__cuda_slot *slot,
                                                          dj_error *err)
{
    launch_call call = {.driver = driver, .module = module, .config = config, .params = params};
    dj_status status = DJ_OK;
    if (slot == NULL) {
        status = dj__cuda_slot_get(driver, module, &slot, err);
    }
    if (status == DJ_OK) {
        status = dj__cuda_plan_make(module, slot, config, &call.plan, err);
    }
    if (status != DJ_OK) {
        return status;
    }
    const dj__cu_result result = launch_try(&call, slot);
    return result == DJ__CU_SUCCESS ? DJ_OK : launch_again(&call, slot, result, err);
}

/* A usual launch has failed. */
static __attribute__((noinline, cold)) dj_status launch_mend(dj_driver *driver, dj_module *module,
                                                             const dj_launch_config *config,
                                                             void **params, dj__cuda_slot *slot,
                                                             dj__cu_result result, dj_error *err)
{
    launch_call call = {
        .driver = driver, .module = module, .config = config, .params = params, .started = true};
    const dj_status status = dj__cuda_plan_make(module, slot, config, &call.plan, err);
    return status != DJ_OK ? status : launch_again(&call, slot, result, err);
}

/* ---- the usual launch ---- */

/* The function of the slot, a configuration without attributes, nothing else. */
__attribute__((hot, aligned(64))) dj_status dj__cuda_launch(dj_driver *driver, dj_module *module,
                                                            const dj_launch_config *config,
                                                            const void **args, size_t num_args,
                                                            dj_error *err)
{
    dj__cu_launch_config native;
    /* The driver takes parameters as void *, and only reads them. */
    void **const params = num_args > 0 ? (void **)(uintptr_t)args : NULL;
    dj__cuda_slot *const slot =
        dj__cuda_slot_find(module, dj__cuda_context_id(&driver->api)); /* none: 0 has no slot */
    if (__builtin_expect(slot == NULL || !dj__cuda_plan_usual(slot, config), 0)) {
        return launch_planned(driver, module, config, params, slot, err);
    }
    dj__cuda_plan_fill(config, &native);
    const dj__cu_result result =
        driver->api.cuLaunchKernelEx(&native, slot->function, params, NULL);
    return __builtin_expect(result == DJ__CU_SUCCESS, 1)
               ? DJ_OK
               : launch_mend(driver, module, config, params, slot, result, err);
}
