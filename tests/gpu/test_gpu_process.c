/* SPDX-License-Identifier: MIT */
/* Processes that start cold on one root, forks, and libraries with prefixes of their own. */
#include "gpu_test.h"
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* Compiles the kernel with this bias and checks one launch; fails the process otherwise. */
static void use_bias(dj_runtime *runtime, int bias)
{
    char flag[32];
    snprintf(flag, sizeof(flag), "-DBIAS=%d", bias);
    const char *const flags[] = {flag};
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.extra_flags = flags;
    options.num_extra_flags = 1;
    dj_kernel *const kernel = gpu_compile_in(runtime, "scale.cu", &options);
    const int in_value = 2;
    void *out = NULL;
    void *in = NULL;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_mem_alloc(runtime, 4, &out, &err));
    CHECK_OK(dj_mem_alloc(runtime, 4, &in, &err));
    CHECK_OK(dj_mem_copy(runtime, in, &in_value, 4, &err));
    const int factor = 3;
    const int n = 1;
    const dj_launch_options shape = gpu_shape(1, 1);
    gpu_launch(kernel, &shape, DJ_ARGS(out, in, factor, n));
    int got = 0;
    CHECK_OK(dj_mem_copy(runtime, &got, out, 4, &err));
    CHECK_INT(got, 6 + bias);
    CHECK_OK(dj_mem_free(runtime, out, &err));
    CHECK_OK(dj_mem_free(runtime, in, &err));
    dj_kernel_release(kernel);
}

static uint64_t compiles(dj_runtime *runtime)
{
    dj_stats stats = DJ_STATS_INIT;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_runtime_stats(runtime, &stats, &err));
    return stats.compiles;
}

enum { PROCESSES = 8 };

/* Waits for the starting shot, then does the work; returns how often it compiled. */
static int one_of_many(int start, int bias)
{
    char byte;
    while (read(start, &byte, 1) < 0 && errno == EINTR) {
    }
    use_bias(gpu_runtime(), bias);
    return (int)compiles(gpu_runtime());
}

/* Eight processes at once; their compilations, all together. */
static int storm(const int biases[PROCESSES])
{
    int start[2];
    pid_t children[PROCESSES];
    CHECK(pipe(start) == 0);
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            close(start[1]);
            const int count = one_of_many(start[0], biases[i]);
            fflush(NULL);
            _exit(count);
        }
    }
    close(start[0]);
    close(start[1]); /* the shot: all reads end */
    int total = 0;
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        CHECK(waitpid(children[i], &status, 0) == children[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 200);
        total += WEXITSTATUS(status);
    }
    return total;
}

static void cold_start_of_eight(void)
{
    static const int same[PROCESSES] = {51, 51, 51, 51, 51, 51, 51, 51};
    static const int mixed[PROCESSES] = {61, 62, 63, 64, 61, 62, 63, 64};
    const size_t before = gpu_count_entries();
    /* Each may have to compile; one result is published. */
    const int first = storm(same);
    CHECK(first >= 1 && first <= PROCESSES);
    CHECK_INT(gpu_count_entries(), before + 1);
    const int second = storm(mixed);
    CHECK(second >= 4 && second <= PROCESSES);
    CHECK_INT(gpu_count_entries(), before + 5);
    CHECK_INT(storm(mixed), 0);
    CHECK_INT(gpu_count_entries(), before + 5);
}

static int use_after_fork(void *user)
{
    use_bias(user, 0);
    return 0;
}

static void fork_before_first_use(void)
{
    dj_runtime *const runtime = gpu_runtime();
    CHECK_INT(gpu_in_child(use_after_fork, runtime), 0);
    CHECK_INT(gpu_in_child(use_after_fork, runtime), 0);
    use_bias(runtime, 0);
}

typedef struct forked {
    dj_runtime *runtime;
    dj_kernel *kernel;
    void *memory;
} forked;

/* Device work in the child of a process that used the device: a named error, never a crash. */
static int child_of_a_user(void *user)
{
    const forked *const from = user;
    const int factor = 1;
    const int n = 1;
    const dj_launch_options shape = gpu_shape(1, 1);
    dj_error err = DJ_ERROR_INIT;
    dj_status status =
        dj_launch(from->kernel, &shape, DJ_ARGS(from->memory, from->memory, factor, n), &err);
    if (status == DJ_OK || strstr(err.message, "fork") == NULL) {
        printf("    launch in a child: %s \"%s\"\n", dj_status_name(status), err.message);
        return 1;
    }
    void *memory = NULL;
    status = dj_mem_alloc(from->runtime, 4, &memory, &err);
    if (status == DJ_OK || strstr(err.message, "fork") == NULL) {
        printf("    memory in a child: %s \"%s\"\n", dj_status_name(status), err.message);
        return 2;
    }
    dj_kernel_release(from->kernel);
    dj_runtime_release(from->runtime);
    return 0;
}

static void fork_after_use(void)
{
    use_bias(gpu_runtime(), 0);
    forked from = {.runtime = gpu_runtime(), .kernel = gpu_compile("scale.cu", NULL)};
    from.memory = gpu_upload(NULL, 4);
    CHECK_INT(gpu_in_child(child_of_a_user, &from), 0);
    use_bias(gpu_runtime(), 0); /* the parent is none the worse */
    dj_kernel_release(from.kernel);
}

/* Two libraries in one process: one root, one entry, two loaded kernels. */
static void two_prefixes(void)
{
    dj_config config = DJ_CONFIG_INIT;
    config.env_prefix = "FIRSTLIB";
    dj_runtime *const first = gpu_new_runtime(&config);
    config.env_prefix = "SECONDLIB";
    dj_runtime *const second = gpu_new_runtime(&config);
    const size_t before = gpu_count_entries();
    use_bias(first, 81);
    CHECK_INT(gpu_count_entries(), before + 1);
    use_bias(second, 81);
    CHECK_INT(gpu_count_entries(), before + 1);
    CHECK_INT(compiles(first), 1);
    CHECK_INT(compiles(second), 0);
    dj_kernel *const kernel = gpu_compile_in(second, "scale.cu", NULL);
    dj_runtime_release(first);
    use_bias(second, 81);
    dj_runtime_release(second);
    /* A kernel outlives its runtime. */
    const int in_value = 4;
    int *const in = gpu_upload(&in_value, 4);
    int *const out = gpu_upload(NULL, 4);
    const int factor = 5;
    const int n = 1;
    const dj_launch_options shape = gpu_shape(1, 1);
    gpu_launch(kernel, &shape, DJ_ARGS(out, in, factor, n));
    int got = 0;
    gpu_download(&got, out, sizeof(got));
    CHECK_INT(got, 20);
    dj_kernel_release(kernel);
}

/* A prefix with a root of its own shares nothing. */
static void prefix_with_its_own_root(void)
{
    char root[128];
    snprintf(root, sizeof(root), "%s/own", gpu_directory());
    setenv("OWNLIB_JIT_CACHE_DIR", root, 1);
    dj_config config = DJ_CONFIG_INIT;
    config.env_prefix = "OWNLIB";
    dj_runtime *const own = gpu_new_runtime(&config);
    const size_t before = gpu_count_entries();
    use_bias(own, 91);
    CHECK_INT(compiles(own), 1);
    CHECK_INT(gpu_count_entries(), before);
    dj_runtime_release(own);
}

static const gpu_case cases[] = {
    {"cold_start_of_eight", cold_start_of_eight, GPU_ALONE},
    {"fork_before_first_use", fork_before_first_use, GPU_ALONE},
    {"fork_after_use", fork_after_use, GPU_ALONE},
    {"two_prefixes", two_prefixes, 0},
    {"prefix_with_its_own_root", prefix_with_its_own_root, 0},
};
GPU_MAIN(cases)
