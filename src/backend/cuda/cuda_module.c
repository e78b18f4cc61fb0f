/* SPDX-License-Identifier: MIT */
/*
 * Loading and unloading. The driver is not asked whether the bytes are a cubin: it takes anything,
 * text and zeros included, and finds no kernel then. So our own reader looks first, and what the
 * driver does not run afterwards is a matter of architectures and versions.
 *
 * Unloading waits for launches of the kernel that are still running (the driver does), so a kernel
 * may be released right after its launch.
 */
#include "backend/cuda/cuda_module.h"
#include "backend/cuda/cuda_error.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODULE_MAX_PARAMS = 1 << 15, MODULE_MAX_ALIGN = 16 };

/* ---- unloading ---- */

static void module_free(dj_module *module)
{
    dj__cuda_slots_free(module);
    dj__cubin_fini(&module->cubin);
    (void)pthread_mutex_destroy(&module->lock);
    free(module->params);
    free(module->path);
    free(module);
}

/* False if a stream capture forbids it for now. A driver that is shutting down, or a context that
 * is gone, have taken the library with them. */
static bool module_unload_now(const dj_driver *driver, dj_module *module)
{
    const dj__cuda_api *api = &driver->api;
    if (module->library == NULL || !dj__cuda_driver_usable(driver)) {
        return true;
    }
    const int mode = dj__cuda_relax(api);
    const dj__cu_result result = api->cuLibraryUnload(module->library);
    dj__cuda_unrelax(api, mode);
    if (result == DJ__CU_STREAM_CAPTURE_UNSUPPORTED || result == DJ__CU_STREAM_CAPTURE_IMPLICIT) {
        return false;
    }
    if (result != DJ__CU_SUCCESS && result != DJ__CU_DEINITIALIZED &&
        result != DJ__CU_CONTEXT_IS_DESTROYED && dj__log_on(driver->context->log, DJ_LOG_DEBUG)) {
        char text[256];
        dj__cuda_error_text(api, result, text, sizeof(text));
        dj__log_write(driver->context->log, DJ_LOG_DEBUG, "%s: cannot unload: %s", module->path,
                      text);
    }
    return true;
}

static void module_defer(dj_driver *driver, dj_module *module)
{
    pthread_mutex_lock(&driver->lock);
    module->next_deferred = atomic_load_explicit(&driver->deferred, memory_order_relaxed);
    atomic_store_explicit(&driver->deferred, module, memory_order_relaxed);
    pthread_mutex_unlock(&driver->lock);
}

/* `last`: those that still cannot be unloaded are forgotten. */
static void module_retry_deferred(dj_driver *driver, bool last)
{
    if (atomic_load_explicit(&driver->deferred, memory_order_relaxed) == NULL) {
        return;
    }
    dj_module *module = NULL;
    if (dj__cuda_driver_usable(driver)) {
        pthread_mutex_lock(&driver->lock);
        module = atomic_exchange_explicit(&driver->deferred, NULL, memory_order_relaxed);
        pthread_mutex_unlock(&driver->lock);
    } else {
        module = atomic_exchange_explicit(&driver->deferred, NULL, memory_order_relaxed);
    }
    while (module != NULL) {
        dj_module *next = module->next_deferred;
        if (module_unload_now(driver, module) || last) {
            module_free(module);
        } else {
            module_defer(driver, module);
        }
        module = next;
    }
}

void dj__cuda_modules_drop_deferred(dj_driver *driver)
{
    module_retry_deferred(driver, true);
}

void dj__cuda_module_unload(dj_driver *driver, dj_module *module)
{
    module_retry_deferred(driver, false);
    if (module == NULL) {
        return;
    }
    if (module_unload_now(driver, module)) {
        module_free(module);
    } else {
        module_defer(driver, module);
    }
}

/* ---- loading ---- */

dj_status dj__cuda_module_refused(const dj_driver *driver, const dj_module *module,
                                  const dj_cuda_device *device, dj__cu_result result, dj_error *err)
{
    char text[256] = "it finds no kernel for this device in it";
    if (result != DJ__CU_SUCCESS) {
        dj__cuda_error_text(&driver->api, result, text, sizeof(text));
    }
    const bool same = strcmp(module->cubin.info.arch, device->arch) == 0 ||
                      strcmp(module->cubin.info.arch, device->arch_exact) == 0 ||
                      strcmp(module->cubin.info.arch, device->arch_number) == 0;
    return dj__fail_native(
        err, DJ_INCOMPATIBLE, DJ__CUDA_ORIGIN, result,
        "%s: the driver (CUDA %d.%d) does not run this binary for architecture %s on %s "
        "(architecture %s): %s; %s",
        module->path, DJ__CUDA_VERSION(driver->library.version), module->cubin.info.arch,
        device->name, device->arch, text,
        same ? "update the driver, or compile with a CUDA toolkit that is not newer than it"
             : "compile for the device's architecture (leave arch unset)");
}

static dj_status module_fail_count(const dj_binary_info *info, dj_error *err)
{
    if (info->num_kernels == 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "expected exactly one kernel, found 0: define one with __global__; a "
                        "template must be instantiated, and a kernel that is static or in an "
                        "anonymous namespace must be used");
    }
    dj__strbuf names;
    dj__strbuf_init(&names, sizeof(err->message));
    for (size_t i = 0; i < info->num_kernels; i++) {
        dj__strbuf_printf(&names, "%s%s", i > 0 ? ", " : "", info->kernels[i].name);
    }
    const dj_status status =
        dj__fail(err, DJ_INVALID_ARGUMENT, "expected exactly one kernel, found %zu: %s",
                 info->num_kernels, dj__strbuf_str(&names));
    dj__strbuf_fini(&names);
    return status;
}

static dj_status module_read(dj_module *module, const dj_binary *binary, dj_error *err)
{
    dj_status status = dj__cubin_read(binary->data, binary->size, &module->cubin, err);
    if (status == DJ_INVALID_ARGUMENT) {
        status =
            DJ_INCOMPATIBLE; /* what our reader says of bytes, the core is to know of entries */
        if (err != NULL) {
            err->status = (int32_t)status;
        }
    }
    if (status != DJ_OK) {
        dj__error_prefix(err, "%s", module->path);
        return status;
    }
    const dj_binary_info *info = &module->cubin.info;
    if (info->num_kernels != 1) {
        return module_fail_count(info, err);
    }
    module->name = info->kernels[0].name;
    memcpy(module->cluster, info->kernels[0].cluster, sizeof(module->cluster));
    return DJ_OK;
}

static dj_status module_load_library(dj_driver *driver, dj_module *module, const void *data,
                                     dj_error *err)
{
    const dj__cuda_api *api = &driver->api;
    unsigned count = 1;
    const int mode = dj__cuda_relax(api);
    dj__cu_result result =
        api->cuLibraryLoadData(&module->library, data, NULL, NULL, 0, NULL, NULL, 0);
    if (result != DJ__CU_SUCCESS) {
        module->library = NULL;
    } else if (api->cuLibraryGetKernelCount != NULL) {
        result = api->cuLibraryGetKernelCount(&count, module->library);
    }
    if (result == DJ__CU_SUCCESS && count > 0) {
        result = api->cuLibraryGetKernel(&module->kernel, module->library, module->name);
    }
    dj__cuda_unrelax(api, mode);
    const bool refused = count == 0 || dj__cuda_error_is_image(result) ||
                         (result == DJ__CU_NOT_FOUND && module->library != NULL);
    if (refused) {
        const dj_cuda_device *device = NULL;
        const dj_status status =
            dj__cuda_device(driver, dj__cuda_context_ordinal(driver), &device, err);
        return status == DJ_OK ? dj__cuda_module_refused(driver, module, device, result, err)
                               : status;
    }
    return result == DJ__CU_SUCCESS
               ? DJ_OK
               : dj__cuda_fail(api, err, result, "%s: cannot load the binary", module->path);
}

/* The cubin's alignment, if the driver says the same of this parameter; else what size and place
 * allow. */
static uint32_t module_align(const dj_kernel_info *kernel, size_t index, size_t offset, size_t size)
{
    if (index < kernel->num_params && kernel->params[index].size == size &&
        kernel->params[index].align > 0) {
        return kernel->params[index].align;
    }
    const size_t both = offset | size | MODULE_MAX_ALIGN;
    return (uint32_t)(both & (~both + 1));
}

/* Room for `count` parameters; at least one, so that there is an address. */
static dj_status module_reserve_params(dj_module *module, size_t *capacity, size_t count,
                                       dj_error *err)
{
    if (count < *capacity) {
        return DJ_OK;
    }
    dj_param *params = realloc(module->params, (2 * count + 1) * sizeof(*params));
    if (params == NULL) {
        return dj__fail_memory(err);
    }
    module->params = params;
    *capacity = 2 * count + 1;
    return DJ_OK;
}

static void module_set_param(dj_module *module, size_t index, size_t offset, size_t size)
{
    module->params[index] = (dj_param){
        .name = "",
        .type = "",
        .size = (uint32_t)size,
        .align = module_align(&module->cubin.info.kernels[0], index, offset, size),
    };
}

/* By the cubin, if what it lists is complete: the driver's first answer costs as much as a whole
 * load (20 us). Else by the driver, which is asked for one more to find the end. */
static dj_status module_params(const dj__cuda_api *api, dj_module *module, size_t *count,
                               dj_error *err)
{
    const dj_kernel_info *kernel = &module->cubin.info.kernels[0];
    dj__cu_result result = DJ__CU_SUCCESS;
    size_t capacity = 0;
    size_t told = 0;
    dj_status status = module_reserve_params(module, &capacity, kernel->num_params, err);
    const bool ask = api->cuKernelGetParamInfo != NULL && !module->cubin.params_known;
    while (status == DJ_OK && ask && told <= MODULE_MAX_PARAMS) {
        size_t offset = 0;
        size_t size = 0;
        result = api->cuKernelGetParamInfo(module->kernel, told, &offset, &size);
        if (result != DJ__CU_SUCCESS) {
            break;
        }
        module_set_param(module, told++, offset, size);
        status = module_reserve_params(module, &capacity, told, err);
    }
    *count = result == DJ__CU_INVALID_VALUE ? told : kernel->num_params;
    for (size_t i = 0; status == DJ_OK && result != DJ__CU_INVALID_VALUE && i < *count; i++) {
        module_set_param(module, i, kernel->params[i].offset, kernel->params[i].size);
    }
    return status;
}

static dj_status module_new(const dj_binary *binary, dj_module **out, dj_error *err)
{
    dj_module *module = calloc(1, sizeof(*module));
    char *path = strdup(binary->path != NULL ? binary->path : "binary");
    if (module == NULL || path == NULL) {
        free(module);
        free(path);
        return dj__fail_memory(err);
    }
    module->path = path;
    dj__mutex_init(&module->lock);
    *out = module;
    return DJ_OK;
}

dj_status dj__cuda_module_load(dj_driver *driver, const dj_binary *binary, dj_module **out,
                               dj_module_info *info, dj_error *err)
{
    dj_module *module = NULL;
    dj__cuda_slot *slot = NULL;
    dj__cu_context context = NULL;
    size_t num_params = 0;
    *out = NULL;
    module_retry_deferred(driver, false);
    dj_status status = module_new(binary, &module, err);
    if (status != DJ_OK) {
        return status;
    }
    status = module_read(module, binary, err);
    if (status == DJ_OK) {
        status = dj__cuda_context(driver, &context, err);
    }
    if (status == DJ_OK) {
        status = module_load_library(driver, module, binary->data, err);
    }
    if (status == DJ_OK) {
        status = module_params(&driver->api, module, &num_params, err);
    }
    if (status == DJ_OK) {
        status = dj__cuda_slot_get(driver, module, &slot, err);
    }
    if (status != DJ_OK) {
        dj__cuda_module_unload(driver, module);
        return status;
    }
    *info = (dj_module_info){
        .kernel_name = module->name,
        .params = module->params,
        .num_params = num_params,
    };
    *out = module;
    return DJ_OK;
}
