/* SPDX-License-Identifier: MIT */
/*
 * A CUtensorMap of a row-major matrix, by our own declarations: no CUDA header is needed. The
 * driver fills it in, the kernel takes it as `const __grid_constant__` argument of 128 bytes.
 */
#ifndef EXAMPLE_TENSOR_MAP_H
#define EXAMPLE_TENSOR_MAP_H

#include "example.h"

typedef struct tensor_map {
    _Alignas(64) unsigned char bytes[128];
} tensor_map;

/* CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion */
enum { TENSOR_FLOAT32 = 7, TENSOR_BFLOAT16 = 9 };
enum { SWIZZLE_NONE = 0, SWIZZLE_128B = 3 };
enum { L2_PROMOTION_256B = 3 };

typedef int (*tensor_map_encode_fn)(tensor_map *map, int type, uint32_t rank, void *address,
                                    const uint64_t *sizes, const uint64_t *strides,
                                    const uint32_t *box, const uint32_t *element_strides,
                                    int interleave, int swizzle, int l2_promotion, int fill);

typedef struct matrix {
    void *memory; /* device memory, aligned to 16 bytes */
    int type;
    uint32_t element_bytes;
    uint64_t rows, columns; /* a row is a multiple of 16 bytes */
} matrix;

/* What lies outside the matrix is loaded as zero. */
static inline tensor_map encode_matrix(dj_runtime *runtime, const matrix *of, uint32_t box_rows,
                                       uint32_t box_columns, int swizzle)
{
    dj_error err = DJ_ERROR_INIT;
    void *symbol = NULL;
    must(dj_cuda_symbol(runtime, "cuTensorMapEncodeTiled", 12000, &symbol, &err), &err);
    /* The fastest dimension comes first; its stride is one element and is left out. */
    const uint64_t sizes[] = {of->columns, of->rows};
    const uint64_t strides[] = {of->columns * of->element_bytes};
    const uint32_t box[] = {box_columns, box_rows};
    const uint32_t element_strides[] = {1, 1};
    tensor_map map;
    must_cu(((tensor_map_encode_fn)symbol)(&map, of->type, 2, of->memory, sizes, strides, box,
                                           element_strides, 0, swizzle, L2_PROMOTION_256B, 0),
            "cuTensorMapEncodeTiled");
    return map;
}

/* The kernels' side: declarations, and wrappers of the PTX instructions for loading by map. */
#define TENSOR_MAP_SOURCE                                                                          \
    "#include <cstdint>\n"                                                                         \
    "\n"                                                                                           \
    "struct alignas(64) tensor_map { uint8_t bytes[128]; };\n"                                     \
    "\n"                                                                                           \
    "__device__ uint32_t shared_address(const void *pointer)\n"                                    \
    "{\n"                                                                                          \
    "    return (uint32_t)__cvta_generic_to_shared(pointer);\n"                                    \
    "}\n"                                                                                          \
    "\n"                                                                                           \
    "__device__ void barrier_init(uint64_t *barrier, int arrivals)\n"                              \
    "{\n"                                                                                          \
    "    asm volatile(\"mbarrier.init.shared::cta.b64 [%0], %1;\"\n"                               \
    "                 :: \"r\"(shared_address(barrier)), \"r\"(arrivals) : \"memory\");\n"         \
    "}\n"                                                                                          \
    "\n"                                                                                           \
    "/* After the last barrier_init of a thread: makes them known to the copy engine. */\n"        \
    "__device__ void barrier_init_done()\n"                                                        \
    "{\n"                                                                                          \
    "    asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");\n"                 \
    "    asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n"                       \
    "}\n"                                                                                          \
    "\n"                                                                                           \
    "__device__ void barrier_arrive(uint64_t *barrier)\n"                                          \
    "{\n"                                                                                          \
    "    asm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\"\n"                              \
    "                 :: \"r\"(shared_address(barrier)) : \"memory\");\n"                          \
    "}\n"                                                                                          \
    "\n"                                                                                           \
    "/* Arrives, and lets the phase last until so many bytes were copied, too. */\n"               \
    "__device__ void barrier_expect(uint64_t *barrier, int bytes)\n"                               \
    "{\n"                                                                                          \
    "    asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\"\n"                \
    "                 :: \"r\"(shared_address(barrier)), \"r\"(bytes) : \"memory\");\n"            \
    "}\n"                                                                                          \
    "\n"                                                                                           \
    "/* Waits for the end of the phase of this parity; the first phase has parity 0. */\n"         \
    "__device__ void barrier_wait(uint64_t *barrier, uint32_t parity)\n"                           \
    "{\n"                                                                                          \
    "    uint32_t done = 0;\n"                                                                     \
    "    while (!done) {\n"                                                                        \
    "        asm volatile(\"{ .reg .pred p;\\n\"\n"                                                \
    "                     \"mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\\n\"\n"          \
    "                     \"selp.u32 %0, 1, 0, p; }\"\n"                                           \
    "                     : \"=r\"(done)\n"                                                        \
    "                     : \"r\"(shared_address(barrier)), \"r\"(parity) : \"memory\");\n"        \
    "    }\n"                                                                                      \
    "}\n"                                                                                          \
    "\n"                                                                                           \
    "/* Starts to copy the box whose corner is at column x, row y. */\n"                           \
    "__device__ void load_box(void *to, const tensor_map *map, int x, int y, uint64_t *barrier)\n" \
    "{\n"                                                                                          \
    "    asm volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global.tile\"\n"                   \
    "                 \".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];\"\n"             \
    "                 :: \"r\"(shared_address(to)), \"l\"(map), \"r\"(shared_address(barrier)),\n" \
    "                    \"r\"(x), \"r\"(y) : \"memory\");\n"                                      \
    "}\n"

#endif
