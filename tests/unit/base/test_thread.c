/* SPDX-License-Identifier: MIT */
/* Clocks, timed waits, signal-free threads, processors, and fork hooks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/thread.h"
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MS = 1000000 };

static void clock_does_not_go_back(void **state)
{
    (void)state;
    int64_t last = dj__now_ns();
    assert_true(last > 0);
    for (int i = 0; i < 1000; i++) {
        const int64_t now = dj__now_ns();
        assert_true(now >= last);
        last = now;
    }
}

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool open;
} gate;

static void *gate_open(void *arg)
{
    gate *g = arg;
    pthread_mutex_lock(&g->mutex);
    g->open = true;
    pthread_cond_signal(&g->cond);
    pthread_mutex_unlock(&g->mutex);
    return NULL;
}

static void timed_wait(void **state)
{
    (void)state;
    gate g = {.open = false};
    dj__mutex_init(&g.mutex);
    dj__cond_init(&g.cond);

    pthread_mutex_lock(&g.mutex);
    assert_false(dj__cond_wait_until(&g.cond, &g.mutex, 0));
    assert_false(dj__cond_wait_until(&g.cond, &g.mutex, -5));
    const int64_t deadline = dj__now_ns() + 20 * MS;
    while (dj__cond_wait_until(&g.cond, &g.mutex, deadline)) {
    }
    assert_true(dj__now_ns() >= deadline);

    pthread_t thread;
    assert_int_equal(dj__thread_start(&thread, "opener", gate_open, &g), 0);
    bool in_time = true;
    while (!g.open && in_time) {
        in_time = dj__cond_wait_until(&g.cond, &g.mutex, INT64_MAX);
    }
    assert_true(g.open);
    assert_true(in_time);
    pthread_mutex_unlock(&g.mutex);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_cond_destroy(&g.cond);
    pthread_mutex_destroy(&g.mutex);
}

typedef struct inside {
    sigset_t blocked;
    char name[16];
} inside;

static void *look_inside(void *arg)
{
    inside *seen = arg;
    pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
    pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
    return seen;
}

static void threads_handle_no_signals(void **state)
{
    (void)state;
    sigset_t before;
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    inside seen = {.name = ""};
    pthread_t thread;
    assert_int_equal(dj__thread_start(&thread, "a name that is too long", look_inside, &seen), 0);
    void *result = NULL;
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &seen);
    assert_string_equal(seen.name, "a name that is ");
    static const int handled_elsewhere[] = {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGALRM, SIGPIPE};
    for (size_t i = 0; i < sizeof(handled_elsewhere) / sizeof(int); i++) {
        assert_int_equal(sigismember(&seen.blocked, handled_elsewhere[i]), 1);
    }
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof(faults) / sizeof(int); i++) {
        assert_int_equal(sigismember(&seen.blocked, faults[i]), 0);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int sig = 1; sig < NSIG; sig++) {
        assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
    }
}

static void cpu_count_follows_affinity(void **state)
{
    (void)state;
    assert_true(dj__cpu_count() >= 1);
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof(all), &all) != 0) {
        print_message("skipped: more processors than a cpu_set_t holds\n");
        skip();
    }
    assert_int_equal(dj__cpu_count(), CPU_COUNT(&all));
    int first = 0;
    while (!CPU_ISSET(first, &all)) {
        first++;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    const unsigned count = dj__cpu_count();
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(count, 1);
}

/* Runs `check` in a forked child; what it returns is the exit status. */
static int in_child(int (*check)(void *), void *arg)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(check(arg));
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int generation_grew(void *arg)
{
    const uint32_t before = *(const uint32_t *)arg;
    return dj__fork_generation() == before + 1 ? 0 : 1;
}

static int grandchild_generation_grew(void *arg)
{
    uint32_t here = dj__fork_generation();
    return generation_grew(arg) + in_child(generation_grew, &here);
}

static void fork_generation_counts(void **state)
{
    (void)state;
    uint32_t before = dj__fork_generation();
    assert_true(before > 0);
    assert_int_equal(in_child(generation_grew, &before), 0);
    assert_int_equal(in_child(grandchild_generation_grew, &before), 0);
    assert_true(dj__fork_generation() == before);
}

typedef struct counted_hook {
    dj__fork_hook hook; /* first: a hook is its object */
    unsigned calls;
    bool removes_itself;
} counted_hook;

static void count_call(dj__fork_hook *hook)
{
    counted_hook *self = (counted_hook *)hook;
    self->calls++;
    if (self->removes_itself) {
        dj__fork_hook_remove(hook);
    }
}

static int calls_are_right(void *arg)
{
    const counted_hook *hooks = arg;
    return hooks[0].calls == 1 && hooks[1].calls == 0 && hooks[2].calls == 1 ? 0 : 1;
}

static int removed_itself(void *arg)
{
    counted_hook *hooks = arg;
    if (calls_are_right(hooks) != 0) {
        return 1;
    }
    /* The child's child calls only the hook that stayed. */
    hooks[0].calls = 0;
    hooks[2].calls = 1;
    return in_child(calls_are_right, hooks);
}

static void hooks_run_in_the_child(void **state)
{
    (void)state;
    counted_hook hooks[3];
    memset(hooks, 0, sizeof(hooks));
    for (int i = 0; i < 3; i++) {
        hooks[i].hook.after_fork = count_call;
        assert_true(dj__fork_hook_add(&hooks[i].hook));
    }
    dj__fork_hook_remove(&hooks[1].hook);
    assert_int_equal(in_child(calls_are_right, hooks), 0);
    assert_int_equal(hooks[0].calls, 0);

    hooks[2].removes_itself = true;
    assert_int_equal(in_child(removed_itself, hooks), 0);

    dj__fork_hook_remove(&hooks[0].hook);
    dj__fork_hook_remove(&hooks[2].hook);
    dj__fork_hook_remove(&hooks[2].hook); /* no longer in the list */
    hooks[0].calls = 1;
    hooks[2].calls = 1;
    assert_int_equal(in_child(calls_are_right, hooks), 0);
}

typedef struct churn {
    _Atomic bool stop;
    counted_hook hooks[8];
} churn;

static void *add_and_remove(void *arg)
{
    churn *c = arg;
    while (!atomic_load(&c->stop)) {
        for (int i = 0; i < 8; i++) {
            dj__fork_hook_add(&c->hooks[i].hook);
        }
        /* From the middle, the head and the tail. */
        static const int order[8] = {3, 7, 0, 5, 1, 6, 4, 2};
        for (int i = 0; i < 8; i++) {
            dj__fork_hook_remove(&c->hooks[order[i]].hook);
        }
    }
    return NULL;
}

static int list_is_sound(void *arg)
{
    counted_hook *stays = arg;
    if (stays[0].calls != 1 || stays[1].calls != 1) {
        return 1;
    }
    /* The writers' lock is free here, whatever the parent's other thread was doing. */
    counted_hook mine = {.hook = {.after_fork = count_call}};
    if (!dj__fork_hook_add(&mine.hook)) {
        return 2;
    }
    dj__fork_hook_remove(&mine.hook);
    return 0;
}

static void hooks_survive_concurrent_changes(void **state)
{
    (void)state;
    churn c;
    memset(&c, 0, sizeof(c));
    for (int i = 0; i < 8; i++) {
        c.hooks[i].hook.after_fork = count_call;
    }
    counted_hook stays[2];
    memset(stays, 0, sizeof(stays));
    stays[0].hook.after_fork = count_call;
    stays[1].hook.after_fork = count_call;
    assert_true(dj__fork_hook_add(&stays[0].hook));
    pthread_t thread;
    assert_int_equal(dj__thread_start(&thread, "churn", add_and_remove, &c), 0);
    assert_true(dj__fork_hook_add(&stays[1].hook));
    for (int i = 0; i < 200; i++) {
        assert_int_equal(in_child(list_is_sound, stays), 0);
    }
    atomic_store(&c.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    dj__fork_hook_remove(&stays[0].hook);
    dj__fork_hook_remove(&stays[1].hook);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_does_not_go_back),
        cmocka_unit_test(timed_wait),
        cmocka_unit_test(threads_handle_no_signals),
        cmocka_unit_test(cpu_count_follows_affinity),
        cmocka_unit_test(fork_generation_counts),
        cmocka_unit_test(hooks_run_in_the_child),
        cmocka_unit_test(hooks_survive_concurrent_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
