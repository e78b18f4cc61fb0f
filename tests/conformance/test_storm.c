/* SPDX-License-Identifier: MIT */
/*
 * Many processes with many threads, cold, on the same kernels: right results, every entry
 * complete, nothing left in tmp/, and the threads of one process compile each kernel once.
 *
 * The parent starts copies of this program ("child" as the first argument), so that no child
 * begins as a fork of a threaded process.
 */
#include "conformance.h"
#include <dirent.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>

extern char **environ;

enum { PROCESSES = 8, THREADS = 32, KERNELS = 16 };

static atomic_int failures;
static pthread_barrier_t start_line;

static void storm_source(int bias, char *out, size_t size)
{
    snprintf(out, size,
             KERNEL_HEADER "DJ_KERNEL(add, (int *, out), (int, x)) { out[0] = x + %d; }\n", bias);
}

/* One kernel: compile, launch, check. */
static bool storm_once(int bias)
{
    char source[256];
    storm_source(bias, source, sizeof(source));
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    if (dj_compile(suite_runtime, "storm", source, strlen(source), NULL, &kernel, &err) != DJ_OK) {
        fprintf(stderr, "storm: %s\n", err.message);
        return false;
    }
    int got = 0;
    int x = 1000;
    void *memory = NULL;
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = options.block.x = 1;
    const bool ok = dj_mem_alloc(suite_runtime, sizeof(got), &memory, &err) == DJ_OK &&
                    dj_launch(kernel, &options, DJ_ARGS(memory, x), &err) == DJ_OK &&
                    dj_synchronize(suite_runtime, &err) == DJ_OK &&
                    dj_mem_copy(suite_runtime, &got, memory, sizeof(got), &err) == DJ_OK;
    dj_mem_free(suite_runtime, memory, NULL);
    dj_kernel_release(kernel);
    if (!ok) {
        fprintf(stderr, "storm: %s\n", err.message);
    }
    return ok && suite_result(got, 1000 + bias) == 1000 + bias;
}

static void *storm_thread(void *arg)
{
    const int first = *(const int *)arg;
    pthread_barrier_wait(&start_line);
    for (int i = 0; i < KERNELS; i++) {
        if (!storm_once((first + i) % KERNELS)) {
            atomic_fetch_add(&failures, 1);
        }
    }
    return NULL;
}

static int storm_child(void)
{
    dj_error err = DJ_ERROR_INIT;
    if (dj_runtime_create(suite_backend(), NULL, &suite_runtime, &err) != DJ_OK) {
        fprintf(stderr, "storm: %s\n", err.message);
        return 1;
    }
    pthread_t threads[THREADS];
    int starts[THREADS];
    pthread_barrier_init(&start_line, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        starts[i] = i % KERNELS;
        if (pthread_create(&threads[i], NULL, storm_thread, &starts[i]) != 0) {
            return 2;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    dj_stats stats = DJ_STATS_INIT;
    dj_runtime_stats(suite_runtime, &stats, NULL);
    dj_runtime_release(suite_runtime);
    if (stats.compiles > KERNELS || stats.loads != KERNELS) {
        fprintf(stderr, "storm: %llu compiles and %llu loads of %d kernels\n",
                (unsigned long long)stats.compiles, (unsigned long long)stats.loads, KERNELS);
        return 3;
    }
    return atomic_load(&failures) == 0 ? 0 : 4;
}

static bool count_good(void *user, const dj_cache_entry *entry)
{
    assert_int_equal(entry->state, DJ_ENTRY_GOOD);
    assert_string_equal(entry->tag, "storm");
    ++*(int *)user;
    return true;
}

static int count_names(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

static void run_processes(void)
{
    char program[] = "/proc/self/exe";
    char role[] = "child";
    char *const argv[] = {program, role, NULL};
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(posix_spawn(&pids[i], program, NULL, NULL, argv, environ), 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void cold_storm(void **state)
{
    (void)state;
    run_processes();
    int entries = 0;
    dj_error err;
    assert_int_equal(dj_cache_verify(suite_runtime, count_good, &entries, &err), DJ_OK);
    assert_int_equal(entries, KERNELS);
    char tmp[256];
    snprintf(tmp, sizeof(tmp), "%s/tmp", getenv("DJ_JIT_CACHE_DIR"));
    assert_int_equal(count_names(tmp), 0);
    /* Later processes never compile. */
    for (int i = 0; i < KERNELS; i++) {
        assert_true(storm_once(i));
    }
    dj_stats stats = DJ_STATS_INIT;
    assert_int_equal(dj_runtime_stats(suite_runtime, &stats, NULL), DJ_OK);
    assert_int_equal(stats.compiles, 0);
    assert_int_equal(stats.disk_hits, KERNELS);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "child") == 0) {
        return storm_child();
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(cold_storm)};
    return cmocka_run_group_tests_name("storm", tests, suite_setup, suite_teardown);
}
