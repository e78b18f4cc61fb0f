/* SPDX-License-Identifier: MIT */
/*
 * The hosting framework's current stream, through C functions that PyTorch and TVM-FFI export.
 * They are looked for among the libraries that the process has loaded, when it may have loaded
 * more since the last look; a launch only reads a pointer.
 */
#ifndef DJ_BACKEND_CUDA_STREAM_H
#define DJ_BACKEND_CUDA_STREAM_H

#include <stdatomic.h>
#include <stdint.h>

/* PyTorch's aoti_torch_get_current_cuda_stream; 0 is success, device -1 the current one. */
typedef int32_t (*dj__torch_stream_fn)(int32_t device, void **out);
/* TVM-FFI's TVMFFIEnvGetStream; the device types are DLPack's. */
typedef void *(*dj__tvm_stream_fn)(int32_t device_type, int32_t device);

typedef struct dj__cuda_streams {
    _Atomic(dj__torch_stream_fn) torch; /* NULL: not there */
    _Atomic(dj__tvm_stream_fn) tvm;
    _Atomic uint64_t seen; /* libraries loaded in this process's life, at the last look */
} dj__cuda_streams;

struct dj_driver;

void dj__cuda_streams_look(dj__cuda_streams *streams);
/* Of the calling thread; NULL is the default stream. */
void *dj__cuda_current_stream(struct dj_driver *driver);

#endif
