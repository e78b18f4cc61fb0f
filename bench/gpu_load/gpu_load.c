/* SPDX-License-Identifier: MIT */
/*
 * A disk hit, from dj_compile to a kernel that can be launched, against reading the same cubin and
 * loading it by hand. The runtime has not seen the kernel; toolchain and headers it has checked for
 * another one. The first hit of a process, which checks them, is reported apart.
 */
#include "../common/bench.h"
#include <fcntl.h>
#include <pthread.h>

enum { KERNELS = 33, THREADS = 8, ROUNDS = 5 };

static void load_source(int number, char *out, size_t size)
{
    snprintf(out, size,
             "extern \"C\" __global__ void load%d(float *out, const float *in, int n)\n"
             "{\n"
             "    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);\n"
             "    if (i < n) {\n"
             "        out[i] = %d.0f * in[i] + out[i];\n"
             "    }\n"
             "}\n",
             number, number);
}

typedef struct load_builder {
    dj_runtime *runtime;
    int first;
    char (*paths)[512]; /* of the cubins */
} load_builder;

static void *load_build(void *argument)
{
    const load_builder *const self = argument;
    for (int i = self->first; i < KERNELS; i += THREADS) {
        char source[512];
        load_source(i, source, sizeof(source));
        dj_kernel *const kernel = bench_compile(self->runtime, source);
        snprintf(self->paths[i], sizeof(self->paths[i]), "%s/kernel.cubin", dj_kernel_path(kernel));
        dj_kernel_release(kernel);
    }
    return NULL;
}

static void load_fill_root(char (*paths)[512])
{
    dj_runtime *const runtime = bench_runtime();
    pthread_t threads[THREADS];
    load_builder builders[THREADS];
    for (int i = 0; i < THREADS; i++) {
        builders[i] = (load_builder){.runtime = runtime, .first = i, .paths = paths};
        if (pthread_create(&threads[i], NULL, load_build, &builders[i]) != 0) {
            exit(1);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    dj_runtime_release(runtime);
}

static double load_ours(dj_runtime *runtime, int number)
{
    char source[512];
    load_source(number, source, sizeof(source));
    dj_cuda_handles handles = DJ_CUDA_HANDLES_INIT;
    dj_error err = DJ_ERROR_INIT;
    const double begin = bench_now();
    dj_kernel *const kernel = bench_compile(runtime, source);
    const double end = bench_now();
    bench_check(dj_cuda_kernel_handles(kernel, &handles, &err), &err, "handles");
    dj_kernel_release(kernel);
    return end - begin;
}

/* The library stays loaded, as it does in the runtime's memory cache. */
static double load_theirs(const hand_driver *driver, const char *path, int number, void **library)
{
    char name[32];
    snprintf(name, sizeof(name), "load%d", number);
    void *kernel = NULL;
    void *function = NULL;
    const double begin = bench_now();
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (file < 0 || fstat(file, &info) != 0) {
        perror(path);
        exit(1);
    }
    char *const bytes = malloc((size_t)info.st_size);
    if (bytes == NULL || read(file, bytes, (size_t)info.st_size) != info.st_size) {
        perror(path);
        exit(1);
    }
    close(file);
    bench_cu(driver->cuLibraryLoadData(library, bytes, NULL, NULL, 0, NULL, NULL, 0), "load");
    bench_cu(driver->cuLibraryGetKernel(&kernel, *library, name), "cuLibraryGetKernel");
    bench_cu(driver->cuKernelGetFunction(&function, kernel), "cuKernelGetFunction");
    const double end = bench_now();
    free(bytes);
    return end - begin;
}

int main(void)
{
    static char paths[KERNELS][512];
    static bench_pair pair;
    static bench_samples first;
    bench_make_root();
    hand_driver driver;
    if (!hand_open(&driver, NULL)) {
        fprintf(stderr, "no driver: %s\n", dlerror());
        return 1;
    }
    bench_cu(hand_start(&driver), "cuInit");
    load_fill_root(paths);
    for (int round = 0; round < ROUNDS; round++) {
        dj_runtime *const runtime = bench_runtime();
        void *libraries[KERNELS] = {NULL};
        bench_add(&first, load_ours(runtime, 0));
        for (int i = 1; i < KERNELS; i++) {
            const bool swap = i % 2 == 1;
            double theirs = swap ? load_theirs(&driver, paths[i], i, &libraries[i]) : 0;
            const double ours = load_ours(runtime, i);
            theirs = swap ? theirs : load_theirs(&driver, paths[i], i, &libraries[i]);
            if (round > 0) {
                bench_add_pair(&pair, ours, theirs);
            }
        }
        dj_stats stats = DJ_STATS_INIT;
        dj_error err = DJ_ERROR_INIT;
        bench_check(dj_runtime_stats(runtime, &stats, &err), &err, "dj_runtime_stats");
        if (stats.disk_hits != KERNELS || stats.compiles != 0) {
            fprintf(stderr, "%llu disk hits and %llu compilations instead of %d and 0\n",
                    (unsigned long long)stats.disk_hits, (unsigned long long)stats.compiles,
                    KERNELS);
            return 1;
        }
        dj_runtime_release(runtime);
        for (int i = 1; i < KERNELS; i++) {
            bench_cu(driver.cuLibraryUnload(libraries[i]), "cuLibraryUnload");
        }
    }
    bench_report("load, first disk hit of a runtime", bench_median(&first), 0, 0, BENCH_NO_LIMIT,
                 0);
    bench_report_pair("load, disk hit", &pair, BENCH_RATIO, 1.5);
    return 0;
}
