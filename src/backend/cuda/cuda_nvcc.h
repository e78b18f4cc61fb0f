/* SPDX-License-Identifier: MIT */
/* Running nvcc in its directory, and taking over what it made. */
#ifndef DJ_BACKEND_CUDA_NVCC_H
#define DJ_BACKEND_CUDA_NVCC_H

#include "backend/cuda/cuda_workdir.h"

#define DJ__CUDA_SOURCE "kernel.cu"
#define DJ__CUDA_BINARY "kernel.cubin"
#define DJ__CUDA_PTX "kernel.ptx"
#define DJ__CUDA_SASS "kernel.sass"

/* One compilation. */
typedef struct dj__cuda_run {
    const dj__env *env;
    const dj__cuda_toolkit *toolkit;
    const dj__cuda_workdir *workdir;
    const dj_compile_job *job;
} dj__cuda_run;

/* Makes `output` by `phase` ("--cubin", "--ptx"); the command for people goes to `command` (may be
 * NULL), nvcc's output to `log`. COMPILE if nvcc fails. */
dj_status dj__cuda_nvcc(const dj__cuda_run *run, const char *phase, const char *output,
                        dj__strbuf *command, dj__strbuf *log, dj_error *err);

/* Runs a program of the toolkit there, which messages call `name`; `limit`: of its output. */
dj_status dj__cuda_tool(const dj__cuda_run *run, const char *name, const char *const *argv,
                        size_t limit, dj__strbuf *output, dj_error *err);

/* Writes a result into the job's directory. */
dj_status dj__cuda_keep(const dj__cuda_run *run, const char *name, const void *data, size_t size,
                        dj_error *err);

/* Writes kernel.ptx and kernel.sass as the options say. */
dj_status dj__cuda_dump(const dj__cuda_run *run, dj_error *err);
/* Before anything is compiled: UNAVAILABLE if SASS is asked for and there is no cuobjdump. */
dj_status dj__cuda_dump_check(const dj__cuda_run *run, dj_error *err);

#endif
