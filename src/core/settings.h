/* SPDX-License-Identifier: MIT */
/* The runtime-wide settings: a field for each RUNTIME row of options.def, read from the
 * environment once, at creation. */
#ifndef DJ_CORE_SETTINGS_H
#define DJ_CORE_SETTINGS_H

#include "base/env.h"
#include "base/log.h"
#include "cache/disk.h"
#include "core/options.h"

typedef struct dj__settings {
    const char *const *cache_dir;
    size_t num_cache_dir;
    const char *cache_fsync;
    const char *const *cache_trust;
    size_t num_cache_trust;
    int64_t compile_timeout;
    const char *const *compiler_env;
    size_t num_compiler_env;
    int64_t mem_cache_max;
    const char *log;
    dj_tri debug;
    dj_tri print_compiler_command;
    dj_tri print_load_time;
    const char *host_compiler;
    int64_t host_threads; /* 0: unset */
    const char *backend;
    const char *nvcc_compiler;
    const char *cuda_library;
    int64_t cuda_device;

    /* Derived. */
    dj_log_level log_level;
    dj__fsync_mode fsync;
    char *no_root_reason; /* why cache_dir is empty; NULL if it is not */
    /* What the environment says about single calls. */
    dj__compile_set compile;
    dj__launch_set launch;
    dj__strlist roots;  /* cache_dir made absolute, or the default */
    dj__strlist *lists; /* storage of the LIST fields, one for each row of the table */
} dj__settings;

/* Validates every variable that the table names. Strings point into `env`. */
dj_status dj__settings_read(dj__settings *settings, const dj__env *env, dj_error *err);
void dj__settings_fini(dj__settings *settings);

#endif
