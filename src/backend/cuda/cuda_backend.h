/* SPDX-License-Identifier: MIT */
/* What the files of the CUDA back end share, and what src/core calls beyond the two tables. */
#ifndef DJ_BACKEND_CUDA_BACKEND_H
#define DJ_BACKEND_CUDA_BACKEND_H

#include <deepjit/cuda.h>
#include <deepjit/sys/compiler.h>

extern const dj_driver_ops dj__cuda_driver_ops;
extern const dj_compiler_ops dj__cuda_compiler_ops;

/* What deepjit/cuda.h promises, below the checks of handles and struct sizes. */
dj_status dj__cuda_describe(dj_driver *driver, int ordinal, dj_cuda_device *out, dj_error *err);
dj_status dj__cuda_device_attribute(dj_driver *driver, int ordinal, int attribute, int *value,
                                    dj_error *err);
dj_status dj__cuda_handles(dj_driver *driver, dj_module *module, dj_cuda_handles *out,
                           dj_error *err);
dj_status dj__cuda_kernel_attribute(dj_driver *driver, dj_module *module, int attribute, int *value,
                                    dj_error *err);
dj_status dj__cuda_kernel_set_attribute(dj_driver *driver, dj_module *module, int attribute,
                                        int value, dj_error *err);
dj_status dj__cuda_occupancy(dj_driver *driver, dj_module *module, const dj_launch_config *config,
                             int *blocks, int *clusters, dj_error *err);
dj_status dj__cuda_global(dj_driver *driver, dj_module *module, const char *name, void **address,
                          size_t *size, dj_error *err);
dj_status dj__cuda_symbol(dj_driver *driver, const char *name, int version, void **out,
                          dj_error *err);

#endif
