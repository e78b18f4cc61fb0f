/* SPDX-License-Identifier: MIT */
/*
 * A sum in one launch: all blocks run at once (a cooperative launch), wait for each other with
 * grid.sync(), and one of them adds up the partial sums. How many blocks may run at once is asked
 * beforehand.
 *
 * Run: build/examples/cuda_coop_reduce [COUNT]
 */
#include "../common/example.h"
#include <math.h>

static const char source[] =
    "#include <cooperative_groups.h>\n"
    "\n"
    "namespace cg = cooperative_groups;\n"
    "\n"
    "/* Adds up the block's numbers; the result is thread 0's. */\n"
    "__device__ float block_sum(float sum)\n"
    "{\n"
    "    __shared__ float part[32];\n"
    "    for (int half = 16; half > 0; half /= 2) {\n"
    "        sum += __shfl_down_sync(~0u, sum, half);\n"
    "    }\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x % 32 == 0) {\n"
    "        part[threadIdx.x / 32] = sum;\n"
    "    }\n"
    "    __syncthreads();\n"
    "    sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;\n"
    "    for (int half = 16; half > 0; half /= 2) {\n"
    "        sum += __shfl_down_sync(~0u, sum, half);\n"
    "    }\n"
    "    return sum;\n"
    "}\n"
    "\n"
    "extern \"C\" __global__ void total(float *out, float *partial, const float *in, int n)\n"
    "{\n"
    "    const cg::grid_group grid = cg::this_grid();\n"
    "    float sum = 0.0f;\n"
    "    for (int i = (int)grid.thread_rank(); i < n; i += (int)grid.size()) {\n"
    "        sum += in[i];\n"
    "    }\n"
    "    sum = block_sum(sum);\n"
    "    if (threadIdx.x == 0) {\n"
    "        partial[blockIdx.x] = sum;\n"
    "    }\n"
    "    grid.sync(); /* every block's partial sum is there now */\n"
    "    if (blockIdx.x == 0) {\n"
    "        sum = 0.0f;\n"
    "        for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) {\n"
    "            sum += partial[i];\n"
    "        }\n"
    "        sum = block_sum(sum);\n"
    "        if (threadIdx.x == 0) {\n"
    "            *out = sum;\n"
    "        }\n"
    "    }\n"
    "}\n";

enum { THREADS = 256 };

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 1000003;
    if (n < 1) {
        fprintf(stderr, "COUNT is positive\n");
        return 1;
    }
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *const runtime = open_cuda(NULL);
    const dj_cuda_device device = need_device(runtime, 0);
    if (!device.cooperative_launch) {
        skip("the GPU has no cooperative launch");
    }
    dj_kernel *kernel = NULL;
    must(dj_compile(runtime, "total", source, sizeof source - 1, NULL, &kernel, &err), &err);

    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda.cooperative = DJ_ON;
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = 1;
    options.block.x = THREADS;
    options.cuda = &cuda;
    int blocks = 0; /* of one multiprocessor */
    must(dj_cuda_occupancy(kernel, &options, &blocks, NULL, &err), &err);
    options.grid.x = (uint32_t)(blocks * device.multiprocessors);

    const size_t size = (size_t)n * sizeof(float);
    float *const numbers = need_memory(size);
    uint32_t seed = 1;
    double expected = 0;
    for (int i = 0; i < n; i++) {
        numbers[i] = next_number(&seed) + 1.0f;
        expected += (double)numbers[i];
    }
    void *const in = to_device(runtime, numbers, size);
    void *const partial = to_device(runtime, NULL, options.grid.x * sizeof(float));
    void *const out = to_device(runtime, NULL, sizeof(float));
    float total = 0;
    must(dj_launch(kernel, &options, DJ_ARGS(out, partial, in, n), &err), &err);
    must(dj_mem_copy(runtime, &total, out, sizeof total, &err), &err);

    printf("%u blocks of %d threads: the sum of %d numbers is %.3f, expected %.3f\n",
           options.grid.x, THREADS, n, (double)total, expected);
    const int wrong = verdict("sum, relative", fabs((double)total / expected - 1), 1e-5);
    (void)dj_mem_free(runtime, in, NULL);
    (void)dj_mem_free(runtime, partial, NULL);
    (void)dj_mem_free(runtime, out, NULL);
    free(numbers);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    return wrong;
}
