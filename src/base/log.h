/* SPDX-License-Identifier: MIT */
/* Messages for people, through the runtime's callback or to stderr, filtered by level. */
#ifndef DJ_BASE_LOG_H
#define DJ_BASE_LOG_H

#include <deepjit/base.h>

/* Caller memory, no lock: a message is one callback or one write(2), so lines of several threads
 * and processes do not mix up to PIPE_BUF bytes. Longer messages are allowed; without memory for
 * one it is cut and ends in "...". */
typedef struct dj__log {
    dj_log_fn fn; /* NULL: stderr, as "deepjit: warning: ..." */
    void *user;
    dj_log_level level;
} dj__log;

/* True if a message of this level would be shown. `log` may be NULL (nothing is shown). */
bool dj__log_on(const dj__log *log, dj_log_level level);
/* Keeps errno. */
void dj__log_write(dj__log *log, dj_log_level level, const char *format, ...) DJ_PRINTF(3, 4);
/* "off", "error", "warn", "info", "debug" (any case); false if it is none of these. */
bool dj__log_parse_level(const char *text, dj_log_level *out);

#endif
