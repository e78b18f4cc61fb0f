/* SPDX-License-Identifier: MIT */
/*
 * Toolkits that pip installed. Wheels from CUDA 13 on share one directory, nvidia/cu13, with bin,
 * nvvm and include as in any toolkit; those before have no nvcc, but a nvidia/cuda_nvcc that has
 * one would be taken, too.
 */
#ifndef DJ_BACKEND_CUDA_SITES_H
#define DJ_BACKEND_CUDA_SITES_H

#include "base/env.h"

/* Appends, in order of preference and without repeats, the directories that may hold Python
 * packages: of $VIRTUAL_ENV, of $CONDA_PREFIX, those in PYTHONPATH, and those from which this
 * process has loaded a library. Starts no process. */
dj_status dj__cuda_sites(const dj__env *env, dj__strlist *sites, dj_error *err);

/* The nvcc below such a directory, of the newest CUDA there; NULL if there is none. */
char *dj__cuda_site_nvcc(const char *site);

#endif
