/* SPDX-License-Identifier: MIT */
/*
 * Limits are compared here, and not left to the driver, which answers all of them with "invalid
 * argument". The usual launch does not come here, see dj__cuda_plan_usual; words are made only when
 * something is wrong.
 */
#include "backend/cuda/cuda_plan.h"
#include "backend/cuda/cuda_error.h"
#include "base/error.h"
#include <string.h>

typedef struct plan_check {
    const char *what;
    uint64_t value;
    uint64_t limit;
} plan_check;

static inline bool plan_exceeds(const dj__cuda_slot *slot, const dj_launch_config *config)
{
    const dj_dim3 *grid = &config->grid;
    const dj_dim3 *block = &config->block;
    /* If the product overflows, one of its factors is over its own limit. */
    return block->x > slot->max_block[0] || block->y > slot->max_block[1] ||
           block->z > slot->max_block[2] ||
           (uint64_t)block->x * block->y * block->z > slot->max_threads ||
           grid->x > slot->max_grid[0] || grid->y > slot->max_grid[1] ||
           grid->z > slot->max_grid[2] || config->shared_bytes > slot->max_shared;
}

dj_status dj__cuda_plan_fail_shared(const dj_module *module, const dj__cuda_slot *slot,
                                    uint64_t bytes, dj__cu_result result, dj_error *err)
{
    return dj__fail_native(err, DJ_INVALID_ARGUMENT,
                           result != DJ__CU_SUCCESS ? DJ__CUDA_ORIGIN : "", result,
                           "kernel '%s': shared_bytes is %llu, and the kernel has %u bytes of its "
                           "own; %s allows at most %d bytes for a block",
                           module->name, (unsigned long long)bytes, slot->static_shared,
                           slot->device->name, slot->device->shared_optin_bytes);
}

/* The rare path: words for what plan_exceeds found. Out of line, as all that is rare: inlined, it
 * makes the usual path save registers. */
static __attribute__((noinline)) dj_status plan_fail_limits(const dj_module *module,
                                                            const dj__cuda_slot *slot,
                                                            const dj_launch_config *config,
                                                            dj_error *err)
{
    const dj_cuda_device *device = slot->device;
    const dj_dim3 grid = config->grid;
    const dj_dim3 block = config->block;
    const uint64_t max_threads =
        device->max_block_threads > 0 ? (uint64_t)device->max_block_threads : slot->max_threads;
    const plan_check checks[] = {
        {"block.x", block.x, slot->max_block[0]}, {"block.y", block.y, slot->max_block[1]},
        {"block.z", block.z, slot->max_block[2]}, {"grid.x", grid.x, slot->max_grid[0]},
        {"grid.y", grid.y, slot->max_grid[1]},    {"grid.z", grid.z, slot->max_grid[2]},
    };
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        if (checks[i].value > checks[i].limit) {
            return dj__fail(err, DJ_INVALID_ARGUMENT,
                            "kernel '%s': %s is %llu, %s allows at most %llu", module->name,
                            checks[i].what, (unsigned long long)checks[i].value, device->name,
                            (unsigned long long)checks[i].limit);
        }
    }
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (threads > max_threads) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "kernel '%s': threads per block are %llu, %s allows at most %llu",
                        module->name, (unsigned long long)threads, device->name,
                        (unsigned long long)max_threads);
    }
    if (threads > slot->max_threads) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "kernel '%s': threads per block are %llu, this kernel allows at most %u "
                        "(by its registers or its __launch_bounds__)",
                        module->name, (unsigned long long)threads, slot->max_threads);
    }
    return dj__cuda_plan_fail_shared(module, slot, config->shared_bytes, DJ__CU_SUCCESS, err);
}

static dj_tri plan_inherit(dj_tri call, dj_tri defaults)
{
    return call != DJ_DEFAULT ? call : defaults;
}

/* The fields of the call, else of the defaults. */
static void plan_merge(const dj_launch_config *config, dj_cuda_launch_options *out)
{
    const dj_launch_options *const levels[] = {config->call, config->defaults};
    *out = (dj_cuda_launch_options)DJ_CUDA_LAUNCH_OPTIONS_INIT;
    for (size_t i = 0; i < 2; i++) {
        const dj_cuda_launch_options *options = levels[i]->cuda;
        if (options == NULL) {
            continue;
        }
        if ((out->cluster.x | out->cluster.y | out->cluster.z) == 0) {
            out->cluster = options->cluster;
        }
        out->cooperative = plan_inherit(out->cooperative, options->cooperative);
        out->enable_pdl = plan_inherit(out->enable_pdl, options->enable_pdl);
        out->nonportable_cluster =
            plan_inherit(out->nonportable_cluster, options->nonportable_cluster);
    }
}

static dj_status plan_fail_feature(const dj_module *module, const dj__cuda_slot *slot,
                                   const char *feature, const char *needs, dj_error *err)
{
    return dj__fail(err, DJ_UNSUPPORTED, "kernel '%s': %s, but %s has architecture %d.%d%s",
                    module->name, feature, slot->device->name, slot->device->major,
                    slot->device->minor, needs);
}

static dj_status plan_check_cluster(const dj_module *module, const dj__cuda_slot *slot,
                                    const dj_launch_config *config,
                                    const dj_cuda_launch_options *options, dj_error *err)
{
    const dj_dim3 cluster = options->cluster;
    if (cluster.x == 0 && (cluster.y | cluster.z) != 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "kernel '%s': cluster dimension must be positive: (%u, %u, %u)",
                        module->name, cluster.x, cluster.y, cluster.z);
    }
    if (cluster.y > 1 || cluster.z > 1) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "kernel '%s': only one-dimensional CUDA clusters are supported: "
                        "(%u, %u, %u)",
                        module->name, cluster.x, cluster.y, cluster.z);
    }
    const bool wanted = cluster.x > 1 || options->nonportable_cluster == DJ_ON;
    if (wanted && slot->device->cluster_launch == 0) {
        return plan_fail_feature(module, slot, "clusters need architecture 9.0 or newer", "", err);
    }
    if (cluster.x > DJ__CUDA_PORTABLE_CLUSTER && options->nonportable_cluster != DJ_ON) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "kernel '%s': cluster.x is %u; more than %d need nonportable_cluster",
                        module->name, cluster.x, DJ__CUDA_PORTABLE_CLUSTER);
    }
    if (cluster.x > 1 && config->grid.x % cluster.x != 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "kernel '%s': grid.x is %u, which is not a multiple of cluster.x (%u)",
                        module->name, config->grid.x, cluster.x);
    }
    return DJ_OK;
}

static dj__cu_launch_attribute *plan_attribute(dj__cuda_plan *plan, uint32_t id)
{
    dj__cu_launch_attribute *attribute = &plan->attributes[plan->config.num_attributes++];
    memset(attribute, 0, sizeof(*attribute));
    attribute->id = id;
    return attribute;
}

static __attribute__((noinline)) dj_status plan_vendor(const dj_module *module,
                                                       const dj__cuda_slot *slot,
                                                       const dj_launch_config *config,
                                                       dj__cuda_plan *plan, dj_error *err)
{
    dj_cuda_launch_options options;
    plan_merge(config, &options);
    const dj_status status = plan_check_cluster(module, slot, config, &options, err);
    if (status != DJ_OK) {
        return status;
    }
    plan->cluster = options.cluster.x > 1 ? options.cluster.x : 1;
    plan->cooperative = options.cooperative == DJ_ON;
    plan->pdl = options.enable_pdl == DJ_ON;
    plan->nonportable = options.nonportable_cluster == DJ_ON;
    if (plan->cooperative && slot->device->cooperative_launch == 0) {
        return plan_fail_feature(module, slot, "a cooperative launch was asked for",
                                 " and does not support it", err);
    }
    if (plan->pdl && slot->device->major < 9) {
        return plan_fail_feature(
            module, slot, "programmatic dependent launch needs architecture 9.0 or newer", "", err);
    }
    if (plan->cluster > 1) {
        dj__cu_launch_attribute *attribute = plan_attribute(plan, DJ__CU_LAUNCH_CLUSTER_DIMENSION);
        attribute->value.cluster[0] = plan->cluster;
        attribute->value.cluster[1] = 1;
        attribute->value.cluster[2] = 1;
    }
    if (plan->cooperative) {
        plan_attribute(plan, DJ__CU_LAUNCH_COOPERATIVE)->value.flag = 1;
    }
    if (plan->pdl) {
        plan_attribute(plan, DJ__CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION)->value.flag = 1;
    }
    return DJ_OK;
}

dj_status dj__cuda_plan_make(const dj_module *module, const dj__cuda_slot *slot,
                             const dj_launch_config *config, dj__cuda_plan *plan, dj_error *err)
{
    if (plan_exceeds(slot, config)) {
        return plan_fail_limits(module, slot, config, err);
    }
    dj__cuda_plan_fill(config, &plan->config);
    plan->config.attributes = plan->attributes;
    plan->cluster = 1;
    plan->cooperative = false;
    plan->pdl = false;
    plan->nonportable = false;
    if (config->call->cuda == NULL && config->defaults->cuda == NULL) {
        return DJ_OK;
    }
    return plan_vendor(module, slot, config, plan, err);
}
