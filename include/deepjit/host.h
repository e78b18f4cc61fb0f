/* SPDX-License-Identifier: MIT */
/*
 * deepjit/host.h: what only the host back end has. It compiles C with the system's compiler and
 * runs blocks on a pool of threads; kernels are written with deepjit/kernel.h.
 *
 * A launch is complete when dj_launch returns. Streams are ignored.
 */
#ifndef DEEPJIT_HOST_H
#define DEEPJIT_HOST_H

#include <deepjit/launch.h>

DJ_BEGIN_DECLS

typedef struct dj_host_launch_options {
    size_t size;
    /* At most this many threads run blocks, the caller's included. 0: all of the pool
     * (JIT_HOST_THREADS, else the processors this process may use). */
    int64_t max_threads;
} dj_host_launch_options;
#define DJ_HOST_LAUNCH_OPTIONS_INIT DJ__SIZED(dj_host_launch_options)

/* One block's place in a launch, as the compiled kernel sees it (ABI of deepjit/kernel.h). */
typedef struct dj_host_block {
    int32_t grid[3];
    int32_t block[3];
    int32_t index[3];
    uint32_t shared_bytes;
    void *shared; /* dynamic shared memory, aligned to 64 bytes */
} dj_host_block;

/* Runs one block. `args[i]` points to parameter i. */
typedef void (*dj_host_block_fn)(const dj_host_block *block, const void *const *args);

/* The compiled function, for those who want to call it themselves; NULL if the kernel does not
 * belong to the host back end. Valid as long as the kernel is held. */
DJ_API dj_host_block_fn dj_host_kernel_function(const dj_kernel *kernel);

DJ_END_DECLS

#endif
