/* SPDX-License-Identifier: MIT */
/*
 * A cold compilation, from dj_compile to a loaded kernel, against nvcc by hand with the same flags.
 * The first one of a cache root also looks at the toolchain and is reported apart.
 *
 * Run: gpu_compile [NVCC]
 */
#include "../common/bench.h"
#include <spawn.h>
#include <sys/wait.h>

enum { COMPILATIONS = 7 };

static void compile_source(int number, char *out, size_t size)
{
    snprintf(out, size,
             "extern \"C\" __global__ void cold%d(float *out, int n)\n"
             "{\n"
             "    if (threadIdx.x < n) {\n"
             "        out[threadIdx.x] *= %d.0f;\n"
             "    }\n"
             "}\n",
             number, number);
}

static double compile_ours(dj_runtime *runtime, int number)
{
    char source[512];
    compile_source(number, source, sizeof(source));
    const double begin = bench_now();
    dj_kernel_release(bench_compile(runtime, source));
    return bench_now() - begin;
}

static double compile_theirs(const char *nvcc, const char *arch, int number)
{
    extern char **environ;
    char source[512];
    char in[128];
    char out[128];
    char arch_flag[64];
    compile_source(number, source, sizeof(source));
    snprintf(in, sizeof(in), "%s/by_hand.cu", bench_root);
    snprintf(out, sizeof(out), "%s/by_hand.cubin", bench_root);
    snprintf(arch_flag, sizeof(arch_flag), "--gpu-architecture=sm_%s", arch);
    const double begin = bench_now();
    FILE *const file = fopen(in, "wb");
    if (file == NULL || fputs(source, file) < 0 || fclose(file) != 0) {
        perror(in);
        exit(1);
    }
    const char *const argv[] = {nvcc,
                                in,
                                "--cubin",
                                "--output-file",
                                out,
                                arch_flag,
                                "-O3",
                                "--compiler-options=-O3",
                                "--ptxas-options=--register-usage-level=10",
                                "-std=c++20",
                                "--compiler-options=-fPIC",
                                "--compiler-options=-fconcepts",
                                "--expt-relaxed-constexpr",
                                "--expt-extended-lambda",
                                NULL};
    pid_t child = 0;
    int status = 0;
    if (posix_spawnp(&child, nvcc, NULL, NULL, (char *const *)argv, environ) != 0 ||
        waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "%s failed\n", nvcc);
        exit(1);
    }
    return bench_now() - begin;
}

int main(int argc, char **argv)
{
    const char *nvcc = argc > 1 ? argv[1] : "nvcc";
    if (argc < 2 && access("/usr/local/cuda/bin/nvcc", X_OK) == 0) {
        nvcc = "/usr/local/cuda/bin/nvcc";
    }
    bench_make_root();
    dj_runtime *const runtime = bench_runtime();
    dj_device device = DJ_DEVICE_INIT;
    dj_error err = DJ_ERROR_INIT;
    bench_check(dj_device_info(runtime, &device, &err), &err, "dj_device_info");
    static bench_pair pair;
    const double first = compile_ours(runtime, 1);
    (void)compile_theirs(nvcc, device.arch, 1);
    for (int i = 0; i < COMPILATIONS; i++) {
        const bool swap = i % 2 == 1;
        double theirs = swap ? compile_theirs(nvcc, device.arch, 2 + i) : 0;
        const double ours = compile_ours(runtime, 2 + i);
        theirs = swap ? theirs : compile_theirs(nvcc, device.arch, 2 + i);
        bench_add_pair(&pair, ours, theirs);
    }
    dj_runtime_release(runtime);
    bench_report("compile, first of a cache root", first, 0, 0, BENCH_NO_LIMIT, 0);
    bench_report_pair("compile, cold", &pair, BENCH_NO_LIMIT, 0);
    return 0;
}
