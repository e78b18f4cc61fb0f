/* SPDX-License-Identifier: MIT */
/* The host back end under its name. */
#include "backend/host/host_backend.h"

const dj_backend dj__host_backend = {
    .size = sizeof(dj_backend),
    .name = "host",
    .driver = &dj__host_driver_ops,
    .compiler = &dj__host_compiler_ops,
};
