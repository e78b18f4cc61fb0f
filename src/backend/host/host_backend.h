/* SPDX-License-Identifier: MIT */
/*
 * The host back end: its tables, and what it and a compiled kernel agree on. The layouts are
 * those of include/deepjit/kernel.h, which cannot be included here (it defines things); a test
 * keeps both equal.
 */
#ifndef DJ_BACKEND_HOST_BACKEND_H
#define DJ_BACKEND_HOST_BACKEND_H

#include <deepjit/host.h>
#include <deepjit/sys/compiler.h>

extern const dj_backend dj__host_backend;
extern const dj_driver_ops dj__host_driver_ops;
extern const dj_compiler_ops dj__host_compiler_ops;

/* The function that runs one block of the module's kernel. */
dj_host_block_fn dj__host_module_function(const dj_module *module);

#define DJ__HOST_ABI 1

typedef struct dj__host_kernel {
    const char *name;
    dj_host_block_fn run;
    const dj_param *params;
    size_t num_params;
} dj__host_kernel;

/* Every binary exports one function of this name and type. */
#define DJ__HOST_KERNELS_SYMBOL "dj__host_kernels"
typedef const dj__host_kernel *const *(*dj__host_kernels_fn)(uint32_t *abi, size_t *count);

#endif
