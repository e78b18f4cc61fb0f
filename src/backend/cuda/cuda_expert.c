/* SPDX-License-Identifier: MIT */
/*
 * For those who go on with the driver's own API. None of this is a hot path, so functions are
 * asked for anew each time, which also notices contexts that were reset.
 */
#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_plan.h"
#include "base/dl.h"
#include "base/error.h"

enum {
    EXPERT_FOUND = 0, /* CUdriverProcAddressQueryResult */
    EXPERT_VERSION_NOT_SUFFICIENT = 2
};

dj_status dj__cuda_handles(dj_driver *driver, dj_module *module, dj_cuda_handles *out,
                           dj_error *err)
{
    dj__cuda_slot *slot = NULL;
    out->library = NULL;
    out->kernel = NULL;
    out->function = NULL;
    const dj_status status = dj__cuda_slot_renew(driver, module, false, &slot, err);
    if (status == DJ_OK) {
        out->library = module->library;
        out->kernel = module->kernel;
        out->function = slot->function;
    }
    return status;
}

static dj_status expert_fail_attribute(const dj_driver *driver, const dj_module *module,
                                       const char *verb, int attribute, dj__cu_result result,
                                       dj_error *err)
{
    const dj_status status =
        dj__cuda_fail(&driver->api, err, result, "kernel '%s': cannot %s function attribute %d",
                      module->name, verb, attribute);
    if (result != DJ__CU_INVALID_VALUE) {
        return status;
    }
    if (err != NULL) {
        err->status = DJ_INVALID_ARGUMENT;
    }
    return DJ_INVALID_ARGUMENT;
}

dj_status dj__cuda_kernel_attribute(dj_driver *driver, dj_module *module, int attribute, int *value,
                                    dj_error *err)
{
    dj__cuda_slot *slot = NULL;
    *value = 0;
    const dj_status status = dj__cuda_slot_renew(driver, module, false, &slot, err);
    if (status != DJ_OK) {
        return status;
    }
    const dj__cu_result result = driver->api.cuFuncGetAttribute(value, attribute, slot->function);
    return result == DJ__CU_SUCCESS
               ? DJ_OK
               : expert_fail_attribute(driver, module, "get", attribute, result, err);
}

dj_status dj__cuda_kernel_set_attribute(dj_driver *driver, dj_module *module, int attribute,
                                        int value, dj_error *err)
{
    dj__cuda_slot *slot = NULL;
    dj_status status = dj__cuda_slot_renew(driver, module, false, &slot, err);
    if (status != DJ_OK) {
        return status;
    }
    const dj__cu_result result = driver->api.cuFuncSetAttribute(slot->function, attribute, value);
    if (result != DJ__CU_SUCCESS) {
        return expert_fail_attribute(driver, module, "set", attribute, result, err);
    }
    /* What launches remember of these two must stay true. */
    return attribute == DJ__CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
                   attribute == DJ__CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
               ? dj__cuda_slot_renew(driver, module, false, &slot, err)
               : DJ_OK;
}

static dj__cu_result expert_occupancy(const dj__cuda_api *api, const dj_module *module,
                                      const dj__cuda_slot *slot, const dj__cuda_plan *plan,
                                      int *blocks, int *clusters)
{
    const uint32_t *block = plan->config.block;
    const dj__cu_result result = api->cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, slot->function, (int)(block[0] * block[1] * block[2]), plan->config.shared_bytes);
    if (result != DJ__CU_SUCCESS || (plan->cluster <= 1 && module->cluster[0] == 0)) {
        return result;
    }
    return api->cuOccupancyMaxActiveClusters(clusters, slot->function, &plan->config);
}

dj_status dj__cuda_occupancy(dj_driver *driver, dj_module *module, const dj_launch_config *config,
                             int *blocks, int *clusters, dj_error *err)
{
    dj__cuda_slot *slot = NULL;
    dj__cuda_plan plan;
    *blocks = 0;
    *clusters = 0;
    dj_status status = dj__cuda_slot_renew(driver, module, false, &slot, err);
    if (status == DJ_OK) {
        status = dj__cuda_plan_make(module, slot, config, &plan, err);
    }
    if (status == DJ_OK) {
        dj__cu_result result = dj__cuda_plan_allow(&driver->api, module, slot, &plan);
        if (result == DJ__CU_SUCCESS) {
            result = expert_occupancy(&driver->api, module, slot, &plan, blocks, clusters);
        }
        if (result != DJ__CU_SUCCESS) {
            *blocks = 0;
            *clusters = 0;
            status = dj__cuda_fail(&driver->api, err, result,
                                   "kernel '%s': cannot ask for the occupancy", module->name);
        }
    }
    return status;
}

dj_status dj__cuda_global(dj_driver *driver, dj_module *module, const char *name, void **address,
                          size_t *size, dj_error *err)
{
    const dj__cuda_api *api = &driver->api;
    dj__cu_context context = NULL;
    dj__cu_deviceptr pointer = 0;
    *address = NULL;
    *size = 0;
    const dj_status status = dj__cuda_context(driver, &context, err);
    if (status != DJ_OK) {
        return status;
    }
    const int mode = dj__cuda_relax(api);
    const dj__cu_result result = api->cuLibraryGetGlobal(&pointer, size, module->library, name);
    dj__cuda_unrelax(api, mode);
    if (result == DJ__CU_SUCCESS) {
        *address = (void *)(uintptr_t)pointer;
        return DJ_OK;
    }
    *size = 0;
    if (result == DJ__CU_NOT_FOUND) {
        return dj__fail_native(err, DJ_NOT_FOUND, DJ__CUDA_ORIGIN, result,
                               "kernel '%s': its binary has no variable '%s' (names are mangled "
                               "in C++ unless extern \"C\")",
                               module->name, name);
    }
    return dj__cuda_fail(api, err, result, "kernel '%s': cannot find variable '%s'", module->name,
                         name);
}

dj_status dj__cuda_symbol(dj_driver *driver, const char *name, int version, void **out,
                          dj_error *err)
{
    const dj__cuda_api *api = &driver->api;
    const int have = driver->library.version;
    int found = EXPERT_FOUND;
    *out = NULL;
    if (version < 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "the CUDA version of '%s' is %d, expected 12000 for 12.0, or 0", name,
                        version);
    }
    if (version == 0) {
        *out = dj__dl_symbol(driver->library.handle, name);
        return *out != NULL ? DJ_OK
                            : dj__fail(err, DJ_NOT_FOUND, "%s (CUDA %d.%d) exports no symbol '%s'",
                                       driver->library.name, DJ__CUDA_VERSION(have), name);
    }
    if (api->cuGetProcAddress == NULL) {
        return dj__fail(err, DJ_INCOMPATIBLE,
                        "%s: cuGetProcAddress_v2 needs driver 12.0 or newer, this one supports "
                        "CUDA %d.%d",
                        driver->library.name, DJ__CUDA_VERSION(have));
    }
    const dj__cu_result result = api->cuGetProcAddress(name, out, version, 0, &found);
    if (result == DJ__CU_SUCCESS && found == EXPERT_FOUND && *out != NULL) {
        return DJ_OK;
    }
    *out = NULL;
    if (found == EXPERT_VERSION_NOT_SUFFICIENT) {
        return dj__fail_native(err, DJ_NOT_FOUND, DJ__CUDA_ORIGIN, result,
                               "'%s' is newer than the CUDA version asked for (%d.%d)", name,
                               DJ__CUDA_VERSION(version));
    }
    if (found != EXPERT_FOUND || result == DJ__CU_SUCCESS || result == DJ__CU_NOT_FOUND) {
        return dj__fail_native(err, DJ_NOT_FOUND, DJ__CUDA_ORIGIN, result,
                               "the driver (CUDA %d.%d) has no function '%s' of CUDA %d.%d or "
                               "older",
                               DJ__CUDA_VERSION(have), name, DJ__CUDA_VERSION(version));
    }
    return dj__cuda_fail(api, err, result, "cannot look up '%s'", name);
}
