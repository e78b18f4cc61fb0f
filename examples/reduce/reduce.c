/* SPDX-License-Identifier: MIT */
/*
 * A sum in phases: one launch leaves a partial sum for each block, a second one, of one block,
 * adds these up. kernels/block_sum.c shows how the threads of a block share memory.
 *
 * Run: build/examples/reduce [KERNEL_FILE]
 */
#include <deepjit/deepjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000000, BLOCKS = 64, THREADS = 256 };

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

static dj_status sum(dj_kernel *kernel, unsigned blocks, void *out, const void *in, int n,
                     dj_error *err)
{
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = blocks;
    options.block.x = THREADS;
    return dj_launch(kernel, &options, DJ_ARGS(out, in, n), err);
}

/* memory: the numbers, one partial sum a block, the total. */
static dj_status reduce(dj_runtime *runtime, dj_kernel *kernel, const float *numbers,
                        void *memory[3], float *total, dj_error *err)
{
    static const size_t sizes[] = {N * sizeof(float), BLOCKS * sizeof(float), sizeof(float)};
    dj_status status = DJ_OK;
    for (int i = 0; i < 3 && status == DJ_OK; i++) {
        status = dj_mem_alloc(runtime, sizes[i], &memory[i], err);
    }
    if (status != DJ_OK ||
        (status = dj_mem_copy(runtime, memory[0], numbers, sizes[0], err)) != DJ_OK ||
        (status = sum(kernel, BLOCKS, memory[1], memory[0], N, err)) != DJ_OK ||
        (status = sum(kernel, 1, memory[2], memory[1], BLOCKS, err)) != DJ_OK) {
        return status;
    }
    /* A copy waits for what was launched before it. */
    return dj_mem_copy(runtime, total, memory[2], sizeof *total, err);
}

int main(int argc, char **argv)
{
    /* The kernel lies beside this file, wherever the source tree is. */
    char path[4096];
    const char *const slash = strrchr(__FILE__, '/');
    const int length = slash != NULL ? (int)(slash - __FILE__) : 1;
    snprintf(path, sizeof path, "%.*s/kernels/block_sum.c", length, slash != NULL ? __FILE__ : ".");
    size_t size = 0;
    char *const source = read_text(argc > 1 ? argv[1] : path, &size);
    float *const numbers = malloc(N * sizeof *numbers);
    if (numbers == NULL) {
        return 1;
    }
    double expected = 0;
    for (int i = 0; i < N; i++) {
        numbers[i] = (float)(i % 9) - 3.0f; /* small integers: the sum is exact in any order */
        expected += (double)numbers[i];
    }

    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = NULL;
    dj_kernel *kernel = NULL;
    void *memory[3] = {NULL, NULL, NULL};
    float total = 0;
    dj_status status = dj_runtime_create(NULL, NULL, &runtime, &err);
    if (status == DJ_OK) {
        status = dj_compile(runtime, "block_sum", source, size, NULL, &kernel, &err);
    }
    if (status == DJ_OK) {
        status = reduce(runtime, kernel, numbers, memory, &total, &err);
        for (int i = 0; i < 3; i++) {
            (void)dj_mem_free(runtime, memory[i], NULL);
        }
    }
    if (status != DJ_OK) {
        fprintf(stderr, "%s\n", err.message);
    } else {
        printf("sum of %d numbers: %.0f, expected %.0f\n", N, (double)total, expected);
    }
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    free(numbers);
    free(source);
    return status == DJ_OK && (double)total == expected ? 0 : 1;
}
