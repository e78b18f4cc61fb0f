/* SPDX-License-Identifier: MIT */
/* From the options of a launch to the driver's configuration, with every limit checked. */
#ifndef DJ_BACKEND_CUDA_PLAN_H
#define DJ_BACKEND_CUDA_PLAN_H

#include "backend/cuda/cuda_module.h"
#include "base/scalar.h"

enum { DJ__CUDA_PORTABLE_CLUSTER = 8 };

typedef struct dj__cuda_plan {
    dj__cu_launch_config config;
    uint32_t cluster; /* blocks of a cluster; 1: nothing is asked for */
    bool cooperative;
    bool pdl;
    bool nonportable;
    dj__cu_launch_attribute attributes[3];
} dj__cuda_plan;

/* True if the launch is within every limit, needs no leave and has no attribute: what almost all
 * launches are. False says nothing. */
static inline bool dj__cuda_plan_usual(const dj__cuda_slot *slot, const dj_launch_config *config)
{
    const dj_dim3 *grid = &config->grid;
    const dj_dim3 *block = &config->block;
    const uint64_t plane = (uint64_t)block->x * block->y;
    /* No dimension is 0. The second product cannot overflow: the plane has at most 2^32 threads. */
    return config->call->cuda == NULL && config->defaults->cuda == NULL &&
           block->z <= slot->usual_block_z && plane <= slot->usual_threads &&
           plane * block->z <= slot->usual_threads && grid->x <= slot->usual_grid_x &&
           (grid->y | grid->z) <= slot->usual_grid_yz &&
           config->shared_bytes <=
               atomic_load_explicit(&slot->shared_allowed, memory_order_acquire);
}

/* The driver's configuration, without attributes. */
static inline void dj__cuda_plan_fill(const dj_launch_config *config, dj__cu_launch_config *out)
{
    out->grid[0] = dj__scalar(config->grid.x);
    out->grid[1] = dj__scalar(config->grid.y);
    out->grid[2] = dj__scalar(config->grid.z);
    out->block[0] = dj__scalar(config->block.x);
    out->block[1] = dj__scalar(config->block.y);
    out->block[2] = dj__scalar(config->block.z);
    out->shared_bytes = (uint32_t)config->shared_bytes;
    out->stream = config->stream;
    out->attributes = NULL;
    out->num_attributes = 0;
}

/* `plan->config` points into *plan. INVALID_ARGUMENT and UNSUPPORTED name the value and the
 * limit. */
dj_status dj__cuda_plan_make(const dj_module *module, const dj__cuda_slot *slot,
                             const dj_launch_config *config, dj__cuda_plan *plan, dj_error *err);
/* The shared memory of the plan is more than the driver allows. */
dj_status dj__cuda_plan_fail_shared(const dj_module *module, const dj__cuda_slot *slot,
                                    uint64_t bytes, dj__cu_result result, dj_error *err);

/* Allows the slot's function what the plan needs, if that was not done before. */
static inline dj__cu_result dj__cuda_plan_allow(const dj__cuda_api *api, dj_module *module,
                                                dj__cuda_slot *slot, const dj__cuda_plan *plan)
{
    dj__cu_result result = DJ__CU_SUCCESS;
    if (plan->config.shared_bytes >
        atomic_load_explicit(&slot->shared_allowed, memory_order_acquire)) {
        result = dj__cuda_slot_allow_shared(api, module, slot, plan->config.shared_bytes);
    }
    if (plan->nonportable && result == DJ__CU_SUCCESS &&
        !atomic_load_explicit(&slot->nonportable, memory_order_acquire)) {
        result = dj__cuda_slot_allow_nonportable(api, module, slot);
    }
    return result;
}

#endif
