/* SPDX-License-Identifier: MIT */
/*
 * A stand-in back end and a private world for the core's tests: the "compiler" copies the source
 * behind a prefix, the "driver" accepts only that prefix. Everything is counted and can be told
 * to fail, so no toolchain and no device is needed.
 */
#ifndef CORE_FIXTURE_H
#define CORE_FIXTURE_H

#include "base/error.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include <deepjit/deepjit.h>
#include <deepjit/sys/compiler.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define FAKE_PREFIX "FAKE:"

typedef struct fake_world {
    char dir[64];
    char root[128];
    char tool[128];
    atomic_int compiles;
    atomic_int loads;
    atomic_int unloads;
    atomic_int launches;
    atomic_int describes;
    atomic_int refuse; /* that many loads answer INCOMPATIBLE */
    size_t num_params; /* of kernels; 0: the two of fake_params */
    atomic_bool no_tool;
    pthread_mutex_t gate; /* held by a test: compilations wait */
    atomic_int at_gate;
    void (*during_compile)(void);
} fake_world;

static fake_world world;

/* ---- driver */

struct dj_driver {
    int unused;
};
struct dj_module {
    char *data;
};
static struct dj_driver fake_driver;

static dj_status fake_open_driver(const dj_backend_context *context, dj_driver **out, dj_error *err)
{
    (void)context;
    (void)err;
    *out = &fake_driver;
    return DJ_OK;
}

static void fake_close_driver(dj_driver *driver)
{
    (void)driver;
}

static dj_status fake_device_info(dj_driver *driver, dj_device *out, dj_error *err)
{
    (void)driver;
    (void)err;
    snprintf(out->name, sizeof(out->name), "fake");
    snprintf(out->arch, sizeof(out->arch), "fake1");
    return DJ_OK;
}

static const dj_param fake_params[] = {{"out", "float *", 8, 8}, {"n", "int", 4, 4}};
enum { FAKE_MANY_PARAMS = 130 };
static dj_param fake_many_params[FAKE_MANY_PARAMS];

static dj_status fake_load(dj_driver *driver, const dj_binary *binary, dj_module **out,
                           dj_module_info *info, dj_error *err)
{
    (void)driver;
    if (atomic_load(&world.refuse) > 0) {
        atomic_fetch_sub(&world.refuse, 1);
        return dj__fail(err, DJ_INCOMPATIBLE, "fake driver 1 refuses %s", binary->path);
    }
    if (binary->size < strlen(FAKE_PREFIX) ||
        memcmp(binary->data, FAKE_PREFIX, strlen(FAKE_PREFIX)) != 0) {
        return dj__fail(err, DJ_INCOMPATIBLE, "not a fake binary");
    }
    *out = malloc(sizeof(**out));
    assert_non_null(*out);
    (*out)->data = malloc(binary->size);
    memcpy((*out)->data, binary->data, binary->size);
    *info = (dj_module_info){"fake_kernel", fake_params, 2};
    if (world.num_params > 0) {
        *info = (dj_module_info){"fake_kernel", fake_many_params, world.num_params};
    }
    atomic_fetch_add(&world.loads, 1);
    return DJ_OK;
}

static void fake_unload(dj_driver *driver, dj_module *module)
{
    (void)driver;
    atomic_fetch_add(&world.unloads, 1);
    free(module->data);
    free(module);
}

static dj_launch_config fake_last_config;
static const void *fake_last_args[FAKE_MANY_PARAMS];

static dj_status fake_launch(dj_driver *driver, dj_module *module, const dj_launch_config *config,
                             const void **args, size_t num_args, dj_error *err)
{
    (void)driver;
    (void)module;
    (void)err;
    assert_true(num_args <= FAKE_MANY_PARAMS);
    for (size_t i = 0; i < num_args; i++) {
        fake_last_args[i] = args[i];
    }
    fake_last_config = *config;
    atomic_fetch_add(&world.launches, 1);
    return DJ_OK;
}

static dj_status fake_synchronize(dj_driver *driver, dj_error *err)
{
    (void)driver;
    (void)err;
    return DJ_OK;
}

static dj_driver_ops fake_driver_ops = {
    .size = sizeof(dj_driver_ops),
    .caps = 0,
    .open = fake_open_driver,
    .close = fake_close_driver,
    .device_info = fake_device_info,
    .load = fake_load,
    .launch = fake_launch,
    .synchronize = fake_synchronize,
    .unload = fake_unload,
};

/* ---- compiler */

struct dj_compiler {
    int unused;
};
static struct dj_compiler fake_compiler;

static dj_status fake_open_compiler(const dj_backend_context *context, dj_compiler **out,
                                    dj_error *err)
{
    (void)context;
    (void)err;
    *out = &fake_compiler;
    return DJ_OK;
}

static void fake_close_compiler(dj_compiler *compiler)
{
    (void)compiler;
}

static dj_status fake_locate(dj_compiler *compiler, dj__strlist *programs, dj_error *err)
{
    (void)compiler;
    if (atomic_load(&world.no_tool)) {
        return dj__fail(err, DJ_UNAVAILABLE, "no fake compiler; set DJ_JIT_FAKE");
    }
    dj__strlist_add(programs, world.tool);
    return dj__strlist_ok(programs, err);
}

static dj_status fake_describe(dj_compiler *compiler, dj__strlist *files, dj__strbuf *version,
                               dj_error *err)
{
    (void)compiler;
    atomic_fetch_add(&world.describes, 1);
    dj__strlist_add(files, world.tool);
    dj__strbuf_puts(version, "fake 1.0");
    return dj__strlist_ok(files, err);
}

static dj_status fake_flags(dj_compiler *compiler, const dj_compile_options *options,
                            const char *arch, dj__strlist *out, dj_error *err)
{
    (void)compiler;
    dj__strlist_addf(out, "-O%s", options->optimize_level);
    dj__strlist_addf(out, "-arch=%s", arch);
    if (options->fast_math == DJ_ON) {
        dj__strlist_add(out, "-fast");
    }
    if (options->debug_info == DJ_ON) {
        dj__strlist_add(out, "-g");
    }
    dj__strlist_add_all(out, options->flags, options->num_flags);
    dj__strlist_add_all(out, options->extra_flags, options->num_extra_flags);
    return dj__strlist_ok(out, err);
}

static dj_status fake_compile(dj_compiler *compiler, const dj_compile_job *job, dj_error *err)
{
    (void)compiler;
    atomic_fetch_add(&world.compiles, 1);
    atomic_fetch_add(&world.at_gate, 1);
    pthread_mutex_lock(&world.gate);
    pthread_mutex_unlock(&world.gate);
    if (world.during_compile != NULL) {
        world.during_compile();
    }
    char *source = NULL;
    size_t size = 0;
    const int dir = dj__open_dir(job->dir);
    if (dir < 0) { /* a test has swept it away */
        return dj__fail_errno(err, -dir, "%s", job->dir);
    }
    assert_int_equal(dj__read_at(dir, job->source, 1u << 30, &source, &size), 0);
    dj__strbuf_puts(job->command, "fakecc kernel.c");
    dj_status status = DJ_OK;
    if (memmem(source, size, "#error", 6) != NULL) {
        dj__strbuf_puts(job->log, "kernel.c:1: error: as asked\n");
        status = dj__fail(err, DJ_COMPILE, "kernel.c:1: error: as asked");
    } else {
        if (memmem(source, size, "#warn", 5) != NULL) {
            dj__strbuf_puts(job->log, "kernel.c:1: warning: as asked\n");
        }
        dj__strbuf out;
        dj__strbuf_init(&out, 1u << 30);
        dj__strbuf_puts(&out, FAKE_PREFIX);
        dj__strbuf_append(&out, source, size);
        const int error = dj__write_new_at(dir, "kernel.bin", out.data, out.size, 0600, false);
        dj__strbuf_fini(&out);
        status = error == 0 ? DJ_OK : dj__fail_errno(err, error, "kernel.bin");
    }
    free(source);
    dj__close(dir);
    return status;
}

static const char *const fake_default_flags[] = {"-default", NULL};
static const char *const fake_keyed_env[] = {"FAKE_INCLUDE", NULL};

static const dj_compiler_ops fake_compiler_ops = {
    .size = sizeof(dj_compiler_ops),
    .source_name = "kernel.c",
    .binary_name = "kernel.bin",
    .default_flags = fake_default_flags,
    .default_optimize_level = "3",
    .keyed_env = fake_keyed_env,
    .open = fake_open_compiler,
    .close = fake_close_compiler,
    .locate = fake_locate,
    .describe = fake_describe,
    .flags = fake_flags,
    .compile = fake_compile,
};

static const dj_backend fake_backend = {
    .size = sizeof(dj_backend),
    .name = "fake",
    .driver = &fake_driver_ops,
    .compiler = &fake_compiler_ops,
};

/* ---- world */

static inline void fake_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline int fake_setup(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    pthread_mutex_init(&world.gate, NULL);
    fake_driver_ops.caps = 0;
    snprintf(world.dir, sizeof(world.dir), "/tmp/djcore-XXXXXX");
    assert_non_null(mkdtemp(world.dir));
    snprintf(world.root, sizeof(world.root), "%s/root", world.dir);
    snprintf(world.tool, sizeof(world.tool), "%s/fakecc", world.dir);
    fake_write(world.tool, "fake compiler, version 1\n");
    static const char *const clear[] = {"DJ_JIT_DEBUG",         "DJ_JIT_LOG",
                                        "DJ_JIT_CACHE_TRUST",   "DJ_JIT_DUMP_ASM",
                                        "DJ_JIT_MEM_CACHE_MAX", "DJ_JIT_CACHE_FSYNC",
                                        "FAKE_INCLUDE",         "T_JIT_CACHE_DIR",
                                        "DJ_JIT_COMPILER_ENV",  "DJ_JIT_COMPILE_TIMEOUT"};
    for (size_t i = 0; i < sizeof(clear) / sizeof(clear[0]); i++) {
        unsetenv(clear[i]);
    }
    setenv("DJ_JIT_CACHE_DIR", world.root, 1);
    setenv("DJ_JIT_CACHE_FSYNC", "none", 1);
    return 0;
}

static inline int fake_teardown(void **state)
{
    (void)state;
    pthread_mutex_destroy(&world.gate);
    return dj__remove_tree(world.dir);
}

static inline dj_runtime *fake_runtime(const dj_config *config)
{
    dj_runtime *runtime = NULL;
    dj_error err = DJ_ERROR_INIT;
    const dj_status status = dj_runtime_create(&fake_backend, config, &runtime, &err);
    if (status != DJ_OK) {
        fail_msg("dj_runtime_create: %s", err.message);
    }
    return runtime;
}

static inline dj_kernel *fake_compile_ok(dj_runtime *runtime, const char *tag, const char *source,
                                         const dj_compile_options *options)
{
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    const dj_status status =
        dj_compile(runtime, tag, source, strlen(source), options, &kernel, &err);
    if (status != DJ_OK) {
        fail_msg("dj_compile: %s", err.message);
    }
    return kernel;
}

static inline dj_stats fake_stats(dj_runtime *runtime)
{
    dj_stats stats = DJ_STATS_INIT;
    assert_int_equal(dj_runtime_stats(runtime, &stats, NULL), DJ_OK);
    return stats;
}

static inline size_t fake_count(const char *sub)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", world.root, sub);
    const int dir = dj__open_dir(path);
    if (dir < 0) {
        return 0;
    }
    dj__strlist names;
    dj__strlist_init(&names);
    assert_int_equal(dj__list_dir(dir, &names), 0);
    const size_t count = names.count;
    dj__strlist_fini(&names);
    dj__close(dir);
    return count;
}

#endif
