/* SPDX-License-Identifier: MIT */
/*
 * Softmax of long rows: the blocks of a cluster share one row, each keeps its part in shared
 * memory, and they read each other's maximum and sum there (distributed shared memory).
 *
 * Run: build/examples/cuda_cluster [COLUMNS]
 */
#include "../common/example.h"
#include <math.h>

static const char source[] =
    "#include <cooperative_groups.h>\n"
    "\n"
    "namespace cg = cooperative_groups;\n"
    "\n"
    "/* Combines the values of all threads of the block. */\n"
    "template <class F> __device__ float block_reduce(float value, F combine)\n"
    "{\n"
    "    __shared__ float part[256];\n"
    "    part[threadIdx.x] = value;\n"
    "    __syncthreads();\n"
    "    for (int half = blockDim.x / 2; half > 0; half /= 2) {\n"
    "        if (threadIdx.x < half) {\n"
    "            part[threadIdx.x] = combine(part[threadIdx.x], part[threadIdx.x + half]);\n"
    "        }\n"
    "        __syncthreads();\n"
    "    }\n"
    "    return part[0];\n"
    "}\n"
    "\n"
    "/* The same for the whole cluster: each block reads the shared memory of the others. */\n"
    "template <class F> __device__ float cluster_reduce(float value, F combine)\n"
    "{\n"
    "    __shared__ float mine;\n"
    "    const cg::cluster_group cluster = cg::this_cluster();\n"
    "    value = block_reduce(value, combine);\n"
    "    if (threadIdx.x == 0) {\n"
    "        mine = value;\n"
    "    }\n"
    "    cluster.sync(); /* every block has written its value */\n"
    "    float result = *cluster.map_shared_rank(&mine, 0);\n"
    "    for (unsigned rank = 1; rank < cluster.num_blocks(); rank++) {\n"
    "        result = combine(result, *cluster.map_shared_rank(&mine, rank));\n"
    "    }\n"
    "    cluster.sync(); /* nobody leaves, or writes again, while others read */\n"
    "    return result;\n"
    "}\n"
    "\n"
    "/* One cluster a row: the row lies in the shared memory of its blocks. */\n"
    "extern \"C\" __global__ void softmax(float *out, const float *in, int columns)\n"
    "{\n"
    "    extern __shared__ float piece[]; /* this block's part of the row */\n"
    "    const cg::cluster_group cluster = cg::this_cluster();\n"
    "    const int blocks = cluster.num_blocks();\n"
    "    const int length = (columns + blocks - 1) / blocks;\n"
    "    const int first = (int)cluster.block_rank() * length;\n"
    "    const int count = min(length, columns - first);\n"
    "    const size_t start = (size_t)(blockIdx.x / blocks) * columns + first;\n"
    "    const auto larger = [](float a, float b) { return fmaxf(a, b); };\n"
    "    const auto add = [](float a, float b) { return a + b; };\n"
    "\n"
    "    float value = -INFINITY;\n"
    "    for (int i = threadIdx.x; i < count; i += blockDim.x) {\n"
    "        piece[i] = in[start + i];\n"
    "        value = fmaxf(value, piece[i]);\n"
    "    }\n"
    "    const float largest = cluster_reduce(value, larger);\n"
    "    value = 0.0f;\n"
    "    for (int i = threadIdx.x; i < count; i += blockDim.x) {\n"
    "        piece[i] = expf(piece[i] - largest);\n"
    "        value += piece[i];\n"
    "    }\n"
    "    const float sum = cluster_reduce(value, add);\n"
    "    for (int i = threadIdx.x; i < count; i += blockDim.x) {\n"
    "        out[start + i] = piece[i] / sum;\n"
    "    }\n"
    "}\n";

enum { ROWS = 6, CLUSTER = 4, THREADS = 256 };

/* The largest error of a row, relative to its largest element. */
static double check_row(const float *out, const float *in, int columns)
{
    double top = -INFINITY;
    double sum = 0;
    double largest = 0;
    for (int i = 0; i < columns; i++) {
        top = fmax(top, (double)in[i]);
    }
    for (int i = 0; i < columns; i++) {
        sum += exp((double)in[i] - top);
    }
    for (int i = 0; i < columns; i++) {
        const double expected = exp((double)in[i] - top) / sum;
        largest = worst(largest, fabs((double)out[i] - expected) * sum);
    }
    return largest;
}

int main(int argc, char **argv)
{
    const int columns = argc > 1 ? atoi(argv[1]) : 10007;
    if (columns < 1 || columns > 40000) {
        fprintf(stderr, "COLUMNS is 1 to 40000\n");
        return 1;
    }
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *const runtime = open_cuda(NULL);
    const dj_cuda_device device = need_device(runtime, 9);
    if (!device.cluster_launch) {
        skip("the GPU has no cluster launch");
    }
    dj_kernel *kernel = NULL;
    must(dj_compile(runtime, "softmax", source, sizeof source - 1, NULL, &kernel, &err), &err);

    const size_t count = (size_t)ROWS * (size_t)columns;
    float *const in = need_memory(count * sizeof *in);
    float *const out = need_memory(count * sizeof *out);
    uint32_t seed = 1;
    for (size_t i = 0; i < count; i++) {
        in[i] = 8 * next_number(&seed);
    }
    void *const from = to_device(runtime, in, count * sizeof *in);
    void *const to = to_device(runtime, out, count * sizeof *out);

    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda.cluster.x = CLUSTER;
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = ROWS * CLUSTER;
    options.block.x = THREADS;
    options.shared_bytes = (columns + CLUSTER - 1) / CLUSTER * (int64_t)sizeof *in;
    options.cuda = &cuda;
    int clusters = 0;
    must(dj_cuda_occupancy(kernel, &options, NULL, &clusters, &err), &err);
    must(dj_launch(kernel, &options, DJ_ARGS(to, from, columns), &err), &err);
    must(dj_mem_copy(runtime, out, to, count * sizeof *out, &err), &err);

    printf("%d rows of %d, %d blocks a row, %lld bytes of shared memory a block; %d such clusters "
           "run at once\n",
           ROWS, columns, CLUSTER, (long long)options.shared_bytes, clusters);
    double largest = 0;
    for (size_t row = 0; row < ROWS; row++) {
        largest = worst(
            largest, check_row(out + row * (size_t)columns, in + row * (size_t)columns, columns));
    }
    const int wrong = verdict("softmax, relative to the row's largest", largest, 1e-5);
    (void)dj_mem_free(runtime, from, NULL);
    (void)dj_mem_free(runtime, to, NULL);
    free(in);
    free(out);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    return wrong;
}
