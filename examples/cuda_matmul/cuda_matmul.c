/* SPDX-License-Identifier: MIT */
/*
 * A matrix product in tiles of shared memory, specialised at run time: the arguments of a C++
 * template come from -D flags, so each set of flags is an entry of its own in the cache.
 *
 * Run: build/examples/cuda_matmul [SIZE]
 */
#include "../common/example.h"
#include <math.h>

static const char source[] =
    "template <class T, int TILE, int ROWS>\n"
    "__device__ void multiply(T *c, const T *a, const T *b, int m, int n, int k)\n"
    "{\n"
    "    __shared__ T part_a[TILE][TILE];\n"
    "    __shared__ T part_b[TILE][TILE];\n"
    "    const int x = threadIdx.x, column = blockIdx.x * TILE + x;\n"
    "    T sum[ROWS] = {};\n"
    "    for (int first = 0; first < k; first += TILE) {\n"
    "        for (int i = 0; i < ROWS; i++) {\n"
    "            const int y = threadIdx.y * ROWS + i, row = blockIdx.y * TILE + y;\n"
    "            part_a[y][x] = row < m && first + x < k ? a[row * k + first + x] : T(0);\n"
    "            part_b[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : T(0);\n"
    "        }\n"
    "        __syncthreads();\n"
    "        for (int j = 0; j < TILE; j++) {\n"
    "            for (int i = 0; i < ROWS; i++) {\n"
    "                sum[i] += part_a[threadIdx.y * ROWS + i][j] * part_b[j][x];\n"
    "            }\n"
    "        }\n"
    "        __syncthreads();\n"
    "    }\n"
    "    for (int i = 0; i < ROWS; i++) {\n"
    "        const int row = blockIdx.y * TILE + threadIdx.y * ROWS + i;\n"
    "        if (row < m && column < n) {\n"
    "            c[row * n + column] = sum[i];\n"
    "        }\n"
    "    }\n"
    "}\n"
    "\n"
    "extern \"C\" __global__ void __launch_bounds__(TILE_SIZE * TILE_SIZE / TILE_ROWS)\n"
    "matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, int m, int n, int k)\n"
    "{\n"
    "    multiply<ELEMENT, TILE_SIZE, TILE_ROWS>(c, a, b, m, n, k);\n"
    "}\n";

typedef struct variant {
    unsigned tile, rows; /* elements of a tile's edge; rows of a thread */
} variant;

static const variant variants[] = {{16, 1}, {16, 4}, {32, 2}, {32, 8}};

static dj_kernel *specialise(dj_runtime *runtime, const variant *v)
{
    char tile[32];
    char rows[32];
    snprintf(tile, sizeof tile, "-DTILE_SIZE=%u", v->tile);
    snprintf(rows, sizeof rows, "-DTILE_ROWS=%u", v->rows);
    const char *const flags[] = {"-DELEMENT=float", tile, rows};
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.extra_flags = flags;
    options.num_extra_flags = 3;
    dj_error err = DJ_ERROR_INIT;
    dj_kernel *kernel = NULL;
    must(dj_compile(runtime, "matmul", source, sizeof source - 1, &options, &kernel, &err), &err);
    return kernel;
}

/* C[m, n] = A[m, k] * B[k, n]; memory: C, A, B. */
static void multiply(dj_kernel *kernel, const variant *v, void *const memory[3], const int size[3])
{
    const unsigned m = (unsigned)size[0];
    const unsigned n = (unsigned)size[1];
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid = (dj_dim3){(n + v->tile - 1) / v->tile, (m + v->tile - 1) / v->tile, 1};
    options.block = (dj_dim3){v->tile, v->tile / v->rows, 1};
    dj_error err = DJ_ERROR_INIT;
    must(dj_launch(kernel, &options,
                   DJ_ARGS(memory[0], memory[1], memory[2], size[0], size[1], size[2]), &err),
         &err);
}

/* One element of the product, in double precision. */
static double element(const float *a, const float *b, const int size[3], int index)
{
    const int n = size[1];
    const int k = size[2];
    double sum = 0;
    for (int i = 0; i < k; i++) {
        sum += (double)a[index / n * k + i] * (double)b[i * n + index % n];
    }
    return sum;
}

int main(int argc, char **argv)
{
    const int edge = argc > 1 ? atoi(argv[1]) : 200;
    if (edge < 2 || edge > 16384) {
        fprintf(stderr, "SIZE is 2 to 16384\n");
        return 1;
    }
    dj_runtime *const runtime = open_cuda(NULL);
    need_device(runtime, 0);
    const int size[3] = {edge, edge - 1, edge + 1}; /* no multiples of the tiles */
    const int counts[3] = {size[0] * size[1], size[0] * size[2], size[2] * size[1]};
    float *here[3];
    void *memory[3];
    uint32_t seed = 1;
    for (int i = 0; i < 3; i++) {
        here[i] = need_memory((size_t)counts[i] * sizeof(float));
        for (int j = 0; j < counts[i]; j++) {
            here[i][j] = next_number(&seed);
        }
        memory[i] = to_device(runtime, here[i], (size_t)counts[i] * sizeof(float));
    }
    const int step = 1 + counts[0] / 50000; /* of a large product, samples are checked */
    int wrong = 0;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        dj_error err = DJ_ERROR_INIT;
        const double begin = now_ms();
        dj_kernel *const kernel = specialise(runtime, &variants[i]);
        const double found = now_ms();
        must(dj_synchronize(runtime, &err), &err);
        const double start = now_ms();
        multiply(kernel, &variants[i], memory, size);
        must(dj_synchronize(runtime, &err), &err);
        const double took = now_ms() - start;
        must(dj_mem_copy(runtime, here[0], memory[0], (size_t)counts[0] * sizeof(float), &err),
             &err);
        double largest = 0;
        for (int j = 0; j < counts[0]; j += step) {
            const double expected = element(here[1], here[2], size, j);
            largest = worst(largest, fabs((double)here[0][j] - expected));
        }
        printf("tile %2u, %u rows a thread: compile or find %.1f ms, launch %.2f ms\n",
               variants[i].tile, variants[i].rows, found - begin, took);
        wrong |= verdict("    product", largest, 1e-6 * size[2]);
        dj_kernel_release(kernel);
    }
    for (int i = 0; i < 3; i++) {
        (void)dj_mem_free(runtime, memory[i], NULL);
        free(here[i]);
    }
    dj_runtime_release(runtime);
    return wrong;
}
