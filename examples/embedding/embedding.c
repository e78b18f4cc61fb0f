/* SPDX-License-Identifier: MIT */
/*
 * How a kernel library embeds DeepJIT: one runtime for the library, settings under its own prefix
 * (EMBEDDING_JIT_CACHE_DIR before DJ_JIT_CACHE_DIR), its version in the key, kernels compiled
 * at first use. See CMakeLists.txt beside this file.
 */
#include <deepjit/deepjit.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY_VERSION "embedding 1.0"

static const char source[] = "#include <deepjit/kernel.h>\n"
                             "DJ_KERNEL(squares, (int64_t *, out), (int, n))\n"
                             "{\n"
                             "    int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;\n"
                             "    if (i < n) {\n"
                             "        out[i] = (int64_t)i * i;\n"
                             "    }\n"
                             "}\n";

/* What a library's own function looks like: memory is the caller's device memory. */
static dj_status fill_squares(dj_runtime *runtime, int64_t *memory, int n, dj_error *err)
{
    dj_kernel *kernel = NULL;
    /* After the first time this finds the kernel in memory, in well under a microsecond. */
    dj_status status =
        dj_compile(runtime, "squares", source, sizeof source - 1, NULL, &kernel, err);
    if (status == DJ_OK) {
        dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
        options.grid.x = ((unsigned)n + 127) / 128;
        options.block.x = 128;
        status = dj_launch(kernel, &options, DJ_ARGS(memory, n), err);
    }
    dj_kernel_release(kernel);
    return status;
}

static dj_status use(dj_runtime *runtime, int64_t *last, dj_error *err)
{
    enum { N = 1000 };
    static int64_t results[N];
    void *memory = NULL;
    dj_status status = dj_mem_alloc(runtime, sizeof results, &memory, err);
    for (int i = 0; i < 3 && status == DJ_OK; i++) {
        status = fill_squares(runtime, memory, N, err);
    }
    if (status == DJ_OK) {
        status = dj_mem_copy(runtime, results, memory, sizeof results, err);
    }
    (void)dj_mem_free(runtime, memory, NULL);
    *last = results[N - 1];
    return status;
}

int main(void)
{
    dj_config config = DJ_CONFIG_INIT;
    config.env_prefix = "EMBEDDING";
    config.extra_signature = LIBRARY_VERSION;
    config.extra_signature_size = strlen(LIBRARY_VERSION);

    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = NULL;
    int64_t last = 0;
    dj_status status = dj_runtime_create(NULL, &config, &runtime, &err);
    if (status == DJ_OK) {
        status = use(runtime, &last, &err);
    }
    dj_runtime_release(runtime);
    if (status != DJ_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("999 squared is %lld\n", (long long)last);
    return last == 998001 ? 0 : 1;
}
