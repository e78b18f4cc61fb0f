/* SPDX-License-Identifier: MIT */
/* link: -ldl */
/* The driver does not survive a fork. A runtime that was not used yet works in the child; a used
 * one says why it does not, and can be released. */
#include "cuda_maker.h"
#include <sys/wait.h>

static const char scale[] = "kernel scale 8:8 8:8 4:4\n";

static dj_status launch_scale(dj_kernel *kernel, dj_error *err)
{
    const dj_launch_options options = maker_one_thread();
    void *out = NULL;
    void *in = NULL;
    int n = 17;
    return dj_launch(kernel, &options, DJ_ARGS(out, in, n), err);
}

static void in_child(int (*work)(dj_runtime *, dj_kernel *), dj_runtime *runtime, dj_kernel *kernel)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(work(runtime, kernel));
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a child a failed assertion would run the parent's tests: numbers tell what went wrong. */
static int child_uses(dj_runtime *runtime, dj_kernel *kernel)
{
    (void)kernel;
    dj_kernel *own = NULL;
    dj_error err = DJ_ERROR_INIT;
    if (maker_try(runtime, scale, &own, &err) != DJ_OK || launch_scale(own, &err) != DJ_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    dj_kernel_release(own);
    dj_runtime_release(runtime);
    standin_cuda_live live;
    cu.live_now(&live);
    return live.libraries == 0 ? 0 : 2;
}

static bool named(const dj_error *err, dj_status status)
{
    if (status != DJ_OK && strstr(err->message, "fork") != NULL) {
        return true;
    }
    fprintf(stderr, "%s: %s\n", dj_status_name(status), err->message);
    return false;
}

static int child_is_told(dj_runtime *runtime, dj_kernel *kernel)
{
    dj_error err = DJ_ERROR_INIT;
    dj_kernel *other = NULL;
    void *memory = NULL;
    if (!named(&err, launch_scale(kernel, &err))) {
        return 1;
    }
    if (!named(&err, dj_mem_alloc(runtime, 8, &memory, &err))) {
        return 2;
    }
    if (!named(&err, dj_synchronize(runtime, &err))) {
        return 3;
    }
    if (!named(&err, maker_try(runtime, "kernel other 4\n", &other, &err))) {
        return 4;
    }
    dj_runtime *fresh = NULL;
    dj_device device = DJ_DEVICE_INIT;
    if (dj_runtime_create(&maker_backend, NULL, &fresh, &err) != DJ_OK ||
        !named(&err, dj_device_info(fresh, &device, &err))) {
        return 5;
    }
    dj_runtime_release(fresh);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    return 0;
}

static int child_builds(dj_runtime *runtime, dj_kernel *kernel)
{
    (void)kernel;
    dj_error err = DJ_ERROR_INIT;
    dj_artifact *artifact = NULL;
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.arch = "90a";
    const dj_status status = dj_build(runtime, "t", "kernel b 4\n", 11, &options, &artifact, &err);
    if (status != DJ_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    dj_artifact_release(artifact);
    return 0;
}

/* The first test: nothing has used the driver in this process. */
static void before_first_use(void **state)
{
    (void)state;
    dj_runtime *runtime = maker_runtime(NULL);
    in_child(child_uses, runtime, NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, scale); /* and the parent works, too */
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(launch_scale(kernel, &err), DJ_OK);
    assert_int_equal(atomic_load(&maker.compiles), 0); /* the child has published it */
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

static void after_first_use(void **state)
{
    (void)state;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = maker_kernel_of(runtime, scale);
    dj_error err = DJ_ERROR_INIT;
    in_child(child_is_told, runtime, kernel);
    in_child(child_builds, runtime, kernel);
    if (launch_scale(kernel, &err) != DJ_OK) {
        fail_msg("%s", err.message);
    }
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
    const struct CMUnitTest tests[] = {TEST(before_first_use), TEST(after_first_use)};
    return cmocka_run_group_tests_name("CUDA: fork", tests, maker_group, NULL);
}
