/* SPDX-License-Identifier: MIT */
/*
 * The stand-in driver: libraries, their kernels and variables. As loose as the real one when it
 * loads: text and zeros are libraries without kernels, as are cubins of another architecture.
 */
#include "standin_cuda_state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static standin_library *libraries;

size_t standin_live_libraries(void)
{
    size_t count = 0;
    for (const standin_library *one = libraries; one != NULL; one = one->next) {
        count++;
    }
    return count;
}

static standin_library **find_library(const standin_library *handle)
{
    standin_library **at = &libraries;
    while (*at != NULL && *at != handle) {
        at = &(*at)->next;
    }
    return at;
}

standin_kernel *standin_find_kernel(const void *handle)
{
    for (standin_library *library = libraries; library != NULL; library = library->next) {
        for (size_t i = 0; i < library->num_kernels; i++) {
            if (handle == &library->kernels[i]) {
                return &library->kernels[i];
            }
        }
    }
    return NULL;
}

static void free_library(standin_library *library)
{
    standin_forget_functions(library);
    while (library->globals != NULL) {
        standin_global *one = library->globals;
        for (size_t i = 0; i < STANDIN_CONTEXTS_OF_GLOBAL; i++) {
            standin_free_owned(&one->at[i]);
        }
        library->globals = one->next;
        free(one);
    }
    dj__cubin_fini(&library->cubin);
    free(library->kernels);
    free(library->image);
    free(library);
}

bool standin_runs_on(const char *arch, int device)
{
    int major = 0;
    int minor = 0;
    char *end = NULL;
    standin_arch(device, &major, &minor);
    const int sm = (int)strtol(arch, &end, 10);
    if (*end == 'a') {
        return sm == 10 * major + minor;
    }
    return sm / 10 == major && sm % 10 <= minor;
}

static dj__cu_result read_cubin(standin_library *library, const void *code)
{
    library->image_size = standin_image_size(code);
    library->image = malloc(library->image_size);
    if (library->image == NULL) {
        return DJ__CU_OUT_OF_MEMORY;
    }
    memcpy(library->image, code, library->image_size);
    if (dj__cubin_read(library->image, library->image_size, &library->cubin, NULL) != DJ_OK) {
        return DJ__CU_INVALID_IMAGE;
    }
    const dj_binary_info *info = &library->cubin.info;
    bool usable = false;
    for (int i = 0; i < standin_device_count(); i++) {
        usable = usable || standin_runs_on(info->arch, i);
    }
    if (!usable || info->num_kernels == 0) {
        return standin_read_globals(library) ? DJ__CU_SUCCESS : DJ__CU_OUT_OF_MEMORY;
    }
    library->kernels = calloc(info->num_kernels, sizeof *library->kernels);
    if (library->kernels == NULL || !standin_read_globals(library)) {
        return DJ__CU_OUT_OF_MEMORY;
    }
    library->num_kernels = info->num_kernels;
    for (size_t i = 0; i < info->num_kernels; i++) {
        library->kernels[i].library = library;
        library->kernels[i].info = &info->kernels[i];
    }
    return DJ__CU_SUCCESS;
}

/* PTX text has kernels, which the real driver would compile. */
static dj__cu_result read_text(standin_library *library, const char *text)
{
    static const dj_kernel_info from_ptx = {.name = "kernel_from_ptx", .registers = 16};
    if (strstr(text, ".version") == NULL || strstr(text, ".entry") == NULL) {
        return DJ__CU_SUCCESS;
    }
    library->kernels = calloc(1, sizeof *library->kernels);
    if (library->kernels == NULL) {
        return DJ__CU_OUT_OF_MEMORY;
    }
    library->num_kernels = 1;
    library->kernels[0].library = library;
    library->kernels[0].info = &from_ptx;
    return DJ__CU_SUCCESS;
}

static dj__cu_result load(dj__cu_library *out, const void *code)
{
    dj__cu_result result = standin_unsafe();
    if (result != DJ__CU_SUCCESS) {
        return result;
    }
    standin_library *library = calloc(1, sizeof *library);
    if (library == NULL) {
        return DJ__CU_OUT_OF_MEMORY;
    }
    result = standin_is_elf(code) ? read_cubin(library, code) : read_text(library, code);
    if (result != DJ__CU_SUCCESS) {
        free_library(library);
        return result;
    }
    const int max_default = standin_device_attribute(0, DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK);
    for (size_t i = 0; i < library->num_kernels; i++) {
        standin_kernel *kernel = &library->kernels[i];
        for (int device = 0; device < STANDIN_DEVICES; device++) {
            kernel->own[device].kernel = kernel;
            kernel->own[device].max_dynamic = max_default - standin_static_shared(kernel);
        }
    }
    library->next = libraries;
    libraries = library;
    *out = library;
    return DJ__CU_SUCCESS;
}

/* A context is not needed, but the current one must not be lost. */
dj__cu_result cuLibraryLoadData(dj__cu_library *library, const void *code, int *jit_options,
                                void **jit_values, unsigned num_jit, int *options, void **values,
                                unsigned num_options)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS && (library == NULL || code == NULL ||
                                     (num_jit > 0 && (jit_options == NULL || jit_values == NULL)) ||
                                     (num_options > 0 && (options == NULL || values == NULL)))) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS && standin_current() != NULL) {
        result = standin_current()->lost;
    }
    return standin_leave(result == DJ__CU_SUCCESS ? load(library, code) : result);
}

dj__cu_result cuLibraryUnload(dj__cu_library handle)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        standin_library **at = find_library(handle);
        standin_library *library = *at;
        result = library != NULL ? standin_unsafe() : DJ__CU_INVALID_HANDLE;
        if (result == DJ__CU_SUCCESS) {
            *at = library->next;
            free_library(library);
            result = standin_current() != NULL ? standin_current()->lost : DJ__CU_SUCCESS;
        }
    }
    return standin_leave(result);
}

dj__cu_result cuLibraryGetKernelCount(unsigned *count, dj__cu_library handle)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS && count == NULL) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        const standin_library *library = *find_library(handle);
        result = library != NULL ? DJ__CU_SUCCESS : DJ__CU_INVALID_HANDLE;
        *count = library != NULL ? (unsigned)library->num_kernels : *count;
    }
    return standin_leave(result);
}

dj__cu_result cuLibraryEnumerateKernels(dj__cu_kernel *kernels, unsigned count,
                                        dj__cu_library handle)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        standin_library *library = *find_library(handle);
        result = kernels == NULL   ? DJ__CU_INVALID_VALUE
                 : library == NULL ? DJ__CU_INVALID_HANDLE
                                   : DJ__CU_SUCCESS;
        for (size_t i = 0; result == DJ__CU_SUCCESS && i < count && i < library->num_kernels; i++) {
            kernels[i] = &library->kernels[i];
        }
    }
    return standin_leave(result);
}

static dj__cu_result get_kernel(dj__cu_kernel *out, dj__cu_library handle, const char *name)
{
    standin_library *library = *find_library(handle);
    if (out == NULL || name == NULL) {
        return DJ__CU_INVALID_VALUE;
    }
    if (library == NULL) {
        return DJ__CU_INVALID_HANDLE;
    }
    for (size_t i = 0; i < library->num_kernels; i++) {
        if (strcmp(library->kernels[i].info->name, name) == 0) {
            *out = &library->kernels[i];
            return DJ__CU_SUCCESS;
        }
    }
    return DJ__CU_NOT_FOUND;
}

dj__cu_result cuLibraryGetKernel(dj__cu_kernel *kernel, dj__cu_library library, const char *name)
{
    const dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    return standin_leave(result == DJ__CU_SUCCESS ? get_kernel(kernel, library, name) : result);
}

void standin_forget_globals(const standin_context *context)
{
    for (standin_library *library = libraries; library != NULL; library = library->next) {
        for (standin_global *one = library->globals; one != NULL; one = one->next) {
            for (size_t i = 0; i < STANDIN_CONTEXTS_OF_GLOBAL; i++) {
                if (one->at[i].context == context) {
                    standin_free_owned(&one->at[i]);
                    one->at[i].context = NULL;
                }
            }
        }
    }
}

static dj__cu_result place_global(standin_global *global, dj__cu_deviceptr *address)
{
    const standin_context *context = standin_current();
    for (size_t i = 0; i < STANDIN_CONTEXTS_OF_GLOBAL; i++) {
        if (global->at[i].context == context) {
            *address = global->at[i].address;
            return DJ__CU_SUCCESS;
        }
        if (global->at[i].context == NULL) {
            const dj__cu_result result = standin_alloc(global->size, &global->at[i],
                                                       context->device, &global->at[i].address);
            if (result == DJ__CU_SUCCESS) {
                global->at[i].context = context;
                *address = global->at[i].address;
                if (global->data != NULL) {
                    memcpy(standin_resolve(*address, global->size), global->data, global->size);
                }
            }
            return result;
        }
    }
    return DJ__CU_OUT_OF_MEMORY;
}

static dj__cu_result get_global(dj__cu_deviceptr *address, size_t *size, dj__cu_library handle,
                                const char *name)
{
    standin_library *library = *find_library(handle);
    if (library == NULL) {
        return DJ__CU_INVALID_HANDLE;
    }
    standin_global *one = library->globals;
    while (one != NULL && (name == NULL || strcmp(one->name, name) != 0)) {
        one = one->next;
    }
    if (one == NULL) {
        return name != NULL ? DJ__CU_NOT_FOUND : DJ__CU_INVALID_VALUE;
    }
    dj__cu_deviceptr found = 0;
    const dj__cu_result result = place_global(one, &found);
    if (result == DJ__CU_SUCCESS && address != NULL) {
        *address = found;
    }
    if (result == DJ__CU_SUCCESS && size != NULL) {
        *size = one->size;
    }
    return result;
}

dj__cu_result cuLibraryGetGlobal(dj__cu_deviceptr *address, size_t *size, dj__cu_library library,
                                 const char *name)
{
    const dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    return standin_leave(result == DJ__CU_SUCCESS ? get_global(address, size, library, name)
                                                  : result);
}
