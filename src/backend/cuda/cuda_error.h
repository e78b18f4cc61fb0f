/* SPDX-License-Identifier: MIT */
/* From the driver's results to statuses and words. */
#ifndef DJ_BACKEND_CUDA_ERROR_H
#define DJ_BACKEND_CUDA_ERROR_H

#include "backend/cuda/cuda_api.h"
#include <deepjit/base.h>

#define DJ__CUDA_ORIGIN "cuda" /* dj_error.origin where `native` is a CUresult */
#define DJ__CUDA_FORKED_TEXT                                                                       \
    "CUDA was used in this process before fork(), and does not work in the child; use CUDA only "  \
    "after forking, or start the child with exec"

/* "CUDA_ERROR_INVALID_VALUE (1): invalid argument"; cut if it does not fit. */
void dj__cuda_error_text(const dj__cuda_api *api, dj__cu_result result, char *out, size_t size);

/* Fails with "<format>: <error text>", and what follows from it for the process, if anything.
 * NO_MEMORY for OUT_OF_MEMORY, else DEVICE; the result becomes err->native. */
dj_status dj__cuda_fail(const dj__cuda_api *api, dj_error *err, dj__cu_result result,
                        const char *format, ...) DJ_PRINTF(4, 5);

/* The driver does not run this binary on this device, whatever the context. */
bool dj__cuda_error_is_image(dj__cu_result result);
/* Handles of this context, or the context itself, are no longer valid: it was reset or destroyed,
 * or none is current. (Or another handle was wrong.) */
bool dj__cuda_error_is_stale(dj__cu_result result);

#endif
