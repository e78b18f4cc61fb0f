/* SPDX-License-Identifier: MIT */
/*
 * The cubin reader: architecture, kernels, parameters, registers, shared and local memory from the
 * ELF itself, without driver and without cuobjdump. For any input: no crash, no read outside it,
 * time and memory proportional to its size.
 */
#ifndef DJ_BACKEND_CUBIN_H
#define DJ_BACKEND_CUBIN_H

#include <deepjit/compile.h>

typedef struct dj__cubin {
    dj_binary_info info; /* arch "90", "90a"; kernels sorted by name */
    int sm;              /* 90 */
    bool relocatable;    /* to be linked: no driver loads it */
    bool params_known;   /* the listed parameters fill each kernel's parameter block */
    void *memory;        /* of everything that `info` points to */
} dj__cubin;

/* `data` need not outlive the call. INVALID_ARGUMENT says what the bytes are instead (PTX, source
 * text, another machine's ELF, empty) or what is wrong with the cubin. */
dj_status dj__cubin_read(const void *data, size_t size, dj__cubin *out, dj_error *err);
void dj__cubin_fini(dj__cubin *cubin);

/* Says what `data`, which is not a 64-bit little-endian ELF file for CUDA, is instead. Always
 * INVALID_ARGUMENT. */
dj_status dj__cubin_fail_kind(const void *data, size_t size, dj_error *err);

#endif
