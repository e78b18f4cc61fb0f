/* SPDX-License-Identifier: MIT */
/*
 * Signals. While a command compiles, SIGINT, SIGTERM and SIGHUP ask the library to stop, so that
 * the compiler's process group is gone before we are. The library itself installs no handler.
 */
#include "cli.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const int guard_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { GUARD_COUNT = sizeof guard_signals / sizeof guard_signals[0] };

/* Handlers can reach nothing but statics. */
static dj_cancel *guard_cancel;
static volatile sig_atomic_t guard_signal;
static struct sigaction guard_saved[GUARD_COUNT];

static void guard_handle(int number)
{
    guard_signal = number;
    dj_cancel_request(guard_cancel);
}

dj_cancel *cli_guard_begin(void)
{
    dj_error err = DJ_ERROR_INIT;
    if (dj_cancel_create(&guard_cancel, &err) != DJ_OK) {
        exit(cli_fail(&err));
    }
    struct sigaction action = {.sa_handler = guard_handle, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    for (int i = 0; i < GUARD_COUNT; i++) {
        sigaction(guard_signals[i], NULL, &guard_saved[i]);
        /* Ignored signals (nohup, background jobs) stay ignored. */
        if (guard_saved[i].sa_handler != SIG_IGN) {
            sigaction(guard_signals[i], &action, NULL);
        }
    }
    return guard_cancel;
}

void cli_guard_end(void)
{
    for (int i = 0; i < GUARD_COUNT; i++) {
        sigaction(guard_signals[i], &guard_saved[i], NULL);
    }
    dj_cancel_release(guard_cancel);
    guard_cancel = NULL;
}

bool cli_guard_interrupted(void)
{
    return guard_signal != 0;
}

int cli_guard_status(int status)
{
    if (guard_signal == 0) {
        return status;
    }
    cli_error("stopped by signal %d (%s)", (int)guard_signal, strsignal(guard_signal));
    return 128 + (int)guard_signal;
}
