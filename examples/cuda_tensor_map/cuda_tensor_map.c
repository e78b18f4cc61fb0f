/* SPDX-License-Identifier: MIT */
/*
 * A tensor map as kernel argument: the driver's cuTensorMapEncodeTiled describes a picture, the
 * kernel takes the 128 bytes by value and lets the copy engine (TMA) fetch a box of it with one
 * instruction, also across the picture's edge.
 *
 * Run: build/examples/cuda_tensor_map [ROWS COLUMNS]
 */
#include "../common/tensor_map.h"
#include <math.h>

static const char source[] = TENSOR_MAP_SOURCE
    "\n"
    "constexpr int TILE = 32;\n"
    "constexpr int SIDE = 4; /* columns left and right: boxes begin at multiples of 16 bytes */\n"
    "constexpr int BOX_ROWS = TILE + 2, BOX_COLUMNS = TILE + 2 * SIDE;\n"
    "\n"
    "/* The mean of 3 x 3 elements; outside the picture all is 0. */\n"
    "extern \"C\" __global__ void blur(float *out, const __grid_constant__ tensor_map in,\n"
    "                                int rows, int columns)\n"
    "{\n"
    "    __shared__ alignas(128) float box[BOX_ROWS][BOX_COLUMNS];\n"
    "    __shared__ uint64_t loaded;\n"
    "    const int first_x = blockIdx.x * TILE, first_y = blockIdx.y * TILE;\n"
    "    const bool leader = threadIdx.x == 0 && threadIdx.y == 0;\n"
    "    if (leader) {\n"
    "        barrier_init(&loaded, 1);\n"
    "        barrier_init_done();\n"
    "    }\n"
    "    __syncthreads();\n"
    "    if (leader) {\n"
    "        barrier_expect(&loaded, sizeof box);\n"
    "        load_box(box, &in, first_x - SIDE, first_y - 1, &loaded); /* may begin outside */\n"
    "    }\n"
    "    barrier_wait(&loaded, 0);\n"
    "    const int x = first_x + threadIdx.x;\n"
    "    for (int i = threadIdx.y; i < TILE; i += blockDim.y) {\n"
    "        float sum = 0.0f;\n"
    "        for (int dy = 0; dy < 3; dy++) {\n"
    "            for (int dx = 0; dx < 3; dx++) {\n"
    "                sum += box[i + dy][SIDE - 1 + threadIdx.x + dx];\n"
    "            }\n"
    "        }\n"
    "        if (first_y + i < rows && x < columns) {\n"
    "            out[(size_t)(first_y + i) * columns + x] = sum / 9.0f;\n"
    "        }\n"
    "    }\n"
    "}\n";

enum { TILE = 32, SIDE = 4, BOX_ROWS = TILE + 2, BOX_COLUMNS = TILE + 2 * SIDE };

static double pixel(const float *in, int rows, int columns, int y, int x)
{
    return y < 0 || y >= rows || x < 0 || x >= columns ? 0 : (double)in[y * columns + x];
}

static double largest_error(const float *out, const float *in, int rows, int columns)
{
    double largest = 0;
    for (int y = 0; y < rows; y++) {
        for (int x = 0; x < columns; x++) {
            double sum = 0;
            for (int i = 0; i < 9; i++) {
                sum += pixel(in, rows, columns, y + i / 3 - 1, x + i % 3 - 1);
            }
            largest = worst(largest, fabs((double)out[y * columns + x] - sum / 9));
        }
    }
    return largest;
}

int main(int argc, char **argv)
{
    const int rows = argc == 3 ? atoi(argv[1]) : 250;
    const int columns = argc == 3 ? atoi(argv[2]) : 332;
    if (rows < 1 || columns < 1 || rows > 20000 || columns > 20000 || columns % 4 != 0) {
        fprintf(stderr, "ROWS and COLUMNS are 1 to 20000; a row is a multiple of 16 bytes\n");
        return 1;
    }
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *const runtime = open_cuda(NULL);
    need_device(runtime, 9);
    dj_kernel *kernel = NULL;
    must(dj_compile(runtime, "blur", source, sizeof source - 1, NULL, &kernel, &err), &err);

    const size_t count = (size_t)rows * (size_t)columns;
    float *const in = need_memory(count * sizeof *in);
    float *const out = need_memory(count * sizeof *out);
    uint32_t seed = 1;
    for (size_t i = 0; i < count; i++) {
        in[i] = next_number(&seed);
    }
    const matrix picture = {to_device(runtime, in, count * sizeof *in), TENSOR_FLOAT32, sizeof *in,
                            (uint64_t)rows, (uint64_t)columns};
    void *const to = to_device(runtime, out, count * sizeof *out);
    const tensor_map map = encode_matrix(runtime, &picture, BOX_ROWS, BOX_COLUMNS, SWIZZLE_NONE);

    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = (uint32_t)(columns + TILE - 1) / TILE;
    options.grid.y = (uint32_t)(rows + TILE - 1) / TILE;
    options.block = (dj_dim3){TILE, 8, 1};
    must(dj_launch(kernel, &options, DJ_ARGS(to, map, rows, columns), &err), &err);
    must(dj_mem_copy(runtime, out, to, count * sizeof *out, &err), &err);

    printf("mean of 3 x 3 elements of a picture of %d x %d, by boxes of %d x %d\n", rows, columns,
           BOX_ROWS, BOX_COLUMNS);
    const int wrong = verdict("blur", largest_error(out, in, rows, columns), 1e-6);
    (void)dj_mem_free(runtime, picture.memory, NULL);
    (void)dj_mem_free(runtime, to, NULL);
    free(in);
    free(out);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    return wrong;
}
