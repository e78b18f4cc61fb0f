/* SPDX-License-Identifier: MIT */
/*
 * Where nvcc works.
 *
 * nvcc runs its steps through /bin/sh and writes its working directory, its own place and its
 * temporary files into these command lines. So it works in a new, private directory whose real
 * path has only characters that mean nothing to a shell: inside the job's directory if that is
 * such a path, else below TMPDIR or /tmp. In there lie the source, links to the include
 * directories, `tmp` for temporary files, and links to nvcc and the host compiler if those lie at
 * odd places.
 */
#ifndef DJ_BACKEND_CUDA_WORKDIR_H
#define DJ_BACKEND_CUDA_WORKDIR_H

#include "backend/cuda/cuda_toolkit.h"
#include <deepjit/sys/compiler.h>

#define DJ__CUDA_TMP "tmp" /* relative to the directory */

typedef struct dj__cuda_workdir {
    char *path;           /* absolute, real */
    int fd;               /* of it */
    int parent;           /* of the directory above */
    char name[128];       /* in there */
    char *nvcc;           /* how to call them here */
    char *host;           /* NULL: NVCC_*_FLAGS say it */
    dj__strlist includes; /* in search order */
    dj__strlist env;
} dj__cuda_workdir;

/* `keyed`: see tool_env.h. Nothing is left behind on failure. */
dj_status dj__cuda_workdir_open(const dj__env *env, const char *const *keyed,
                                const dj__cuda_toolkit *toolkit, const dj_compile_job *job,
                                dj__cuda_workdir *out, dj_error *err);
/* Removes the directory. */
void dj__cuda_workdir_close(dj__cuda_workdir *workdir);

/* True if the path has only characters that mean nothing to a shell. */
bool dj__cuda_is_plain(const char *path);

#endif
