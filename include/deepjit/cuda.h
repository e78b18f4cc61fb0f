/* SPDX-License-Identifier: MIT */
/*
 * deepjit/cuda.h: what only the CUDA back end has. nvcc (12.9 or newer) compiles CUDA C++ to a
 * cubin; libcuda.so.1 (driver 12.0 or newer) is opened at first need and never linked.
 *
 * Contexts: the current context of the calling thread is used. Where a thread has none, the
 * primary context of the runtime's device is made current and stays so, as the CUDA runtime does.
 * A kernel runs on every device of its architecture: it goes to the device of the context that is
 * current at the launch.
 *
 * Handles of the driver appear as void * here (CUstream, CUfunction, ...), so that no CUDA header
 * is needed.
 */
#ifndef DEEPJIT_CUDA_H
#define DEEPJIT_CUDA_H

#include <deepjit/launch.h>

DJ_BEGIN_DECLS

/* Options of one compilation that only nvcc has; dj_compile_options.cuda. Unset fields inherit as
 * there. Names, defaults and flags are the original's; see docs/cuda.md. */
typedef struct dj_cuda_compile_options {
    size_t size;
    /* The language of the source, what follows -std=c++. Left out if the flags name one. */
    const char *cpp_standard;
    /* "0" to "10": how freely ptxas uses registers. */
    const char *ptxas_register_usage_level;
    /* ptxas reports registers and memory of each kernel in the compiler's log. */
    dj_tri ptxas_verbose;
    /* A kernel whose registers spill, or that uses local memory at all, is a COMPILE error. */
    dj_tri check_no_spills;
    dj_tri check_no_local_memory;
    /* Line numbers for profilers, without changing the code. */
    dj_tri with_line_info;
    /* Also write kernel.ptx, kernel.sass (with cuobjdump). Unset: as dump_asm says. Not keyed. */
    dj_tri dump_ptx;
    dj_tri dump_sass;
} dj_cuda_compile_options;
#define DJ_CUDA_COMPILE_OPTIONS_INIT DJ__SIZED(dj_cuda_compile_options)

/* dj_launch_options.cuda. Unset fields inherit from dj_config.launch_defaults. */
typedef struct dj_cuda_launch_options {
    size_t size;
    /* Blocks of a cluster, {x, 1, 1}; only x may be more than 1. Unset: what the kernel was
     * compiled for. Needs architecture 9.0. */
    dj_dim3 cluster;
    /* All blocks run at once, so that they can wait for each other (grid.sync()). */
    dj_tri cooperative;
    /* Programmatic dependent launch: the kernel may start before the one before it in the stream
     * is done, and waits for it with griddepcontrol.wait. Needs architecture 9.0. */
    dj_tri enable_pdl;
    /* Allows clusters larger than 8. Stays allowed for the kernel (a rule of the driver). */
    dj_tri nonportable_cluster;
} dj_cuda_launch_options;
#define DJ_CUDA_LAUNCH_OPTIONS_INIT DJ__SIZED(dj_cuda_launch_options)

/* A device as the driver describes it. Bytes, unless a field says otherwise. */
typedef struct dj_cuda_device {
    size_t size;
    int32_t ordinal;
    int32_t major; /* compute capability */
    int32_t minor;
    char name[128];
    char arch[16];        /* "80", "90a", "100f": what compilations default to */
    char arch_number[16]; /* "80", "90", "100" */
    char arch_exact[16];  /* "80", "90a", "100a": features of exactly this device */
    uint8_t uuid[16];
    uint64_t memory_bytes;
    int32_t multiprocessors;
    int32_t warp_size;
    int32_t clock_khz;
    int32_t l2_bytes;
    int32_t max_block_threads;
    int32_t max_multiprocessor_threads;
    int32_t max_multiprocessor_blocks;
    int32_t max_block[3];
    int32_t max_grid[3];
    int32_t shared_bytes;       /* of a block, without asking for more */
    int32_t shared_optin_bytes; /* of a block, at most */
    int32_t shared_multiprocessor_bytes;
    int32_t shared_reserved_bytes; /* of a block, for the system */
    int32_t block_registers;
    int32_t multiprocessor_registers;
    int32_t cooperative_launch; /* 0 or 1 */
    int32_t cluster_launch;     /* 0 or 1 */
    int32_t driver_version;     /* 13000 for CUDA 13.0 */
} dj_cuda_device;
#define DJ_CUDA_DEVICE_INIT DJ__SIZED(dj_cuda_device)

/* Describes device `ordinal` (as CUDA numbers them in this process), or the runtime's for -1. Set
 * out->size (DJ_CUDA_DEVICE_INIT) before the call. UNSUPPORTED for another back end's runtime,
 * NOT_FOUND if there is no such device. */
DJ_API dj_status dj_cuda_device_info(dj_runtime *runtime, int ordinal, dj_cuda_device *out,
                                     dj_error *err);

/* One attribute of that device by its CUdevice_attribute number. */
DJ_API dj_status dj_cuda_device_attribute(dj_runtime *runtime, int ordinal, int attribute,
                                          int *value, dj_error *err);

/* A loaded kernel's handles: CUlibrary, CUkernel, and CUfunction for the current context (which is
 * made if there is none). Valid as long as the kernel is held; the function as long as its
 * context, too. */
typedef struct dj_cuda_handles {
    size_t size;
    void *library;
    void *kernel;
    void *function;
} dj_cuda_handles;
#define DJ_CUDA_HANDLES_INIT DJ__SIZED(dj_cuda_handles)
DJ_API dj_status dj_cuda_kernel_handles(dj_kernel *kernel, dj_cuda_handles *out, dj_error *err);

/* Reads or sets one attribute (a CUfunction_attribute) of the kernel in the current context. Do
 * not set MAX_DYNAMIC_SHARED_SIZE_BYTES (8): launches raise it by themselves. */
DJ_API dj_status dj_cuda_kernel_attribute(dj_kernel *kernel, int attribute, int *value,
                                          dj_error *err);
DJ_API dj_status dj_cuda_kernel_set_attribute(dj_kernel *kernel, int attribute, int value,
                                              dj_error *err);

/* How many blocks of this launch fit on one multiprocessor at once, and, for launches with a
 * cluster, how many clusters on the device (else 0). Either output may be NULL. */
DJ_API dj_status dj_cuda_occupancy(dj_kernel *kernel, const dj_launch_options *options, int *blocks,
                                   int *clusters, dj_error *err);

/* Address and size in bytes of a __device__ or __constant__ variable in the kernel's binary, in
 * the current context; `size` may be NULL. NOT_FOUND if there is none of this (mangled) name. */
DJ_API dj_status dj_cuda_global(dj_kernel *kernel, const char *name, void **address, size_t *size,
                                dj_error *err);

/*
 * A function of the driver, such as cuTensorMapEncodeTiled. `version` is the CUDA version whose
 * form of the function is meant, 12000 for 12.0; 0 takes the symbol exported under exactly this
 * name. NOT_FOUND with the driver's version if it has none.
 */
DJ_API dj_status dj_cuda_symbol(dj_runtime *runtime, const char *name, int version, void **out,
                                dj_error *err);

DJ_END_DECLS

#endif
