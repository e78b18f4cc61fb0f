/* SPDX-License-Identifier: MIT */
/*
 * Our own declarations of the part of the CUDA driver's ABI that we use, so that no CUDA header
 * is needed to build. Values and layouts: cuda.h of CUDA 12 and 13.
 */
#ifndef DJ_BACKEND_CUDA_API_H
#define DJ_BACKEND_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int dj__cu_result;
typedef int dj__cu_device;
typedef uint64_t dj__cu_deviceptr;
typedef struct dj__cu_context_st *dj__cu_context;
typedef struct dj__cu_stream_st *dj__cu_stream;
typedef struct dj__cu_library_st *dj__cu_library;
typedef struct dj__cu_kernel_st *dj__cu_kernel;
typedef struct dj__cu_function_st *dj__cu_function;

typedef struct dj__cu_uuid {
    uint8_t bytes[16];
} dj__cu_uuid;

typedef struct dj__cu_launch_attribute {
    uint32_t id;
    uint32_t pad;
    union {
        uint64_t storage[8];
        int32_t flag; /* COOPERATIVE, PROGRAMMATIC_STREAM_SERIALIZATION */
        uint32_t cluster[3];
    } value;
} dj__cu_launch_attribute;

typedef struct dj__cu_launch_config {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    dj__cu_stream stream;
    dj__cu_launch_attribute *attributes;
    uint32_t num_attributes;
} dj__cu_launch_config;

_Static_assert(sizeof(dj__cu_launch_attribute) == 72, "CUlaunchAttribute");
_Static_assert(offsetof(dj__cu_launch_attribute, value) == 8, "CUlaunchAttribute.value");
_Static_assert(sizeof(dj__cu_launch_config) == 56, "CUlaunchConfig");
_Static_assert(offsetof(dj__cu_launch_config, stream) == 32, "CUlaunchConfig.hStream");
_Static_assert(offsetof(dj__cu_launch_config, num_attributes) == 48, "CUlaunchConfig.numAttrs");

enum {
    DJ__CU_SUCCESS = 0,
    DJ__CU_INVALID_VALUE = 1,
    DJ__CU_OUT_OF_MEMORY = 2,
    DJ__CU_NOT_INITIALIZED = 3,
    DJ__CU_DEINITIALIZED = 4,
    DJ__CU_STUB_LIBRARY = 34,
    DJ__CU_CALL_REQUIRES_NEWER_DRIVER = 36,
    DJ__CU_NO_DEVICE = 100,
    DJ__CU_INVALID_IMAGE = 200,
    DJ__CU_INVALID_CONTEXT = 201,
    DJ__CU_NO_BINARY_FOR_GPU = 209,
    DJ__CU_UNSUPPORTED_PTX_VERSION = 222,
    DJ__CU_INVALID_HANDLE = 400,
    DJ__CU_NOT_FOUND = 500,
    DJ__CU_LAUNCH_OUT_OF_RESOURCES = 701,
    DJ__CU_CONTEXT_IS_DESTROYED = 709,
    DJ__CU_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    DJ__CU_STREAM_CAPTURE_UNSUPPORTED = 900,
    DJ__CU_STREAM_CAPTURE_IMPLICIT = 906,
    DJ__CU_INVALID_CLUSTER_SIZE = 912
};

/* CUdevice_attribute */
enum {
    DJ__CU_DEV_MAX_THREADS_PER_BLOCK = 1,
    DJ__CU_DEV_MAX_BLOCK_DIM_X = 2,
    DJ__CU_DEV_MAX_BLOCK_DIM_Y = 3,
    DJ__CU_DEV_MAX_BLOCK_DIM_Z = 4,
    DJ__CU_DEV_MAX_GRID_DIM_X = 5,
    DJ__CU_DEV_MAX_GRID_DIM_Y = 6,
    DJ__CU_DEV_MAX_GRID_DIM_Z = 7,
    DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    DJ__CU_DEV_WARP_SIZE = 10,
    DJ__CU_DEV_MAX_REGISTERS_PER_BLOCK = 12,
    DJ__CU_DEV_CLOCK_RATE = 13,
    DJ__CU_DEV_MULTIPROCESSOR_COUNT = 16,
    DJ__CU_DEV_L2_CACHE_SIZE = 38,
    DJ__CU_DEV_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    DJ__CU_DEV_COMPUTE_CAPABILITY_MAJOR = 75,
    DJ__CU_DEV_COMPUTE_CAPABILITY_MINOR = 76,
    DJ__CU_DEV_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    DJ__CU_DEV_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    DJ__CU_DEV_COOPERATIVE_LAUNCH = 95,
    DJ__CU_DEV_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    DJ__CU_DEV_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
    DJ__CU_DEV_RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
    DJ__CU_DEV_CLUSTER_LAUNCH = 120
};

/* CUfunction_attribute */
enum {
    DJ__CU_FUNC_MAX_THREADS_PER_BLOCK = 0,
    DJ__CU_FUNC_SHARED_SIZE_BYTES = 1,
    DJ__CU_FUNC_LOCAL_SIZE_BYTES = 3,
    DJ__CU_FUNC_NUM_REGS = 4,
    DJ__CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    DJ__CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
};

/* CUlaunchAttributeID */
enum {
    DJ__CU_LAUNCH_COOPERATIVE = 2,
    DJ__CU_LAUNCH_CLUSTER_DIMENSION = 4,
    DJ__CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};

enum { DJ__CU_CAPTURE_MODE_RELAXED = 2 };

/* The driver's functions; OPTIONAL ones may be NULL. */
typedef struct dj__cuda_api {
#define CUDA_SYMBOL(need, name, exported, since, params) dj__cu_result(*name) params;
#include "backend/cuda/cuda_symbols.def"
#undef CUDA_SYMBOL
} dj__cuda_api;

#endif
