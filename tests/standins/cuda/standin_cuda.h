/* SPDX-License-Identifier: MIT */
/*
 * The stand-in CUDA driver's controls, for tests that load it themselves: dlopen the library that
 * DJ_JIT_CUDA_LIBRARY names and dlsym these. From outside the process, variables do the same:
 *
 *   STANDIN_CUDA_FAIL=name:nth:code,...   as standin_cuda_fail
 *   STANDIN_CUDA_DEVICES=0                how many devices there are, at most 2; default 2
 *   STANDIN_CUDA_ARCH=90                  what both of them are
 *   STANDIN_CUDA_VERSION=13000            what cuDriverGetVersion says
 *   STANDIN_CUDA_TRACE=1                  refused calls go to stderr
 *
 * The driver executes nothing. It keeps the real one's state and rules: what it was told, what is
 * current, which handles live, what a capture forbids. Device addresses cannot be read by the
 * host. A call's name is the exported one, its "_v2" may be left out.
 */
#ifndef STANDIN_CUDA_H
#define STANDIN_CUDA_H

#include <stddef.h>
#include <stdint.h>

enum { STANDIN_CUDA_MAX_PARAMS = 512, STANDIN_CUDA_MAX_BYTES = 32768 };

typedef struct standin_cuda_launch {
    char kernel[256];
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3]; /* 0, 0, 0: no such attribute */
    uint32_t shared_bytes;
    int cooperative; /* -1: no such attribute */
    int pdl;         /* -1: no such attribute */
    int device;
    int captured;
    void *stream;
    void *context;
    void *function;
    size_t num_params;
    size_t offset[STANDIN_CUDA_MAX_PARAMS];
    size_t size[STANDIN_CUDA_MAX_PARAMS];
    unsigned char bytes[STANDIN_CUDA_MAX_BYTES]; /* the parameter block, as the kernel sees it */
} standin_cuda_launch;

/* What lives in the driver. A test compares before and after. */
typedef struct standin_cuda_live {
    size_t libraries;
    size_t allocations;
    size_t bytes;
    size_t streams;
    size_t graphs;
    size_t contexts;
} standin_cuda_live;

/* The nth call of `name` from now on (1 is the next; 0: each) returns `code` and does nothing
 * else. "*": any call but those that describe errors. Device-loss codes (700, 710, 714 to 719)
 * stay with the current context until it is reset or standin_cuda_reset is called. */
typedef void (*standin_cuda_fail_fn)(const char *name, unsigned nth, int code);
/* Counts calls of `name`, or of all for "*", since the last reset. */
typedef size_t (*standin_cuda_calls_fn)(const char *name);
/* How often a rule of standin_cuda_fail struck since the last reset, and the last call it hit. */
typedef size_t (*standin_cuda_fired_fn)(char name[64]);
/* How many calls the driver itself refused since the last reset, and the last one. */
typedef size_t (*standin_cuda_refused_fn)(char name[64], int *code);
/* The last successful launch; 0 if there was none since the last reset. */
typedef int (*standin_cuda_last_launch_fn)(standin_cuda_launch *out);
typedef size_t (*standin_cuda_launches_fn)(void);
typedef void (*standin_cuda_live_now_fn)(standin_cuda_live *out);
typedef void (*standin_cuda_set_devices_fn)(int count);
typedef void (*standin_cuda_set_arch_fn)(int device, int major, int minor);
typedef void (*standin_cuda_set_version_fn)(int version);
/* Forgets rules, counts and launches; devices, architectures and version are the environment's
 * again. What lives stays. */
typedef void (*standin_cuda_reset_fn)(void);

#endif
