/* SPDX-License-Identifier: MIT */
/*
 * What the tests with the stand-in driver share: its controls and its functions, looked up by
 * name; a cache root of its own for each program; small cubins.
 */
#ifndef STANDIN_FIXTURE_H
#define STANDIN_FIXTURE_H

#include "../standins/cubin_builder.h"
#include "../standins/cuda/standin_cuda.h"
#include "backend/cuda/cuda_api.h"
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The functions of the driver, named as it exports them. */
typedef struct standin_functions {
#define CUDA_SYMBOL(need, name, exported, since, params) dj__cu_result(*exported) params;
#include "../standins/cuda/standin_cuda_extras.def"
#include "backend/cuda/cuda_symbols.def"
#undef CUDA_SYMBOL
    standin_cuda_fail_fn fail_call;
    standin_cuda_calls_fn calls;
    standin_cuda_fired_fn fired;
    standin_cuda_refused_fn refused;
    standin_cuda_last_launch_fn last_launch;
    standin_cuda_launches_fn launches;
    standin_cuda_live_now_fn live_now;
    standin_cuda_set_devices_fn set_devices;
    standin_cuda_set_arch_fn set_arch;
    standin_cuda_set_version_fn set_version;
    standin_cuda_reset_fn reset;
} standin_functions;

static char standin_path[512];
static void *standin_handle;
static standin_functions cu;

static inline void standin_symbol(const char *name, void *out)
{
    void *symbol = dlsym(standin_handle, name);
    if (symbol == NULL) {
        fail_msg("the stand-in driver has no %s", name);
    }
    memcpy(out, &symbol, sizeof(symbol));
}

/* Opens the stand-in and lets the library find the same one. */
static inline void standin_open(void)
{
    snprintf(standin_path, sizeof(standin_path), "%s/standin_cuda/libcuda.so.1",
             getenv("DJ_TEST_BIN_DIR"));
    standin_handle = dlopen(standin_path, RTLD_NOW | RTLD_LOCAL);
    if (standin_handle == NULL) {
        fail_msg("%s", dlerror());
    }
#define CUDA_SYMBOL(need, name, exported, since, params) standin_symbol(#exported, &cu.exported);
#include "../standins/cuda/standin_cuda_extras.def"
#include "backend/cuda/cuda_symbols.def"
#undef CUDA_SYMBOL
    standin_symbol("standin_cuda_fail", &cu.fail_call);
    standin_symbol("standin_cuda_calls", &cu.calls);
    standin_symbol("standin_cuda_fired", &cu.fired);
    standin_symbol("standin_cuda_refused", &cu.refused);
    standin_symbol("standin_cuda_last_launch", &cu.last_launch);
    standin_symbol("standin_cuda_launches", &cu.launches);
    standin_symbol("standin_cuda_live_now", &cu.live_now);
    standin_symbol("standin_cuda_set_devices", &cu.set_devices);
    standin_symbol("standin_cuda_set_arch", &cu.set_arch);
    standin_symbol("standin_cuda_set_version", &cu.set_version);
    standin_symbol("standin_cuda_reset", &cu.reset);
    setenv("DJ_JIT_CUDA_LIBRARY", standin_path, 1);
    cu.reset();
}

#endif
