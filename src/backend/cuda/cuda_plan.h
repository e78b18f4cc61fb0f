/* SPDX-License-Identifier: MIT */
/* From the options of a launch to the driver's configuration, with every limit checked. */
#ifndef DJ_BACKEND_CUDA_PLAN_H
#define DJ_BACKEND_CUDA_PLAN_H

#include "backend/cuda/cuda_module.h"

enum { DJ__CUDA_PORTABLE_CLUSTER = 8 };

typedef struct dj__cuda_plan {
    dj__cu_launch_config config;
    uint32_t cluster; /* blocks of a cluster; 1: nothing is asked for */
    bool cooperative;
    bool pdl;
    bool nonportable;
    dj__cu_launch_attribute attributes[3];
} dj__cuda_plan;

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
