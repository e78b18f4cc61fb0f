/* SPDX-License-Identifier: MIT */
/* The few thread helpers beyond pthreads: clocks, timed waits on the monotonic clock, threads
 * that receive no signals, and the fork generation. */
#ifndef DJ_BASE_THREAD_H
#define DJ_BASE_THREAD_H

#include <deepjit/base.h>
#include <pthread.h>
#include <stdatomic.h>

#define DJ__CACHE_LINE 64

int64_t dj__now_ns(void); /* monotonic */

void dj__mutex_init(pthread_mutex_t *mutex);
void dj__cond_init(pthread_cond_t *cond); /* waits on the monotonic clock */
/* False at the deadline (absolute, dj__now_ns). Spurious wake-ups return true. */
bool dj__cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ns);
/* Starts a thread that handles no signals but its own faults (SIGSEGV and the like, so that the
 * host's crash reports work). The name is cut to 15 bytes. 0 or an errno value. */
int dj__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);
/* Processors that the calling thread, and threads it starts, may run on; at least 1. */
unsigned dj__cpu_count(void);

/*
 * Fork generation: grows by one in every forked child. Hot paths compare it with a remembered
 * value instead of calling getpid. Registered objects get after_fork called in the child, which
 * has one thread; it must be async-signal-safe and may remove its own hook. The list and the
 * generation are process-wide.
 */
typedef struct dj__fork_hook {
    void (*after_fork)(struct dj__fork_hook *hook);
    struct dj__fork_hook *_Atomic next;
} dj__fork_hook;

uint32_t dj__fork_generation(void);
/* False if this process cannot watch for forks (no memory when the first hook was added). */
bool dj__fork_hook_add(dj__fork_hook *hook);
/* A hook that was never added is fine. */
void dj__fork_hook_remove(dj__fork_hook *hook);

#endif
