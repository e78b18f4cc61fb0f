/* SPDX-License-Identifier: MIT */
/*
 * The frame of the tests that need a GPU. They use the public API (and the driver by hand), carry
 * no test library, and so run from a build that was made elsewhere.
 *
 * Each case runs in a child process of its own: contexts, faults and crashes of one do not reach
 * the next. With DJ_GPU_IN_PROCESS=1 (for compute-sanitizer) all run in the program itself, and
 * cases marked GPU_ALONE are left out. Arguments of the program select cases by name.
 *
 * A failed check ends its case.
 */
#ifndef GPU_TEST_H
#define GPU_TEST_H

#include "hand_driver.h"
#include <deepjit/cuda.h>
#include <deepjit/deepjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPU_ALONE = 1 };

typedef struct gpu_case {
    const char *name;
    void (*run)(void);
    unsigned flags;
} gpu_case;

int gpu_main(int argc, char **argv, const gpu_case *cases, size_t count);
#define GPU_MAIN(cases)                                                                            \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return gpu_main(argc, argv, cases, sizeof(cases) / sizeof((cases)[0]));                    \
    }

/* ---- Checks ---- */

_Noreturn void gpu_fail(const char *file, int line, const char *format, ...) DJ_PRINTF(3, 4);
_Noreturn void gpu_skip(const char *why);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            gpu_fail(__FILE__, __LINE__, "%s", #condition);                                        \
        }                                                                                          \
    } while (0)

/* Two integers that must be equal. */
#define CHECK_INT(got, want)                                                                       \
    do {                                                                                           \
        const long long got_ = (long long)(got);                                                   \
        const long long want_ = (long long)(want);                                                 \
        if (got_ != want_) {                                                                       \
            gpu_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #got, got_, want_);               \
        }                                                                                          \
    } while (0)

/* A call that must succeed; uses a dj_error named err. */
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        const dj_status status_ = (call);                                                          \
        if (status_ != DJ_OK) {                                                                    \
            gpu_fail(__FILE__, __LINE__, "%s: %s: %s", #call, dj_status_name(status_),             \
                     err.message);                                                                 \
        }                                                                                          \
    } while (0)

/* A call that must fail with this status and a message that holds this text. */
#define CHECK_ERROR(call, status, text)                                                            \
    do {                                                                                           \
        memset(&err, 0, sizeof(err));                                                              \
        const dj_status status_ = (call);                                                          \
        if (status_ != (status) || strstr(err.message, (text)) == NULL) {                          \
            gpu_fail(__FILE__, __LINE__, "%s: %s \"%s\", not %s \"%s\"", #call,                    \
                     dj_status_name(status_), err.message, dj_status_name(status), (text));        \
        }                                                                                          \
    } while (0)

/* A call of the driver by hand that must succeed. */
#define CHECK_CU(call)                                                                             \
    do {                                                                                           \
        const int result_ = (call);                                                                \
        if (result_ != 0) {                                                                        \
            gpu_fail(__FILE__, __LINE__, "%s gives %d", #call, result_);                           \
        }                                                                                          \
    } while (0)

/* ---- What cases use; everything here checks for itself ---- */

/* The case's runtime, made at the first call. */
dj_runtime *gpu_runtime(void);
dj_runtime *gpu_new_runtime(const dj_config *config);
/* The driver through dj_cuda_symbol of that runtime, and the device. */
const hand_driver *gpu_driver(void);
const dj_cuda_device *gpu_device(void);

/* A directory for this program, removed at its end. The cache root is in it. */
const char *gpu_directory(void);
/* The tree's tests/gpu, and the text of tests/gpu/kernels/<name>; free() it. */
const char *gpu_source_dir(void);
char *gpu_source(const char *name);
/* How many entries the cache root holds. */
size_t gpu_count_entries(void);

dj_kernel *gpu_compile(const char *file, const dj_compile_options *options);
dj_kernel *gpu_compile_in(dj_runtime *runtime, const char *file, const dj_compile_options *options);

/* Device memory with this content (NULL: zeros). Freed with the process. */
void *gpu_upload(const void *data, size_t size);
void gpu_download(void *to, const void *memory, size_t size);

dj_launch_options gpu_shape(uint32_t grid, uint32_t block);
void gpu_launch(dj_kernel *kernel, const dj_launch_options *options, const dj_arg *args,
                size_t num_args);

void *gpu_stream(void);
/* How many kernel nodes the graph has; fails if it has others. */
size_t gpu_kernel_nodes(void *graph);
/* Instantiates, launches on the stream, waits, destroys. */
void gpu_replay(void *graph, void *stream);

/* Runs `body` in a forked child and returns what it returned, 0 to 250; a crash fails. */
int gpu_in_child(int (*body)(void *user), void *user);

static inline uint32_t gpu_fnv(uint32_t hash, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ ((const unsigned char *)data)[i]) * 16777619u;
    }
    return hash;
}
enum { GPU_FNV_START = 0x1234567 };

#endif
