/* SPDX-License-Identifier: MIT */
/*
 * deepjit/compile.h: from kernel source to an artifact (a directory) or a loaded kernel.
 *
 * dj_compile looks in memory, then in the cache roots, then compiles and publishes. dj_build
 * does the same without loading and without the memory cache.
 */
#ifndef DEEPJIT_COMPILE_H
#define DEEPJIT_COMPILE_H

#include <deepjit/runtime.h>

DJ_BEGIN_DECLS

typedef struct dj_artifact dj_artifact;
typedef struct dj_kernel dj_kernel;

struct dj_cuda_compile_options;

/* Options of one compilation. Unset fields inherit from dj_config.compile_defaults, then from
 * the environment, then the built-in default. See docs/environment.md for the defaults. */
typedef struct dj_compile_options {
    size_t size;
    /* Target architecture. Unset: the device's. */
    const char *arch;
    /* What follows -O: "0", "1", "2", "3", "s", ... */
    const char *optimize_level;
    dj_tri debug_info;
    dj_tri fast_math;
    /* Also write the assembly text (host: kernel.s; CUDA: kernel.ptx and kernel.sass). Not in the
     * key: an entry that exists is not rebuilt to add it. */
    dj_tri dump_asm;
    /* dj_build fails with INVALID_ARGUMENT if the binary does not hold exactly one kernel; needs a
     * back end that can read its binaries without a device (CUDA). dj_compile always checks. */
    dj_tri single_kernel;
    /* Free-form compiler flags: `flags` replaces the default list (and dj_config.append_flags),
     * `extra_flags` is appended. NULL is unset; a pointer that is not NULL, with a number of 0, is
     * an empty list. */
    const char *const *flags;
    size_t num_flags;
    const char *const *extra_flags;
    size_t num_extra_flags;
    /* A file relative to dj_config.library_root that runs on the binary before it is published, in
     * the binary's directory: `python <file> <absolute path of the binary>`, or without `python`
     * if its name does not end in .py: then it must be executable. It must be deterministic; its
     * path and content enter the key. "" switches a default off. */
    const char *post_hook;
    /* Gets the compiler's output, also when the entry comes from the cache. */
    dj_text_fn on_log;
    void *on_log_user;
    /* Stops the compilation when requested. */
    dj_cancel *cancel;
    /* What only one back end has; ignored by the others. NULL: all unset. */
    const struct dj_cuda_compile_options *cuda; /* deepjit/cuda.h */
} dj_compile_options;
#define DJ_COMPILE_OPTIONS_INIT DJ__SIZED(dj_compile_options)

/*
 * Compiles `source` (size bytes, NUL bytes are legal, at most 64 MiB) and loads it. The source
 * must hold exactly one kernel. `tag` is a readable name, [A-Za-z0-9_]+, at most 128 bytes; it
 * names the entry on disk and is not part of the key: the same source under another tag gives
 * the same kernel. `options` may be NULL.
 *
 * The caller owns a reference to *out. Threads that ask for the same thing at once share one
 * build; failures are not remembered.
 *
 * Errors worth handling: INVALID_ARGUMENT, UNAVAILABLE (no compiler or device here),
 * COMPILE (the source), TIMEOUT, CANCELLED, INCOMPATIBLE (the driver refuses the binary).
 */
DJ_API dj_status dj_compile(dj_runtime *runtime, const char *tag, const char *source, size_t size,
                            const dj_compile_options *options, dj_kernel **out, dj_error *err);

/* Builds without loading: the number of kernels is not checked, no device is needed when
 * options->arch is set, and every file of an existing entry is verified. */
DJ_API dj_status dj_build(dj_runtime *runtime, const char *tag, const char *source, size_t size,
                          const dj_compile_options *options, dj_artifact **out, dj_error *err);

/* An artifact is the caller's until it is released; NULL is allowed. */
DJ_API dj_artifact *dj_artifact_retain(dj_artifact *artifact);
DJ_API void dj_artifact_release(dj_artifact *artifact);
/* The absolute path of the directory. Valid as long as the artifact is held. */
DJ_API const char *dj_artifact_path(const dj_artifact *artifact);
/* The absolute path of the binary in it. */
DJ_API const char *dj_artifact_binary(const dj_artifact *artifact);
/* True if nothing could be published: the directory belongs to the artifact and is removed
 * with it. dj_artifact_reason then says why; otherwise it is "". */
DJ_API bool dj_artifact_is_private(const dj_artifact *artifact);
DJ_API const char *dj_artifact_reason(const dj_artifact *artifact);
/* True if no compiler had to run. */
DJ_API bool dj_artifact_is_hit(const dj_artifact *artifact);
/* The 32 hexadecimal characters in the entry's name. */
DJ_API const char *dj_artifact_digest(const dj_artifact *artifact);

/* One kernel of a binary, read without device or driver. Numbers are -1 where the binary does not
 * say. Everything is valid during the call that it is given to. */
typedef struct dj_param_info {
    const char *name; /* "" if unknown */
    const char *type; /* as written; "" if unknown */
    uint32_t offset;  /* in the parameter block, bytes */
    uint32_t size;
    uint32_t align;
} dj_param_info;

typedef struct dj_kernel_info {
    const char *name; /* as the driver knows it: mangled in C++ */
    const dj_param_info *params;
    size_t num_params;
    int64_t registers;    /* of a thread */
    int64_t shared_bytes; /* static, of a block */
    int64_t local_bytes;  /* of a thread: spilled registers, arrays */
    int64_t max_threads;  /* of a block, as __launch_bounds__ says; 0: no bound */
    uint32_t cluster[3];  /* as compiled; 0, 0, 0: none */
} dj_kernel_info;

typedef struct dj_binary_info {
    char arch[64];
    const dj_kernel_info *kernels;
    size_t num_kernels;
} dj_binary_info;

typedef void (*dj_inspect_fn)(void *user, const dj_binary_info *info);

/* Reads a binary of `backend` from memory and calls `visit` once. INVALID_ARGUMENT: not such a
 * binary; UNSUPPORTED: the back end cannot read its binaries without loading them. */
DJ_API dj_status dj_inspect(const dj_backend *backend, const void *binary, size_t size,
                            dj_inspect_fn visit, void *user, dj_error *err);

/* One field of the key, as hashed. `value` is valid during the call. */
typedef void (*dj_key_field_fn)(void *user, const char *field, const void *value, size_t size);

/*
 * Shows how the request key is made: calls `visit` for each field in the order in which it is
 * hashed and writes the key's 32 hexadecimal characters and a NUL to `key`. Compiles nothing.
 *
 * Errors: those of dj_build before it compiles; `key` is then "", and some fields may have been
 * shown. UNAVAILABLE or INCOMPATIBLE without a usable compiler: recorded identities are not tried.
 */
DJ_API dj_status dj_explain(dj_runtime *runtime, const char *tag, const char *source, size_t size,
                            const dj_compile_options *options, dj_key_field_fn visit, void *user,
                            char key[33], dj_error *err);

DJ_END_DECLS

#endif
