/* SPDX-License-Identifier: MIT */
/*
 * deepjit/sys/compiler.h: what a back end's compiler implements: source to binary.
 *
 * Implementer API: may change between minor versions. See docs/new-backend.md.
 */
#ifndef DEEPJIT_SYS_COMPILER_H
#define DEEPJIT_SYS_COMPILER_H

#include <deepjit/sys/driver.h>

struct dj__strbuf;
struct dj__strlist;

typedef struct dj_compiler dj_compiler; /* defined by each compiler */

/* One compiler run. Paths given to tools are relative to `dir`, which is also their working
 * directory, so that nothing about where the cache lies reaches the binary. */
typedef struct dj_compile_job {
    size_t size;
    const char *dir;          /* absolute staging directory */
    const char *source;       /* relative to dir */
    const char *const *flags; /* from ops->flags */
    size_t num_flags;
    const char *const *includes; /* relative to dir, in search order, the prelude first */
    size_t num_includes;
    const char *debug_dir;             /* what debug information calls `dir`; NULL without any */
    const dj_compile_options *options; /* effective; every field with a default is set */
    int64_t timeout_ms;                /* of each tool */
    dj_cancel *cancel;                 /* may be NULL */
    struct dj__strbuf *command;        /* gets the command of the main step, for people */
    struct dj__strbuf *log;            /* gets the tools' output */
} dj_compile_job;

typedef struct dj_compiler_ops {
    size_t size;
    uint32_t caps;
    const char *source_name; /* "kernel.c" */
    const char *binary_name; /* "kernel.so" */
    /* What `flags` and `optimize_level` mean when nobody sets them. The list is
     * NULL-terminated. */
    const char *const *default_flags;
    const char *default_optimize_level;
    /* Environment variables, besides PATH and the like, that these tools read and that may
     * change the binary. They are passed on and keyed. NULL-terminated. */
    const char *const *keyed_env;
    /* The rows of the option table that only this compiler has, as DJ_SCOPE_CUDA_COMPILE; 0: none.
     */
    dj_option_scope vendor_scope;
    /* Gives each field of `vendor` (the struct of vendor_scope) that is still unset its value;
     * `common` is complete. NULL without a vendor_scope. */
    void (*complete)(const dj_compile_options *common, void *vendor);
    /* True if the binary will name its source, which is then kept where that name leads. NULL: if
     * debug_info is on. */
    bool (*names_source)(const dj_compile_options *options);
    dj_status (*open)(const dj_backend_context *context, dj_compiler **out, dj_error *err);
    void (*close)(dj_compiler *compiler);
    /* Finds the main program, and others whose choice is the user's, without starting a process;
     * appends their absolute paths, the main one's first. UNAVAILABLE with every place searched
     * and the setting to use. */
    dj_status (*locate)(dj_compiler *compiler, struct dj__strlist *programs, dj_error *err);
    /* Appends every file whose content decides what is generated (the located programs
     * included) and a version text for people. May start processes. */
    dj_status (*describe)(dj_compiler *compiler, struct dj__strlist *files,
                          struct dj__strbuf *version, dj_error *err);
    /* Appends the effective flags in their fixed order. `options` has every field set that has
     * a default; `arch` is the resolved target architecture. */
    dj_status (*flags)(dj_compiler *compiler, const dj_compile_options *options, const char *arch,
                       struct dj__strlist *out, dj_error *err);
    /* Writes binary_name into job->dir. COMPILE: the source is at fault. */
    dj_status (*compile)(dj_compiler *compiler, const dj_compile_job *job, dj_error *err);
    /* Reads a binary without device and without a compiler: see dj_inspect. NULL: cannot. */
    dj_status (*inspect)(const dj_binary *binary, dj_inspect_fn visit, void *user, dj_error *err);
    /* Tells people how its programs were found and what else it uses, without starting a process;
     * nothing if the programs are not found. NULL: nothing. */
    void (*report)(dj_compiler *compiler, dj_report_fn visit, void *user);
} dj_compiler_ops;

/* A back end: the two tables under one name. */
struct dj_backend {
    size_t size;
    const char *name;
    const dj_driver_ops *driver;
    const dj_compiler_ops *compiler;
};

#endif
