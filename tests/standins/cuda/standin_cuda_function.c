/* SPDX-License-Identifier: MIT */
/* The stand-in driver: functions, which are kernels in a context, and attributes of both. */
#include "standin_cuda_state.h"
#include <stdlib.h>

static standin_function *functions;

void standin_forget_functions(const standin_library *library)
{
    for (standin_function **at = &functions; *at != NULL;) {
        standin_function *one = *at;
        if (one->kernel->library == library) {
            *at = one->next;
            free(one);
        } else {
            at = &one->next;
        }
    }
}

int standin_registers(const standin_kernel *kernel)
{
    return kernel->info->registers > 0 ? (int)kernel->info->registers : 32;
}

int standin_static_shared(const standin_kernel *kernel)
{
    return kernel->info->shared_bytes > 0 ? (int)kernel->info->shared_bytes : 0;
}

int standin_max_threads(const standin_kernel *kernel)
{
    /* Registers are given to warps in units of 256. */
    const int per_warp = (standin_registers(kernel) * 32 + 255) / 256 * 256;
    const int by_registers = 65536 / per_warp * 32;
    int most = standin_device_attribute(0, DJ__CU_DEV_MAX_THREADS_PER_BLOCK);
    most = by_registers < most ? by_registers : most;
    return kernel->info->max_threads > 0 && kernel->info->max_threads < most
               ? (int)kernel->info->max_threads
               : most;
}

static dj__cu_result get_function(dj__cu_function *out, dj__cu_kernel handle)
{
    standin_kernel *kernel = standin_find_kernel(handle);
    standin_context *context = standin_current();
    if (out == NULL || kernel == NULL) {
        return out == NULL ? DJ__CU_INVALID_VALUE : DJ__CU_INVALID_HANDLE;
    }
    for (standin_function *one = functions; one != NULL; one = one->next) {
        if (one->kernel == kernel && one->context == context &&
            one->generation == context->generation) {
            *out = one;
            return DJ__CU_SUCCESS;
        }
    }
    if (kernel->library->image != NULL &&
        !standin_runs_on(kernel->library->cubin.info.arch, context->device)) {
        return DJ__CU_NO_BINARY_FOR_GPU;
    }
    /* The first use in a context loads the library there. */
    const dj__cu_result result = standin_unsafe();
    standin_function *made = result == DJ__CU_SUCCESS ? malloc(sizeof *made) : NULL;
    if (made == NULL) {
        return result != DJ__CU_SUCCESS ? result : DJ__CU_OUT_OF_MEMORY;
    }
    *made = kernel->own[context->device];
    made->context = context;
    made->generation = context->generation;
    made->next = functions;
    functions = made;
    *out = made;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuKernelGetFunction(dj__cu_function *function, dj__cu_kernel kernel)
{
    const dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    return standin_leave(result == DJ__CU_SUCCESS ? get_function(function, kernel) : result);
}

dj__cu_result standin_find_function(dj__cu_function handle, standin_context *context,
                                    bool or_kernel, standin_function **out)
{
    standin_kernel *kernel = or_kernel ? standin_find_kernel(handle) : NULL;
    standin_function *one = functions;
    while (kernel == NULL && one != NULL && one != handle) {
        one = one->next;
    }
    if (kernel != NULL) {
        one = &kernel->own[context->device];
        one->context = context;
        one->generation = context->generation;
    }
    if (one == NULL) {
        return DJ__CU_INVALID_HANDLE;
    }
    if (!one->context->alive && !one->context->primary) {
        return DJ__CU_CONTEXT_IS_DESTROYED;
    }
    if (one->context != context || one->generation != context->generation) {
        return DJ__CU_INVALID_HANDLE;
    }
    *out = one;
    return DJ__CU_SUCCESS;
}

static dj__cu_result param_info(const standin_kernel *kernel, size_t index, size_t *offset,
                                size_t *size)
{
    if (kernel == NULL) {
        return DJ__CU_INVALID_HANDLE;
    }
    if (offset == NULL || index >= kernel->info->num_params) {
        return DJ__CU_INVALID_VALUE;
    }
    *offset = kernel->info->params[index].offset;
    if (size != NULL) {
        *size = kernel->info->params[index].size;
    }
    return DJ__CU_SUCCESS;
}

dj__cu_result cuKernelGetParamInfo(dj__cu_kernel kernel, size_t index, size_t *offset, size_t *size)
{
    const dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    return standin_leave(result == DJ__CU_SUCCESS
                             ? param_info(standin_find_kernel(kernel), index, offset, size)
                             : result);
}

dj__cu_result cuFuncGetParamInfo(dj__cu_function function, size_t index, size_t *offset,
                                 size_t *size)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    standin_function *found = NULL;
    if (result == DJ__CU_SUCCESS) {
        result = standin_find_function(function, standin_current(), false, &found);
    }
    return standin_leave(result == DJ__CU_SUCCESS ? param_info(found->kernel, index, offset, size)
                                                  : result);
}

dj__cu_result cuKernelGetName(const char **name, dj__cu_kernel handle)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        const standin_kernel *kernel = standin_find_kernel(handle);
        result = name == NULL     ? DJ__CU_INVALID_VALUE
                 : kernel == NULL ? DJ__CU_INVALID_HANDLE
                                  : DJ__CU_SUCCESS;
        if (result == DJ__CU_SUCCESS) {
            *name = kernel->info->name;
        }
    }
    return standin_leave(result);
}

dj__cu_result cuFuncGetName(const char **name, dj__cu_function function)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    standin_function *found = NULL;
    if (result == DJ__CU_SUCCESS) {
        result = name != NULL ? standin_find_function(function, standin_current(), false, &found)
                              : DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        *name = found->kernel->info->name;
    }
    return standin_leave(result);
}

static int own_attribute(int attribute, standin_function *function, int **settable)
{
    const standin_kernel *kernel = function->kernel;
    *settable = attribute == DJ__CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES ? &function->max_dynamic
                : attribute == DJ__CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
                    ? &function->nonportable
                    : NULL;
    switch (attribute) {
    case DJ__CU_FUNC_MAX_THREADS_PER_BLOCK:
        return standin_max_threads(kernel);
    case DJ__CU_FUNC_SHARED_SIZE_BYTES:
        return standin_static_shared(kernel);
    case DJ__CU_FUNC_LOCAL_SIZE_BYTES:
        return kernel->info->local_bytes > 0 ? (int)kernel->info->local_bytes : 0;
    case DJ__CU_FUNC_NUM_REGS:
        return standin_registers(kernel);
    default:
        return *settable != NULL ? **settable : attribute > 0 && attribute <= 15 ? 0 : -1;
    }
}

static dj__cu_result get_attribute(int *value, int attribute, standin_function *function)
{
    int *settable = NULL;
    const int found = own_attribute(attribute, function, &settable);
    if (found < 0) {
        return DJ__CU_INVALID_VALUE;
    }
    *value = found;
    return DJ__CU_SUCCESS;
}

static dj__cu_result set_attribute(int attribute, int value, standin_function *function, int device)
{
    int *settable = NULL;
    (void)own_attribute(attribute, function, &settable);
    if (settable == NULL || value < 0) {
        return DJ__CU_INVALID_VALUE;
    }
    const int most = standin_device_attribute(device, DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    if (attribute == DJ__CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
        value > most - standin_static_shared(function->kernel)) {
        return DJ__CU_INVALID_VALUE;
    }
    *settable = value;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuFuncGetAttribute(int *value, int attribute, dj__cu_function handle)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    standin_function *function = NULL;
    if (result == DJ__CU_SUCCESS) {
        result = value != NULL ? standin_find_function(handle, standin_current(), false, &function)
                               : DJ__CU_INVALID_VALUE;
    }
    return standin_leave(result == DJ__CU_SUCCESS ? get_attribute(value, attribute, function)
                                                  : result);
}

dj__cu_result cuFuncSetAttribute(dj__cu_function handle, int attribute, int value)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    standin_function *function = NULL;
    if (result == DJ__CU_SUCCESS) {
        result = standin_find_function(handle, standin_current(), false, &function);
    }
    if (result == DJ__CU_SUCCESS) {
        result = set_attribute(attribute, value, function, standin_current()->device);
    }
    return standin_leave(result);
}

static dj__cu_result check_kernel(const standin_kernel *kernel, int device)
{
    if (kernel == NULL) {
        return DJ__CU_INVALID_HANDLE;
    }
    return device >= 0 && device < standin_device_count() ? DJ__CU_SUCCESS : STANDIN_INVALID_DEVICE;
}

dj__cu_result cuKernelGetAttribute(int *value, int attribute, dj__cu_kernel handle,
                                   dj__cu_device device)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        standin_kernel *kernel = standin_find_kernel(handle);
        result = value != NULL ? check_kernel(kernel, device) : DJ__CU_INVALID_VALUE;
        if (result == DJ__CU_SUCCESS) {
            result = get_attribute(value, attribute, &kernel->own[device]);
        }
    }
    return standin_leave(result);
}

dj__cu_result cuKernelSetAttribute(int attribute, int value, dj__cu_kernel handle,
                                   dj__cu_device device)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        standin_kernel *kernel = standin_find_kernel(handle);
        result = check_kernel(kernel, device);
        if (result == DJ__CU_SUCCESS) {
            result = set_attribute(attribute, value, &kernel->own[device], device);
        }
    }
    return standin_leave(result);
}
