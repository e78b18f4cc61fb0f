/* SPDX-License-Identifier: MIT */
/*
 * The driver object, as the files of the CUDA driver share it, and contexts.
 *
 * Everything here is written before open returns, or atomic, or guarded by `lock`. The launch path
 * reads only what is constant, and atomics.
 */
#ifndef DJ_BACKEND_CUDA_DRIVER_H
#define DJ_BACKEND_CUDA_DRIVER_H

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_library.h"
#include "backend/cuda/cuda_stream.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct dj__cuda_ordinal {
    dj__cu_device handle;
    _Atomic(dj_cuda_device *) info; /* made at first need, then constant */
} dj__cuda_ordinal;

struct dj_driver {
    const dj_backend_context *context;
    dj__cuda_library library;
    dj__cuda_api api;
    uint32_t generation; /* of the process that opened it: dj__fork_generation */
    int ordinal;         /* of our device */
    int num_devices;
    dj__cuda_ordinal *devices;
    dj__cuda_streams streams;
    _Atomic(dj__cu_context) primary; /* of our device; NULL until it was needed */
    pthread_mutex_t lock;            /* guards retaining `primary`, and `deferred` */
    _Atomic(dj_module *) deferred;   /* modules that could not be unloaded yet */
};

/* Makes a driver of a library that is open and initialised. */
dj_status dj__cuda_driver_create(const dj_backend_context *context, const dj__cuda_library *library,
                                 const dj__cuda_api *api, dj_driver **out, dj_error *err);
/* False in a forked child, where every call of the driver fails. */
bool dj__cuda_driver_usable(const dj_driver *driver);

/* cuda_context.c */
/* The calling thread's context; where it has none, that of our device is made current. */
dj_status dj__cuda_context(dj_driver *driver, dj__cu_context *out, dj_error *err);
/* After an error that says that the context is gone: brings it back if it is our device's primary
 * context, which can be reset. Otherwise changes nothing: the context is the caller's affair. */
dj_status dj__cuda_context_renew(dj_driver *driver, dj__cu_context *out, dj_error *err);
/* The device of the context that is current; ours if there is none. */
int dj__cuda_context_ordinal(const dj_driver *driver);

/* Calls that a stream capture forbids (making contexts, loading, allocating) are allowed between
 * these two. -1 stands for a mode that could not be changed. */
static inline int dj__cuda_relax(const dj__cuda_api *api)
{
    int mode = DJ__CU_CAPTURE_MODE_RELAXED;
    return api->cuThreadExchangeStreamCaptureMode(&mode) == DJ__CU_SUCCESS ? mode : -1;
}

static inline void dj__cuda_unrelax(const dj__cuda_api *api, int mode)
{
    if (mode >= 0) {
        (void)api->cuThreadExchangeStreamCaptureMode(&mode);
    }
}

/* cuda_device.c: the description of a device, -1: ours. Lives as long as the driver. */
dj_status dj__cuda_device(dj_driver *driver, int ordinal, const dj_cuda_device **out,
                          dj_error *err);
dj_status dj__cuda_device_info(dj_driver *driver, dj_device *out, dj_error *err);

/* cuda_memory.c */
dj_status dj__cuda_mem_alloc(dj_driver *driver, size_t size, void **out, dj_error *err);
dj_status dj__cuda_mem_free(dj_driver *driver, void *memory, dj_error *err);
dj_status dj__cuda_mem_copy(dj_driver *driver, void *to, const void *from, size_t size,
                            dj_error *err);
dj_status dj__cuda_synchronize(dj_driver *driver, dj_error *err);

/* cuda_launch.c */
dj_status dj__cuda_launch(dj_driver *driver, dj_module *module, const dj_launch_config *config,
                          const void **args, size_t num_args, dj_error *err);

#endif
