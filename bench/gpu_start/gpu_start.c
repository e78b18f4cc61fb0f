/* SPDX-License-Identifier: MIT */
/*
 * A new process, from its start to the end of its first launch: with the library and a warm cache
 * root, and by hand with the cubin at a known path. Both are this program again, in turns.
 *
 * The library's process also checks that it compiled nothing and started no process.
 */
#include "../common/bench.h"
#include <errno.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { STARTS = 61, WARM_UP = 2 }; /* cuInit alone varies by milliseconds */

static const char start_source[] = "extern \"C\" __global__ void first_launch() {}\n";

static int start_tell(char what)
{
    return write(STDOUT_FILENO, &what, 1) == 1 ? 0 : 1;
}

static int start_ours(void)
{
    dj_runtime *const runtime = bench_runtime();
    dj_kernel *const kernel = bench_compile(runtime, start_source);
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = 1;
    options.block.x = 1;
    dj_error err = DJ_ERROR_INIT;
    bench_check(dj_launch(kernel, &options, DJ_NO_ARGS, &err), &err, "dj_launch");
    bench_check(dj_synchronize(runtime, &err), &err, "dj_synchronize");
    if (start_tell('r') != 0) {
        return 1;
    }
    dj_stats stats = DJ_STATS_INIT;
    bench_check(dj_runtime_stats(runtime, &stats, &err), &err, "dj_runtime_stats");
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    if (stats.compiles != 0 || stats.disk_hits != 1 || children.ru_maxrss != 0 ||
        waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
        fprintf(stderr, "the process compiled or started another one\n");
        return 1;
    }
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    return 0;
}

static int start_theirs(const char *path)
{
    hand_driver driver;
    if (!hand_open(&driver, NULL)) {
        fprintf(stderr, "no driver: %s\n", dlerror());
        return 1;
    }
    bench_cu(hand_start(&driver), "cuInit");
    void *const bytes = bench_read(path);
    void *library = NULL;
    void *kernel = NULL;
    void *function = NULL;
    bench_cu(driver.cuLibraryLoadData(&library, bytes, NULL, NULL, 0, NULL, NULL, 0), "load");
    bench_cu(driver.cuLibraryGetKernel(&kernel, library, "first_launch"), "cuLibraryGetKernel");
    bench_cu(driver.cuKernelGetFunction(&function, kernel), "cuKernelGetFunction");
    const hand_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    bench_cu(driver.cuLaunchKernelEx(&config, function, NULL, NULL), "cuLaunchKernelEx");
    bench_cu(driver.cuCtxSynchronize(), "cuCtxSynchronize");
    const int told = start_tell('r');
    free(bytes);
    return told;
}

/* Nanoseconds from the start of the process until it says that its launch is done. */
static double start_measure(char *program, char *mode, char *path)
{
    extern char **environ;
    int out[2];
    if (pipe(out) != 0) {
        perror("pipe");
        exit(1);
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, out[0]);
    char *const argv[] = {program, mode, path, NULL};
    pid_t child = 0;
    const double begin = bench_now();
    if (posix_spawn(&child, program, &actions, NULL, argv, environ) != 0) {
        perror(program);
        exit(1);
    }
    close(out[1]);
    char byte = 0;
    ssize_t got;
    do {
        got = read(out[0], &byte, 1);
    } while (got < 0 && errno == EINTR);
    const double end = bench_now();
    close(out[0]);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0 || got != 1 || byte != 'r') {
        fprintf(stderr, "%s %s failed\n", program, mode);
        exit(1);
    }
    return end - begin;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--ours") == 0) {
        return start_ours();
    }
    if (argc == 3 && strcmp(argv[1], "--theirs") == 0) {
        return start_theirs(argv[2]);
    }
    bench_make_root();
    /* Fills the root. The context that stays open keeps the driver awake, for both sides. */
    dj_runtime *const runtime = bench_runtime();
    dj_kernel *const kernel = bench_compile(runtime, start_source);
    char path[1024];
    snprintf(path, sizeof(path), "%s/kernel.cubin", dj_kernel_path(kernel));
    char program[] = "/proc/self/exe";
    char self[1024] = {0};
    if (readlink(program, self, sizeof(self) - 1) <= 0) {
        perror(program);
        return 1;
    }
    static bench_pair pair;
    for (int i = 0; i < WARM_UP + STARTS; i++) {
        char ours_mode[] = "--ours";
        char theirs_mode[] = "--theirs";
        const bool swap = i % 2 == 1;
        double theirs = swap ? start_measure(self, theirs_mode, path) : 0;
        const double ours = start_measure(self, ours_mode, path);
        theirs = swap ? theirs : start_measure(self, theirs_mode, path);
        if (i >= WARM_UP) {
            bench_add_pair(&pair, ours, theirs);
        }
    }
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    bench_report_pair("start, new process to first launch", &pair, BENCH_DIFFERENCE, 3e6);
    return 0;
}
