/* SPDX-License-Identifier: MIT */
/* Filling dj_error. The one who detects an error writes it; callers forward the status. */
#ifndef DJ_BASE_ERROR_H
#define DJ_BASE_ERROR_H

#include <deepjit/base.h>
#include <stdarg.h>

/* All return `status`, so that a failure is one statement: return dj__fail(err, ...).
 * `err` may be NULL. A message that does not fit ends in "...". */
dj_status dj__fail(dj_error *err, dj_status status, const char *format, ...) DJ_PRINTF(3, 4);
dj_status dj__fail_native(dj_error *err, dj_status status, const char *origin, int native,
                          const char *format, ...) DJ_PRINTF(5, 6);
/* Status from errno (EACCES, EPERM, EROFS: PERMISSION; ENOENT: NOT_FOUND; ENOMEM: NO_MEMORY; else
 * IO), text "<format>: <strerror>". */
dj_status dj__fail_errno(dj_error *err, int error, const char *format, ...) DJ_PRINTF(3, 4);
dj_status dj__fail_memory(dj_error *err);
/* Puts "<format>: " before the message that err already holds. */
void dj__error_prefix(dj_error *err, const char *format, ...) DJ_PRINTF(2, 3);

#endif
