/* SPDX-License-Identifier: MIT */
/*
 * A bf16 matrix product on the tensor cores of the Hopper architecture, specialised at run time:
 * C[M, N] = A[M, K] * B[N, K]^T, all row-major, summed in fp32. One warpgroup loads tiles by TMA
 * into a ring of stages, the others multiply with wgmma; blocks stay and take several tiles.
 * Tile sizes, stages and the number of multiplying warpgroups are template arguments; the wgmma
 * instruction, whose operands depend on the tile, is written by this program.
 *
 * Run: build/examples/cuda_bf16_gemm           a small size, every element checked
 *      build/examples/cuda_bf16_gemm speed     4096 x 7168 x 2048, samples checked, timed
 *      build/examples/cuda_bf16_gemm M N K     that size; N and K are multiples of 8
 *      build/examples/cuda_bf16_gemm debug     a product that shows which elements were used
 */
#include "../common/tensor_map.h"
#include <math.h>

static const char gemm_source[] = TENSOR_MAP_SOURCE
    "\n"
    "#include <cuda_bf16.h>\n"
    "\n"
    "constexpr int BLOCK_K = 64; /* 64 bf16 are 128 bytes, a row of the swizzle */\n"
    "\n"
    "/* Matrix descriptor: rows of 128 bytes along K with the 128-byte swizzle (1 in bits 62 and\n"
    " * up), groups of 8 rows 1024 bytes apart (bits 32 and up, in units of 16 bytes). The offset\n"
    " * in bits 16 and up has no meaning for this layout. */\n"
    "__device__ uint64_t descriptor(const void *tile)\n"
    "{\n"
    "    return 1ull << 62 | 64ull << 32 | 1ull << 16 | (shared_address(tile) & 0x3ffff) >> 4;\n"
    "}\n"
    "\n"
    "__device__ uint32_t pack(const float *pair)\n"
    "{\n"
    "    const __nv_bfloat162 packed = __floats2bfloat162_rn(pair[0], pair[1]);\n"
    "    return *(const uint32_t *)&packed;\n"
    "}\n"
    "\n"
    "/* Of 4 groups of 8 columns, each of the 4 lanes of a row has 2 columns, a word. After two\n"
    " * exchanges lane q has all of group q: 8 columns side by side. */\n"
    "__device__ uint4 gather(uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3)\n"
    "{\n"
    "    const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;\n"
    "    const uint32_t a = __shfl_xor_sync(~0u, odd ? w0 : w1, 1);\n"
    "    const uint32_t b = __shfl_xor_sync(~0u, odd ? w2 : w3, 1);\n"
    "    const uint32_t p0 = odd ? a : w0, p1 = odd ? w1 : a;\n"
    "    const uint32_t p2 = odd ? b : w2, p3 = odd ? w3 : b;\n"
    "    const uint32_t c = __shfl_xor_sync(~0u, high ? p0 : p2, 2);\n"
    "    const uint32_t d = __shfl_xor_sync(~0u, high ? p1 : p3, 2);\n"
    "    return make_uint4(high ? c : p0, high ? d : p1, high ? p2 : c, high ? p3 : d);\n"
    "}\n"
    "\n"
    "template <int BLOCK_M, int BLOCK_N, int STAGES, int CONSUMERS>\n"
    "__global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)\n"
    "gemm(const __grid_constant__ tensor_map map_a, const __grid_constant__ tensor_map map_b,\n"
    "     __nv_bfloat16 *c, int m, int n, int k)\n"
    "{\n"
    "    constexpr int PARTS = BLOCK_M / (64 * CONSUMERS); /* 64-row parts of a consumer */\n"
    "    constexpr int A_BYTES = BLOCK_M * BLOCK_K * 2, B_BYTES = BLOCK_N * BLOCK_K * 2;\n"
    "    extern __shared__ uint8_t unaligned[];\n"
    "    __shared__ uint64_t full[STAGES], empty[STAGES];\n"
    "    /* The swizzle counts from multiples of 1024. */\n"
    "    uint8_t *const a = unaligned + (-shared_address(unaligned) & 1023);\n"
    "    uint8_t *const b = a + STAGES * A_BYTES;\n"
    "    const int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;\n"
    "    const int steps = (k + BLOCK_K - 1) / BLOCK_K;\n"
    "\n"
    "    if (threadIdx.x == 0) {\n"
    "        for (int i = 0; i < STAGES; i++) {\n"
    "            barrier_init(&full[i], 1);\n"
    "            barrier_init(&empty[i], 4 * CONSUMERS); /* one arrival a warp */\n"
    "        }\n"
    "        barrier_init_done();\n"
    "    }\n"
    "    __syncthreads();\n"
    "\n"
    "    /* The ring of stages goes on from tile to tile: loading runs ahead of storing. */\n"
    "    int stage = 0;\n"
    "    uint32_t parity = 0;\n"
    "    if (threadIdx.x < 128) { /* the warpgroup that loads gives registers to the others */\n"
    "        if constexpr (CONSUMERS == 2) {\n"
    "            asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\");\n"
    "        }\n"
    "        if (threadIdx.x != 0) {\n"
    "            return;\n"
    "        }\n"
    "        for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {\n"
    "            const int row = tile % tiles_m * BLOCK_M, column = tile / tiles_m * BLOCK_N;\n"
    "            for (int step = 0; step < steps; step++) {\n"
    "                barrier_wait(&empty[stage], parity ^ 1);\n"
    "                barrier_expect(&full[stage], A_BYTES + B_BYTES);\n"
    "                load_box(a + stage * A_BYTES, &map_a, step * BLOCK_K, row, &full[stage]);\n"
    "                load_box(b + stage * B_BYTES, &map_b, step * BLOCK_K, column, &full[stage]);\n"
    "                stage = stage + 1 == STAGES ? 0 : stage + 1;\n"
    "                parity ^= stage == 0;\n"
    "            }\n"
    "        }\n"
    "        return;\n"
    "    }\n"
    "\n"
    "    if constexpr (CONSUMERS == 2) {\n"
    "        asm volatile(\"setmaxnreg.inc.sync.aligned.u32 232;\");\n"
    "    }\n"
    "    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;\n"
    "    const int first = (threadIdx.x / 128 - 1) * PARTS * 64; /* row in the tile */\n"
    "    for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {\n"
    "        float sum[PARTS][BLOCK_N / 2];\n"
    "        for (int step = 0; step < steps; step++) {\n"
    "            barrier_wait(&full[stage], parity);\n"
    "            const uint64_t at_a = descriptor(a + stage * A_BYTES + first * 128);\n"
    "            const uint64_t at_b = descriptor(b + stage * B_BYTES);\n"
    "            asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n"
    "#pragma unroll\n"
    "            for (int part = 0; part < PARTS; part++) {\n"
    "#pragma unroll\n"
    "                for (int i = 0; i < BLOCK_K / 16; i++) { /* 16 bf16 are 2 units on */\n"
    "                    wgmma(sum[part], at_a + part * 64 * 128 / 16 + i * 2, at_b + i * 2,\n"
    "                          step + i > 0);\n"
    "                }\n"
    "            }\n"
    "            asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n"
    "            /* The step before is done now: its stage may be filled again. */\n"
    "            asm volatile(\"wgmma.wait_group.sync.aligned 1;\" ::: \"memory\");\n"
    "            if (lane == 0 && step > 0) {\n"
    "                barrier_arrive(&empty[(stage + STAGES - 1) % STAGES]);\n"
    "            }\n"
    "            stage = stage + 1 == STAGES ? 0 : stage + 1;\n"
    "            parity ^= stage == 0;\n"
    "        }\n"
    "        asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");\n"
    "        if (lane == 0) {\n"
    "            barrier_arrive(&empty[(stage + STAGES - 1) % STAGES]);\n"
    "        }\n"
    "        for (auto &part : sum) {\n"
    "            for (float &s : part) { /* not read before that wait */\n"
    "                asm volatile(\"\" : \"+f\"(s) :: \"memory\");\n"
    "            }\n"
    "        }\n"
    "\n"
    "        /* Of 16 rows and 8 columns, lane l has columns l % 4 * 2 and the next, of row l / 4\n"
    "         * and then of row l / 4 + 8; a warp has 16 rows of each part. */\n"
    "        const int row = tile % tiles_m * BLOCK_M + first + warp * 16 + lane / 4;\n"
    "        const int column = tile / tiles_m * BLOCK_N + lane % 4 * 8;\n"
    "#pragma unroll\n"
    "        for (int part = 0; part < PARTS; part++) {\n"
    "#pragma unroll\n"
    "            for (int i = 0; i < BLOCK_N / 2; i += 16) {\n"
    "#pragma unroll\n"
    "                for (int half = 0; half < 2; half++) {\n"
    "                    const float *const s = &sum[part][i + half * 2];\n"
    "                    const uint4 columns =\n"
    "                        gather(pack(s), pack(s + 4), pack(s + 8), pack(s + 12));\n"
    "                    const int y = row + part * 64 + half * 8, x = column + i * 2;\n"
    "                    if (y < m && x < n) {\n"
    "                        *(uint4 *)&c[(size_t)y * n + x] = columns;\n"
    "                    }\n"
    "                }\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n";

typedef struct variant {
    uint32_t block_m, block_n, stages, consumers;
} variant;

static const variant variants[] = {
    {64, 128, 6, 1},  {64, 256, 4, 1},  {128, 128, 4, 2}, {128, 128, 6, 2},
    {128, 192, 4, 2}, {128, 256, 3, 2}, {128, 256, 4, 2}, {256, 128, 4, 2},
};

typedef struct problem {
    int m, n, k, repeats;
    uint16_t *a, *b, *c; /* bf16, here */
    void *memory[3];     /* and on the device */
} problem;

static uint16_t to_bf16(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static double from_bf16(uint16_t value)
{
    const uint32_t bits = (uint32_t)value << 16;
    float number = 0;
    memcpy(&number, &bits, sizeof number);
    return (double)number;
}

/* d += a * b for 64 rows and n columns; only the number of accumulators, n / 2, differs. */
static void write_wgmma(FILE *to, uint32_t n)
{
    const uint32_t count = n / 2;
    fprintf(to,
            "#include <cstdint>\n"
            "__device__ void wgmma(float (&d)[%u], uint64_t a, uint64_t b, int accumulate)\n"
            "{\n"
            "    asm volatile(\"{ .reg .pred p;\\nsetp.ne.b32 p, %%%u, 0;\\n\"\n"
            "                 \"wgmma.mma_async.sync.aligned.m64n%uk16.f32.bf16.bf16 {",
            count, count + 2, n);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(to, "%s%%%u", i > 0 ? ", " : "", i);
    }
    /* Both factors times 1, none transposed: K is the fast dimension of both. */
    fprintf(to, "}, %%%u, %%%u, p, 1, 1, 0, 0; }\"\n                 : ", count, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(to, "%s\"+f\"(d[%u])", i > 0 ? ", " : "", i);
    }
    fprintf(to, "\n                 : \"l\"(a), \"l\"(b), \"r\"(accumulate));\n}\n");
}

static dj_kernel *specialise(dj_runtime *runtime, const variant *v)
{
    char *source = NULL;
    size_t size = 0;
    FILE *const to = open_memstream(&source, &size);
    if (to == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    write_wgmma(to, v->block_n);
    fprintf(to,
            "%s\ntemplate __global__ void gemm<%u, %u, %u, %u>(const __grid_constant__ tensor_map, "
            "const __grid_constant__ tensor_map, __nv_bfloat16 *, int, int, int);\n",
            gemm_source, v->block_m, v->block_n, v->stages, v->consumers);
    fclose(to);
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.arch = "90a"; /* wgmma exists nowhere else */
    dj_error err = DJ_ERROR_INIT;
    dj_kernel *kernel = NULL;
    must(dj_compile(runtime, "bf16_gemm", source, size, &options, &kernel, &err), &err);
    free(source);
    return kernel;
}

/* The largest error; 1 is what rounding to bf16 and summing in fp32 may lose. */
static double check(const problem *p)
{
    /* Every element of a small product; of a large one, as many as take 2^27 multiplications. */
    const uint64_t work = (uint64_t)p->m * (uint64_t)p->n * (uint64_t)p->k;
    const size_t step = (size_t)(work >> 27) | 1;
    double largest = 0;
    int shown = 0;
    for (size_t i = 0; i < (size_t)p->m * (size_t)p->n; i += step) {
        const size_t row = i / (size_t)p->n;
        const size_t column = i % (size_t)p->n;
        double expected = 0;
        for (size_t j = 0; j < (size_t)p->k; j++) {
            expected += from_bf16(p->a[row * (size_t)p->k + j]) *
                        from_bf16(p->b[column * (size_t)p->k + j]);
        }
        const double limit = fabs(expected) * 0x1p-8 + 5e-7 * p->k;
        const double error = fabs(from_bf16(p->c[i]) - expected) / limit;
        if (!(error <= 1) && shown++ < 8) {
            printf("    C[%zu, %zu] is %g, expected %g\n", row, column, from_bf16(p->c[i]),
                   expected);
        }
        largest = worst(largest, error);
    }
    return largest;
}

static dj_status launch(dj_runtime *runtime, dj_kernel *kernel, const variant *v, const problem *p,
                        unsigned multiprocessors, dj_error *err)
{
    const matrix a = {p->memory[0], TENSOR_BFLOAT16, 2, (uint64_t)p->m, (uint64_t)p->k};
    const matrix b = {p->memory[1], TENSOR_BFLOAT16, 2, (uint64_t)p->n, (uint64_t)p->k};
    const tensor_map map_a = encode_matrix(runtime, &a, v->block_m, 64, SWIZZLE_128B);
    const tensor_map map_b = encode_matrix(runtime, &b, v->block_n, 64, SWIZZLE_128B);
    const unsigned tiles = (((unsigned)p->m + v->block_m - 1) / v->block_m) *
                           (((unsigned)p->n + v->block_n - 1) / v->block_n);
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    /* At least two tiles a block: it loads the second while it stores the first. */
    options.grid.x = (tiles + 1) / 2 < multiprocessors ? (tiles + 1) / 2 : multiprocessors;
    options.block.x = 128 * (v->consumers + 1);
    options.shared_bytes = 1024 + 128 * (int64_t)(v->stages * (v->block_m + v->block_n));
    return dj_launch(kernel, &options, DJ_ARGS(map_a, map_b, p->memory[2], p->m, p->n, p->k), err);
}

/* The best of some rounds, in milliseconds a launch. */
static double measure(dj_runtime *runtime, dj_kernel *kernel, const variant *v, const problem *p,
                      unsigned multiprocessors)
{
    dj_error err = DJ_ERROR_INIT;
    double best = 1e30;
    for (int round = 0; round < 5; round++) {
        const double begin = now_ms();
        for (int i = 0; i < p->repeats; i++) {
            must(launch(runtime, kernel, v, p, multiprocessors, &err), &err);
        }
        must(dj_synchronize(runtime, &err), &err);
        const double took = (now_ms() - begin) / p->repeats;
        best = took < best ? took : best;
    }
    return best;
}

/* 0 if the product is right. */
static int try_variant(dj_runtime *runtime, const variant *v, const problem *p,
                       unsigned multiprocessors)
{
    const double begin = now_ms();
    dj_kernel *const kernel = specialise(runtime, v);
    const double found = now_ms();
    const size_t size = (size_t)p->m * (size_t)p->n * 2;
    dj_error err = DJ_ERROR_INIT;
    memset(p->c, 0xff, size); /* not a number: what is not written is found */
    must(dj_mem_copy(runtime, p->memory[2], p->c, size, &err), &err);
    must(launch(runtime, kernel, v, p, multiprocessors, &err), &err);
    must(dj_mem_copy(runtime, p->c, p->memory[2], size, &err), &err);
    const double error = check(p);
    printf("%3u x %3u, %u stages, %u + 1 warpgroups: compile or find %7.1f ms, error %.2f %s",
           v->block_m, v->block_n, v->stages, v->consumers, found - begin, error,
           error <= 1 ? "right" : "WRONG");
    if (p->repeats > 0) {
        const double ms = measure(runtime, kernel, v, p, multiprocessors);
        printf(", %.4f ms, %.0f TFLOP/s", ms, 2e-9 * p->m * p->n * p->k / ms);
    }
    printf("\n");
    dj_kernel_release(kernel);
    return error <= 1 ? 0 : 1;
}

/* A[row, k] is 1 where k is row, and B[column, k] says where it stands: C shows what was taken. */
static void fill_debug(const problem *p)
{
    for (int i = 0; i < p->m * p->k; i++) {
        p->a[i] = to_bf16(i % p->k == i / p->k % p->k ? 1.0f : 0.0f);
    }
    for (int i = 0; i < p->n * p->k; i++) {
        p->b[i] = to_bf16((float)(i / p->k % 16 * 16 + i % p->k % 16));
    }
}

static void show_debug(const problem *p)
{
    printf("C[row, column] of the last variant; right is the column's, then the row's digit:\n");
    for (int row = 0; row < 16; row++) {
        for (int column = 0; column < 16; column++) {
            printf(" %02x", (unsigned)from_bf16(p->c[row * p->n + column]) & 0xff);
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    const int debug = argc == 2 && strcmp(argv[1], "debug") == 0;
    const int speed = argc == 2 && strcmp(argv[1], "speed") == 0;
    problem p = {.m = 264, .n = 392, .k = 328}; /* no multiples of the tiles */
    if (speed || argc == 4) {
        p.m = speed ? 4096 : atoi(argv[1]);
        p.n = speed ? 7168 : atoi(argv[2]);
        p.k = speed ? 2048 : atoi(argv[3]);
        p.repeats = 30;
    }
    if (p.m <= 0 || p.n <= 0 || p.k <= 0 || p.n % 8 != 0 || p.k % 8 != 0) {
        fprintf(stderr, "M, N and K are positive; N and K are multiples of 8\n");
        return 1;
    }
    dj_runtime *const runtime = open_cuda(NULL);
    const dj_cuda_device device = need_device(runtime, 9);
    if (device.major != 9) {
        skip("wgmma is of compute capability 9.0 only");
    }
    const size_t counts[] = {(size_t)p.m * (size_t)p.k, (size_t)p.n * (size_t)p.k,
                             (size_t)p.m * (size_t)p.n};
    uint16_t **const here[] = {&p.a, &p.b, &p.c};
    uint32_t seed = 1;
    for (int i = 0; i < 3; i++) {
        *here[i] = need_memory(counts[i] * 2);
        for (size_t j = 0; j < counts[i] && i < 2; j++) {
            (*here[i])[j] = to_bf16(next_number(&seed));
        }
    }
    if (debug) {
        fill_debug(&p);
    }
    for (int i = 0; i < 3; i++) {
        p.memory[i] = to_device(runtime, *here[i], counts[i] * 2);
    }
    printf("C[%d, %d] = A[%d, %d] * B[%d, %d]^T\n", p.m, p.n, p.m, p.k, p.n, p.k);
    int wrong = 0;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        wrong |= try_variant(runtime, &variants[i], &p, (unsigned)device.multiprocessors);
    }
    if (debug) {
        show_debug(&p);
    }
    for (int i = 0; i < 3; i++) {
        (void)dj_mem_free(runtime, p.memory[i], NULL);
        free(*here[i]);
    }
    dj_runtime_release(runtime);
    return wrong;
}
