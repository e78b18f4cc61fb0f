/* SPDX-License-Identifier: MIT */
/*
 * deepjit/kernel.h: what kernel sources include. One source for every back end: it compiles as C
 * (C11 or newer, gcc or clang) for the host and as CUDA C++. Not for host code.
 *
 * 1. A kernel whose threads do not talk to each other. The body runs once per thread:
 *
 *     #include <deepjit/kernel.h>
 *
 *     DJ_KERNEL(axpy, (float *, y), (const float *, x), (float, a), (int, n))
 *     {
 *         int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;
 *         if (i < n) {
 *             y[i] += a * x[i];
 *         }
 *     }
 *
 * 2. A kernel whose threads share memory. The body runs once per block; each DJ_FOR_THREADS is a
 *    phase that every thread runs, and ends in a barrier:
 *
 *     #include <deepjit/kernel.h>
 *
 *     DJ_BLOCK_KERNEL(block_sum, (float *, out), (const float *, in), (int, n))
 *     {
 *         DJ_SHARED(float, part[256]);
 *         DJ_FOR_THREADS {
 *             int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;
 *             part[DJ_THREAD_IDX_X] = i < n ? in[i] : 0.0f;
 *         }
 *         for (int half = DJ_BLOCK_DIM_X / 2; half > 0; half /= 2) {
 *             DJ_FOR_THREADS {
 *                 if (DJ_THREAD_IDX_X < half) {
 *                     part[DJ_THREAD_IDX_X] += part[DJ_THREAD_IDX_X + half];
 *                 }
 *             }
 *         }
 *         DJ_FOR_THREADS {
 *             if (DJ_THREAD_IDX_X == 0) {
 *                 out[DJ_BLOCK_IDX_X] = part[0];
 *             }
 *         }
 *     }
 *
 * Parameters: (type, name) pairs, 0 to 48 of them. Types are written before the name, so arrays
 * and function pointers need a typedef; structures are passed by value. A parameter may be
 * changed; each thread (DJ_KERNEL) or block has its own copy.
 *
 * Indices are int on every back end: DJ_BLOCK_IDX_X/Y/Z, DJ_THREAD_IDX_X/Y/Z, DJ_BLOCK_DIM_X/Y/Z,
 * DJ_GRID_DIM_X/Y/Z. They exist in kernel bodies only: pass them to helper functions.
 *
 * Helper functions begin with DJ_FUNCTION. DJ_RESTRICT is C's restrict on every back end. The
 * headers stddef, stdint, stdbool and math are there already.
 *
 * Rules
 *   - In DJ_KERNEL, `return` ends the thread.
 *   - In a phase, `continue` ends the thread's phase; `break`, `return` and another
 *     DJ_FOR_THREADS are not allowed there, and DJ_THREAD_IDX_* exist only there.
 *   - Between phases the host runs once per block what CUDA runs in every thread. So write there
 *     only what is the same for all threads: declarations, and loops and conditions whose course
 *     depends on parameters, block indices and dimensions. Never write to memory there, nor
 *     read what a phase wrote to decide whether another phase runs.
 *   - Variables live through one phase; what must survive a barrier goes to shared memory.
 *   - DJ_SHARED(type, declarator) and DJ_DYNAMIC_SHARED(type, name) stand at the beginning of a
 *     DJ_BLOCK_KERNEL. Shared memory starts with undefined content. Keep static shared memory
 *     under 48 KiB. DJ_DYNAMIC_SHARED makes `name` a pointer to the launch's shared_bytes.
 *   - Source that is compiled for loading defines exactly one kernel.
 *   - Atomics and warp functions belong to the back end: use #ifdef __CUDACC__.
 */
#ifndef DEEPJIT_KERNEL_H
#define DEEPJIT_KERNEL_H

#if defined(__cplusplus) && !defined(__CUDACC__)
#error "deepjit/kernel.h: kernels for the host are C, not C++"
#endif

#if !defined(__CUDACC_RTC__)
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

/*
 * Mapping over up to 48 (type, name) pairs. Lists begin with the kernel's name, so that none is
 * empty and the number of pairs is the number of elements less one.
 */
#define DJ__K_PICK(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, \
                   a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, \
                   a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, n,   \
                   ...)                                                                            \
    n
#define DJ__K_COUNT(...)                                                                           \
    DJ__K_PICK(__VA_ARGS__, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32,    \
               31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, \
               10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#define DJ__K_NAME_(name, ...) name
#define DJ__K_NAME(...) DJ__K_NAME_(__VA_ARGS__, )
#define DJ__K_CAT_(a, b) a##b
#define DJ__K_CAT(a, b) DJ__K_CAT_(a, b)
/* DJ__K_EACH(n, f, name, pairs...): f(type, name) for each of the n pairs. */
#define DJ__K_EACH(n, f, ...) DJ__K_CAT(DJ__K_EACH, n)(f, __VA_ARGS__)
#define DJ__K_EACH0(f, name)
#define DJ__K_EACH1(f, name, a) f a
#define DJ__K_EACH2(f, name, a, ...) f a DJ__K_EACH1(f, name, __VA_ARGS__)
#define DJ__K_EACH3(f, name, a, ...) f a DJ__K_EACH2(f, name, __VA_ARGS__)
#define DJ__K_EACH4(f, name, a, ...) f a DJ__K_EACH3(f, name, __VA_ARGS__)
#define DJ__K_EACH5(f, name, a, ...) f a DJ__K_EACH4(f, name, __VA_ARGS__)
#define DJ__K_EACH6(f, name, a, ...) f a DJ__K_EACH5(f, name, __VA_ARGS__)
#define DJ__K_EACH7(f, name, a, ...) f a DJ__K_EACH6(f, name, __VA_ARGS__)
#define DJ__K_EACH8(f, name, a, ...) f a DJ__K_EACH7(f, name, __VA_ARGS__)
#define DJ__K_EACH9(f, name, a, ...) f a DJ__K_EACH8(f, name, __VA_ARGS__)
#define DJ__K_EACH10(f, name, a, ...) f a DJ__K_EACH9(f, name, __VA_ARGS__)
#define DJ__K_EACH11(f, name, a, ...) f a DJ__K_EACH10(f, name, __VA_ARGS__)
#define DJ__K_EACH12(f, name, a, ...) f a DJ__K_EACH11(f, name, __VA_ARGS__)
#define DJ__K_EACH13(f, name, a, ...) f a DJ__K_EACH12(f, name, __VA_ARGS__)
#define DJ__K_EACH14(f, name, a, ...) f a DJ__K_EACH13(f, name, __VA_ARGS__)
#define DJ__K_EACH15(f, name, a, ...) f a DJ__K_EACH14(f, name, __VA_ARGS__)
#define DJ__K_EACH16(f, name, a, ...) f a DJ__K_EACH15(f, name, __VA_ARGS__)
#define DJ__K_EACH17(f, name, a, ...) f a DJ__K_EACH16(f, name, __VA_ARGS__)
#define DJ__K_EACH18(f, name, a, ...) f a DJ__K_EACH17(f, name, __VA_ARGS__)
#define DJ__K_EACH19(f, name, a, ...) f a DJ__K_EACH18(f, name, __VA_ARGS__)
#define DJ__K_EACH20(f, name, a, ...) f a DJ__K_EACH19(f, name, __VA_ARGS__)
#define DJ__K_EACH21(f, name, a, ...) f a DJ__K_EACH20(f, name, __VA_ARGS__)
#define DJ__K_EACH22(f, name, a, ...) f a DJ__K_EACH21(f, name, __VA_ARGS__)
#define DJ__K_EACH23(f, name, a, ...) f a DJ__K_EACH22(f, name, __VA_ARGS__)
#define DJ__K_EACH24(f, name, a, ...) f a DJ__K_EACH23(f, name, __VA_ARGS__)
#define DJ__K_EACH25(f, name, a, ...) f a DJ__K_EACH24(f, name, __VA_ARGS__)
#define DJ__K_EACH26(f, name, a, ...) f a DJ__K_EACH25(f, name, __VA_ARGS__)
#define DJ__K_EACH27(f, name, a, ...) f a DJ__K_EACH26(f, name, __VA_ARGS__)
#define DJ__K_EACH28(f, name, a, ...) f a DJ__K_EACH27(f, name, __VA_ARGS__)
#define DJ__K_EACH29(f, name, a, ...) f a DJ__K_EACH28(f, name, __VA_ARGS__)
#define DJ__K_EACH30(f, name, a, ...) f a DJ__K_EACH29(f, name, __VA_ARGS__)
#define DJ__K_EACH31(f, name, a, ...) f a DJ__K_EACH30(f, name, __VA_ARGS__)
#define DJ__K_EACH32(f, name, a, ...) f a DJ__K_EACH31(f, name, __VA_ARGS__)
#define DJ__K_EACH33(f, name, a, ...) f a DJ__K_EACH32(f, name, __VA_ARGS__)
#define DJ__K_EACH34(f, name, a, ...) f a DJ__K_EACH33(f, name, __VA_ARGS__)
#define DJ__K_EACH35(f, name, a, ...) f a DJ__K_EACH34(f, name, __VA_ARGS__)
#define DJ__K_EACH36(f, name, a, ...) f a DJ__K_EACH35(f, name, __VA_ARGS__)
#define DJ__K_EACH37(f, name, a, ...) f a DJ__K_EACH36(f, name, __VA_ARGS__)
#define DJ__K_EACH38(f, name, a, ...) f a DJ__K_EACH37(f, name, __VA_ARGS__)
#define DJ__K_EACH39(f, name, a, ...) f a DJ__K_EACH38(f, name, __VA_ARGS__)
#define DJ__K_EACH40(f, name, a, ...) f a DJ__K_EACH39(f, name, __VA_ARGS__)
#define DJ__K_EACH41(f, name, a, ...) f a DJ__K_EACH40(f, name, __VA_ARGS__)
#define DJ__K_EACH42(f, name, a, ...) f a DJ__K_EACH41(f, name, __VA_ARGS__)
#define DJ__K_EACH43(f, name, a, ...) f a DJ__K_EACH42(f, name, __VA_ARGS__)
#define DJ__K_EACH44(f, name, a, ...) f a DJ__K_EACH43(f, name, __VA_ARGS__)
#define DJ__K_EACH45(f, name, a, ...) f a DJ__K_EACH44(f, name, __VA_ARGS__)
#define DJ__K_EACH46(f, name, a, ...) f a DJ__K_EACH45(f, name, __VA_ARGS__)
#define DJ__K_EACH47(f, name, a, ...) f a DJ__K_EACH46(f, name, __VA_ARGS__)
#define DJ__K_EACH48(f, name, a, ...) f a DJ__K_EACH47(f, name, __VA_ARGS__)
#define DJ__K_COMMA_PARAM(T, name) , T name
#define DJ__K_COMMA_NAME(T, name) , name

#if defined(__CUDACC__)

#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#endif

#define DJ_FUNCTION static __device__ inline __attribute__((unused))
#define DJ_RESTRICT __restrict__

#define DJ_BLOCK_IDX_X ((int)blockIdx.x)
#define DJ_BLOCK_IDX_Y ((int)blockIdx.y)
#define DJ_BLOCK_IDX_Z ((int)blockIdx.z)
#define DJ_THREAD_IDX_X ((int)threadIdx.x)
#define DJ_THREAD_IDX_Y ((int)threadIdx.y)
#define DJ_THREAD_IDX_Z ((int)threadIdx.z)
#define DJ_BLOCK_DIM_X ((int)blockDim.x)
#define DJ_BLOCK_DIM_Y ((int)blockDim.y)
#define DJ_BLOCK_DIM_Z ((int)blockDim.z)
#define DJ_GRID_DIM_X ((int)gridDim.x)
#define DJ_GRID_DIM_Y ((int)gridDim.y)
#define DJ_GRID_DIM_Z ((int)gridDim.z)

#define DJ_SHARED(type, declarator) __shared__ type declarator
#define DJ_DYNAMIC_SHARED(type, name)                                                              \
    extern __shared__ __align__(16) unsigned char dj__dynamic_shared[];                            \
    type *const name = (type *)dj__dynamic_shared
/* The barrier stands in the increment, where `continue` cannot skip it. */
#define DJ_FOR_THREADS for (bool dj__once = true; dj__once; dj__once = false, __syncthreads())

#define DJ__K_REST_(first, ...) __VA_ARGS__
#define DJ__K_REST(...) DJ__K_REST_(__VA_ARGS__)
#define DJ_KERNEL(...) DJ__K_GLOBAL(DJ__K_COUNT(__VA_ARGS__), DJ__K_NAME(__VA_ARGS__), __VA_ARGS__)
#define DJ__K_GLOBAL(n, name, ...)                                                                 \
    extern "C" __global__ void name(DJ__K_REST(name DJ__K_EACH(n, DJ__K_COMMA_PARAM, __VA_ARGS__)))
#define DJ_BLOCK_KERNEL(...) DJ_KERNEL(__VA_ARGS__)

#else /* host */

/*
 * What the host back end and a compiled kernel agree on; src/backend/host/host_backend.h has the
 * same layouts. DJ__K_ABI grows when one of them, or the accessor below, changes.
 */
#define DJ__K_ABI 1

/* Every name below begins with dj__ and attributes are spelled with underscores, so that a
 * kernel's own macros (-Dblock=16) cannot reach into this file. */

struct dj__k_block {
    int32_t dj__grid[3];
    int32_t dj__dim[3];
    int32_t dj__index[3];
    uint32_t dj__shared_bytes;
    void *dj__shared;
};

struct dj__k_param {
    const char *dj__name;
    const char *dj__type;
    uint32_t dj__size;
    uint32_t dj__align;
};

struct dj__k_kernel {
    const char *dj__name;
    void (*dj__run)(const struct dj__k_block *dj__at, const void *const *dj__args);
    const struct dj__k_param *dj__params;
    size_t dj__num_params;
};

/* Every kernel puts a pointer to its description into the section dj_kernels, whose bounds the
 * linker names; they are null if there is none. */
extern const struct dj__k_kernel *const __start_dj_kernels[]
    __attribute__((__weak__, __visibility__("hidden")));
extern const struct dj__k_kernel *const __stop_dj_kernels[]
    __attribute__((__weak__, __visibility__("hidden")));

/* The one symbol that the host back end looks up. */
const struct dj__k_kernel *const *dj__host_kernels(uint32_t *dj__abi, size_t *dj__count)
    __attribute__((__weak__, __visibility__("default")));

const struct dj__k_kernel *const *dj__host_kernels(uint32_t *dj__abi, size_t *dj__count)
{
    *dj__abi = DJ__K_ABI;
    *dj__count = ((uintptr_t)__stop_dj_kernels - (uintptr_t)__start_dj_kernels) /
                 sizeof(const struct dj__k_kernel *);
    return __start_dj_kernels;
}

/* gcc does not see that one thread of an earlier phase always writes what a later one reads. */
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define DJ__K_UNUSED __attribute__((__unused__))
/* Nothing refers to an entry of the list by name: neither compiler nor linker may drop it. */
#define DJ__K_LISTED __used__, __section__("dj_kernels")
#if defined(__has_attribute)
#if __has_attribute(__retain__)
#undef DJ__K_LISTED
#define DJ__K_LISTED __used__, __retain__, __section__("dj_kernels")
#endif
#endif

#define DJ_FUNCTION static inline DJ__K_UNUSED
#define DJ_RESTRICT __restrict__

#define DJ_BLOCK_IDX_X (dj__block.dj__index[0])
#define DJ_BLOCK_IDX_Y (dj__block.dj__index[1])
#define DJ_BLOCK_IDX_Z (dj__block.dj__index[2])
#define DJ_THREAD_IDX_X (dj__thread_x)
#define DJ_THREAD_IDX_Y (dj__thread_y)
#define DJ_THREAD_IDX_Z (dj__thread_z)
#define DJ_BLOCK_DIM_X (dj__block.dj__dim[0])
#define DJ_BLOCK_DIM_Y (dj__block.dj__dim[1])
#define DJ_BLOCK_DIM_Z (dj__block.dj__dim[2])
#define DJ_GRID_DIM_X (dj__block.dj__grid[0])
#define DJ_GRID_DIM_Y (dj__block.dj__grid[1])
#define DJ_GRID_DIM_Z (dj__block.dj__grid[2])

/* Only the bodies of block kernels have the parameter dj__needs_DJ_BLOCK_KERNEL, an int that is
 * 0: elsewhere these macros do not compile, and the compiler's message says why. */
#define DJ__K_SHARED_ALIGN (16 * sizeof dj__needs_DJ_BLOCK_KERNEL)
#define DJ_SHARED(type, declarator) __attribute__((__aligned__(DJ__K_SHARED_ALIGN))) type declarator
#define DJ_DYNAMIC_SHARED(type, name)                                                              \
    type *const name = (type *)__builtin_assume_aligned(dj__block.dj__shared, DJ__K_SHARED_ALIGN)
#define DJ_FOR_THREADS                                                                             \
    for (int dj__thread_z = dj__needs_DJ_BLOCK_KERNEL; dj__thread_z < DJ_BLOCK_DIM_Z;              \
         dj__thread_z++)                                                                           \
        for (int dj__thread_y = 0; dj__thread_y < DJ_BLOCK_DIM_Y; dj__thread_y++)                  \
            for (int dj__thread_x = 0; dj__thread_x < DJ_BLOCK_DIM_X; dj__thread_x++)

/* The caller's argument may have any alignment and any type of the same size. */
#define DJ__K_LOAD(T, name)                                                                        \
    T name = ((const struct { __typeof__(T) dj__value; }                                           \
               __attribute__((__packed__, __may_alias__)) *)*dj__args++)                           \
                 ->dj__value;
#define DJ__K_DESCRIBE_PARAM(T, name) {#name, #T, sizeof(T), _Alignof(T)},
#define DJ__K_DESCRIBE(n, name, ...)                                                               \
    static const struct dj__k_param dj__params_##name[] = {                                        \
        DJ__K_EACH(n, DJ__K_DESCRIBE_PARAM, __VA_ARGS__){"", "", 0, 0}};                           \
    static const struct dj__k_kernel dj__kernel_##name = {#name, dj__run_##name,                   \
                                                          dj__params_##name, n};                   \
    static const struct dj__k_kernel *const dj__listed_##name __attribute__((DJ__K_LISTED)) =      \
        &dj__kernel_##name;

/* The user's body ends each kernel macro's expansion. It works on a copy of the block's numbers,
 * so that the compiler sees that no store of the kernel changes them. */
#define DJ__K_BODY(name) static inline __attribute__((__always_inline__)) void dj__body_##name
#define DJ__K_RUN(name)                                                                            \
    static void dj__run_##name(const struct dj__k_block *dj__at, const void *const *dj__args)

#define DJ_KERNEL(...) DJ__K_THREADS(DJ__K_COUNT(__VA_ARGS__), DJ__K_NAME(__VA_ARGS__), __VA_ARGS__)
#define DJ__K_THREAD_PARAMS(n, ...)                                                                \
    (DJ__K_UNUSED const struct dj__k_block dj__block, DJ__K_UNUSED const int dj__thread_x,         \
     DJ__K_UNUSED const int dj__thread_y,                                                          \
     DJ__K_UNUSED const int dj__thread_z DJ__K_EACH(n, DJ__K_COMMA_PARAM, __VA_ARGS__))
/* The x loop counts the global index: gcc splits a loop at `if (i < n)`, and so can vectorise
 * it, only if i is the loop's own counter. The back end sees to it that no x index overflows. */
#define DJ__K_THREADS(n, name, ...) DJ__K_THREADS_(n, name, __VA_ARGS__)
#define DJ__K_THREADS_(n, name, ...)                                                               \
    DJ__K_BODY(name) DJ__K_THREAD_PARAMS(n, __VA_ARGS__);                                          \
    DJ__K_RUN(name)                                                                                \
    {                                                                                              \
        const struct dj__k_block dj__block = *dj__at;                                              \
        DJ__K_EACH(n, DJ__K_LOAD, __VA_ARGS__)                                                     \
        (void)dj__args;                                                                            \
        const int dj__begin = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X;                                     \
        for (int dj__z = 0; dj__z < DJ_BLOCK_DIM_Z; dj__z++) {                                     \
            for (int dj__y = 0; dj__y < DJ_BLOCK_DIM_Y; dj__y++) {                                 \
                for (int dj__x = dj__begin; dj__x < dj__begin + DJ_BLOCK_DIM_X; dj__x++) {         \
                    dj__body_##name(dj__block, dj__x - dj__begin, dj__y,                           \
                                    dj__z DJ__K_EACH(n, DJ__K_COMMA_NAME, __VA_ARGS__));           \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    DJ__K_DESCRIBE(n, name, __VA_ARGS__)                                                           \
    DJ__K_BODY(name) DJ__K_THREAD_PARAMS(n, __VA_ARGS__)

#define DJ_BLOCK_KERNEL(...)                                                                       \
    DJ__K_PHASES(DJ__K_COUNT(__VA_ARGS__), DJ__K_NAME(__VA_ARGS__), __VA_ARGS__)
#define DJ__K_BLOCK_PARAMS(n, ...)                                                                 \
    (DJ__K_UNUSED const struct dj__k_block dj__block,                                              \
     DJ__K_UNUSED const int dj__needs_DJ_BLOCK_KERNEL DJ__K_EACH(n, DJ__K_COMMA_PARAM,             \
                                                                 __VA_ARGS__))
#define DJ__K_PHASES(n, name, ...) DJ__K_PHASES_(n, name, __VA_ARGS__)
#define DJ__K_PHASES_(n, name, ...)                                                                \
    DJ__K_BODY(name) DJ__K_BLOCK_PARAMS(n, __VA_ARGS__);                                           \
    DJ__K_RUN(name)                                                                                \
    {                                                                                              \
        DJ__K_EACH(n, DJ__K_LOAD, __VA_ARGS__)                                                     \
        (void)dj__args;                                                                            \
        dj__body_##name(*dj__at, 0 DJ__K_EACH(n, DJ__K_COMMA_NAME, __VA_ARGS__));                  \
    }                                                                                              \
    DJ__K_DESCRIBE(n, name, __VA_ARGS__)                                                           \
    DJ__K_BODY(name) DJ__K_BLOCK_PARAMS(n, __VA_ARGS__)

#endif

#endif
