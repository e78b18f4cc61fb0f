/* SPDX-License-Identifier: MIT */
/*
 * Running a program: posix_spawn with an argument vector, its own process group, stdin from
 * /dev/null, stdout and stderr in one pipe that is drained with poll, a deadline, cancellation.
 * No shell. When run returns, the process group is gone.
 */
#ifndef DJ_BASE_PROCESS_H
#define DJ_BASE_PROCESS_H

#include "base/strbuf.h"

typedef struct dj__process {
    const char *const *argv; /* NULL-terminated; argv[0] is an absolute path */
    const char *const *envp; /* NULL-terminated */
    const char *dir;         /* working directory; NULL: the caller's */
    int64_t timeout_ms;      /* <= 0: none */
    dj_cancel *cancel;       /* may be NULL */
    size_t output_limit; /* bytes of output kept: head and tail, a note between them; 0: 1 MiB */
} dj__process;

typedef struct dj__process_result {
    int exit_code; /* 0..255, or 128 + signal */
    int signal;    /* 0 if it exited by itself */
    int64_t wall_ns;
} dj__process_result;

/*
 * Output goes to `output` (may be NULL). Returns OK when the program ran to an end, whatever its
 * exit code.
 * Errors: NOT_FOUND, PERMISSION or IO (it could not be started, errno in err->native), TIMEOUT,
 * CANCELLED, NO_MEMORY, INTERNAL (the exit status was lost because the host process ignores
 * SIGCHLD or waits for any child; the message says what to do).
 */
dj_status dj__process_run(const dj__process *process, dj__strbuf *output,
                          dj__process_result *result, dj_error *err);

/* The same, and a non-zero exit becomes COMPILE with the message
 * "<first error line of the output>\ncommand failed with exit code N:\n<command>\n<output>". */
dj_status dj__process_check(const dj__process *process, dj__strbuf *output,
                            dj__process_result *result, dj_error *err);

/* Finds `program` as execvp would in `path` (a PATH value, NULL: none); absolute names are only
 * checked. NULL if there is none. Relative PATH elements are skipped. */
char *dj__find_program(const char *program, const char *path);

/* The command as text: arguments quoted where needed, separated by blanks. */
void dj__command_text(const char *const *argv, dj__strbuf *out);

/* For the poll loops of others: a descriptor that becomes readable when cancellation is
 * requested. */
int dj__cancel_fd(const dj_cancel *cancel);

#endif
