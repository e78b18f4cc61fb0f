/* SPDX-License-Identifier: MIT */
/*
 * Finding libcuda. A setting is taken at its word: if what it names cannot be used, nothing else
 * is tried. A library that the process has loaded already comes before the linker's choice, since
 * two CUDA drivers in one process do not know each other's contexts.
 */
#include "backend/cuda/cuda_library.h"
#include "backend/cuda/cuda_error.h"
#include "base/error.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY_SONAME "libcuda.so.1"

enum { LIBRARY_REQUIRED, LIBRARY_OPTIONAL };

static const struct library_symbol {
    int need;
    const char *exported;
    const char *since;
    size_t offset;
} library_symbols[] = {
#define CUDA_SYMBOL(need, name, exported, since, params)                                           \
    {LIBRARY_##need, #exported, since, offsetof(dj__cuda_api, name)},
#include "backend/cuda/cuda_symbols.def"
#undef CUDA_SYMBOL
};

static const char *library_dlerror(void)
{
    const char *text = dlerror();
    return text != NULL ? text : "unknown error of dlopen";
}

static dj_status library_open_setting(const char *value, const char *setting, void **handle,
                                      dj_error *err)
{
    if (strchr(value, '/') != NULL && value[0] != '/') {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid value for %s: %s (expected an absolute path, or a name without "
                        "'/' that the dynamic linker looks up)",
                        setting, value);
    }
    *handle = dlopen(value, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL) {
        return dj__fail(err, DJ_UNAVAILABLE,
                        "no CUDA driver: cannot open what %s names: %s; unset it to use the "
                        "system's " LIBRARY_SONAME,
                        setting, library_dlerror());
    }
    return DJ_OK;
}

static dj_status library_find(const dj__env *env, dj__cuda_library *out, dj_error *err)
{
    char setting[256];
    const char *value = dj__env_setting(env, "JIT_CUDA_LIBRARY", setting);
    if (value != NULL && value[0] != '\0') {
        snprintf(out->name, sizeof(out->name), "%s", value);
        return library_open_setting(value, setting, &out->handle, err);
    }
    snprintf(out->name, sizeof(out->name), "%s", LIBRARY_SONAME);
    out->handle = dlopen(LIBRARY_SONAME, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (out->handle == NULL) {
        out->handle = dlopen(LIBRARY_SONAME, RTLD_NOW | RTLD_LOCAL);
    }
    if (out->handle == NULL) {
        return dj__fail(err, DJ_UNAVAILABLE,
                        "no CUDA driver: " LIBRARY_SONAME
                        " is not loaded in this process, and the dynamic linker says: %s; install "
                        "NVIDIA's driver, or set %s to the path of its " LIBRARY_SONAME,
                        library_dlerror(), setting);
    }
    return DJ_OK;
}

/* "supports CUDA 11.8", from a driver that may lack most functions. */
static void library_words(const dj__cuda_api *api, char *out, size_t size)
{
    int version = 0;
    if (api->cuDriverGetVersion != NULL && api->cuDriverGetVersion(&version) == DJ__CU_SUCCESS) {
        snprintf(out, size, "supports CUDA %d.%d", DJ__CUDA_VERSION(version));
    } else {
        snprintf(out, size, "does not say its version");
    }
}

static dj_status library_resolve(const dj__cuda_library *library, dj__cuda_api *api, dj_error *err)
{
    const struct library_symbol *missing = NULL;
    for (size_t i = 0; i < sizeof(library_symbols) / sizeof(library_symbols[0]); i++) {
        const struct library_symbol *symbol = &library_symbols[i];
        void *found = dlsym(library->handle, symbol->exported);
        /* ISO C has no cast from void * to a function. */
        memcpy((char *)api + symbol->offset, &found, sizeof(found));
        if (found == NULL && symbol->need == LIBRARY_REQUIRED && missing == NULL) {
            missing = symbol;
        }
    }
    if (missing == NULL) {
        return DJ_OK;
    }
    char words[64];
    library_words(api, words, sizeof(words));
    return dj__fail(err, DJ_INCOMPATIBLE, "%s: %s needs driver %s or newer, this one %s",
                    library->name, missing->exported, missing->since, words);
}

static dj_status library_fail_init(const dj__cuda_library *library, const dj__cuda_api *api,
                                   const dj__env *env, dj__cu_result result, dj_error *err)
{
    const char *visible = dj__env_raw(env, "CUDA_VISIBLE_DEVICES");
    char setting[256];
    char text[256];
    switch (result) {
    case DJ__CU_STUB_LIBRARY:
        dj__env_name(env, "JIT_CUDA_LIBRARY", setting);
        return dj__fail_native(
            err, DJ_UNAVAILABLE, DJ__CUDA_ORIGIN, result,
            "no CUDA driver: %s is the toolkit's stub library, which only serves "
            "to link programs; remove its directory from the library path, or "
            "set %s to the driver's own " LIBRARY_SONAME,
            library->name, setting);
    case DJ__CU_NO_DEVICE:
        if (visible != NULL) {
            return dj__fail_native(err, DJ_UNAVAILABLE, DJ__CUDA_ORIGIN, result,
                                   "no CUDA device: the driver finds none with "
                                   "CUDA_VISIBLE_DEVICES=%s",
                                   visible);
        }
        return dj__fail_native(err, DJ_UNAVAILABLE, DJ__CUDA_ORIGIN, result,
                               "no CUDA device: the driver (%s) finds none", library->name);
    case DJ__CU_NOT_INITIALIZED: /* the only way to get this from cuInit */
        return dj__fail_native(err, DJ_DEVICE, DJ__CUDA_ORIGIN, result, "%s", DJ__CUDA_FORKED_TEXT);
    default:
        dj__cuda_error_text(api, result, text, sizeof(text));
        return dj__fail_native(err, DJ_UNAVAILABLE, DJ__CUDA_ORIGIN, result,
                               "no CUDA driver: %s cannot be initialised: %s", library->name, text);
    }
}

dj_status dj__cuda_library_open(const dj__env *env, dj__cuda_library *out, dj__cuda_api *api,
                                dj_error *err)
{
    memset(out, 0, sizeof(*out));
    memset(api, 0, sizeof(*api));
    dj_status status = library_find(env, out, err);
    if (status == DJ_OK) {
        status = library_resolve(out, api, err);
    }
    if (status != DJ_OK) {
        return status;
    }
    const dj__cu_result result = api->cuInit(0);
    if (result != DJ__CU_SUCCESS) {
        return library_fail_init(out, api, env, result, err);
    }
    (void)api->cuDriverGetVersion(&out->version); /* 0 where it does not tell */
    return DJ_OK;
}
