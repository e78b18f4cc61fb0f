/* SPDX-License-Identifier: MIT */
/*
 * Programmatic dependent launch: RMS normalisation in two kernels. The second one starts while the
 * first still runs, fetches its weights, and waits only before it reads the first one's sums.
 *
 * Run: build/examples/cuda_pdl [COLUMNS]
 */
#include "../common/example.h"
#include <math.h>

static const char sums_source[] =
    "/* sums[row] = sum of squares of the row; one block a row. */\n"
    "extern \"C\" __global__ void square_sums(float *sums, const float *in, int columns)\n"
    "{\n"
    "    __shared__ float part[256];\n"
    "    cudaGridDependencySynchronize(); /* the pair before this one may still read sums */\n"
    "    float sum = 0.0f;\n"
    "    for (int i = threadIdx.x; i < columns; i += blockDim.x) {\n"
    "        const float value = in[(size_t)blockIdx.x * columns + i];\n"
    "        sum += value * value;\n"
    "    }\n"
    "    part[threadIdx.x] = sum;\n"
    "    cudaTriggerProgrammaticLaunchCompletion(); /* the next kernel may start */\n"
    "    __syncthreads();\n"
    "    for (int half = blockDim.x / 2; half > 0; half /= 2) {\n"
    "        if (threadIdx.x < half) {\n"
    "            part[threadIdx.x] += part[threadIdx.x + half];\n"
    "        }\n"
    "        __syncthreads();\n"
    "    }\n"
    "    if (threadIdx.x == 0) {\n"
    "        sums[blockIdx.x] = part[0];\n"
    "    }\n"
    "}\n";

static const char normalise_source[] =
    "/* out = in / root of the row's mean square * weights; one block a row. */\n"
    "extern \"C\" __global__ void normalise(float *out, const float *in, const float *weights,\n"
    "                                     const float *sums, int columns)\n"
    "{\n"
    "    extern __shared__ float weight[];\n"
    "    for (int i = threadIdx.x; i < columns; i += blockDim.x) {\n"
    "        weight[i] = weights[i]; /* nothing that the kernel before this one writes */\n"
    "    }\n"
    "    cudaGridDependencySynchronize(); /* that kernel is done, its sums can be read */\n"
    "    cudaTriggerProgrammaticLaunchCompletion();\n"
    "    const float factor = rsqrtf(sums[blockIdx.x] / (float)columns + 1e-6f);\n"
    "    for (int i = threadIdx.x; i < columns; i += blockDim.x) {\n"
    "        const size_t at = (size_t)blockIdx.x * columns + i;\n"
    "        out[at] = in[at] * factor * weight[i];\n"
    "    }\n"
    "}\n";

enum { ROWS = 64, THREADS = 256, PAIRS = 20 };

/* memory: out, in, weights, sums */
static void launch_pair(dj_kernel *const kernels[2], void *const memory[4], int columns, dj_tri pdl)
{
    dj_error err = DJ_ERROR_INIT;
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda.enable_pdl = pdl;
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = ROWS;
    options.block.x = THREADS;
    options.cuda = &cuda;
    must(dj_launch(kernels[0], &options, DJ_ARGS(memory[3], memory[1], columns), &err), &err);
    options.shared_bytes = columns * (int64_t)sizeof(float);
    must(dj_launch(kernels[1], &options,
                   DJ_ARGS(memory[0], memory[1], memory[2], memory[3], columns), &err),
         &err);
}

static double largest_error(const float *out, const float *in, const float *weights, int columns)
{
    double largest = 0;
    for (int row = 0; row < ROWS; row++) {
        const float *const x = in + (size_t)row * (size_t)columns;
        const float *const y = out + (size_t)row * (size_t)columns;
        double sum = 0;
        for (int i = 0; i < columns; i++) {
            sum += (double)x[i] * (double)x[i];
        }
        const double factor = 1 / sqrt(sum / columns + 1e-6);
        for (int i = 0; i < columns; i++) {
            largest =
                worst(largest, fabs((double)y[i] - (double)x[i] * factor * (double)weights[i]));
        }
    }
    return largest;
}

/* The same with and without early start. */
static int try_pairs(dj_runtime *runtime, dj_kernel *const kernels[2], void *const memory[4],
                     float *const here[3], int columns, dj_tri pdl)
{
    const size_t size = (size_t)ROWS * (size_t)columns * sizeof(float);
    dj_error err = DJ_ERROR_INIT;
    launch_pair(kernels, memory, columns, pdl);
    must(dj_synchronize(runtime, &err), &err);
    const double begin = now_ms();
    for (int i = 0; i < PAIRS; i++) {
        launch_pair(kernels, memory, columns, pdl);
    }
    must(dj_synchronize(runtime, &err), &err);
    const double took = (now_ms() - begin) / PAIRS;
    must(dj_mem_copy(runtime, here[0], memory[0], size, &err), &err);
    printf("early start %s: %.1f us a pair\n", pdl == DJ_ON ? "on" : "off", took * 1e3);
    return verdict("    normalisation", largest_error(here[0], here[1], here[2], columns), 1e-5);
}

int main(int argc, char **argv)
{
    const int columns = argc > 1 ? atoi(argv[1]) : 4096;
    if (columns < 1 || columns > 40000) {
        fprintf(stderr, "COLUMNS is 1 to 40000\n");
        return 1;
    }
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *const runtime = open_cuda(NULL);
    need_device(runtime, 9);
    dj_kernel *kernels[2] = {NULL, NULL};
    must(dj_compile(runtime, "square_sums", sums_source, sizeof sums_source - 1, NULL, &kernels[0],
                    &err),
         &err);
    must(dj_compile(runtime, "normalise", normalise_source, sizeof normalise_source - 1, NULL,
                    &kernels[1], &err),
         &err);

    const size_t counts[] = {(size_t)ROWS * (size_t)columns, (size_t)ROWS * (size_t)columns,
                             (size_t)columns};
    float *here[3];
    void *memory[4];
    uint32_t seed = 1;
    for (int i = 0; i < 3; i++) {
        here[i] = need_memory(counts[i] * sizeof(float));
        for (size_t j = 0; j < counts[i]; j++) {
            here[i][j] = next_number(&seed);
        }
        memory[i] = to_device(runtime, here[i], counts[i] * sizeof(float));
    }
    memory[3] = to_device(runtime, NULL, ROWS * sizeof(float));
    printf("%d rows of %d, one block a row\n", ROWS, columns);
    int wrong = try_pairs(runtime, kernels, memory, here, columns, DJ_OFF);
    wrong |= try_pairs(runtime, kernels, memory, here, columns, DJ_ON);
    for (int i = 0; i < 4; i++) {
        (void)dj_mem_free(runtime, memory[i], NULL);
    }
    for (int i = 0; i < 3; i++) {
        free(here[i]);
    }
    dj_kernel_release(kernels[0]);
    dj_kernel_release(kernels[1]);
    dj_runtime_release(runtime);
    return wrong;
}
