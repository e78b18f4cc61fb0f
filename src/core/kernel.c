/* SPDX-License-Identifier: MIT */
/*
 * Kernels: a loaded module with a reference count that the memory cache shares.
 *
 * A kernel's memory stays until its runtime's memory cache is destroyed, for readers may look at
 * it at any time; with the last reference only the module goes.
 */
#include "backend/host/host_backend.h"
#include "base/error.h"
#include "core/core.h"
#include "core/options.h"
#include <stdlib.h>
#include <string.h>

static void kernel_free(dj__cached *cached)
{
    dj_kernel *kernel = (dj_kernel *)(void *)cached;
    free(kernel->path);
    free(kernel->log);
    free(kernel);
}

static void kernel_release(dj__cached *cached)
{
    dj_kernel *kernel = (dj_kernel *)(void *)cached;
    if (atomic_fetch_sub_explicit(&cached->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    dj_runtime *runtime = kernel->runtime;
    if (!atomic_load_explicit(&runtime->lost_device, memory_order_relaxed)) {
        kernel->ops->unload(kernel->driver, kernel->module);
    }
    if (atomic_load_explicit(&kernel->adopted, memory_order_relaxed)) {
        /* The struct stays for late readers; what only holders may read goes. */
        free(kernel->path);
        free(kernel->log);
        kernel->path = NULL;
        kernel->log = NULL;
    } else {
        kernel_free(cached);
    }
    dj__runtime_unref(runtime); /* may free the cache, and this kernel with it */
}

const dj__memory_ops dj__kernel_memory_ops = {
    .options_equal = dj__compile_options_equal,
    .options_copy = dj__compile_options_copy,
    .options_free = dj__compile_options_free,
    .release = kernel_release,
    .destroy = kernel_free,
};

void dj__kernel_retain(void *kernel)
{
    atomic_fetch_add_explicit(&((dj_kernel *)kernel)->cached.refs, 1, memory_order_relaxed);
}

void dj__kernel_drop(void *kernel)
{
    kernel_release(&((dj_kernel *)kernel)->cached);
}

dj_kernel *dj_kernel_retain(dj_kernel *kernel)
{
    if (kernel != NULL) {
        dj__kernel_retain(kernel);
    }
    return kernel;
}

void dj_kernel_release(dj_kernel *kernel)
{
    if (kernel != NULL) {
        dj__kernel_drop(kernel);
    }
}

static void kernel_account_load(dj_runtime *runtime, const dj_entry *entry, int64_t wall_ns)
{
    atomic_fetch_add_explicit(&runtime->counters.loads, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&runtime->counters.load_ns, (uint64_t)wall_ns, memory_order_relaxed);
    if (runtime->settings.print_load_time == DJ_ON) {
        dj__log_write(&runtime->diagnostics, DJ_LOG_INFO, "Load time (%s): %.3f ms", entry->path,
                      (double)wall_ns / 1e6);
    }
}

static dj_status kernel_new(dj_runtime *runtime, const dj__request *request, const dj_entry *entry,
                            dj_kernel **out, dj_error *err)
{
    dj_kernel *kernel = aligned_alloc(DJ__CACHE_LINE, (sizeof(*kernel) + DJ__CACHE_LINE - 1) /
                                                          DJ__CACHE_LINE * DJ__CACHE_LINE);
    if (kernel == NULL) {
        return dj__fail_memory(err);
    }
    memset(kernel, 0, sizeof(*kernel));
    atomic_init(&kernel->cached.refs, 1);
    memcpy(kernel->cached.key, request->key, sizeof(kernel->cached.key));
    kernel->runtime = runtime;
    kernel->ops = runtime->backend->driver;
    kernel->path = strdup(entry->reason == NULL ? entry->path : "");
    kernel->log_size = entry->log_size;
    kernel->log = malloc(entry->log_size + 1);
    if (kernel->path == NULL || kernel->log == NULL) {
        kernel_free(&kernel->cached);
        return dj__fail_memory(err);
    }
    memcpy(kernel->log, entry->log != NULL ? entry->log : "", entry->log_size + 1);
    *out = kernel;
    return DJ_OK;
}

dj_status dj__kernel_load(dj_runtime *runtime, const dj__request *request,
                          const dj_artifact *artifact, dj_kernel **out, dj_error *err)
{
    *out = NULL;
    dj_kernel *kernel = NULL;
    dj_status status = kernel_new(runtime, request, &artifact->entry, &kernel, err);
    if (status != DJ_OK) {
        return status;
    }
    status = dj__runtime_driver(runtime, &kernel->driver, err);
    if (status == DJ_OK) {
        const dj_entry *entry = &artifact->entry;
        const dj_binary binary = {entry->binary, entry->binary_size, artifact->binary_path};
        const int64_t start = dj__now_ns();
        status = kernel->ops->load(kernel->driver, &binary, &kernel->module, &kernel->info, err);
        if (status == DJ_OK) {
            kernel_account_load(runtime, entry, dj__now_ns() - start);
        }
    }
    if (status != DJ_OK) {
        kernel_free(&kernel->cached);
        return status;
    }
    dj__runtime_ref(runtime);
    *out = kernel;
    return DJ_OK;
}

/* ---- queries ---------------------------------------------------------------------------- */

const char *dj_kernel_name(const dj_kernel *kernel)
{
    return kernel != NULL ? kernel->info.kernel_name : "";
}

const char *dj_kernel_path(const dj_kernel *kernel)
{
    return kernel != NULL ? kernel->path : "";
}

size_t dj_kernel_num_params(const dj_kernel *kernel)
{
    return kernel != NULL ? kernel->info.num_params : 0;
}

dj_status dj_kernel_param(const dj_kernel *kernel, size_t index, size_t *size, size_t *align,
                          const char **name, const char **type, dj_error *err)
{
    if (kernel == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "kernel must not be null");
    }
    if (index >= kernel->info.num_params) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "kernel '%s' has %zu parameters, no number %zu",
                        kernel->info.kernel_name, kernel->info.num_params, index);
    }
    const dj_param *param = &kernel->info.params[index];
    if (size != NULL) {
        *size = param->size;
    }
    if (align != NULL) {
        *align = param->align;
    }
    if (name != NULL) {
        *name = param->name;
    }
    if (type != NULL) {
        *type = param->type;
    }
    return DJ_OK;
}

dj_host_block_fn dj_host_kernel_function(const dj_kernel *kernel)
{
    if (kernel == NULL || strcmp(kernel->runtime->backend->name, "host") != 0) {
        return NULL;
    }
    return dj__host_module_function(kernel->module);
}
