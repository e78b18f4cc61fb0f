/* SPDX-License-Identifier: MIT */
/*
 * Launches and device memory. dj_launch takes no lock, allocates nothing, hashes nothing, logs
 * nothing: it fills in defaults, compares the arguments with what the binary declares and calls
 * the driver.
 */
#include "base/error.h"
#include "core/core.h"
#include "core/options.h"
#include <stdio.h>

/* The rare path: words for what launch_check_args found. */
static dj_status launch_bad_args(const dj_kernel *kernel, const dj_arg *args, size_t num_args,
                                 dj_error *err)
{
    const dj_module_info *info = &kernel->info;
    if (num_args != info->num_params) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "kernel '%s' takes %zu arguments, got %zu",
                        info->kernel_name, info->num_params, num_args);
    }
    if (args == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "kernel '%s': args is NULL", info->kernel_name);
    }
    for (size_t i = 0; i < num_args; i++) {
        const dj_param *param = &info->params[i];
        const char *problem = args[i].ptr == NULL ? "has no address" : NULL;
        if (problem == NULL && args[i].size == param->size) {
            continue;
        }
        /* Not every binary says what its parameters are called. */
        char words[256] = "";
        if (param->name[0] != '\0') {
            snprintf(words, sizeof(words), " (%s %s)", param->type, param->name);
        }
        if (problem != NULL) {
            return dj__fail(err, DJ_INVALID_ARGUMENT, "kernel '%s': argument %zu%s %s",
                            info->kernel_name, i, words, problem);
        }
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "kernel '%s': argument %zu%s has %zu bytes, the kernel expects %u",
                        info->kernel_name, i, words, args[i].size, param->size);
    }
    return DJ_OK;
}

static inline bool launch_args_ok(const dj_module_info *info, const dj_arg *args, size_t num_args)
{
    if (num_args != info->num_params || (args == NULL && num_args != 0)) {
        return false;
    }
    for (size_t i = 0; i < num_args; i++) {
        if (args[i].ptr == NULL || args[i].size != info->params[i].size) {
            return false;
        }
    }
    return true;
}

/* A zero y or z beside a non-zero x means 1. */
static inline bool launch_dim(const dj_dim3 *call, const dj_dim3 *defaults, dj_dim3 *out)
{
    const dj_dim3 *from = (call->x | call->y | call->z) != 0 ? call : defaults;
    *out = (dj_dim3){from->x, from->y != 0 ? from->y : 1, from->z != 0 ? from->z : 1};
    return from->x != 0;
}

static dj_status launch_bad_dim(const char *what, const dj_dim3 *call, const dj_dim3 *defaults,
                                dj_error *err)
{
    const dj_dim3 *from = (call->x | call->y | call->z) != 0 ? call : defaults;
    if ((from->y | from->z) == 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "%s dimension must be specified", what);
    }
    return dj__fail(err, DJ_INVALID_ARGUMENT, "%s dimensions must be positive: (%u, %u, %u)", what,
                    from->x, from->y, from->z);
}

dj_status dj__launch_config(const dj_kernel *kernel, const dj_launch_options *call,
                            dj_launch_config *out, dj_error *err)
{
    const dj__config *config = &kernel->runtime->config;
    const dj_launch_options *defaults = &config->launch_defaults.common;
    out->call = call;
    out->defaults = defaults;
    if (!launch_dim(&call->grid, &defaults->grid, &out->grid)) {
        return launch_bad_dim("grid", &call->grid, &defaults->grid, err);
    }
    if (!launch_dim(&call->block, &defaults->block, &out->block)) {
        return launch_bad_dim("block", &call->block, &defaults->block, err);
    }
    const int64_t shared = call->shared_bytes != 0 ? call->shared_bytes : defaults->shared_bytes;
    if (shared < 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "shared-memory size must not be negative: %lld",
                        (long long)shared);
    }
    out->shared_bytes = (uint64_t)shared;
    out->stream = NULL;
    if (call->stream != NULL || call->stream_set) {
        out->stream = call->stream;
    } else if (defaults->stream != NULL || defaults->stream_set) {
        out->stream = defaults->stream;
    } else if ((kernel->ops->caps & DJ_DRIVER_SYNCHRONOUS) == 0) {
        if (config->current_stream != NULL) {
            out->stream = config->current_stream(config->current_stream_user);
        } else if (kernel->ops->current_stream != NULL) {
            out->stream = kernel->ops->current_stream(kernel->driver);
        }
    }
    return DJ_OK;
}

static dj_status launch_check_kernel(const dj_kernel *kernel, dj_error *err)
{
    if (kernel == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "kernel must not be null");
    }
    /* The memory stays while the runtime lives, so this is a check and no gamble. */
    if (atomic_load_explicit(&kernel->cached.refs, memory_order_relaxed) <= 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "kernel was used after its release");
    }
    if (atomic_load_explicit(&kernel->runtime->lost_device, memory_order_relaxed)) {
        dj_driver *driver = NULL;
        return dj__runtime_driver(kernel->runtime, &driver, err);
    }
    return DJ_OK;
}

dj_status dj_launch(dj_kernel *kernel, const dj_launch_options *options, const dj_arg *args,
                    size_t num_args, dj_error *err)
{
    dj_status status = launch_check_kernel(kernel, err);
    if (status != DJ_OK) {
        return status;
    }
    static const dj_launch_options unset = {.size = sizeof(unset)};
    dj_launch_options imported;
    if (options == NULL) {
        options = &unset;
    } else if (options->size != sizeof(*options)) {
        status = dj__options_import(options, &imported, sizeof(imported), "dj_launch_options", err);
        if (status != DJ_OK) {
            return status;
        }
        options = &imported;
    }
    dj_launch_config config;
    status = dj__launch_config(kernel, options, &config, err);
    if (status != DJ_OK) {
        return status;
    }
    if (!launch_args_ok(&kernel->info, args, num_args)) {
        return launch_bad_args(kernel, args, num_args, err);
    }
    return kernel->ops->launch(kernel->driver, kernel->module, &config, args, num_args, err);
}

/* ---- device and memory ------------------------------------------------------------------ */

static dj_status launch_driver(dj_runtime *runtime, dj_driver **driver, dj_error *err)
{
    *driver = NULL;
    if (runtime == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "runtime must not be NULL");
    }
    return dj__runtime_driver(runtime, driver, err);
}

dj_status dj_device_info(dj_runtime *runtime, dj_device *out, dj_error *err)
{
    if (out == NULL || out->size != sizeof(*out)) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "dj_device_info: out must be a dj_device set to DJ_DEVICE_INIT");
    }
    if (runtime == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "runtime must not be NULL");
    }
    const dj_device *device = NULL;
    const dj_status status = dj__runtime_device(runtime, &device, err);
    if (status == DJ_OK) {
        *out = *device;
    }
    return status;
}

dj_status dj_mem_alloc(dj_runtime *runtime, size_t size, void **out, dj_error *err)
{
    if (out == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "dj_mem_alloc: out must not be NULL");
    }
    *out = NULL;
    dj_driver *driver;
    const dj_status status = launch_driver(runtime, &driver, err);
    return status != DJ_OK ? status : runtime->backend->driver->mem_alloc(driver, size, out, err);
}

dj_status dj_mem_free(dj_runtime *runtime, void *memory, dj_error *err)
{
    dj_driver *driver;
    const dj_status status = launch_driver(runtime, &driver, err);
    if (status != DJ_OK || memory == NULL) {
        return status;
    }
    return runtime->backend->driver->mem_free(driver, memory, err);
}

dj_status dj_mem_copy(dj_runtime *runtime, void *to, const void *from, size_t size, dj_error *err)
{
    dj_driver *driver;
    const dj_status status = launch_driver(runtime, &driver, err);
    if (status != DJ_OK || size == 0) {
        return status;
    }
    if (to == NULL || from == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "dj_mem_copy: %s must not be NULL",
                        to == NULL ? "to" : "from");
    }
    return runtime->backend->driver->mem_copy(driver, to, from, size, err);
}

dj_status dj_synchronize(dj_runtime *runtime, dj_error *err)
{
    dj_driver *driver;
    const dj_status status = launch_driver(runtime, &driver, err);
    return status != DJ_OK ? status : runtime->backend->driver->synchronize(driver, err);
}
