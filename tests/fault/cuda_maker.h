/* SPDX-License-Identifier: MIT */
/*
 * A back end for the tests with the stand-in driver: the CUDA driver of this library, and a
 * compiler in this program that makes cubins of what the source says, in microseconds.
 *
 * The source, a line each:
 *     kernel NAME [SIZE[:ALIGN]]...   one kernel with these parameters
 *     shared BYTES                    static shared memory of the kernels after it
 *     arch 80                         another architecture than was asked for
 *     deliver WHAT                    garbage, truncated, ptx, zeros, empty or nothing instead
 */
#ifndef CUDA_MAKER_H
#define CUDA_MAKER_H

#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "standin_fixture.h"
#include <deepjit/deepjit.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAKER_KERNELS = 4, MAKER_PARAMS = 128 };

static struct {
    char dir[64];
    char root[128];
    char tool[128];
    atomic_int compiles;
    standin_cuda_live before;
} maker;

typedef struct maker_spec {
    cubin_param params[MAKER_KERNELS][MAKER_PARAMS];
    char names[MAKER_KERNELS][64];
    cubin_kernel kernels[MAKER_KERNELS];
    cubin_spec spec;
    char deliver[16];
} maker_spec;

struct dj_compiler {
    int unused;
};
static struct dj_compiler maker_compiler;

static dj_status maker_open(const dj_backend_context *context, dj_compiler **out, dj_error *err)
{
    (void)context;
    (void)err;
    *out = &maker_compiler;
    return DJ_OK;
}

static void maker_close(dj_compiler *compiler)
{
    (void)compiler;
}

static dj_status maker_locate(dj_compiler *compiler, dj__strlist *programs, dj_error *err)
{
    (void)compiler;
    dj__strlist_add(programs, maker.tool);
    return dj__strlist_ok(programs, err);
}

static dj_status maker_describe(dj_compiler *compiler, dj__strlist *files, dj__strbuf *version,
                                dj_error *err)
{
    (void)compiler;
    dj__strlist_add(files, maker.tool);
    dj__strbuf_puts(version, "cubin maker 9.9");
    return dj__strlist_ok(files, err);
}

static dj_status maker_flags(dj_compiler *compiler, const dj_compile_options *options,
                             const char *arch, dj__strlist *out, dj_error *err)
{
    (void)compiler;
    dj__strlist_addf(out, "-arch=%s", arch);
    dj__strlist_add_all(out, options->extra_flags, options->num_extra_flags);
    return dj__strlist_ok(out, err);
}

static void maker_arch(maker_spec *made, const char *text)
{
    char *end = NULL;
    made->spec.sm = (int)strtol(text, &end, 10);
    made->spec.suffix = *end;
}

static void maker_kernel(maker_spec *made, char *words, unsigned shared)
{
    char *rest = NULL;
    const size_t index = made->spec.num_kernels++;
    cubin_kernel *kernel = &made->kernels[index];
    assert_true(index < MAKER_KERNELS);
    snprintf(made->names[index], sizeof(made->names[index]), "%s", strtok_r(words, " ", &rest));
    *kernel = (cubin_kernel){.name = made->names[index],
                             .params = made->params[index],
                             .registers = 32,
                             .shared = shared,
                             .large_params = true};
    for (char *word = strtok_r(NULL, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        cubin_param *param = &made->params[index][kernel->num_params++];
        char *end = NULL;
        assert_true(kernel->num_params <= MAKER_PARAMS);
        param->size = (uint32_t)strtoul(word, &end, 10);
        param->align = *end == ':' ? (uint32_t)strtoul(end + 1, NULL, 10) : 1;
    }
}

static void maker_parse(char *source, const char *arch, maker_spec *made)
{
    char *rest = NULL;
    unsigned shared = 0;
    memset(made, 0, sizeof(*made));
    maker_arch(made, arch);
    made->spec.kernels = made->kernels;
    for (char *line = strtok_r(source, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "kernel ", 7) == 0) {
            maker_kernel(made, line + 7, shared);
        } else if (strncmp(line, "shared ", 7) == 0) {
            shared = (unsigned)strtoul(line + 7, NULL, 10);
        } else if (strncmp(line, "arch ", 5) == 0) {
            maker_arch(made, line + 5);
        } else if (strncmp(line, "deliver ", 8) == 0) {
            snprintf(made->deliver, sizeof(made->deliver), "%s", line + 8);
        }
    }
}

static const char maker_ptx[] = "//\n.version 8.8\n.target sm_90\n.address_size 64\n"
                                ".visible .entry k()\n{\nret;\n}\n";

/* What goes into kernel.cubin. */
static void *maker_deliver(const maker_spec *made, size_t *size)
{
    char *cubin = cubin_build(&made->spec, size);
    if (strcmp(made->deliver, "garbage") == 0) {
        memset(cubin, 0xa5, *size);
    } else if (strcmp(made->deliver, "zeros") == 0) {
        memset(cubin, 0, *size);
    } else if (strcmp(made->deliver, "truncated") == 0) {
        *size /= 2;
    } else if (strcmp(made->deliver, "empty") == 0) {
        *size = 0;
    } else if (strcmp(made->deliver, "ptx") == 0) {
        assert_true(*size >= sizeof(maker_ptx));
        *size = sizeof(maker_ptx) - 1;
        memcpy(cubin, maker_ptx, *size);
    }
    return cubin;
}

static dj_status maker_compile(dj_compiler *compiler, const dj_compile_job *job, dj_error *err)
{
    (void)compiler;
    atomic_fetch_add(&maker.compiles, 1);
    char *source = NULL;
    size_t size = 0;
    const int dir = dj__open_dir(job->dir);
    if (dir < 0) {
        return dj__fail_errno(err, -dir, "%s", job->dir);
    }
    dj_status status = DJ_OK;
    if (dj__read_at(dir, job->source, 1u << 20, &source, &size) == 0) {
        maker_spec *made = malloc(sizeof(*made));
        assert_non_null(made);
        maker_parse(source, job->flags[0] + strlen("-arch="), made);
        void *cubin = maker_deliver(made, &size);
        const int error = strcmp(made->deliver, "nothing") == 0
                              ? 0
                              : dj__write_new_at(dir, "kernel.cubin", cubin, size, 0600, false);
        status = error == 0 ? DJ_OK : dj__fail_errno(err, error, "kernel.cubin");
        free(cubin);
        free(made);
    }
    dj__strbuf_puts(job->command, "maker kernel.cu");
    free(source);
    dj__close(dir);
    return status;
}

static const char *const maker_nothing[] = {NULL};

static dj_status maker_inspect(const dj_binary *binary, dj_inspect_fn visit, void *user,
                               dj_error *err)
{
    return dj__cuda_compiler_ops.inspect(binary, visit, user, err);
}

static const dj_compiler_ops maker_compiler_ops = {
    .size = sizeof(dj_compiler_ops),
    .source_name = "kernel.cu",
    .binary_name = "kernel.cubin",
    .default_flags = maker_nothing,
    .default_optimize_level = "3",
    .keyed_env = maker_nothing,
    .open = maker_open,
    .close = maker_close,
    .locate = maker_locate,
    .describe = maker_describe,
    .flags = maker_flags,
    .compile = maker_compile,
    .inspect = maker_inspect,
};

static const dj_backend maker_backend = {
    .size = sizeof(dj_backend),
    .name = "cuda",
    .driver = &dj__cuda_driver_ops,
    .compiler = &maker_compiler_ops,
};

/* ---- a world for each test ---- */

static inline int maker_setup(void **state)
{
    (void)state;
    cu.reset();
    if (cu.cuCtxSetCurrent(NULL) == DJ__CU_SUCCESS) { /* else nobody has used the driver yet */
        assert_int_equal(cu.cuDevicePrimaryCtxReset_v2(0), 0);
        assert_int_equal(cu.cuDevicePrimaryCtxReset_v2(1), 0);
    }
    cu.reset();
    cu.live_now(&maker.before);
    atomic_store(&maker.compiles, 0);
    snprintf(maker.dir, sizeof(maker.dir), "/tmp/djcuda-XXXXXX");
    assert_non_null(mkdtemp(maker.dir));
    snprintf(maker.root, sizeof(maker.root), "%s/root", maker.dir);
    snprintf(maker.tool, sizeof(maker.tool), "%s/maker", maker.dir);
    FILE *file = fopen(maker.tool, "w");
    assert_non_null(file);
    assert_true(fputs("cubin maker\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    setenv("DJ_JIT_CACHE_DIR", maker.root, 1);
    setenv("DJ_JIT_CACHE_FSYNC", "none", 1);
    setenv("DJ_JIT_CUDA_LIBRARY", standin_path, 1);
    unsetenv("DJ_JIT_CUDA_DEVICE");
    return 0;
}

/* Whatever a test did, the driver holds nothing more than before but primary contexts. */
static inline int maker_teardown(void **state)
{
    (void)state;
    standin_cuda_live live;
    cu.reset();
    cu.live_now(&live);
    assert_int_equal(live.libraries, maker.before.libraries);
    assert_int_equal(live.allocations, 0);
    assert_int_equal(live.streams, 0);
    assert_int_equal(live.graphs, 0);
    return dj__remove_tree(maker.dir);
}

static inline int maker_group(void **state)
{
    (void)state;
    standin_open();
    return 0;
}

static inline dj_runtime *maker_runtime(const dj_config *config)
{
    dj_runtime *runtime = NULL;
    dj_error err = DJ_ERROR_INIT;
    if (dj_runtime_create(&maker_backend, config, &runtime, &err) != DJ_OK) {
        fail_msg("dj_runtime_create: %s", err.message);
    }
    return runtime;
}

static inline dj_status maker_try(dj_runtime *runtime, const char *source, dj_kernel **out,
                                  dj_error *err)
{
    return dj_compile(runtime, "t", source, strlen(source), NULL, out, err);
}

static inline dj_kernel *maker_kernel_of(dj_runtime *runtime, const char *source)
{
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    if (maker_try(runtime, source, &kernel, &err) != DJ_OK) {
        fail_msg("dj_compile: %s", err.message);
    }
    return kernel;
}

static inline dj_launch_options maker_one_thread(void)
{
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = options.block.x = 1;
    return options;
}

static inline void maker_expect(dj_status got, dj_status want, const dj_error *err,
                                const char *text)
{
    if (got != want || strstr(err->message, text) == NULL) {
        fail_msg("expected %s and '%s', got %s: %s", dj_status_name(want), text,
                 dj_status_name(got), err->message);
    }
}

static bool maker_count(void *user, const dj_cache_entry *entry)
{
    *(int *)user += entry->state == DJ_ENTRY_GOOD ? 1 : 1000;
    return true;
}

/* The number of good entries; each other one counts 1000. */
static inline int maker_entries(dj_runtime *runtime)
{
    int count = 0;
    assert_int_equal(dj_cache_verify(runtime, maker_count, &count, NULL), DJ_OK);
    return count;
}

static inline dj_stats maker_stats(dj_runtime *runtime)
{
    dj_stats stats = DJ_STATS_INIT;
    assert_int_equal(dj_runtime_stats(runtime, &stats, NULL), DJ_OK);
    return stats;
}

#endif
