/* SPDX-License-Identifier: MIT */
/* Threads and forks over the stand-in back end: one build for all, and children that work. */
#include "core_fixture.h"
#include <sys/wait.h>

enum { THREADS = 16 };

typedef struct job {
    dj_runtime *runtime;
    const char *source;
    dj_kernel *kernel;
    dj_status status;
} job;

static void *run_job(void *arg)
{
    job *mine = arg;
    dj_error err = DJ_ERROR_INIT;
    mine->status = dj_compile(mine->runtime, "t", mine->source, strlen(mine->source), NULL,
                              &mine->kernel, &err);
    return NULL;
}

static void run_together(job *jobs, dj_runtime *runtime, const char *source)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){runtime, source, NULL, DJ_INTERNAL};
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void one_build_for_all(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    job jobs[THREADS];
    run_together(jobs, runtime, "shared");
    assert_int_equal(world.compiles, 1);
    assert_int_equal(world.loads, 1);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(jobs[i].status, DJ_OK);
        assert_ptr_equal(jobs[i].kernel, jobs[0].kernel);
        dj_kernel_release(jobs[i].kernel);
    }
    dj_runtime_release(runtime);
    assert_int_equal(world.unloads, 1);
}

/* Every thread gets the error; how many compilations that takes depends on who came when. */
static void one_error_for_all(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    job jobs[THREADS];
    run_together(jobs, runtime, "#error");
    assert_in_range(world.compiles, 1, THREADS);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(jobs[i].status, DJ_COMPILE);
        assert_null(jobs[i].kernel);
    }
    assert_int_equal(fake_count("tmp"), 0);
    dj_runtime_release(runtime);
}

static void different_keys_run_at_once(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    pthread_mutex_lock(&world.gate);
    job jobs[2] = {{runtime, "a", NULL, DJ_INTERNAL}, {runtime, "b", NULL, DJ_INTERNAL}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    /* Both reach the compiler while neither can finish. */
    while (atomic_load(&world.at_gate) < 2) {
        sched_yield();
    }
    pthread_mutex_unlock(&world.gate);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(jobs[i].status, DJ_OK);
        dj_kernel_release(jobs[i].kernel);
    }
    dj_runtime_release(runtime);
}

static int child_status(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* In children cmocka's asserts must not be used: they would run the parent's tests on. */
static void unused_runtime_works_in_a_child(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dj_kernel *kernel = NULL;
        const dj_status status = dj_compile(runtime, "t", "x", 1, NULL, &kernel, NULL);
        dj_kernel_release(kernel);
        dj_runtime_release(runtime);
        _exit((int)status);
    }
    assert_int_equal(child_status(pid), DJ_OK);
    dj_runtime_release(runtime);
}

static void used_runtime_names_the_error(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    dj_kernel *kernel = fake_compile_ok(runtime, "t", "x", NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dj_error err = DJ_ERROR_INIT;
        dj_kernel *again = NULL;
        int bad = 0;
        bad |= dj_compile(runtime, "t", "x", 1, NULL, &again, &err) != DJ_DEVICE;
        bad |= strstr(err.message, "before fork()") == NULL ? 2 : 0;
        float *out = NULL;
        int n = 0;
        dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
        options.grid.x = options.block.x = 1;
        bad |= dj_launch(kernel, &options, DJ_ARGS(out, n), &err) != DJ_DEVICE ? 4 : 0;
        /* Building needs no device. */
        dj_compile_options arch = DJ_COMPILE_OPTIONS_INIT;
        arch.arch = "fake1";
        dj_artifact *artifact = NULL;
        bad |= dj_build(runtime, "t", "y", 1, &arch, &artifact, &err) != DJ_OK ? 8 : 0;
        dj_artifact_release(artifact);
        dj_kernel_release(kernel);
        dj_runtime_release(runtime);
        _exit(bad);
    }
    assert_int_equal(child_status(pid), 0);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

static void fork_safe_driver_keeps_its_kernels(void **state)
{
    (void)state;
    fake_driver_ops.caps = DJ_DRIVER_FORK_SAFE;
    dj_runtime *runtime = fake_runtime(NULL);
    dj_kernel *kernel = fake_compile_ok(runtime, "t", "x", NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dj_kernel *again = NULL;
        int bad = dj_compile(runtime, "t", "x", 1, NULL, &again, NULL) != DJ_OK;
        bad |= again != kernel ? 2 : 0;
        dj_kernel_release(again);
        bad |= dj_compile(runtime, "t", "z", 1, NULL, &again, NULL) != DJ_OK ? 4 : 0;
        dj_kernel_release(again);
        _exit(bad);
    }
    assert_int_equal(child_status(pid), 0);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

/* A child forked while another thread leads a build must not wait for that thread. */
static void child_does_not_wait_for_a_lost_leader(void **state)
{
    (void)state;
    fake_driver_ops.caps = DJ_DRIVER_FORK_SAFE;
    dj_runtime *runtime = fake_runtime(NULL);
    pthread_mutex_lock(&world.gate);
    job leader = {runtime, "slow", NULL, DJ_INTERNAL};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_job, &leader), 0);
    while (atomic_load(&world.at_gate) < 1) {
        sched_yield();
    }
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pthread_mutex_init(&world.gate, NULL);
        dj_kernel *kernel = NULL;
        _exit((int)dj_compile(runtime, "t", "slow", 4, NULL, &kernel, NULL));
    }
    assert_int_equal(child_status(pid), DJ_OK);
    pthread_mutex_unlock(&world.gate);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(leader.status, DJ_OK);
    dj_kernel_release(leader.kernel);
    dj_runtime_release(runtime);
}

static void child_leaves_the_parents_private_artifact(void **state)
{
    (void)state;
    setenv("DJ_JIT_LOG", "off", 1);
    fake_write(world.root, "a file, no directory\n");
    dj_runtime *runtime = fake_runtime(NULL);
    dj_artifact *artifact = NULL;
    assert_int_equal(dj_build(runtime, "t", "x", 1, NULL, &artifact, NULL), DJ_OK);
    assert_true(dj_artifact_is_private(artifact));
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dj_artifact_release(artifact);
        _exit(0);
    }
    assert_int_equal(child_status(pid), 0);
    assert_int_equal(access(dj_artifact_binary(artifact), R_OK), 0);
    dj_artifact_release(artifact);
    dj_runtime_release(runtime);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_build_for_all),
        TEST(one_error_for_all),
        TEST(different_keys_run_at_once),
        TEST(unused_runtime_works_in_a_child),
        TEST(used_runtime_names_the_error),
        TEST(fork_safe_driver_keeps_its_kernels),
        TEST(child_does_not_wait_for_a_lost_leader),
        TEST(child_leaves_the_parents_private_artifact),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
