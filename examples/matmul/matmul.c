/* SPDX-License-Identifier: MIT */
/*
 * A matrix product specialised by tile sizes: the same source is compiled once for each set of
 * -D flags. All variants are checked and timed; this is how a library would tune a kernel for the
 * machine it runs on.
 *
 * Run: build/examples/matmul [KERNEL_FILE]
 */
#include <deepjit/deepjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 256, REPEATS = 3 };

typedef struct variant {
    unsigned tile_m, tile_n, tile_k;
} variant;

static const variant variants[] = {{4, 64, 64}, {8, 32, 32}, {16, 16, 16}, {8, 128, 64}};

static float a[N * N];
static float b[N * N];
static float c[N * N];
static float expected[N * N];

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static char *read_text(const char *path, size_t *size)
{
    FILE *const file = fopen(path, "rb");
    char *const text = malloc(1 << 16);
    if (file == NULL || text == NULL) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    *size = fread(text, 1, 1 << 16, file);
    fclose(file);
    return text;
}

static void fill(void)
{
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(i * 7 % 11) - 5.0f; /* small integers: sums are exact in any order */
        b[i] = (float)(i * 5 % 13) - 6.0f;
    }
    for (int row = 0; row < N; row++) {
        for (int k = 0; k < N; k++) {
            for (int col = 0; col < N; col++) {
                expected[row * N + col] += a[row * N + k] * b[k * N + col];
            }
        }
    }
}

static dj_status launch(dj_kernel *kernel, const variant *v, void *const memory[3], dj_error *err)
{
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid = (dj_dim3){N / v->tile_n, N / v->tile_m, 1};
    options.block = (dj_dim3){v->tile_n, v->tile_m, 1};
    const int n = N;
    return dj_launch(kernel, &options, DJ_ARGS(memory[0], memory[1], memory[2], n), err);
}

static dj_status try_variant(dj_runtime *runtime, const char *source, size_t size, const variant *v,
                             void *const memory[3], dj_error *err)
{
    char flags[3][32];
    snprintf(flags[0], sizeof flags[0], "-DTILE_M=%u", v->tile_m);
    snprintf(flags[1], sizeof flags[1], "-DTILE_N=%u", v->tile_n);
    snprintf(flags[2], sizeof flags[2], "-DTILE_K=%u", v->tile_k);
    const char *const list[] = {flags[0], flags[1], flags[2]};
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.extra_flags = list;
    options.num_extra_flags = 3;

    dj_kernel *kernel = NULL;
    const double begin = now_ms();
    dj_status status = dj_compile(runtime, "matmul", source, size, &options, &kernel, err);
    const double compiled = now_ms();
    double best = 1e30;
    for (int i = 0; i < REPEATS && status == DJ_OK; i++) {
        const double start = now_ms();
        status = launch(kernel, v, memory, err);
        if (status == DJ_OK) {
            status = dj_synchronize(runtime, err);
        }
        const double took = now_ms() - start;
        best = took < best ? took : best;
    }
    if (status == DJ_OK) {
        status = dj_mem_copy(runtime, c, memory[0], sizeof c, err);
    }
    if (status == DJ_OK) {
        const bool right = memcmp(c, expected, sizeof c) == 0;
        printf("%2u x %3u x %2u   compile or find %7.2f ms   launch %6.2f ms   %s\n", v->tile_m,
               v->tile_n, v->tile_k, compiled - begin, best, right ? "right" : "WRONG");
        if (!right) {
            exit(1);
        }
    }
    dj_kernel_release(kernel);
    return status;
}

static dj_status run(dj_runtime *runtime, const char *source, size_t size, void *memory[3],
                     dj_error *err)
{
    const float *const inputs[] = {c, a, b};
    for (int i = 0; i < 3; i++) {
        dj_status status = dj_mem_alloc(runtime, sizeof c, &memory[i], err);
        if (status == DJ_OK) {
            status = dj_mem_copy(runtime, memory[i], inputs[i], sizeof c, err);
        }
        if (status != DJ_OK) {
            return status;
        }
    }
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        const dj_status status = try_variant(runtime, source, size, &variants[i], memory, err);
        if (status != DJ_OK) {
            return status;
        }
    }
    return DJ_OK;
}

int main(int argc, char **argv)
{
    /* The kernel lies beside this file, wherever the source tree is. */
    char path[4096];
    const char *const slash = strrchr(__FILE__, '/');
    const int length = slash != NULL ? (int)(slash - __FILE__) : 1;
    snprintf(path, sizeof path, "%.*s/kernels/tiled_matmul.c", length,
             slash != NULL ? __FILE__ : ".");
    size_t size = 0;
    char *const source = read_text(argc > 1 ? argv[1] : path, &size);
    fill();

    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = NULL;
    void *memory[3] = {NULL, NULL, NULL};
    dj_status status = dj_runtime_create(NULL, NULL, &runtime, &err);
    if (status == DJ_OK) {
        status = run(runtime, source, size, memory, &err);
        for (int i = 0; i < 3; i++) {
            (void)dj_mem_free(runtime, memory[i], NULL);
        }
    }
    if (status != DJ_OK) {
        fprintf(stderr, "%s\n", err.message);
    }
    dj_runtime_release(runtime);
    free(source);
    return status == DJ_OK ? 0 : 1;
}
