/* SPDX-License-Identifier: MIT */
/* link: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=aligned_alloc */
/* link: -Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_trylock */
/* link: -Wl,--wrap=pthread_rwlock_rdlock,--wrap=posix_spawn */
/*
 * The promises of the hot paths, counted: a memory hit and a one-block launch take no lock,
 * allocate nothing and make no system call; a process that only hits disk starts no process.
 */
#include "base/fs.h"
#include <deepjit/deepjit.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static atomic_long heap_calls;
static atomic_long lock_calls;
static atomic_long spawn_calls;

#define COUNTED(counter, type, name, params, args)                                                 \
    type __real_##name params;                                                                     \
    type __wrap_##name params;                                                                     \
    type __wrap_##name params                                                                      \
    {                                                                                              \
        atomic_fetch_add(&counter, 1);                                                             \
        return __real_##name args;                                                                 \
    }

COUNTED(heap_calls, void *, malloc, (size_t size), (size))
COUNTED(heap_calls, void *, calloc, (size_t count, size_t size), (count, size))
COUNTED(heap_calls, void *, realloc, (void *memory, size_t size), (memory, size))
COUNTED(heap_calls, void *, aligned_alloc, (size_t align, size_t size), (align, size))
COUNTED(heap_calls, void, free, (void *memory), (memory))
COUNTED(lock_calls, int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
COUNTED(lock_calls, int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
COUNTED(lock_calls, int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
COUNTED(spawn_calls, int, posix_spawn,
        (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
         const posix_spawnattr_t *attr, char *const argv[], char *const envp[]),
        (pid, path, actions, attr, argv, envp))

static const char source[] =
    "#include <deepjit/kernel.h>\n"
    "DJ_KERNEL(add, (int *, out), (const int *, in), (int, n)) { out[0] = in[0] + n; }\n";

static char dir[64];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/djhot-XXXXXX");
    setenv("DJ_JIT_CACHE_FSYNC", "none", 1);
    if (mkdtemp(dir) == NULL) {
        return -1;
    }
    return setenv("DJ_JIT_CACHE_DIR", dir, 1);
}

static int teardown(void **state)
{
    (void)state;
    return dj__remove_tree(dir);
}

static dj_runtime *new_runtime(void)
{
    dj_runtime *runtime = NULL;
    dj_error err = DJ_ERROR_INIT;
    if (dj_runtime_create(dj_backend_find("host"), NULL, &runtime, &err) != DJ_OK) {
        fail_msg("%s", err.message);
    }
    return runtime;
}

/* What a hot loop does. Returns false instead of asserting: it also runs where nothing but
 * _exit is allowed. */
static bool hot_loop(dj_runtime *runtime, const dj_compile_options *options, int rounds)
{
    int result = 0;
    int input = 5;
    int *out = &result;
    const int *in = &input;
    int n = 37;
    dj_launch_options launch = DJ_LAUNCH_OPTIONS_INIT;
    launch.grid.x = launch.block.x = 1;
    for (int i = 0; i < rounds; i++) {
        dj_kernel *kernel = NULL;
        result = 0;
        if (dj_compile(runtime, "add", source, sizeof(source) - 1, options, &kernel, NULL) !=
                DJ_OK ||
            dj_launch(kernel, &launch, DJ_ARGS(out, in, n), NULL) != DJ_OK || result != 42) {
            return false;
        }
        dj_kernel_release(kernel);
    }
    return true;
}

static void no_lock_and_no_allocation(void **state)
{
    (void)state;
    dj_runtime *runtime = new_runtime();
    const char *const flags[] = {"-DX=1", "-DY=2"};
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.extra_flags = flags;
    options.num_extra_flags = 2;
    assert_true(hot_loop(runtime, NULL, 2));
    assert_true(hot_loop(runtime, &options, 2));
    atomic_store(&heap_calls, 0);
    atomic_store(&lock_calls, 0);
    assert_true(hot_loop(runtime, NULL, 1000));
    assert_true(hot_loop(runtime, &options, 1000));
    assert_int_equal(atomic_load(&heap_calls), 0);
    assert_int_equal(atomic_load(&lock_calls), 0);
    dj_runtime_release(runtime);
}

/* The kernel ends a process in strict mode at any system call but read, write and _exit. */
static void no_system_call(void **state)
{
    (void)state;
    dj_runtime *runtime = new_runtime();
    assert_true(hot_loop(runtime, NULL, 2));
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (!hot_loop(runtime, NULL, 1)) {
            _exit(2);
        }
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
            _exit(77);
        }
        const bool ok = hot_loop(runtime, NULL, 1000);
        syscall(SYS_exit, ok ? 0 : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("no seccomp here\n");
        skip();
    }
    assert_false(WIFSIGNALED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    dj_runtime_release(runtime);
}

static void disk_hits_start_no_process(void **state)
{
    (void)state;
    dj_runtime *runtime = new_runtime();
    atomic_store(&spawn_calls, 0);
    assert_true(hot_loop(runtime, NULL, 1));
    assert_true(atomic_load(&spawn_calls) > 0);
    dj_runtime_release(runtime);
    runtime = new_runtime();
    atomic_store(&spawn_calls, 0);
    assert_true(hot_loop(runtime, NULL, 1));
    assert_int_equal(atomic_load(&spawn_calls), 0);
    dj_runtime_release(runtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_lock_and_no_allocation, setup, teardown),
        cmocka_unit_test_setup_teardown(no_system_call, setup, teardown),
        cmocka_unit_test_setup_teardown(disk_hits_start_no_process, setup, teardown),
    };
    return cmocka_run_group_tests_name("hot path", tests, NULL, NULL);
}
