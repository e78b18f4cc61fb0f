/* SPDX-License-Identifier: MIT */
/* The stand-in driver: launches, which it checks and records, and occupancy. */
#include "standin_cuda_state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTABLE_CLUSTER = 8, MOST_CLUSTER = 16 };

static int at_most(int a, int b)
{
    return a < b ? a : b;
}

static int blocks_per_multiprocessor(const standin_function *function, int threads, size_t shared)
{
    const int device = function->context->device;
    const int warps = (threads + 31) / 32;
    const int registers = (standin_registers(function->kernel) * 32 + 255) / 256 * 256 * warps;
    const int bytes = standin_static_shared(function->kernel) + (int)shared +
                      standin_device_attribute(device, DJ__CU_DEV_RESERVED_SHARED_MEMORY_PER_BLOCK);
    int blocks = standin_device_attribute(device, DJ__CU_DEV_MAX_BLOCKS_PER_MULTIPROCESSOR);
    blocks = at_most(blocks,
                     standin_device_attribute(device, DJ__CU_DEV_MAX_THREADS_PER_MULTIPROCESSOR) /
                         (32 * warps));
    blocks = at_most(blocks,
                     standin_device_attribute(device, DJ__CU_DEV_MAX_REGISTERS_PER_MULTIPROCESSOR) /
                         registers);
    return at_most(
        blocks,
        standin_device_attribute(device, DJ__CU_DEV_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / bytes);
}

/* grid, block: each dimension and the block's product. */
static bool fits_device(const dj__cu_launch_config *config, int device)
{
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        const int grid = standin_device_attribute(device, DJ__CU_DEV_MAX_GRID_DIM_X + i);
        const int block = standin_device_attribute(device, DJ__CU_DEV_MAX_BLOCK_DIM_X + i);
        if (config->grid[i] == 0 || config->grid[i] > (uint32_t)grid || config->block[i] == 0 ||
            config->block[i] > (uint32_t)block) {
            return false;
        }
        threads *= config->block[i];
    }
    return threads <= (uint64_t)standin_device_attribute(device, DJ__CU_DEV_MAX_THREADS_PER_BLOCK);
}

/* Dimensions that divide the grid and agree with what the kernel was compiled for. */
static dj__cu_result check_cluster(const dj__cu_launch_config *config,
                                   const standin_function *function, const uint32_t *cluster)
{
    const uint32_t *compiled = function->kernel->info->cluster;
    uint64_t size = 1;
    if (!standin_device_attribute(function->context->device, DJ__CU_DEV_CLUSTER_LAUNCH)) {
        return STANDIN_NOT_SUPPORTED;
    }
    for (int i = 0; i < 3; i++) {
        if (cluster[i] == 0 || config->grid[i] % cluster[i] != 0 ||
            (compiled[i] != 0 && compiled[i] != cluster[i])) {
            return DJ__CU_INVALID_VALUE;
        }
        size *= cluster[i];
    }
    return size <= (function->nonportable ? MOST_CLUSTER : PORTABLE_CLUSTER)
               ? DJ__CU_SUCCESS
               : DJ__CU_INVALID_CLUSTER_SIZE;
}

static dj__cu_result read_attribute(const dj__cu_launch_config *config,
                                    const standin_function *function,
                                    const dj__cu_launch_attribute *attribute,
                                    standin_cuda_launch *launch)
{
    const int flag = attribute->value.flag;
    switch (attribute->id) {
    case DJ__CU_LAUNCH_COOPERATIVE:
        if (launch->cooperative != -1 || flag < 0 || flag > 1) {
            return DJ__CU_INVALID_VALUE;
        }
        launch->cooperative = flag;
        return DJ__CU_SUCCESS;
    case DJ__CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION:
        if (launch->pdl != -1 || flag < 0 || flag > 1) {
            return DJ__CU_INVALID_VALUE;
        }
        launch->pdl = flag;
        return flag == 0 || standin_device_attribute(function->context->device,
                                                     DJ__CU_DEV_COMPUTE_CAPABILITY_MAJOR) >= 9
                   ? DJ__CU_SUCCESS
                   : STANDIN_NOT_SUPPORTED;
    case DJ__CU_LAUNCH_CLUSTER_DIMENSION:
        if (launch->cluster[0] != 0) {
            return DJ__CU_INVALID_VALUE;
        }
        memcpy(launch->cluster, attribute->value.cluster, sizeof launch->cluster);
        return check_cluster(config, function, launch->cluster);
    default:
        return DJ__CU_INVALID_VALUE;
    }
}

static dj__cu_result read_attributes(const dj__cu_launch_config *config,
                                     const standin_function *function, standin_cuda_launch *launch)
{
    launch->cooperative = -1;
    launch->pdl = -1;
    if (config->num_attributes > 0 && config->attributes == NULL) {
        return DJ__CU_INVALID_VALUE;
    }
    dj__cu_result result = DJ__CU_SUCCESS;
    for (uint32_t i = 0; i < config->num_attributes && result == DJ__CU_SUCCESS; i++) {
        result = read_attribute(config, function, &config->attributes[i], launch);
    }
    return result;
}

static dj__cu_result check_resources(const dj__cu_launch_config *config,
                                     const standin_function *function,
                                     const standin_cuda_launch *launch)
{
    const uint64_t threads = (uint64_t)config->block[0] * config->block[1] * config->block[2];
    const uint64_t blocks = (uint64_t)config->grid[0] * config->grid[1] * config->grid[2];
    if (config->shared_bytes > (uint32_t)function->max_dynamic) {
        return DJ__CU_INVALID_VALUE;
    }
    if (threads > (uint64_t)standin_max_threads(function->kernel)) {
        return DJ__CU_LAUNCH_OUT_OF_RESOURCES;
    }
    if (launch->cooperative == 1) {
        const int multiprocessors =
            standin_device_attribute(function->context->device, DJ__CU_DEV_MULTIPROCESSOR_COUNT);
        const int each = blocks_per_multiprocessor(function, (int)threads, config->shared_bytes);
        if (blocks > (uint64_t)each * (uint64_t)multiprocessors) {
            return DJ__CU_COOPERATIVE_LAUNCH_TOO_LARGE;
        }
    }
    return DJ__CU_SUCCESS;
}

static dj__cu_result read_params(const standin_function *function, void **params,
                                 standin_cuda_launch *launch)
{
    const dj_kernel_info *info = function->kernel->info;
    if (info->num_params > STANDIN_CUDA_MAX_PARAMS || (info->num_params > 0 && params == NULL)) {
        return DJ__CU_INVALID_VALUE;
    }
    launch->num_params = info->num_params;
    for (size_t i = 0; i < info->num_params; i++) {
        const dj_param_info *param = &info->params[i];
        if (params[i] == NULL || param->offset > STANDIN_CUDA_MAX_BYTES ||
            param->size > STANDIN_CUDA_MAX_BYTES - param->offset) {
            return DJ__CU_INVALID_VALUE;
        }
        launch->offset[i] = param->offset;
        launch->size[i] = param->size;
        memcpy(launch->bytes + param->offset, params[i], param->size);
    }
    return DJ__CU_SUCCESS;
}

static dj__cu_result describe(const dj__cu_launch_config *config, dj__cu_function handle,
                              void **params, standin_stream **stream, standin_cuda_launch *launch)
{
    standin_context *context = NULL;
    standin_function *function = NULL;
    dj__cu_result result = standin_find_stream(config->stream, true, &context, stream);
    if (result == DJ__CU_SUCCESS) {
        result = standin_find_function(handle, context, true, &function);
    }
    if (result == DJ__CU_SUCCESS && !fits_device(config, context->device)) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        result = read_attributes(config, function, launch);
    }
    if (result == DJ__CU_SUCCESS) {
        result = check_resources(config, function, launch);
    }
    if (result == DJ__CU_SUCCESS) {
        result = read_params(function, params, launch);
    }
    if (result == DJ__CU_SUCCESS) {
        (void)snprintf(launch->kernel, sizeof launch->kernel, "%s", function->kernel->info->name);
        memcpy(launch->grid, config->grid, sizeof launch->grid);
        memcpy(launch->block, config->block, sizeof launch->block);
        launch->shared_bytes = config->shared_bytes;
        launch->stream = config->stream;
        launch->context = context;
        launch->function = handle;
        launch->device = context->device;
        launch->captured = *stream != NULL && (*stream)->status == STANDIN_CAPTURE_ACTIVE;
    }
    return result;
}

static dj__cu_result launch(const dj__cu_launch_config *config, dj__cu_function handle,
                            void **params, void **extra)
{
    if (config == NULL || extra != NULL) {
        return DJ__CU_INVALID_VALUE;
    }
    standin_cuda_launch *made = calloc(1, sizeof *made);
    standin_stream *stream = NULL;
    if (made == NULL) {
        return DJ__CU_OUT_OF_MEMORY;
    }
    dj__cu_result result = describe(config, handle, params, &stream, made);
    if (result == DJ__CU_SUCCESS && stream != NULL && stream->status == STANDIN_CAPTURE_INVALID) {
        result = STANDIN_CAPTURE_INVALIDATED;
    }
    if (result == DJ__CU_SUCCESS) {
        standin_record(made);
        if (stream != NULL && stream->status == STANDIN_CAPTURE_ACTIVE) {
            stream->nodes++;
        }
    }
    free(made);
    return result;
}

dj__cu_result cuLaunchKernelEx(const dj__cu_launch_config *config, dj__cu_function function,
                               void **params, void **extra)
{
    const dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    return standin_leave(result == DJ__CU_SUCCESS ? launch(config, function, params, extra)
                                                  : result);
}

dj__cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, dj__cu_function handle,
                                                          int block_threads, size_t shared_bytes)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    standin_function *function = NULL;
    if (result == DJ__CU_SUCCESS) {
        result = blocks != NULL && block_threads > 0 && shared_bytes < (1u << 30)
                     ? standin_find_function(handle, standin_current(), true, &function)
                     : DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        *blocks = block_threads <= standin_max_threads(function->kernel)
                      ? blocks_per_multiprocessor(function, block_threads, shared_bytes)
                      : 0;
    }
    return standin_leave(result);
}

static dj__cu_result count_clusters(int *clusters, const standin_function *function,
                                    const dj__cu_launch_config *config)
{
    standin_cuda_launch *scratch = calloc(1, sizeof *scratch);
    if (scratch == NULL) {
        return DJ__CU_OUT_OF_MEMORY;
    }
    const dj__cu_result result = read_attributes(config, function, scratch);
    const uint32_t size = scratch->cluster[0] * scratch->cluster[1] * scratch->cluster[2];
    free(scratch);
    if (result != DJ__CU_SUCCESS || size == 0) {
        return result != DJ__CU_SUCCESS ? result : DJ__CU_INVALID_VALUE;
    }
    const int threads = (int)(config->block[0] * config->block[1] * config->block[2]);
    *clusters =
        blocks_per_multiprocessor(function, threads, config->shared_bytes) *
        standin_device_attribute(function->context->device, DJ__CU_DEV_MULTIPROCESSOR_COUNT) /
        (int)size;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuOccupancyMaxActiveClusters(int *clusters, dj__cu_function handle,
                                           const dj__cu_launch_config *config)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    standin_function *function = NULL;
    if (result == DJ__CU_SUCCESS) {
        result = clusters != NULL && config != NULL
                     ? standin_find_function(handle, standin_current(), true, &function)
                     : DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS && !fits_device(config, function->context->device)) {
        result = DJ__CU_INVALID_VALUE;
    }
    return standin_leave(result == DJ__CU_SUCCESS ? count_clusters(clusters, function, config)
                                                  : result);
}
