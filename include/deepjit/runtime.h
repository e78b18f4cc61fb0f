/* SPDX-License-Identifier: MIT */
/*
 * deepjit/runtime.h: back ends, configuration, runtimes, devices, counters and the option table.
 */
#ifndef DEEPJIT_RUNTIME_H
#define DEEPJIT_RUNTIME_H

#include <deepjit/base.h>

DJ_BEGIN_DECLS

typedef struct dj_backend dj_backend;
typedef struct dj_runtime dj_runtime;
struct dj_compile_options;
struct dj_launch_options;

/* The back end of this name ("cuda", "host"), or NULL if this build has none: do not hand that to
 * dj_runtime_create, for which NULL means any; see dj_config.backend. Static storage. */
DJ_API const dj_backend *dj_backend_find(const char *name);
/* The i-th back end in order of preference, or NULL past the end. */
DJ_API const dj_backend *dj_backend_at(size_t index);
DJ_API const char *dj_backend_name(const dj_backend *backend);

/*
 * Which stream a launch without an explicit one uses. Called on the launching thread at each
 * such launch; must be fast and must not call back into the library.
 */
typedef void *(*dj_stream_fn)(void *user);

/*
 * How a runtime is set up. Everything is copied by dj_runtime_create.
 *
 * Rules (from the original's Config): paths must be absolute and are normalised lexically;
 * `env_prefix` must not be empty and not "DJ", which names the settings shared by all libraries.
 */
typedef struct dj_config {
    size_t size;
    /* Directory under which post hooks are found. NULL: post hooks are refused. */
    const char *library_root;
    /* Settings are read from <env_prefix>_<SUFFIX>, then DJ_<SUFFIX>. NULL: DJ_ only. */
    const char *env_prefix;
    /* Bytes that stand for everything that changes the generated code and that we cannot see,
     * such as a dependency's version. May contain NUL bytes. */
    const void *extra_signature;
    size_t extra_signature_size;
    /* Include directories for the compiler, searched in order. */
    const char *const *include_dirs;
    size_t num_include_dirs;
    /* `#include <name>` is tracked, that is: its content enters the key, when the name starts
     * with one of these. */
    const char *const *include_prefixes;
    size_t num_include_prefixes;
    /* Defaults for fields that a call leaves unset. NULL: environment and built-in defaults. */
    const struct dj_compile_options *compile_defaults;
    const struct dj_launch_options *launch_defaults;
    /* Flags appended to the default free-form flag list, before any extra_flags. */
    const char *const *append_flags;
    size_t num_append_flags;
    /* Where log messages go. NULL: stderr. JIT_LOG decides how many. */
    dj_log_fn log;
    void *log_user;
    /* The stream of launches that name none. NULL: the hosting framework's current stream where
     * the back end knows it (CUDA: PyTorch, TVM-FFI), else the device's default stream. */
    dj_stream_fn current_stream;
    void *current_stream_user;
    /* The back end by name, for a call that gives none: one that this build lacks is then an
     * error, where dj_backend_find would give NULL. NULL: JIT_BACKEND, else the first available. */
    const char *backend;
} dj_config;
#define DJ_CONFIG_INIT DJ__SIZED(dj_config)

/*
 * Creates a runtime. `backend` NULL: the one that dj_config.backend or JIT_BACKEND names, else the
 * first whose device can be opened, which opens it. `config` NULL: an empty configuration.
 * Configuration and environment are validated and copied now; devices, compilers and cache
 * directories are looked for when first needed.
 *
 * Errors: INVALID_ARGUMENT (configuration or environment, named in the message), NO_MEMORY.
 * Do not call while another thread changes the environment (setenv(3)).
 */
DJ_API dj_status dj_runtime_create(const dj_backend *backend, const dj_config *config,
                                   dj_runtime **out, dj_error *err);
DJ_API dj_runtime *dj_runtime_retain(dj_runtime *runtime);
/* The last release drops the memory cache. Kernels and artifacts that are still held stay
 * valid and keep what they need. */
DJ_API void dj_runtime_release(dj_runtime *runtime);
DJ_API const dj_backend *dj_runtime_backend(const dj_runtime *runtime);

/* What a launch runs on. Sizes are in bytes; zero means unknown. */
typedef struct dj_device {
    size_t size;
    char name[128];
    char arch[64];              /* what dj_compile_options.arch defaults to, e.g. "x86_64" */
    uint32_t compute_units;     /* cores or multiprocessors a launch is spread over */
    uint32_t max_block_threads; /* threads in one block */
    uint32_t max_block[3];
    uint32_t max_grid[3];
    uint64_t max_shared_bytes; /* dynamic shared memory of one block */
    uint64_t memory_bytes;
    uint64_t cache_bytes; /* last-level cache */
    uint64_t clock_hz;
} dj_device;
#define DJ_DEVICE_INIT DJ__SIZED(dj_device)

/* Describes the runtime's device. Set out->size (DJ_DEVICE_INIT) before the call. */
DJ_API dj_status dj_device_info(dj_runtime *runtime, dj_device *out, dj_error *err);

/* Counters of one runtime since its creation (times in nanoseconds). They only grow. */
typedef struct dj_stats {
    size_t size;
    uint64_t memory_hits; /* dj_compile answered from memory */
    uint64_t disk_hits;   /* entry found in a cache root */
    uint64_t misses;      /* neither: a build was needed */
    uint64_t compiles;    /* compiler runs started */
    uint64_t compile_failures;
    uint64_t waits;       /* threads that waited for another thread's build */
    uint64_t lost_races;  /* another process published the entry first */
    uint64_t healed;      /* damaged entries moved aside */
    uint64_t unpublished; /* builds that could not be published */
    uint64_t evictions;   /* kernels dropped from memory */
    uint64_t loads;       /* binaries loaded */
    uint64_t compile_ns;
    uint64_t load_ns;
    uint64_t bytes_read;    /* binaries read from cache roots */
    uint64_t bytes_written; /* artifact bytes published */
} dj_stats;
#define DJ_STATS_INIT DJ__SIZED(dj_stats)
/* Set out->size (DJ_STATS_INIT) before the call. */
DJ_API dj_status dj_runtime_stats(dj_runtime *runtime, dj_stats *out, dj_error *err);

/*
 * The option table: one row for every setting and option, from which environment parsing,
 * command-line flags, the key and docs/environment.md are derived.
 */
typedef enum dj_option_scope {
    DJ_SCOPE_RUNTIME = 0,      /* environment only */
    DJ_SCOPE_COMPILE = 1,      /* a field of dj_compile_options */
    DJ_SCOPE_LAUNCH = 2,       /* a field of dj_launch_options */
    DJ_SCOPE_HOST_LAUNCH = 3,  /* a field of dj_host_launch_options */
    DJ_SCOPE_CUDA_COMPILE = 4, /* a field of dj_cuda_compile_options */
    DJ_SCOPE_CUDA_LAUNCH = 5   /* a field of dj_cuda_launch_options */
} dj_option_scope;

typedef enum dj_option_type {
    DJ_TYPE_TRI = 0,    /* dj_tri; text: true, false, yes, no or an integer */
    DJ_TYPE_INT = 1,    /* int64_t */
    DJ_TYPE_STRING = 2, /* const char * */
    DJ_TYPE_LIST = 3,   /* const char *const * and a size_t count next to it; text: a:b:c */
    DJ_TYPE_DIM3 = 4    /* dj_dim3; text: X, X,Y or X,Y,Z */
} dj_option_type;

typedef struct dj_option {
    const char *name; /* the struct field, "optimize_level" */
    dj_option_scope scope;
    dj_option_type type;
    const char *env;          /* suffix, "JIT_DUMP_ASM", or NULL if the environment cannot set it */
    const char *default_text; /* for people */
    bool keyed;               /* a different value may give a different entry */
    const char *doc;          /* one or two sentences */
    size_t offset;            /* of the field; for LIST of the pointer, the count follows it */
} dj_option;

/* The i-th row, or NULL past the end. Static storage. */
DJ_API const dj_option *dj_option_at(size_t index);

/*
 * Sets one string, tri-state, integer or dim3 field of a dj_compile_options or
 * dj_launch_options from text. Strings are not copied: `text` must outlive `options`.
 * Errors: INVALID_ARGUMENT naming the option and the accepted forms; UNSUPPORTED for lists.
 */
DJ_API dj_status dj_option_parse(const dj_option *option, const char *text, void *options,
                                 dj_error *err);

DJ_END_DECLS

#endif
