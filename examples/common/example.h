/* SPDX-License-Identifier: MIT */
/*
 * What the CUDA examples share: they end at the first failure, with exit status 1, or with 77 and
 * the reason where there is no GPU, no compiler, or the GPU lacks the feature.
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <deepjit/deepjit.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXAMPLE_SKIPPED = 77 };

static inline void skip(const char *reason)
{
    printf("skipped: %s\n", reason);
    exit(EXAMPLE_SKIPPED);
}

static inline void must(dj_status status, const dj_error *err)
{
    if (status == DJ_UNAVAILABLE) {
        skip(err->message);
    }
    if (status != DJ_OK) {
        fprintf(stderr, "%s: %s\n", dj_status_name(status), err->message);
        exit(1);
    }
}

/* For functions of the driver, from dj_cuda_symbol. */
static inline void must_cu(int result, const char *function)
{
    if (result != 0) {
        fprintf(stderr, "%s failed with CUDA error %d\n", function, result);
        exit(1);
    }
}

static inline dj_runtime *open_cuda(const dj_config *config)
{
    const dj_backend *const cuda = dj_backend_find("cuda");
    if (cuda == NULL) {
        skip("this build has no CUDA back end");
    }
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = NULL;
    must(dj_runtime_create(cuda, config, &runtime, &err), &err);
    return runtime;
}

/* Describes the runtime's device, which must be of compute capability `major` or above. */
static inline dj_cuda_device need_device(dj_runtime *runtime, int major)
{
    dj_error err = DJ_ERROR_INIT;
    dj_cuda_device device = DJ_CUDA_DEVICE_INIT;
    must(dj_cuda_device_info(runtime, -1, &device, &err), &err);
    printf("%s, compute capability %d.%d\n", device.name, device.major, device.minor);
    if (device.major < major) {
        skip("the GPU is too old for this example");
    }
    return device;
}

static inline void *need_memory(size_t size)
{
    void *const memory = calloc(1, size);
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

/* Device memory with a copy of `data`; of unknown content for NULL. */
static inline void *to_device(dj_runtime *runtime, const void *data, size_t size)
{
    dj_error err = DJ_ERROR_INIT;
    void *memory = NULL;
    must(dj_mem_alloc(runtime, size, &memory, &err), &err);
    if (data != NULL) {
        must(dj_mem_copy(runtime, memory, data, size, &err), &err);
    }
    return memory;
}

/* Evenly spread over [-1, 1), the same in each run. */
static inline float next_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static inline double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* The larger of two errors; NaN counts as the largest. */
static inline double worst(double a, double b)
{
    return a != a || a > b ? a : b;
}

/* Prints the verdict and gives the exit status. */
static inline int verdict(const char *what, double max_error, double limit)
{
    const int right = max_error <= limit; /* false for NaN */
    printf("%s: maximal error %.3g, limit %.3g: %s\n", what, max_error, limit,
           right ? "right" : "WRONG");
    return right ? 0 : 1;
}

#endif
