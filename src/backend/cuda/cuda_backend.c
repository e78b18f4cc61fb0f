/* SPDX-License-Identifier: MIT */
/* The CUDA back end: two tables under one name. */
#include "backend/cuda/cuda_backend.h"

const dj_backend dj__cuda_backend = {
    .size = sizeof(dj_backend),
    .name = "cuda",
    .driver = &dj__cuda_driver_ops,
    .compiler = &dj__cuda_compiler_ops,
};
