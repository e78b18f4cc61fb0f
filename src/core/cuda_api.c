/* SPDX-License-Identifier: MIT */
/* The public calls of deepjit/cuda.h: handles and struct sizes are checked here, the back end does
 * the rest. */
#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "core/core.h"
#include <string.h>

static bool cuda_is(const dj_backend *backend)
{
    return strcmp(backend->name, "cuda") == 0;
}

static dj_status cuda_driver_of(dj_runtime *runtime, const char *what, dj_driver **driver,
                                dj_error *err)
{
    *driver = NULL;
    if (runtime == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "%s: runtime must not be NULL", what);
    }
    if (!cuda_is(runtime->backend)) {
        return dj__fail(err, DJ_UNSUPPORTED, "%s: the runtime belongs to the %s back end", what,
                        runtime->backend->name);
    }
    return dj__runtime_driver(runtime, driver, err);
}

static dj_status cuda_check_kernel(const dj_kernel *kernel, const char *what, dj_error *err)
{
    if (kernel == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "%s: kernel must not be NULL", what);
    }
    if (!cuda_is(kernel->runtime->backend)) {
        return dj__fail(err, DJ_UNSUPPORTED, "%s: the kernel belongs to the %s back end", what,
                        kernel->runtime->backend->name);
    }
    dj_driver *driver = NULL;
    return dj__runtime_driver(kernel->runtime, &driver, err); /* lost after a fork? */
}

static dj_status cuda_null(const char *what, const char *name, dj_error *err)
{
    return dj__fail(err, DJ_INVALID_ARGUMENT, "%s: %s must not be NULL", what, name);
}

dj_status dj_cuda_device_info(dj_runtime *runtime, int ordinal, dj_cuda_device *out, dj_error *err)
{
    if (out == NULL || out->size != sizeof(*out)) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "dj_cuda_device_info: out must be a dj_cuda_device set to "
                        "DJ_CUDA_DEVICE_INIT");
    }
    dj_driver *driver = NULL;
    const dj_status status = cuda_driver_of(runtime, "dj_cuda_device_info", &driver, err);
    return status != DJ_OK ? status : dj__cuda_describe(driver, ordinal, out, err);
}

dj_status dj_cuda_device_attribute(dj_runtime *runtime, int ordinal, int attribute, int *value,
                                   dj_error *err)
{
    if (value == NULL) {
        return cuda_null("dj_cuda_device_attribute", "value", err);
    }
    *value = 0;
    dj_driver *driver = NULL;
    const dj_status status = cuda_driver_of(runtime, "dj_cuda_device_attribute", &driver, err);
    return status != DJ_OK ? status
                           : dj__cuda_device_attribute(driver, ordinal, attribute, value, err);
}

dj_status dj_cuda_kernel_handles(dj_kernel *kernel, dj_cuda_handles *out, dj_error *err)
{
    if (out == NULL || out->size != sizeof(*out)) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "dj_cuda_kernel_handles: out must be a dj_cuda_handles set to "
                        "DJ_CUDA_HANDLES_INIT");
    }
    *out = (dj_cuda_handles){.size = sizeof(*out)};
    const dj_status status = cuda_check_kernel(kernel, "dj_cuda_kernel_handles", err);
    return status != DJ_OK ? status : dj__cuda_handles(kernel->driver, kernel->module, out, err);
}

dj_status dj_cuda_kernel_attribute(dj_kernel *kernel, int attribute, int *value, dj_error *err)
{
    if (value == NULL) {
        return cuda_null("dj_cuda_kernel_attribute", "value", err);
    }
    *value = 0;
    const dj_status status = cuda_check_kernel(kernel, "dj_cuda_kernel_attribute", err);
    return status != DJ_OK
               ? status
               : dj__cuda_kernel_attribute(kernel->driver, kernel->module, attribute, value, err);
}

dj_status dj_cuda_kernel_set_attribute(dj_kernel *kernel, int attribute, int value, dj_error *err)
{
    const dj_status status = cuda_check_kernel(kernel, "dj_cuda_kernel_set_attribute", err);
    return status != DJ_OK ? status
                           : dj__cuda_kernel_set_attribute(kernel->driver, kernel->module,
                                                           attribute, value, err);
}

dj_status dj_cuda_occupancy(dj_kernel *kernel, const dj_launch_options *options, int *blocks,
                            int *clusters, dj_error *err)
{
    dj__launch_set call;
    dj_launch_config config;
    int num_blocks = 0;
    int num_clusters = 0;
    dj_status status = cuda_check_kernel(kernel, "dj_cuda_occupancy", err);
    if (status == DJ_OK) {
        status = dj__launch_set_import(options, &call, err);
    }
    if (status == DJ_OK) {
        status = dj__launch_config(kernel, &call.common, &config, err);
    }
    if (status == DJ_OK) {
        status = dj__cuda_occupancy(kernel->driver, kernel->module, &config, &num_blocks,
                                    &num_clusters, err);
    }
    if (blocks != NULL) {
        *blocks = num_blocks;
    }
    if (clusters != NULL) {
        *clusters = num_clusters;
    }
    return status;
}

dj_status dj_cuda_global(dj_kernel *kernel, const char *name, void **address, size_t *size,
                         dj_error *err)
{
    void *found = NULL;
    size_t bytes = 0;
    dj_status status = address == NULL || name == NULL
                           ? cuda_null("dj_cuda_global", address == NULL ? "address" : "name", err)
                           : cuda_check_kernel(kernel, "dj_cuda_global", err);
    if (status == DJ_OK) {
        status = dj__cuda_global(kernel->driver, kernel->module, name, &found, &bytes, err);
    }
    if (address != NULL) {
        *address = found;
    }
    if (size != NULL) {
        *size = bytes;
    }
    return status;
}

dj_status dj_cuda_symbol(dj_runtime *runtime, const char *name, int version, void **out,
                         dj_error *err)
{
    if (out == NULL) {
        return cuda_null("dj_cuda_symbol", "out", err);
    }
    *out = NULL;
    if (name == NULL) {
        return cuda_null("dj_cuda_symbol", "name", err);
    }
    dj_driver *driver = NULL;
    const dj_status status = cuda_driver_of(runtime, "dj_cuda_symbol", &driver, err);
    return status != DJ_OK ? status : dj__cuda_symbol(driver, name, version, out, err);
}
