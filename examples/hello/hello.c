/* SPDX-License-Identifier: MIT */
/*
 * Hello: compile a kernel, launch it, look at the result.
 *
 * Run: build/examples/hello
 */
#include <deepjit/deepjit.h>
#include <stdio.h>

static const char source[] =
    "#include <deepjit/kernel.h>\n"
    "DJ_KERNEL(axpy, (float *, y), (const float *, x), (float, a), (int, n))\n"
    "{\n"
    "    int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;\n"
    "    if (i < n) {\n"
    "        y[i] += a * x[i];\n"
    "    }\n"
    "}\n";

enum { N = 1000 };
static float x[N];
static float y[N];

static dj_status hello(dj_runtime *runtime, dj_kernel **kernel, void **dx, void **dy, dj_error *err)
{
    dj_status status = dj_compile(runtime, "axpy", source, sizeof source - 1, NULL, kernel, err);
    if (status != DJ_OK || (status = dj_mem_alloc(runtime, sizeof x, dx, err)) != DJ_OK ||
        (status = dj_mem_alloc(runtime, sizeof y, dy, err)) != DJ_OK ||
        (status = dj_mem_copy(runtime, *dx, x, sizeof x, err)) != DJ_OK ||
        (status = dj_mem_copy(runtime, *dy, y, sizeof y, err)) != DJ_OK) {
        return status;
    }
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = (N + 255) / 256;
    options.block.x = 256;
    const float a = 2.0f;
    const int n = N;
    status = dj_launch(*kernel, &options, DJ_ARGS(*dy, *dx, a, n), err);
    return status == DJ_OK ? dj_mem_copy(runtime, y, *dy, sizeof y, err) : status;
}

int main(void)
{
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = NULL;
    dj_kernel *kernel = NULL;
    void *dx = NULL;
    void *dy = NULL;
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 1.0f;
    }
    dj_status status = dj_runtime_create(NULL, NULL, &runtime, &err);
    if (status == DJ_OK) {
        status = hello(runtime, &kernel, &dx, &dy, &err);
        (void)dj_mem_free(runtime, dx, NULL);
        (void)dj_mem_free(runtime, dy, NULL);
    }
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    if (status != DJ_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("y[0] = %g, y[999] = %g\n", (double)y[0], (double)y[N - 1]);
    return y[0] == 1.0f && y[N - 1] == 1999.0f ? 0 : 1;
}
