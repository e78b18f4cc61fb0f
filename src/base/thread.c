/* SPDX-License-Identifier: MIT */
/*
 * Thread helpers and the fork generation.
 *
 * The list of fork hooks changes by one atomic pointer store at a time, so a child forked at any
 * moment, also in the middle of another thread's change, finds a list it can walk. No lock is
 * taken around fork; the mutex only orders writers, and the child starts with a fresh one.
 */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREAD_NS_PER_S = 1000000000, THREAD_NAME_SIZE = 16, THREAD_MAX_CPUS = 1 << 20 };

int64_t dj__now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * THREAD_NS_PER_S + now.tv_nsec;
}

/* With these attributes neither initialiser can fail on Linux. */
void dj__mutex_init(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_init(mutex, NULL);
}

void dj__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

bool dj__cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ns)
{
    if (deadline_ns < 0) {
        deadline_ns = 0;
    }
    const struct timespec deadline = {
        .tv_sec = (time_t)(deadline_ns / THREAD_NS_PER_S),
        .tv_nsec = (long)(deadline_ns % THREAD_NS_PER_S),
    };
    return pthread_cond_timedwait(cond, mutex, &deadline) != ETIMEDOUT;
}

#define THREAD_LEAST_STACK ((size_t)2 << 20)

typedef struct thread_start {
    void *(*run)(void *);
    void *arg;
    char name[THREAD_NAME_SIZE];
} thread_start;

/* The thread names itself: from outside it may be gone by then. */
static void *thread_main(void *arg)
{
    thread_start *start = arg;
    void *(*run)(void *) = start->run;
    void *run_arg = start->arg;
    (void)pthread_setname_np(pthread_self(), start->name);
    free(start);
    return run(run_arg);
}

/* Enough stack for what kernels keep on it, also where RLIMIT_STACK is small. */
static int thread_create(pthread_t *thread, thread_start *start)
{
    pthread_attr_t attr;
    size_t size = 0;
    int error = pthread_attr_init(&attr);
    if (error != 0) {
        return error;
    }
    if (pthread_attr_getstacksize(&attr, &size) == 0 && size < THREAD_LEAST_STACK) {
        (void)pthread_attr_setstacksize(&attr, THREAD_LEAST_STACK);
    }
    error = pthread_create(thread, &attr, thread_main, start);
    (void)pthread_attr_destroy(&attr);
    return error;
}

int dj__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    thread_start *start = malloc(sizeof(*start));
    if (start == NULL) {
        return ENOMEM;
    }
    *start = (thread_start){.run = run, .arg = arg};
    snprintf(start->name, sizeof(start->name), "%s", name);

    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t blocked;
    sigset_t before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        sigdelset(&blocked, faults[i]);
    }
    int error = pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (error == 0) {
        error = thread_create(thread, start);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (error != 0) {
        free(start);
    }
    return error;
}

/* The kernel refuses a set that is smaller than its own, however many processors are in use. */
static int thread_count_affinity(void)
{
    for (int max = CPU_SETSIZE; max <= THREAD_MAX_CPUS; max *= 2) {
        cpu_set_t *set = CPU_ALLOC(max);
        if (set == NULL) {
            return 0;
        }
        const size_t size = CPU_ALLOC_SIZE(max);
        const bool known = sched_getaffinity(0, size, set) == 0;
        const bool too_small = !known && errno == EINVAL;
        const int count = known ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (!too_small) {
            return count;
        }
    }
    return 0;
}

unsigned dj__cpu_count(void)
{
    const int count = thread_count_affinity();
    if (count > 0) {
        return (unsigned)count;
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

static _Atomic uint32_t fork_generation; /* 0: the handler is not registered */
static dj__fork_hook *_Atomic fork_hooks;
static pthread_mutex_t fork_writers = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void fork_in_child(void)
{
    dj__mutex_init(&fork_writers); /* its owner, if any, does not exist here */
    atomic_fetch_add(&fork_generation, 1);
    dj__fork_hook *hook = atomic_load(&fork_hooks);
    while (hook != NULL) {
        dj__fork_hook *next = atomic_load(&hook->next); /* the hook may remove itself */
        hook->after_fork(hook);
        hook = next;
    }
}

static void fork_register(void)
{
    if (pthread_atfork(NULL, NULL, fork_in_child) == 0) {
        atomic_store(&fork_generation, 1);
    }
}

uint32_t dj__fork_generation(void)
{
    const uint32_t generation = atomic_load_explicit(&fork_generation, memory_order_relaxed);
    if (generation != 0) {
        return generation;
    }
    (void)pthread_once(&fork_once, fork_register);
    return atomic_load(&fork_generation);
}

bool dj__fork_hook_add(dj__fork_hook *hook)
{
    if (dj__fork_generation() == 0) {
        return false;
    }
    pthread_mutex_lock(&fork_writers);
    atomic_store(&hook->next, atomic_load(&fork_hooks));
    atomic_store(&fork_hooks, hook);
    pthread_mutex_unlock(&fork_writers);
    return true;
}

void dj__fork_hook_remove(dj__fork_hook *hook)
{
    pthread_mutex_lock(&fork_writers);
    dj__fork_hook *_Atomic *link = &fork_hooks;
    dj__fork_hook *current = atomic_load(link);
    while (current != NULL && current != hook) {
        link = &current->next;
        current = atomic_load(link);
    }
    if (current != NULL) {
        atomic_store(link, atomic_load(&hook->next));
    }
    pthread_mutex_unlock(&fork_writers);
}
