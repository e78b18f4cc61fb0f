/* SPDX-License-Identifier: MIT */
/* Facts for dj_doctor: see dj_driver_ops.report and dj_compiler_ops.report. */
#ifndef DJ_BACKEND_CUDA_REPORT_H
#define DJ_BACKEND_CUDA_REPORT_H

#include "base/env.h"
#include <deepjit/sys/driver.h>

/* The library and the version of CUDA that it supports. */
void dj__cuda_report_driver(dj_driver *driver, dj_report_fn visit, void *user);
/* nvcc and its host compiler, each with how it was found, and cuobjdump. */
void dj__cuda_report_toolkit(const dj__env *env, dj_report_fn visit, void *user);

#endif
