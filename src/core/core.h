/* SPDX-License-Identifier: MIT */
/*
 * The runtime object and the steps of a compilation, as the files of src/core share them.
 *
 * Life: a dj_runtime has two counts. `handles` are the user's; with the last one the memory cache
 * is closed. `refs` keep the memory: one for the handles together and one for each loaded kernel,
 * so kernels outlive their runtime. A hit on a kernel touches neither, only the kernel's own count.
 */
#ifndef DJ_CORE_CORE_H
#define DJ_CORE_CORE_H

#include "base/env.h"
#include "base/log.h"
#include "base/thread.h"
#include "cache/disk.h"
#include "cache/key.h"
#include "cache/memory.h"
#include "compile/flight.h"
#include "compile/toolchain.h"
#include "core/options.h"
#include "core/settings.h"
#include <deepjit/sys/compiler.h>

/* The caller's dj_config, checked and copied. */
typedef struct dj__config {
    dj__launch_set launch_defaults; /* first: launches read it, and what is before and behind */
    dj_stream_fn current_stream;
    void *current_stream_user;
    char *library_root; /* NULL: no hooks */
    char *extra_signature;
    size_t extra_signature_size;
    dj__strlist include_dirs;
    dj__strlist include_prefixes;
    dj__strlist append_flags;
    dj__compile_set *compile_defaults; /* config, then environment */
} dj__config;

typedef struct dj__counters {
    _Atomic uint64_t key_hits; /* memory hits found by request key */
    _Atomic uint64_t disk_hits;
    _Atomic uint64_t misses;
    _Atomic uint64_t compiles;
    _Atomic uint64_t compile_failures;
    _Atomic uint64_t waits;
    _Atomic uint64_t loads;
    _Atomic uint64_t compile_ns;
    _Atomic uint64_t load_ns;
} dj__counters;

/* A compile request with every default filled in. Borrows from the caller and the runtime. */
typedef struct dj__request {
    const char *tag;
    const char *source;
    size_t size;
    dj__compile_set options; /* effective */
    const char *arch;
    dj__strlist flags; /* effective, as given to the compiler */
    char *hook_path;   /* resolved; NULL: no hook */
    char *hook_data;
    size_t hook_size;
    char *source_dir; /* <root>/src where line information must point; else NULL */
    bool borrows;     /* `flags` and `source_dir` are the runtime's */
    char key[DJ__HEX_SIZE];
} dj__request;

struct dj_runtime {
    const dj_backend *backend;
    dj__env *env;
    dj__log log;
    dj__log diagnostics; /* what JIT_PRINT_* asked for: shown whatever JIT_LOG says */
    dj__settings settings;
    _Atomic bool lost_device; /* forked after the device was used; beside what launches read */
    dj__config config;
    dj_backend_context context;
    dj__strlist base_flags; /* where a request has no flags of its own */
    dj__strlist keyed_env;  /* NAME=value of what compilers read, from the snapshot */
    dj_store *store;
    dj__memory *memory;
    dj__flights *kernel_flights;
    dj__flights *artifact_flights;
    _Atomic(dj__key_start *) key_start; /* of most keys, hashed at first need */

    _Atomic int64_t handles;
    _Atomic int64_t refs;

    pthread_mutex_t lock; /* guards the first need of what follows */
    _Atomic(dj_driver *) driver;
    _Atomic(dj_compiler *) compiler;
    _Atomic bool have_device;
    dj_device device;
    _Atomic bool have_plain;
    dj__request plain; /* what calls without options have in common */
    _Atomic bool have_toolchain;
    dj__toolchain toolchain;

    dj__fork_hook fork_hook;
    dj__store_counters store_counters;
    dj__counters counters;
};

struct dj_kernel {
    dj__cached cached;    /* first: the memory cache sees only this */
    _Atomic bool adopted; /* the memory cache will free this memory */
    dj_runtime *runtime;
    const dj_driver_ops *ops;
    dj_driver *driver;
    dj_module *module;
    dj_module_info info;
    char *path; /* "" if it was never published */
    char *log;
    size_t log_size;
};

struct dj_artifact {
    _Atomic int64_t refs;
    dj_entry entry;
    char *binary_path;
    char digest[DJ__HEX_SIZE];
    bool hit;
    bool unstable;       /* inputs changed during the build: not to be remembered */
    uint32_t generation; /* of the process that made it, and alone may remove its directory */
};

enum { DJ__TAG_LIMIT = 128 };

/* config.c */
dj_status dj__config_copy(const dj_config *in, const dj__settings *settings, dj__config *out,
                          dj_error *err);
void dj__config_fini(dj__config *config);

/* runtime.c */
void dj__runtime_ref(dj_runtime *runtime);
void dj__runtime_unref(dj_runtime *runtime);
/* The driver and compiler, found at first need; the failure is not remembered. */
dj_status dj__runtime_driver(dj_runtime *runtime, dj_driver **out, dj_error *err);
/* The device's description, asked for once. */
dj_status dj__runtime_device(dj_runtime *runtime, const dj_device **out, dj_error *err);
dj_status dj__runtime_compiler(dj_runtime *runtime, dj_compiler **out, dj_error *err);
/* The toolchain's identity, once for the runtime's life. */
dj_status dj__runtime_toolchain(dj_runtime *runtime, const dj__toolchain **out, dj_error *err);
/* True if the compiler here still is the one that was identified. */
bool dj__runtime_toolchain_current(dj_runtime *runtime);
/* Identities other runs have recorded, for when there is no toolchain here. */
dj_status dj__runtime_recorded(dj_runtime *runtime, dj__strlist *out, dj_error *err);

/* request.c */
dj_status dj__request_init(dj_runtime *runtime, const char *tag, const char *source, size_t size,
                           const dj_compile_options *options, dj__request *out, dj_error *err);
void dj__request_fini(dj__request *request);
dj_status dj__check_call(const dj_runtime *runtime, const char *tag, const char *source,
                         size_t size, dj_error *err);

/* request_key.c */
/* Computes request->key for this toolchain identity. `visit` may be NULL. */
dj_status dj__request_key(dj_runtime *runtime, dj__request *request, const char *identity,
                          dj_key_field_fn visit, void *user, dj_error *err);

/* build.c: compiles into a staging directory; nothing is published. */
dj_status dj__build_staged(dj_runtime *runtime, const dj__request *request,
                           const dj_staging *staging, dj_error *err);

/* meta.c */
dj_status dj__meta_write(dj_runtime *runtime, const dj__request *request, const char *command,
                         dj__strbuf *out, dj_error *err);

/* hook.c */
/* Resolves the hook under the library root, without leaving it, and reads it. */
dj_status dj__hook_read(const dj_runtime *runtime, const char *hook, char **path, char **data,
                        size_t *size, dj_error *err);
dj_status dj__hook_run(dj_runtime *runtime, const dj__request *request, const char *dir,
                       dj__strbuf *log, dj_error *err);

/* artifact.c */
/* Finds or builds; one build for all threads that want the same. A reference is returned. */
dj_status dj__artifact_obtain(dj_runtime *runtime, const dj__request *request, dj_verify level,
                              bool may_build, dj_artifact **out, dj_error *err);
/* Builds without looking in the cache and without publishing. */
dj_status dj__artifact_private(dj_runtime *runtime, const dj__request *request, dj_artifact **out,
                               dj_error *err);
void dj__artifact_retain(void *artifact);
void dj__artifact_drop(void *artifact);

/* launch.c */
/* A launch with the runtime's defaults filled in. */
dj_status dj__launch_config(const dj_kernel *kernel, const dj_launch_options *call,
                            dj_launch_config *out, dj_error *err);

/* kernel.c */
dj_status dj__kernel_load(dj_runtime *runtime, const dj__request *request,
                          const dj_artifact *artifact, dj_kernel **out, dj_error *err);
void dj__kernel_retain(void *kernel);
void dj__kernel_drop(void *kernel);
extern const dj__memory_ops dj__kernel_memory_ops;

#endif
