/* SPDX-License-Identifier: MIT */
/*
 * Launches and device memory. dj_launch takes no lock, allocates nothing (up to 64 arguments),
 * hashes nothing, logs nothing: it fills in defaults, compares the arguments with what the binary
 * declares and calls the driver.
 */
#include "base/error.h"
#include "base/scalar.h"
#include "core/core.h"
#include "core/options.h"
#include <stdio.h>
#include <stdlib.h>

#define LAUNCH_RARE __attribute__((noinline, cold))
#define LAUNCH_USUAL(condition) (__builtin_expect(!!(condition), 1))

enum { LAUNCH_STACK_ARGS = 64 };

/* ---- the rare paths: out of line, so that the usual one saves and skips nothing for them ---- */

/* Words for what launch_args found. */
LAUNCH_RARE static dj_status launch_bad_args(const dj_kernel *kernel, const dj_arg *args,
                                             size_t num_args, dj_error *err)
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

/* The x of a call is not set: its other fields are a mistake, or the default is meant. */
LAUNCH_RARE static dj_status launch_other_dim(const char *what, const dj_dim3 *call,
                                              const dj_dim3 *defaults, dj_dim3 *out, dj_error *err)
{
    const dj_dim3 *from = (call->y | call->z) != 0 ? call : defaults;
    if (from->x != 0) {
        *out = (dj_dim3){from->x, from->y != 0 ? from->y : 1, from->z != 0 ? from->z : 1};
        return DJ_OK;
    }
    if ((from->y | from->z) == 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "%s dimension must be specified", what);
    }
    return dj__fail(err, DJ_INVALID_ARGUMENT, "%s dimensions must be positive: (%u, %u, %u)", what,
                    from->x, from->y, from->z);
}

LAUNCH_RARE static dj_status launch_bad_shared(int64_t shared, dj_error *err)
{
    return dj__fail(err, DJ_INVALID_ARGUMENT, "shared-memory size must not be negative: %lld",
                    (long long)shared);
}

LAUNCH_RARE static dj_status launch_check_kernel(const dj_kernel *kernel, dj_error *err)
{
    if (kernel == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "kernel must not be null");
    }
    if (atomic_load_explicit(&kernel->cached.refs, memory_order_relaxed) <= 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "kernel was used after its release");
    }
    dj_driver *driver = NULL;
    return dj__runtime_driver(kernel->runtime, &driver, err);
}

/* ---- the usual path ---- */

/* The memory stays while the runtime lives, so looking at the count is a check and no gamble. */
static inline bool launch_kernel_ok(const dj_kernel *kernel)
{
    return LAUNCH_USUAL(kernel != NULL &&
                        atomic_load_explicit(&kernel->cached.refs, memory_order_relaxed) > 0 &&
                        !atomic_load_explicit(&kernel->runtime->lost_device, memory_order_relaxed));
}

/* A zero y or z beside a non-zero x means 1. */
static inline dj_status launch_dim(const char *what, const dj_dim3 *call, const dj_dim3 *defaults,
                                   dj_dim3 *out, dj_error *err)
{
    if (LAUNCH_USUAL(call->x != 0)) {
        out->x = dj__scalar(call->x);
        out->y = dj__scalar(call->y + (call->y == 0));
        out->z = dj__scalar(call->z + (call->z == 0));
        return DJ_OK;
    }
    return launch_other_dim(what, call, defaults, out, err);
}

static inline void *launch_stream(const dj_kernel *kernel, const dj_launch_options *call)
{
    const dj__config *config = &kernel->runtime->config;
    const dj_launch_options *defaults = &config->launch_defaults.common;
    if (call->stream != NULL || call->stream_set) {
        return call->stream;
    }
    if (defaults->stream != NULL || defaults->stream_set) {
        return defaults->stream;
    }
    if ((kernel->ops->caps & DJ_DRIVER_SYNCHRONOUS) != 0) {
        return NULL;
    }
    if (config->current_stream != NULL) {
        return config->current_stream(config->current_stream_user);
    }
    return kernel->ops->current_stream != NULL ? kernel->ops->current_stream(kernel->driver) : NULL;
}

static inline dj_status launch_config(const dj_kernel *kernel, const dj_launch_options *call,
                                      dj_launch_config *out, dj_error *err)
{
    const dj_launch_options *defaults = &kernel->runtime->config.launch_defaults.common;
    dj_status status = launch_dim("grid", &call->grid, &defaults->grid, &out->grid, err);
    if (status == DJ_OK) {
        status = launch_dim("block", &call->block, &defaults->block, &out->block, err);
    }
    if (status != DJ_OK) {
        return status;
    }
    const int64_t shared = call->shared_bytes != 0 ? call->shared_bytes : defaults->shared_bytes;
    if (!LAUNCH_USUAL(shared >= 0)) {
        return launch_bad_shared(shared, err);
    }
    out->shared_bytes = (uint64_t)shared;
    out->call = call;
    out->defaults = defaults;
    out->stream = launch_stream(kernel, call);
    return DJ_OK;
}

dj_status dj__launch_config(const dj_kernel *kernel, const dj_launch_options *call,
                            dj_launch_config *out, dj_error *err)
{
    return launch_config(kernel, call, out, err);
}

/* Checks and collects in one pass: the addresses of the arguments. */
static inline bool launch_args(const dj_module_info *info, const dj_arg *args, size_t num_args,
                               const void **out)
{
    const dj_param *params = info->params;
    for (size_t i = 0; i < num_args; i++) {
        if (!LAUNCH_USUAL(args[i].ptr != NULL && args[i].size == params[i].size)) {
            return false;
        }
        out[i] = args[i].ptr;
    }
    return true;
}

static inline dj_status launch_run(const dj_kernel *kernel, const dj_launch_config *config,
                                   const dj_arg *args, size_t num_args, const void **addresses,
                                   dj_error *err)
{
    if (!LAUNCH_USUAL(launch_args(&kernel->info, args, num_args, addresses))) {
        return launch_bad_args(kernel, args, num_args, err);
    }
    return kernel->ops->launch(kernel->driver, kernel->module, config, addresses, num_args, err);
}

LAUNCH_RARE static dj_status launch_run_many(const dj_kernel *kernel,
                                             const dj_launch_config *config, const dj_arg *args,
                                             size_t num_args, dj_error *err)
{
    const void **addresses = malloc(num_args * sizeof(*addresses));
    if (addresses == NULL) {
        return dj__fail_memory(err);
    }
    const dj_status status = launch_run(kernel, config, args, num_args, addresses, err);
    free((void *)addresses);
    return status;
}

/* No options, or those of another version's size. */
LAUNCH_RARE static dj_status launch_imported(dj_kernel *kernel, const dj_launch_options *options,
                                             const dj_arg *args, size_t num_args, dj_error *err)
{
    static const dj_launch_options unset = {.size = sizeof(unset)};
    if (options == NULL) {
        return dj_launch(kernel, &unset, args, num_args, err);
    }
    dj__launch_set imported;
    const dj_status status = dj__launch_set_import(options, &imported, err);
    return status == DJ_OK ? dj_launch(kernel, &imported.common, args, num_args, err) : status;
}

/* Aligned, for it is seldom in the processor's cache: a driver's launch goes through much code. */
__attribute__((hot, aligned(64))) dj_status dj_launch(dj_kernel *kernel,
                                                      const dj_launch_options *options,
                                                      const dj_arg *args, size_t num_args,
                                                      dj_error *err)
{
    dj_launch_config config;
    const void *addresses[LAUNCH_STACK_ARGS];
    dj_status status = launch_kernel_ok(kernel) ? DJ_OK : launch_check_kernel(kernel, err);
    if (!LAUNCH_USUAL(status == DJ_OK)) {
        return status;
    }
    if (!LAUNCH_USUAL(options != NULL && dj__launch_options_known(options))) {
        return launch_imported(kernel, options, args, num_args, err);
    }
    status = launch_config(kernel, options, &config, err);
    if (!LAUNCH_USUAL(status == DJ_OK)) {
        return status;
    }
    if (!LAUNCH_USUAL(num_args == kernel->info.num_params && (args != NULL || num_args == 0))) {
        return launch_bad_args(kernel, args, num_args, err);
    }
    if (!LAUNCH_USUAL(num_args <= LAUNCH_STACK_ARGS)) {
        return launch_run_many(kernel, &config, args, num_args, err);
    }
    return launch_run(kernel, &config, args, num_args, addresses, err);
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
