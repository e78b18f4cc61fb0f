/* SPDX-License-Identifier: MIT */
/*
 * One kernel source for CPU and GPU: deepjit/kernel.h makes C or CUDA C++ of it. Runs on every
 * back end that is available here and compares the results.
 *
 * Run: build/examples/scale [host|cuda]
 */
#include "../common/example.h"

static const char source[] =
    "#include <deepjit/kernel.h>\n"
    "DJ_KERNEL(scale, (float *, out), (const float *, in), (float, factor), (int, n))\n"
    "{\n"
    "    int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;\n"
    "    if (i < n) {\n"
    "        out[i] = factor * in[i];\n"
    "    }\n"
    "}\n";

enum { N = 100000 };
static const float factor = 1.7f;
static float in[N];
static float out[2][N];

static dj_status scale(dj_runtime *runtime, float *result, dj_error *err)
{
    dj_kernel *kernel = NULL;
    void *memory[2] = {NULL, NULL};
    const int n = N;
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = (N + 255) / 256;
    options.block.x = 256;
    dj_status status = dj_compile(runtime, "scale", source, sizeof source - 1, NULL, &kernel, err);
    for (int i = 0; i < 2 && status == DJ_OK; i++) {
        status = dj_mem_alloc(runtime, sizeof in, &memory[i], err);
    }
    if (status == DJ_OK) {
        status = dj_mem_copy(runtime, memory[1], in, sizeof in, err);
    }
    if (status == DJ_OK) {
        status = dj_launch(kernel, &options, DJ_ARGS(memory[0], memory[1], factor, n), err);
    }
    if (status == DJ_OK) {
        status = dj_mem_copy(runtime, result, memory[0], sizeof in, err);
    }
    for (int i = 0; i < 2; i++) {
        (void)dj_mem_free(runtime, memory[i], NULL);
    }
    dj_kernel_release(kernel);
    return status;
}

/* False, with the reason printed, where the back end is not available. */
static int try_backend(const char *name, float *result)
{
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = NULL;
    const dj_backend *const backend = dj_backend_find(name);
    if (backend == NULL) {
        printf("%s: not in this build\n", name);
        return 0;
    }
    dj_status status = dj_runtime_create(backend, NULL, &runtime, &err);
    if (status == DJ_OK) {
        status = scale(runtime, result, &err);
    }
    dj_runtime_release(runtime);
    if (status == DJ_UNAVAILABLE) {
        printf("%s: %s\n", name, err.message);
        return 0;
    }
    must(status, &err);
    double largest = 0;
    for (int i = 0; i < N; i++) {
        /* The product of two floats is exact in double: rounding it gives the only right float. */
        const double expected = (double)(float)((double)factor * (double)in[i]);
        const double error = (double)result[i] - expected;
        largest = worst(largest, error < 0 ? -error : error);
    }
    if (verdict(name, largest, 0) != 0) {
        exit(1);
    }
    return 1;
}

int main(int argc, char **argv)
{
    const char *const names[] = {"host", "cuda"};
    uint32_t seed = 1;
    for (int i = 0; i < N; i++) {
        in[i] = next_number(&seed);
    }
    int done = 0;
    for (int i = 0; i < 2; i++) {
        if (argc < 2 || strcmp(argv[1], names[i]) == 0) {
            done += try_backend(names[i], out[i]);
        }
    }
    if (done == 0) {
        skip("no back end of that name is available");
    }
    if (done == 2) {
        const int same = memcmp(out[0], out[1], sizeof in) == 0;
        printf("both results are %s\n", same ? "the same" : "NOT the same");
        return same ? 0 : 1;
    }
    return 0;
}
