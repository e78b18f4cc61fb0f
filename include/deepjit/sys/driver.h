/* SPDX-License-Identifier: MIT */
/*
 * deepjit/sys/driver.h: what a back end's driver implements: devices, memory, load and launch.
 *
 * Implementer API: may change between minor versions. See docs/new-backend.md.
 *
 * Duties that hold for every operation: thread-safe; on failure fill `err` with the cause, leave
 * outputs NULL and nothing behind; never write to stdout; never block on another process.
 */
#ifndef DEEPJIT_SYS_DRIVER_H
#define DEEPJIT_SYS_DRIVER_H

#include <deepjit/launch.h>

struct dj__env;
struct dj__log;

/* What the core hands to drivers and compilers; lives as long as they do. */
typedef struct dj_backend_context {
    size_t size;
    const struct dj__env *env; /* snapshot of the environment, src/base/env.h */
    struct dj__log *log;       /* src/base/log.h */
} dj_backend_context;

typedef struct dj_driver dj_driver; /* defined by each driver */
typedef struct dj_module dj_module; /* a loaded binary holding one kernel */

/* A verified binary in memory. `path` names its origin in messages. */
typedef struct dj_binary {
    const void *data;
    size_t size;
    const char *path;
} dj_binary;

typedef struct dj_param {
    const char *name; /* "" if unknown */
    const char *type; /* as written; "" if unknown */
    uint32_t size;
    uint32_t align;
} dj_param;

/* What the core reads of a loaded module without a call; set by load, constant afterwards. */
typedef struct dj_module_info {
    const char *kernel_name;
    const dj_param *params;
    size_t num_params;
} dj_module_info;

/* Everything resolved and checked against what the core knows: grid and block are positive. */
typedef struct dj_launch_config {
    dj_dim3 grid;
    dj_dim3 block;
    uint64_t shared_bytes;
    void *stream;
    /* For vendor fields; never NULL. A vendor's struct has the size known here, and one that hangs
     * on the defaults has something set, so that a driver need not look at it if there is none. */
    const dj_launch_options *call;
    const dj_launch_options *defaults;
} dj_launch_config;

enum {
    DJ_DRIVER_FORK_SAFE = 1u << 0,  /* loaded modules work in a forked child */
    DJ_DRIVER_SYNCHRONOUS = 1u << 1 /* launches are complete when they return; no streams */
};

/* A fact about what a back end uses, for people; `missing` is about something that can be missing,
 * and `detail` then says what it would be needed for and how to get it. */
typedef void (*dj_report_fn)(void *user, const char *what, bool missing, const char *detail);

typedef struct dj_driver_ops {
    size_t size;
    uint32_t caps;
    /* Finds the device. UNAVAILABLE with every place that was searched. */
    dj_status (*open)(const dj_backend_context *context, dj_driver **out, dj_error *err);
    void (*close)(dj_driver *driver);
    dj_status (*device_info)(dj_driver *driver, dj_device *out, dj_error *err);
    dj_status (*mem_alloc)(dj_driver *driver, size_t size, void **out, dj_error *err);
    dj_status (*mem_free)(dj_driver *driver, void *memory, dj_error *err);
    dj_status (*mem_copy)(dj_driver *driver, void *to, const void *from, size_t size,
                          dj_error *err);
    /* Loads from memory and checks that there is exactly one kernel. INCOMPATIBLE: the bytes
     * are intact but this driver cannot use them. */
    dj_status (*load)(dj_driver *driver, const dj_binary *binary, dj_module **out,
                      dj_module_info *info, dj_error *err);
    /* `args` are the addresses of the arguments, none of them NULL; their number and sizes are
     * those of the module's parameters. The array is the driver's until launch returns. */
    dj_status (*launch)(dj_driver *driver, dj_module *module, const dj_launch_config *config,
                        const void **args, size_t num_args, dj_error *err);
    dj_status (*synchronize)(dj_driver *driver, dj_error *err);
    void (*unload)(dj_driver *driver, dj_module *module);
    /* In a forked child, before any other call: forget threads that no longer exist. NULL if
     * there is nothing to forget. Must be async-signal-safe. */
    void (*after_fork)(dj_driver *driver);
    /* The hosting framework's current stream, for a launch for which nobody names one. Called at
     * each such launch, before it. NULL: none is known, the default stream is meant. */
    void *(*current_stream)(dj_driver *driver);
    /* Tells people what it uses, beyond the device. NULL: nothing. */
    void (*report)(dj_driver *driver, dj_report_fn visit, void *user);
} dj_driver_ops;

#endif
