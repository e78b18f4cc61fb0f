/* SPDX-License-Identifier: MIT */
/*
 * deepjit/base.h: version, status codes, errors, logging and the small types that every other
 * header uses.
 *
 * Conventions of the whole API
 *   - Parameter order: object, inputs, options, outputs, and a `dj_error *err` last, which may
 *     be NULL. Outputs are written on success; on failure pointer outputs are set to NULL.
 *   - Option structs start with `size_t size`; start from the struct's *_INIT macro. Zero or
 *     NULL in a field means "inherit": per call, then the runtime's defaults, then the
 *     environment, then the built-in default.
 *   - Handles are opaque and reference-counted: *_retain, *_release (NULL-safe). Children keep
 *     alive what they need of their parents.
 *   - Every function is thread-safe unless its comment says otherwise.
 *   - The library never writes to stdout, never exits and never aborts.
 */
#ifndef DEEPJIT_BASE_H
#define DEEPJIT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DJ_VERSION_MAJOR 0
#define DJ_VERSION_MINOR 1
#define DJ_VERSION_PATCH 0
#define DJ_VERSION_STRING "0.1.0"

/* DJ_STATIC is defined for users of the static library (CMake and pkg-config do it): then no
 * symbol of ours is exported from the program or shared object that embeds us. */
#if defined(DJ_STATIC) || !defined(__GNUC__)
#define DJ_API
#else
#define DJ_API __attribute__((visibility("default")))
#endif

#if defined(__GNUC__)
#define DJ_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define DJ_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
#define DJ_BEGIN_DECLS extern "C" {
#define DJ_END_DECLS }
#else
#define DJ_BEGIN_DECLS
#define DJ_END_DECLS
#endif

/*
 * The *_INIT macros give an option struct its size and leave the rest unset:
 *
 *     dj_config config = DJ_CONFIG_INIT;
 */
#ifdef __cplusplus
template <class T> inline T dj__sized()
{
    T value = T();
    value.size = sizeof(T);
    return value;
}
#define DJ__SIZED(T) dj__sized<T>()
#else
#define DJ__SIZED(T)                                                                               \
    {                                                                                              \
        .size = sizeof(T)                                                                          \
    }
#endif

DJ_BEGIN_DECLS

/*
 * Status codes. The numbers are part of the ABI and never change.
 *   X(name, number, text)
 */
#define DJ_STATUS_LIST(X)                                                                          \
    X(OK, 0, "ok")                                                                                 \
    X(INVALID_ARGUMENT, 1, "invalid argument")                                                     \
    X(UNSUPPORTED, 2, "unsupported")                                                               \
    X(NOT_FOUND, 3, "not found")                                                                   \
    X(UNAVAILABLE, 4, "unavailable")                                                               \
    X(INCOMPATIBLE, 5, "incompatible")                                                             \
    X(PERMISSION, 6, "permission denied")                                                          \
    X(IO, 7, "input/output error")                                                                 \
    X(TIMEOUT, 8, "timed out")                                                                     \
    X(CANCELLED, 9, "cancelled")                                                                   \
    X(NO_MEMORY, 10, "out of memory")                                                              \
    X(COMPILE, 11, "source does not compile")                                                      \
    X(CORRUPT, 12, "corrupt data")                                                                 \
    X(DEVICE, 13, "device error")                                                                  \
    X(INTERNAL, 14, "internal error")

typedef enum dj_status {
#define DJ__STATUS_ENUM(name, number, text) DJ_##name = number,
    DJ_STATUS_LIST(DJ__STATUS_ENUM)
#undef DJ__STATUS_ENUM
        DJ__STATUS_COUNT
} dj_status;

/* The constant's name without prefix ("INVALID_ARGUMENT"), or "UNKNOWN". Static storage. */
DJ_API const char *dj_status_name(dj_status status);
/* A short English text ("invalid argument"), or "unknown status". Static storage. */
DJ_API const char *dj_status_text(dj_status status);

/*
 * What went wrong, in caller memory: 1,024 bytes, layout frozen. Functions write it only when
 * they fail. `message` is one or more lines; of a failed compilation the first line is the
 * compiler's first error. A message that does not fit ends in "...".
 */
typedef struct dj_error {
    int32_t status;    /* a dj_status */
    int32_t native;    /* errno, a program's exit code or a CUresult; 0 if there is none */
    char origin[24];   /* where `native` comes from: "errno", "compiler", "cuda", or "" */
    char message[992]; /* NUL-terminated */
} dj_error;

#ifdef __cplusplus
#define DJ_ERROR_INIT dj_error()
#else
#define DJ_ERROR_INIT                                                                              \
    {                                                                                              \
        .status = DJ_OK                                                                            \
    }
#endif

/* A boolean option that can be left unset. */
typedef enum dj_tri { DJ_DEFAULT = 0, DJ_OFF = 1, DJ_ON = 2 } dj_tri;

typedef enum dj_log_level {
    DJ_LOG_OFF = 0,
    DJ_LOG_ERROR = 1,
    DJ_LOG_WARN = 2,
    DJ_LOG_INFO = 3,
    DJ_LOG_DEBUG = 4
} dj_log_level;

/* One log message without a trailing newline. May be called from any thread, also from several
 * at once; must not call back into the library. `message` is valid during the call. */
typedef void (*dj_log_fn)(void *user, dj_log_level level, const char *message);

/* A piece of text, not NUL-terminated, valid during the call. */
typedef void (*dj_text_fn)(void *user, const char *text, size_t size);

/* The version of the library in use ("0.1.0"), which may differ from DJ_VERSION_STRING. */
DJ_API const char *dj_version(void);

/*
 * A way to stop work that another thread, or a signal handler, wants ended. Give it to
 * dj_compile_options.cancel; the call then returns DJ_CANCELLED and the compiler's process
 * group is gone. A cancelled object stays cancelled.
 */
typedef struct dj_cancel dj_cancel;
DJ_API dj_status dj_cancel_create(dj_cancel **out, dj_error *err);
DJ_API dj_cancel *dj_cancel_retain(dj_cancel *cancel);
DJ_API void dj_cancel_release(dj_cancel *cancel);
/* Async-signal-safe. */
DJ_API void dj_cancel_request(dj_cancel *cancel);
DJ_API bool dj_cancel_requested(const dj_cancel *cancel);

DJ_END_DECLS

#endif
