/* SPDX-License-Identifier: MIT */
/*
 * Filling dj_error, the names of status codes, and the library's version.
 *
 * Messages are formatted beside the error and then copied, so that arguments may point into it.
 */
#include "base/error.h"

#include "base/strbuf.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(dj_error) == 1024, "the layout of dj_error is frozen");
#define ERROR_MESSAGE_SIZE sizeof(((dj_error *)NULL)->message)

const char *dj_status_name(dj_status status)
{
    switch (status) {
#define ERROR_NAME_CASE(name, number, text)                                                        \
    case DJ_##name:                                                                                \
        return #name;
        DJ_STATUS_LIST(ERROR_NAME_CASE)
    case DJ__STATUS_COUNT:
        break;
    }
    return "UNKNOWN";
}

const char *dj_status_text(dj_status status)
{
    switch (status) {
#define ERROR_TEXT_CASE(name, number, text)                                                        \
    case DJ_##name:                                                                                \
        return text;
        DJ_STATUS_LIST(ERROR_TEXT_CASE)
    case DJ__STATUS_COUNT:
        break;
    }
    return "unknown status";
}

const char *dj_version(void)
{
    return DJ_VERSION_STRING;
}

static void error_format(char text[ERROR_MESSAGE_SIZE], const char *format, va_list args)
{
    const int length = vsnprintf(text, ERROR_MESSAGE_SIZE, format, args);
    if (length < 0) {
        snprintf(text, ERROR_MESSAGE_SIZE, "%s", format);
    } else if ((size_t)length >= ERROR_MESSAGE_SIZE) {
        dj__mark_cut(text, ERROR_MESSAGE_SIZE);
    }
}

static dj_status error_fill(dj_error *err, dj_status status, const char *origin, int native,
                            const char *format, va_list args)
{
    if (err == NULL) {
        return status;
    }
    char text[ERROR_MESSAGE_SIZE];
    error_format(text, format, args);
    memset(err, 0, sizeof(*err));
    err->status = (int32_t)status;
    err->native = native;
    snprintf(err->origin, sizeof(err->origin), "%s", origin != NULL ? origin : "");
    memcpy(err->message, text, sizeof(text));
    return status;
}

dj_status dj__fail(dj_error *err, dj_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_fill(err, status, "", 0, format, args);
    va_end(args);
    return status;
}

dj_status dj__fail_native(dj_error *err, dj_status status, const char *origin, int native,
                          const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_fill(err, status, origin, native, format, args);
    va_end(args);
    return status;
}

static dj_status error_status_of_errno(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
        return DJ_PERMISSION;
    case ENOENT:
        return DJ_NOT_FOUND;
    case ENOMEM:
        return DJ_NO_MEMORY;
    default:
        return DJ_IO;
    }
}

static const char *error_errno_text(int error, char *buffer, size_t size)
{
#ifdef __GLIBC__
    return strerror_r(error, buffer, size);
#else
    return strerror_r(error, buffer, size) == 0 ? buffer : "unknown error";
#endif
}

dj_status dj__fail_errno(dj_error *err, int error, const char *format, ...)
{
    const dj_status status = error_status_of_errno(error);
    if (err == NULL) {
        return status;
    }
    va_list args;
    va_start(args, format);
    char text[ERROR_MESSAGE_SIZE];
    error_format(text, format, args);
    va_end(args);
    char reason[256];
    return dj__fail_native(err, status, "errno", error, "%s: %s", text,
                           error_errno_text(error, reason, sizeof(reason)));
}

dj_status dj__fail_memory(dj_error *err)
{
    return dj__fail(err, DJ_NO_MEMORY, "out of memory");
}

void dj__error_prefix(dj_error *err, const char *format, ...)
{
    if (err == NULL) {
        return;
    }
    va_list args;
    va_start(args, format);
    char prefix[ERROR_MESSAGE_SIZE];
    error_format(prefix, format, args);
    va_end(args);

    char text[ERROR_MESSAGE_SIZE];
    const int length = snprintf(text, sizeof(text), "%s: %s", prefix, err->message);
    if (length >= 0 && (size_t)length >= sizeof(text)) {
        dj__mark_cut(text, sizeof(text));
    }
    memcpy(err->message, text, sizeof(text));
}
