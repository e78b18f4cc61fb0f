/* SPDX-License-Identifier: MIT */
/* What the tests of the CUDA compiler share: a job's directory, an environment, and compiling. */
#ifndef DJ_TESTS_CUDA_FIXTURE_H
#define DJ_TESTS_CUDA_FIXTURE_H

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_flags.h"
#include "backend/cuda/cuda_toolkit.h"
#include "base/env.h"
#include "base/fs.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { CUDA_FIXTURE_LIMIT = 1 << 26 };

typedef struct cuda_fixture {
    char *base; /* removed at the end; plain characters only */
    char *dir;  /* of the job, in it; any characters */
    dj__env *env;
    dj_backend_context context;
    dj_compiler *compiler;
    dj_cuda_compile_options cuda;
    dj_compile_options options;
    const char *debug_dir;
    dj_cancel *cancel;
    int64_t timeout_ms;
    dj_error err;
    dj__strlist flags;
    dj__strbuf command;
    dj__strbuf log;
} cuda_fixture;

static inline char *cuda_fixture_path(const cuda_fixture *fixture, const char *name)
{
    char *path = dj__path_join(fixture->dir, name);
    assert_non_null(path);
    return path;
}

static inline void cuda_fixture_write_to(const char *dir, const char *name, const char *text,
                                         mode_t mode)
{
    assert_int_equal(dj__make_dirs(dir, 0700), 0);
    const int fd = dj__open_dir(dir);
    assert_true(fd >= 0);
    (void)unlinkat(fd, name, 0);
    assert_int_equal(dj__write_new_at(fd, name, text, strlen(text), mode, false), 0);
    (void)close(fd);
}

/* `variables` is a NULL-terminated environment. */
static inline void cuda_fixture_set_env(cuda_fixture *fixture, const char *const *variables)
{
    if (fixture->compiler != NULL) {
        dj__cuda_compiler_ops.close(fixture->compiler);
        dj__env_destroy(fixture->env);
    }
    assert_int_equal(dj__env_create(NULL, (char *const *)variables, &fixture->env, &fixture->err),
                     DJ_OK);
    fixture->context = (dj_backend_context){.size = sizeof fixture->context, .env = fixture->env};
    assert_int_equal(
        dj__cuda_compiler_ops.open(&fixture->context, &fixture->compiler, &fixture->err), DJ_OK);
}

static inline void cuda_fixture_init(cuda_fixture *fixture, const char *dir_name,
                                     const char *const *variables)
{
    const char *tmp = getenv("TMPDIR");
    memset(fixture, 0, sizeof *fixture);
    fixture->base = dj__format("%s/dj_cuda_XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(fixture->base);
    assert_non_null(mkdtemp(fixture->base));
    fixture->dir = dj__path_join(fixture->base, dir_name);
    assert_non_null(fixture->dir);
    assert_int_equal(dj__make_dirs(fixture->dir, 0700), 0);
    fixture->cuda = (dj_cuda_compile_options)DJ_CUDA_COMPILE_OPTIONS_INIT;
    fixture->options = (dj_compile_options)DJ_COMPILE_OPTIONS_INIT;
    fixture->options.arch = "90a";
    fixture->options.optimize_level = "3";
    fixture->options.flags = dj__cuda_compiler_ops.default_flags;
    fixture->options.num_flags = 4;
    dj__strlist_init(&fixture->flags);
    dj__strbuf_init(&fixture->command, CUDA_FIXTURE_LIMIT);
    dj__strbuf_init(&fixture->log, CUDA_FIXTURE_LIMIT);
    cuda_fixture_set_env(fixture, variables);
}

static inline void cuda_fixture_fini(cuda_fixture *fixture)
{
    dj__cuda_compiler_ops.close(fixture->compiler);
    dj__env_destroy(fixture->env);
    dj__strlist_fini(&fixture->flags);
    dj__strbuf_fini(&fixture->command);
    dj__strbuf_fini(&fixture->log);
    assert_int_equal(dj__remove_tree(fixture->base), 0);
    free(fixture->dir);
    free(fixture->base);
}

static inline char *cuda_fixture_read(const cuda_fixture *fixture, const char *name, size_t *size)
{
    char *data = NULL;
    size_t ignored = 0;
    char *path = cuda_fixture_path(fixture, name);
    assert_int_equal(dj__read_file(path, CUDA_FIXTURE_LIMIT, &data, size != NULL ? size : &ignored),
                     0);
    free(path);
    return data;
}

static inline bool cuda_fixture_has(const cuda_fixture *fixture, const char *name)
{
    char *path = cuda_fixture_path(fixture, name);
    const bool found = access(path, F_OK) == 0;
    free(path);
    return found;
}

/* Completes the options as the core does, and asks for the flags. */
static inline dj_status cuda_fixture_flags(cuda_fixture *fixture)
{
    memset(&fixture->err, 0, sizeof fixture->err);
    dj__strlist_fini(&fixture->flags);
    dj__strlist_init(&fixture->flags);
    dj__cuda_compiler_ops.complete(&fixture->options, &fixture->cuda);
    fixture->options.cuda = &fixture->cuda;
    return dj__cuda_compiler_ops.flags(fixture->compiler, &fixture->options, fixture->options.arch,
                                       &fixture->flags, &fixture->err);
}

/* Compiles as the core does: prelude and inputs lie in the job's directory. */
static inline dj_status cuda_fixture_compile(cuda_fixture *fixture, const char *source)
{
    static const char *const includes[] = {"prelude"};
    const char *root = getenv("DJ_TEST_SOURCE_DIR");
    char *link = cuda_fixture_path(fixture, "prelude");
    char *include = dj__path_join(root != NULL ? root : ".", "include");
    assert_non_null(include);
    (void)unlink(link);
    assert_int_equal(symlink(include, link), 0);
    free(include);
    free(link);
    cuda_fixture_write_to(fixture->dir, "kernel.cu", source, 0600);
    dj__strbuf_clear(&fixture->command);
    dj__strbuf_clear(&fixture->log);
    dj_status status = cuda_fixture_flags(fixture);
    if (status == DJ_OK) {
        const dj_compile_job job = {
            .size = sizeof job,
            .dir = fixture->dir,
            .source = "kernel.cu",
            .flags = dj__strlist_items(&fixture->flags),
            .num_flags = fixture->flags.count,
            .includes = includes,
            .num_includes = 1,
            .debug_dir = fixture->debug_dir,
            .options = &fixture->options,
            .timeout_ms = fixture->timeout_ms > 0 ? fixture->timeout_ms : 120000,
            .cancel = fixture->cancel,
            .command = &fixture->command,
            .log = &fixture->log,
        };
        status = dj__cuda_compiler_ops.compile(fixture->compiler, &job, &fixture->err);
    }
    return status;
}

/* The nvcc of this machine and its toolkit's directory; skips the test where there is none. */
static inline const char *cuda_fixture_real_nvcc(char nvcc[512])
{
    const char *home = getenv("CUDA_HOME");
    (void)snprintf(nvcc, 512, "%s/bin/nvcc",
                   home != NULL && home[0] != '\0' ? home : "/usr/local/cuda");
    if (access(nvcc, X_OK) != 0) {
        char *found = dj__find_program("nvcc", getenv("PATH"));
        (void)snprintf(nvcc, 512, "%s", found != NULL ? found : "");
        free(found);
    }
    if (nvcc[0] == '\0') {
        print_message("skipped: no nvcc (CUDA_HOME, /usr/local/cuda, PATH)\n");
        skip();
    }
    return nvcc;
}

/* A program in the fixture's base directory; its path. */
static inline char *cuda_fixture_script(const cuda_fixture *fixture, const char *name,
                                        const char *text)
{
    cuda_fixture_write_to(fixture->base, name, text, 0700);
    char *path = dj__path_join(fixture->base, name);
    assert_non_null(path);
    return path;
}

#endif
