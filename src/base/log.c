/* SPDX-License-Identifier: MIT */
/* Messages for people. Formatted on the stack, on the heap only where that is too small. */
#include "base/log.h"

#include "base/strbuf.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The words are the ones people set; stderr shows `label`. */
static const struct log_level_name {
    const char *word;
    const char *label;
} log_levels[] = {
    [DJ_LOG_OFF] = {"off", ""},          [DJ_LOG_ERROR] = {"error", "error"},
    [DJ_LOG_WARN] = {"warn", "warning"}, [DJ_LOG_INFO] = {"info", "info"},
    [DJ_LOG_DEBUG] = {"debug", "debug"},
};
#define LOG_NUM_LEVELS (sizeof(log_levels) / sizeof(log_levels[0]))

bool dj__log_on(const dj__log *log, dj_log_level level)
{
    return log != NULL && level > DJ_LOG_OFF && level <= DJ_LOG_DEBUG && level <= log->level;
}

/* A message that cannot be written is dropped: there is nobody to tell. */
static void log_write_stderr(const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(STDERR_FILENO, text, size);
        if (written > 0) {
            text += written;
            size -= (size_t)written;
        } else if (written == 0 || errno != EINTR) {
            return;
        }
    }
}

void dj__log_write(dj__log *log, dj_log_level level, const char *format, ...)
{
    if (!dj__log_on(log, level)) {
        return;
    }
    const int saved_errno = errno;
    char local[PIPE_BUF];
    char *heap = NULL;
    char *text = local;
    size_t size = sizeof(local) - 1; /* room for the newline */

    const size_t start =
        (size_t)snprintf(local, sizeof(local), "deepjit: %s: ", log_levels[level].label);
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(local + start, size - start, format, args);
    va_end(args);
    if (length < 0) {
        goto out;
    }
    size_t end = start + (size_t)length;
    if (end >= size && (heap = malloc(end + 2)) != NULL) {
        text = heap;
        size = end + 1;
        memcpy(heap, local, start);
        va_start(args, format);
        vsnprintf(heap + start, size - start, format, args);
        va_end(args);
    } else if (end >= size) {
        dj__mark_cut(local, size);
        end = strlen(local);
    }

    if (log->fn != NULL) {
        log->fn(log->user, level, text + start);
    } else {
        text[end] = '\n';
        log_write_stderr(text, end + 1);
    }
out:
    free(heap);
    errno = saved_errno;
}

bool dj__log_parse_level(const char *text, dj_log_level *out)
{
    for (size_t i = 0; i < LOG_NUM_LEVELS; i++) {
        if (dj__equal_nocase(text, log_levels[i].word)) {
            *out = (dj_log_level)i;
            return true;
        }
    }
    return false;
}
