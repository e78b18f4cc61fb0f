/* SPDX-License-Identifier: MIT */
/*
 * What the benchmarks share: clock, medians, one JSON line for each result, a cache root that is
 * removed afterwards. A benchmark ends at the first failure, with exit status 1.
 * scripts/bench-gpu.sh makes the table.
 */
#ifndef BENCH_H
#define BENCH_H

#include "hand_driver.h"
#include <deepjit/cuda.h>
#include <deepjit/deepjit.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static inline double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* Keeps the calling thread on the processor on which it is, for even times. */
static inline void bench_pin(void)
{
    cpu_set_t set;
    const int cpu = sched_getcpu();
    CPU_ZERO(&set);
    if (cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_SET(cpu, &set);
        (void)sched_setaffinity(0, sizeof(set), &set);
    }
}

/* ---- Failures ---- */

static inline void bench_check(dj_status status, const dj_error *err, const char *what)
{
    if (status != DJ_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, dj_status_name(status), err->message);
        exit(1);
    }
}

static inline void bench_cu(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s: CUDA error %d\n", what, result);
        exit(1);
    }
}

/* ---- Samples ---- */

enum { BENCH_SAMPLES = 4096 };

typedef struct bench_samples {
    double values[BENCH_SAMPLES];
    size_t count;
} bench_samples;

static inline void bench_add(bench_samples *samples, double value)
{
    if (samples->count < BENCH_SAMPLES) {
        samples->values[samples->count++] = value;
    }
}

static inline int bench_compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the samples. */
static inline double bench_median(bench_samples *samples)
{
    if (samples->count == 0) {
        return 0;
    }
    qsort(samples->values, samples->count, sizeof(samples->values[0]), bench_compare);
    const size_t half = samples->count / 2;
    return samples->count % 2 == 1 ? samples->values[half]
                                   : 0.5 * (samples->values[half - 1] + samples->values[half]);
}

/* Two things measured in turns: pair i of both was measured back to back. */
typedef struct bench_pair {
    bench_samples ours, theirs, ratio;
} bench_pair;

static inline void bench_add_pair(bench_pair *pair, double ours, double theirs)
{
    bench_add(&pair->ours, ours);
    bench_add(&pair->theirs, theirs);
    bench_add(&pair->ratio, ours / theirs);
}

/* ---- Results ---- */

typedef enum bench_limit { BENCH_NO_LIMIT, BENCH_RATIO, BENCH_OURS, BENCH_DIFFERENCE } bench_limit;

/* Medians; theirs 0: nothing to compare with. The ratio is the median of the pairs' ratios. */
static inline void bench_report(const char *name, double ours, double theirs, double ratio,
                                bench_limit of, double limit)
{
    static const char *const words[] = {"", "ratio", "ours_ns", "difference_ns"};
    const double judged = of == BENCH_RATIO ? ratio : of == BENCH_OURS ? ours : ours - theirs;
    printf("{\"name\": \"%s\", \"ours_ns\": %.1f", name, ours);
    if (theirs > 0) {
        printf(", \"theirs_ns\": %.1f, \"ratio\": %.4f, \"difference_ns\": %.1f", theirs, ratio,
               ours - theirs);
    }
    if (of != BENCH_NO_LIMIT) {
        printf(", \"limit\": %g, \"limit_of\": \"%s\", \"met\": %s", limit, words[of],
               judged <= limit ? "true" : "false");
    }
    printf("}\n");
    fflush(stdout);
}

static inline void bench_report_pair(const char *name, bench_pair *pair, bench_limit of,
                                     double limit)
{
    bench_report(name, bench_median(&pair->ours), bench_median(&pair->theirs),
                 bench_median(&pair->ratio), of, limit);
}

/* ---- Cache root ---- */

static char bench_root[64];

static inline int bench_remove_file(const char *path, const struct stat *info, int kind,
                                    struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static inline void bench_remove_root(void)
{
    nftw(bench_root, bench_remove_file, 16, FTW_DEPTH | FTW_PHYS);
}

/* An empty cache root for this process, removed when it ends. */
static inline void bench_make_root(void)
{
    snprintf(bench_root, sizeof(bench_root), "/tmp/djbench-XXXXXX");
    if (mkdtemp(bench_root) == NULL) {
        perror("mkdtemp");
        exit(1);
    }
    atexit(bench_remove_root);
    setenv("DJ_JIT_CACHE_DIR", bench_root, 1);
}

static inline dj_runtime *bench_runtime(void)
{
    const dj_backend *const backend = dj_backend_find("cuda");
    if (backend == NULL) {
        fprintf(stderr, "this build has no back end named cuda\n");
        exit(1);
    }
    dj_runtime *runtime = NULL;
    dj_error err = DJ_ERROR_INIT;
    bench_check(dj_runtime_create(backend, NULL, &runtime, &err), &err, "dj_runtime_create");
    return runtime;
}

static inline dj_kernel *bench_compile(dj_runtime *runtime, const char *source)
{
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    bench_check(dj_compile(runtime, "bench", source, strlen(source), NULL, &kernel, &err), &err,
                "dj_compile");
    return kernel;
}

/* The whole file, or an exit; free() it. */
static inline void *bench_read(const char *path)
{
    FILE *const file = fopen(path, "rb");
    struct stat info;
    if (file == NULL || fstat(fileno(file), &info) != 0) {
        perror(path);
        exit(1);
    }
    char *const bytes = malloc((size_t)info.st_size + 1);
    if (bytes == NULL || fread(bytes, 1, (size_t)info.st_size, file) != (size_t)info.st_size) {
        perror(path);
        exit(1);
    }
    bytes[info.st_size] = '\0';
    fclose(file);
    return bytes;
}

#endif
