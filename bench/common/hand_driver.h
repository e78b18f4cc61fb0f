/* SPDX-License-Identifier: MIT */
/*
 * The CUDA driver called by hand: what benchmarks compare with and what GPU tests need beyond the
 * public API (streams, graphs, contexts). Own declarations, so that no CUDA header is needed.
 */
#ifndef BENCH_HAND_DRIVER_H
#define BENCH_HAND_DRIVER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hand_attribute {
    uint32_t id;
    uint32_t pad;
    union {
        uint64_t storage[8];
        int32_t flag;
        uint32_t cluster[3];
    } value;
} hand_attribute;

typedef struct hand_config {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    void *stream;
    hand_attribute *attributes;
    uint32_t num_attributes;
} hand_config;

enum {
    HAND_STREAM_NON_BLOCKING = 1,
    HAND_CAPTURE_GLOBAL = 0,
    HAND_CAPTURE_THREAD_LOCAL = 1,
    HAND_CAPTURE_RELAXED = 2,
    HAND_CAPTURE_ACTIVE = 1,
    HAND_NODE_KERNEL = 0
};

/* X(name as exported, parameters); all return a CUresult. */
#define HAND_FUNCTIONS(X)                                                                          \
    X(cuInit, (unsigned flags))                                                                    \
    X(cuDriverGetVersion, (int *version))                                                          \
    X(cuDeviceGet, (int *device, int ordinal))                                                     \
    X(cuDeviceGetCount, (int *count))                                                              \
    X(cuDeviceGetAttribute, (int *value, int attribute, int device))                               \
    X(cuDevicePrimaryCtxRetain, (void **context, int device))                                      \
    X(cuDevicePrimaryCtxReset_v2, (int device))                                                    \
    X(cuCtxGetCurrent, (void **context))                                                           \
    X(cuCtxSetCurrent, (void *context))                                                            \
    X(cuCtxSynchronize, (void))                                                                    \
    X(cuThreadExchangeStreamCaptureMode, (int *mode))                                              \
    X(cuStreamCreate, (void **stream, unsigned flags))                                             \
    X(cuStreamDestroy_v2, (void *stream))                                                          \
    X(cuStreamSynchronize, (void *stream))                                                         \
    X(cuStreamBeginCapture_v2, (void *stream, int mode))                                           \
    X(cuStreamEndCapture, (void *stream, void **graph))                                            \
    X(cuStreamIsCapturing, (void *stream, int *status))                                            \
    X(cuStreamBatchMemOp_v2, (void *stream, unsigned count, void *operations, unsigned flags))     \
    X(cuGraphGetNodes, (void *graph, void **nodes, size_t *count))                                 \
    X(cuGraphNodeGetType, (void *node, int *type))                                                 \
    X(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags))           \
    X(cuGraphLaunch, (void *exec, void *stream))                                                   \
    X(cuGraphExecDestroy, (void *exec))                                                            \
    X(cuGraphDestroy, (void *graph))                                                               \
    X(cuMemAlloc_v2, (uint64_t * memory, size_t size))                                             \
    X(cuMemFree_v2, (uint64_t memory))                                                             \
    X(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t size))                               \
    X(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t size))                                     \
    X(cuMemGetInfo_v2, (size_t * available, size_t * total))                                       \
    X(cuLibraryLoadData, (void **library, const void *code, int *jit, void **jit_values,           \
                          unsigned num_jit, int *options, void **values, unsigned num_options))    \
    X(cuLibraryUnload, (void *library))                                                            \
    X(cuLibraryGetKernel, (void **kernel, void *library, const char *name))                        \
    X(cuKernelGetFunction, (void **function, void *kernel))                                        \
    X(cuLaunchKernelEx, (const hand_config *config, void *function, void **params, void **extra))  \
    X(cuTensorMapEncodeTiled,                                                                      \
      (void *map, int type, uint32_t rank, void *address, const uint64_t *dims,                    \
       const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,        \
       int swizzle, int promotion, int fill))

typedef struct hand_driver {
#define HAND_POINTER(name, params) int(*name) params;
    HAND_FUNCTIONS(HAND_POINTER)
#undef HAND_POINTER
} hand_driver;

/* Fills the table from a look-up function; what it does not find becomes NULL. */
typedef void *(*hand_find)(void *user, const char *name);

static inline void hand_fill(hand_driver *out, hand_find find, void *user)
{
#define HAND_LOOK_UP(name, params) *(void **)(void *)&out->name = find(user, #name);
    HAND_FUNCTIONS(HAND_LOOK_UP)
#undef HAND_LOOK_UP
}

/* Opens the driver library (NULL: libcuda.so.1). */
static inline bool hand_open(hand_driver *out, const char *path)
{
    void *const library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return false;
    }
    hand_fill(out, (hand_find)dlsym, library);
    return out->cuInit != NULL && out->cuLaunchKernelEx != NULL;
}

/* cuInit, and the primary context of device 0 made current. The first failure's CUresult. */
static inline int hand_start(const hand_driver *driver)
{
    void *context = NULL;
    int result = driver->cuInit(0);
    result = result != 0 ? result : driver->cuDevicePrimaryCtxRetain(&context, 0);
    return result != 0 ? result : driver->cuCtxSetCurrent(context);
}

#endif
