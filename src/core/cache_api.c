/* SPDX-License-Identifier: MIT */
/* The public view of a runtime's cache roots. */
#include "base/error.h"
#include "core/core.h"

static dj_status cache_check(const dj_runtime *runtime, bool have_visit, dj_error *err)
{
    if (runtime == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "runtime must not be NULL");
    }
    return have_visit ? DJ_OK : dj__fail(err, DJ_INVALID_ARGUMENT, "visit must not be NULL");
}

dj_status dj_cache_list(dj_runtime *runtime, dj_cache_entry_fn visit, void *user, dj_error *err)
{
    const dj_status status = cache_check(runtime, visit != NULL, err);
    return status != DJ_OK ? status
                           : dj_store_list(runtime->store, DJ_VERIFY_BINARY, visit, user, err);
}

dj_status dj_cache_verify(dj_runtime *runtime, dj_cache_entry_fn visit, void *user, dj_error *err)
{
    const dj_status status = cache_check(runtime, visit != NULL, err);
    return status != DJ_OK ? status
                           : dj_store_list(runtime->store, DJ_VERIFY_ALL, visit, user, err);
}

dj_status dj_cache_clear(dj_runtime *runtime, const char *tag, size_t *removed, dj_error *err)
{
    size_t ignored;
    size_t *count = removed != NULL ? removed : &ignored;
    *count = 0;
    const dj_status status = cache_check(runtime, true, err);
    return status != DJ_OK ? status : dj_store_remove(runtime->store, tag, count, err);
}

dj_status dj_cache_roots(dj_runtime *runtime, dj_cache_root_fn visit, void *user, dj_error *err)
{
    const dj_status status = cache_check(runtime, visit != NULL, err);
    return status != DJ_OK ? status : dj_store_roots(runtime->store, visit, user, err);
}
