/* SPDX-License-Identifier: MIT */
/*
 * What the conformance programs share. They use the public API only and run on whichever back
 * end DJ_TEST_BACKEND names (default: host). Every program has a cache root of its own.
 * DJ_TEST_NO_EXECUTION says that launches compute nothing, as on a stand-in device: everything
 * but the results is checked then.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <deepjit/deepjit.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define KERNEL_HEADER "#include <deepjit/kernel.h>\n"
#define GLOBAL_INDEX "const int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;\n"

static char suite_dir[64];
static dj_runtime *suite_runtime;

static inline const dj_backend *suite_backend(void)
{
    const char *name = getenv("DJ_TEST_BACKEND");
    const dj_backend *backend = dj_backend_find(name != NULL ? name : "host");
    if (backend == NULL) {
        fail_msg("no back end %s", name);
    }
    return backend;
}

/* Skips the running test on other back ends, and says why. */
static inline void suite_needs_host(const char *why)
{
    const char *name = dj_backend_name(suite_backend());
    if (strcmp(name, "host") != 0) {
        print_message("skipped on the %s back end: %s\n", name, why);
        skip();
    }
}

/* What a kernel computed; where none runs, what it should have computed. */
static inline int suite_result(int got, int want)
{
    return getenv("DJ_TEST_NO_EXECUTION") != NULL ? want : got;
}

static inline dj_runtime *suite_new_runtime(const dj_config *config)
{
    dj_runtime *runtime = NULL;
    dj_error err = DJ_ERROR_INIT;
    if (dj_runtime_create(suite_backend(), config, &runtime, &err) != DJ_OK) {
        fail_msg("dj_runtime_create: %s", err.message);
    }
    return runtime;
}

static inline int suite_setup(void **state)
{
    (void)state;
    snprintf(suite_dir, sizeof(suite_dir), "/tmp/djconf-XXXXXX");
    if (mkdtemp(suite_dir) == NULL) {
        return -1;
    }
    char root[128];
    snprintf(root, sizeof(root), "%s/a root with $blanks and 'quotes'", suite_dir);
    setenv("DJ_JIT_CACHE_DIR", root, 1);
    setenv("DJ_JIT_CACHE_FSYNC", "none", 1);
    suite_runtime = suite_new_runtime(NULL);
    return 0;
}

static inline int suite_unlink(const char *path, const struct stat *info, int kind,
                               struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static inline int suite_teardown(void **state)
{
    (void)state;
    dj_runtime_release(suite_runtime);
    return nftw(suite_dir, suite_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

static inline dj_kernel *suite_compile(const char *tag, const char *source,
                                       const dj_compile_options *options)
{
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    if (dj_compile(suite_runtime, tag, source, strlen(source), options, &kernel, &err) != DJ_OK) {
        fail_msg("dj_compile %s: %s", tag, err.message);
    }
    return kernel;
}

static inline void *suite_upload(const void *data, size_t size)
{
    void *memory = NULL;
    dj_error err = DJ_ERROR_INIT;
    if (dj_mem_alloc(suite_runtime, size, &memory, &err) != DJ_OK ||
        dj_mem_copy(suite_runtime, memory, data, size, &err) != DJ_OK) {
        fail_msg("upload: %s", err.message);
    }
    return memory;
}

static inline void suite_download(void *to, const void *memory, size_t size)
{
    dj_error err = DJ_ERROR_INIT;
    if (dj_synchronize(suite_runtime, &err) != DJ_OK ||
        dj_mem_copy(suite_runtime, to, memory, size, &err) != DJ_OK) {
        fail_msg("download: %s", err.message);
    }
}

/* Device memory holds exactly these bytes. */
static inline void suite_expect(const void *memory, const void *want, size_t size)
{
    unsigned char *got = malloc(size);
    assert_non_null(got);
    suite_download(got, memory, size);
    for (size_t i = 0; i < size; i++) {
        const int expected = ((const unsigned char *)want)[i];
        if (suite_result(got[i], expected) != expected) {
            fail_msg("byte %zu of %zu is %02x, expected %02x", i, size, got[i], expected);
        }
    }
    free(got);
}

static inline void suite_launch(dj_kernel *kernel, dj_dim3 grid, dj_dim3 block, int64_t shared,
                                const dj_arg *args, size_t num_args)
{
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid = grid;
    options.block = block;
    options.shared_bytes = shared;
    dj_error err = DJ_ERROR_INIT;
    if (dj_launch(kernel, &options, args, num_args, &err) != DJ_OK) {
        fail_msg("dj_launch %s: %s", dj_kernel_name(kernel), err.message);
    }
}

#endif
