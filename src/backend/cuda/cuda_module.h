/* SPDX-License-Identifier: MIT */
/*
 * Modules: a CUlibrary with one kernel, and the kernel's function in each context in which it was
 * launched ("slots"). A library belongs to no context; functions do.
 *
 * Contexts are told apart by their ids: a primary context that was reset comes back at its old
 * address, and to launch a function from before is to hand the driver memory it has freed.
 *
 * Slots are constant but for two atomics. New ones are put in front and none is removed before the
 * module ends, so that launches walk the list without a lock; the first fits almost always.
 */
#ifndef DJ_BACKEND_CUDA_MODULE_H
#define DJ_BACKEND_CUDA_MODULE_H

#include "backend/cuda/cubin.h"
#include "backend/cuda/cuda_driver.h"

typedef struct dj__cuda_slot {
    unsigned long long context; /* its id */
    dj__cu_function function;
    struct dj__cuda_slot *next;
    /* What the usual launch is within; for one that is not, the exact limits decide. See
     * dj__cuda_plan_usual, which reads these and nothing behind them. */
    uint32_t usual_threads;          /* within max_threads, max_block[0] and max_block[1] */
    uint32_t usual_block_z;          /* max_block[2] */
    uint32_t usual_grid_x;           /* max_grid[0] */
    uint32_t usual_grid_yz;          /* 2^n - 1, within max_grid[1] and max_grid[2] */
    _Atomic uint32_t shared_allowed; /* dynamic shared memory that needs no asking for more */
    /* The device's and the kernel's limits. */
    uint32_t max_block[3];
    uint32_t max_threads; /* of a block, by the kernel's registers and __launch_bounds__ */
    uint32_t max_grid[3];
    uint32_t max_shared;      /* dynamic, of a block */
    _Atomic bool nonportable; /* clusters of more than 8 were allowed */
    uint32_t static_shared;
    const dj_cuda_device *device;
} dj__cuda_slot;

struct dj_module {
    _Atomic(dj__cuda_slot *) slots;
    dj__cuda_slot first; /* of the context in which the module was loaded */
    const char *name;    /* the kernel's; in `cubin` */
    uint32_t cluster[3]; /* as compiled; 0, 0, 0: none */
    dj__cu_library library;
    dj__cu_kernel kernel;
    dj__cubin cubin;
    char *path; /* for messages */
    dj_param *params;
    pthread_mutex_t lock; /* guards adding slots, and setting attributes */
    dj_module *next_deferred;
};

/* cuda_module.c */
dj_status dj__cuda_module_load(dj_driver *driver, const dj_binary *binary, dj_module **out,
                               dj_module_info *info, dj_error *err);
/* Never fails: what a stream capture forbids now is done later. */
void dj__cuda_module_unload(dj_driver *driver, dj_module *module);
/* Unloads what is still waiting, and forgets it if that fails: the driver is being closed. */
void dj__cuda_modules_drop_deferred(dj_driver *driver);
/* INCOMPATIBLE: this driver does not run the binary on `device`. */
dj_status dj__cuda_module_refused(const dj_driver *driver, const dj_module *module,
                                  const dj_cuda_device *device, dj__cu_result result,
                                  dj_error *err);

/* cuda_slot.c */
/* The slot of the thread's context, made if needed; makes a context current if there is none. */
dj_status dj__cuda_slot_get(dj_driver *driver, dj_module *module, dj__cuda_slot **out,
                            dj_error *err);
/* The same, but asks the driver for the function again. `lost`: the driver has said that the
 * context is not valid. */
dj_status dj__cuda_slot_renew(dj_driver *driver, dj_module *module, bool lost, dj__cuda_slot **out,
                              dj_error *err);
/* Lets launches use `bytes` of dynamic shared memory. */
dj__cu_result dj__cuda_slot_allow_shared(const dj__cuda_api *api, dj_module *module,
                                         dj__cuda_slot *slot, uint32_t bytes);
/* Lets launches use clusters of more than 8. */
dj__cu_result dj__cuda_slot_allow_nonportable(const dj__cuda_api *api, dj_module *module,
                                              dj__cuda_slot *slot);
void dj__cuda_slots_free(dj_module *module);

/* The id of the thread's context; 0 if it has none that is valid. */
static inline unsigned long long dj__cuda_context_id(const dj__cuda_api *api)
{
    unsigned long long id = 0;
    (void)api->cuCtxGetId(NULL, &id);
    return id;
}

static inline dj__cuda_slot *dj__cuda_slot_find(const dj_module *module, unsigned long long context)
{
    dj__cuda_slot *slot = atomic_load_explicit(&module->slots, memory_order_acquire);
    while (slot != NULL && slot->context != context) {
        slot = slot->next;
    }
    return slot;
}

#endif
