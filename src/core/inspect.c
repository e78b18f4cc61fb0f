/* SPDX-License-Identifier: MIT */
/* dj_inspect: what a binary holds, without device and compiler. */
#include "base/error.h"
#include <deepjit/sys/compiler.h>

dj_status dj_inspect(const dj_backend *backend, const void *binary, size_t size,
                     dj_inspect_fn visit, void *user, dj_error *err)
{
    if (backend == NULL || visit == NULL || (binary == NULL && size != 0)) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "dj_inspect: %s must not be NULL",
                        backend == NULL ? "backend"
                        : visit == NULL ? "visit"
                                        : "binary");
    }
    if (backend->compiler->inspect == NULL) {
        return dj__fail(err, DJ_UNSUPPORTED,
                        "binaries of the %s back end cannot be read without loading them",
                        backend->name);
    }
    const dj_binary what = {binary, size, "binary"};
    return backend->compiler->inspect(&what, visit, user, err);
}
