/* SPDX-License-Identifier: MIT */
/* The driver gives its errors names and texts; what to do about the worst of them is said here. */
#include "backend/cuda/cuda_error.h"
#include "base/error.h"
#include "base/strbuf.h"
#include <stdarg.h>
#include <stdio.h>

/* Results that only the driver's header explains. */
enum {
    ERROR_INVALID_PTX = 218,
    ERROR_JIT_COMPILER_NOT_FOUND = 221,
    ERROR_JIT_COMPILATION_DISABLED = 223,
    ERROR_INVALID_SOURCE = 300
};

void dj__cuda_error_text(const dj__cuda_api *api, dj__cu_result result, char *out, size_t size)
{
    const char *name = NULL;
    const char *text = NULL;
    (void)api->cuGetErrorName(result, &name);
    (void)api->cuGetErrorString(result, &text);
    const int length = snprintf(out, size, "%s (%d): %s", name != NULL ? name : "unknown error",
                                result, text != NULL ? text : "the driver has no text for it");
    if (length >= 0 && (size_t)length >= size) {
        dj__mark_cut(out, size);
    }
}

/* Errors after which, by the driver's documentation, every call fails until the process ends. */
static bool error_is_sticky(dj__cu_result result)
{
    static const dj__cu_result sticky[] = {
        226, /* CONTAINED */
        700, /* ILLEGAL_ADDRESS */
        702, /* LAUNCH_TIMEOUT */
        710, /* ASSERT */
        714, /* HARDWARE_STACK_ERROR */
        715, /* ILLEGAL_INSTRUCTION */
        716, /* MISALIGNED_ADDRESS */
        717, /* INVALID_ADDRESS_SPACE */
        718, /* INVALID_PC */
        719, /* LAUNCH_FAILED */
        721, /* TENSOR_MEMORY_LEAK */
        810, /* MPS_CLIENT_TERMINATED */
        911, /* EXTERNAL_DEVICE */
    };
    for (size_t i = 0; i < sizeof(sticky) / sizeof(sticky[0]); i++) {
        if (sticky[i] == result) {
            return true;
        }
    }
    return false;
}

static const char *error_consequence(dj__cu_result result)
{
    if (error_is_sticky(result)) {
        return "; a kernel that ran before has failed, its CUDA context is lost, and the process "
               "must be restarted to use the device again";
    }
    if (result == DJ__CU_NOT_INITIALIZED) {
        return "; " DJ__CUDA_FORKED_TEXT;
    }
    if (result == DJ__CU_CONTEXT_IS_DESTROYED) {
        return "; the context that is current in this thread was destroyed or reset";
    }
    return "";
}

dj_status dj__cuda_fail(const dj__cuda_api *api, dj_error *err, dj__cu_result result,
                        const char *format, ...)
{
    const dj_status status = result == DJ__CU_OUT_OF_MEMORY ? DJ_NO_MEMORY : DJ_DEVICE;
    if (err == NULL) {
        return status;
    }
    char what[sizeof(err->message)];
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    dj__cuda_error_text(api, result, text, sizeof(text));
    return dj__fail_native(err, status, DJ__CUDA_ORIGIN, result, "%s: %s%s", what, text,
                           error_consequence(result));
}

bool dj__cuda_error_is_image(dj__cu_result result)
{
    switch (result) {
    case DJ__CU_INVALID_IMAGE:
    case DJ__CU_NO_BINARY_FOR_GPU:
    case ERROR_INVALID_PTX:
    case ERROR_JIT_COMPILER_NOT_FOUND:
    case DJ__CU_UNSUPPORTED_PTX_VERSION:
    case ERROR_JIT_COMPILATION_DISABLED:
    case ERROR_INVALID_SOURCE:
        return true;
    default:
        return false;
    }
}

bool dj__cuda_error_is_stale(dj__cu_result result)
{
    return result == DJ__CU_INVALID_HANDLE || result == DJ__CU_INVALID_CONTEXT ||
           result == DJ__CU_CONTEXT_IS_DESTROYED;
}
