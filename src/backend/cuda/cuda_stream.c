/* SPDX-License-Identifier: MIT */
/*
 * No lock here: the search takes the dynamic linker's, and a library's constructor that compiles
 * a kernel holds that one already. Two threads that look at once find the same.
 */
#include "backend/cuda/cuda_stream.h"
#include "backend/cuda/cuda_driver.h"
#include "base/dl.h"
#include <dlfcn.h>
#include <link.h>
#include <string.h>

enum { STREAM_DLPACK_CUDA = 2 };

/* The count grows with every library that is loaded; every record holds it, one is enough. */
static int stream_count_loads(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    *(uint64_t *)user = info->dlpi_adds;
    return 1;
}

/* NULL if nobody exports it. Its library must stay, since we keep the address. */
static void *stream_find(const char *name)
{
    Dl_info info;
    void *symbol = dj__dl_global_symbol(name);
    if (symbol != NULL && dladdr(symbol, &info) != 0 && info.dli_fname != NULL) {
        void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        if (handle != NULL) {
            dlclose(handle);
        }
    }
    return symbol;
}

void dj__cuda_streams_look(dj__cuda_streams *streams)
{
    uint64_t loads = 0;
    if (atomic_load_explicit(&streams->torch, memory_order_relaxed) != NULL) {
        return; /* nothing comes before it */
    }
    (void)dl_iterate_phdr(stream_count_loads, &loads);
    if (atomic_load_explicit(&streams->seen, memory_order_acquire) == loads) {
        return;
    }
    void *symbol = stream_find("aoti_torch_get_current_cuda_stream");
    if (symbol != NULL) {
        dj__torch_stream_fn torch = NULL;
        memcpy(&torch, &symbol, sizeof(torch)); /* ISO C has no such cast */
        atomic_store_explicit(&streams->torch, torch, memory_order_release);
        return;
    }
    symbol = stream_find("TVMFFIEnvGetStream");
    if (symbol != NULL) {
        dj__tvm_stream_fn tvm = NULL;
        memcpy(&tvm, &symbol, sizeof(tvm));
        atomic_store_explicit(&streams->tvm, tvm, memory_order_release);
    }
    /* Only now: whoever sees the count may rely on what was found. */
    atomic_store_explicit(&streams->seen, loads, memory_order_release);
}

void *dj__cuda_current_stream(dj_driver *driver)
{
    void *stream = NULL;
    const dj__torch_stream_fn torch =
        atomic_load_explicit(&driver->streams.torch, memory_order_acquire);
    if (torch != NULL) {
        return torch(-1, &stream) == 0 ? stream : NULL;
    }
    const dj__tvm_stream_fn tvm = atomic_load_explicit(&driver->streams.tvm, memory_order_acquire);
    return tvm != NULL ? tvm(STREAM_DLPACK_CUDA, dj__cuda_context_ordinal(driver)) : NULL;
}
