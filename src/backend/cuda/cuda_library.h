/* SPDX-License-Identifier: MIT */
/* The CUDA driver's library: where it is found, and its functions. */
#ifndef DJ_BACKEND_CUDA_LIBRARY_H
#define DJ_BACKEND_CUDA_LIBRARY_H

#include "backend/cuda/cuda_api.h"
#include "base/env.h"

/* The two arguments for the format "CUDA %d.%d" of a version such as 13000. */
#define DJ__CUDA_VERSION(version) (version) / 1000, (version) % 1000 / 10

typedef struct dj__cuda_library {
    void *handle;   /* never closed: what the driver has started in this process stays */
    char name[256]; /* as it was opened, for messages */
    int version;    /* 13000 for CUDA 13.0 */
} dj__cuda_library;

/*
 * Opens the library that JIT_CUDA_LIBRARY names, else the one the process has, else
 * libcuda.so.1; resolves `api` and initialises the driver.
 * Errors: UNAVAILABLE (no library, no device, a stub), INCOMPATIBLE (too old), DEVICE (used before
 * a fork), INVALID_ARGUMENT (the setting).
 */
dj_status dj__cuda_library_open(const dj__env *env, dj__cuda_library *out, dj__cuda_api *api,
                                dj_error *err);

#endif
