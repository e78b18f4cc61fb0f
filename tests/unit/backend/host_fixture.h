/* SPDX-License-Identifier: MIT */
/* What the tests of the host back end share: a directory, an environment, and compiling. */
#ifndef DJ_TESTS_HOST_FIXTURE_H
#define DJ_TESTS_HOST_FIXTURE_H

#include "backend/host/host_backend.h"
#include "base/env.h"
#include "base/fs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FIXTURE_LIMIT = 1 << 22 };

typedef struct host_fixture {
    char dir[256];
    dj__env *env;
    dj_backend_context context;
    dj_compiler *compiler;
    dj_error err;
    dj__strbuf command;
    dj__strbuf log;
} host_fixture;

/* `variables` is a NULL-terminated environment. */
static inline void host_fixture_init(host_fixture *fixture, const char *const *variables)
{
    const char *tmp = getenv("TMPDIR");
    memset(fixture, 0, sizeof *fixture);
    (void)snprintf(fixture->dir, sizeof fixture->dir, "%s/dj test%s_XXXXXX",
                   tmp != NULL ? tmp : "/tmp", "'\"");
    assert_non_null(mkdtemp(fixture->dir));
    assert_int_equal(dj__env_create(NULL, (char *const *)variables, &fixture->env, &fixture->err),
                     DJ_OK);
    fixture->context = (dj_backend_context){.size = sizeof fixture->context, .env = fixture->env};
    assert_int_equal(
        dj__host_compiler_ops.open(&fixture->context, &fixture->compiler, &fixture->err), DJ_OK);
    dj__strbuf_init(&fixture->command, FIXTURE_LIMIT);
    dj__strbuf_init(&fixture->log, FIXTURE_LIMIT);
}

static inline void host_fixture_fini(host_fixture *fixture)
{
    dj__host_compiler_ops.close(fixture->compiler);
    dj__env_destroy(fixture->env);
    dj__strbuf_fini(&fixture->command);
    dj__strbuf_fini(&fixture->log);
    assert_int_equal(dj__remove_tree(fixture->dir), 0);
}

static inline void host_fixture_write(const host_fixture *fixture, const char *name,
                                      const char *text, mode_t mode)
{
    const int dir = dj__open_dir(fixture->dir);
    assert_true(dir >= 0);
    (void)unlinkat(dir, name, 0);
    assert_int_equal(dj__write_new_at(dir, name, text, strlen(text), mode, false), 0);
    (void)close(dir);
}

static inline char *host_fixture_read(const host_fixture *fixture, const char *name, size_t *size)
{
    char *data = NULL;
    char *path = dj__path_join(fixture->dir, name);
    assert_non_null(path);
    assert_int_equal(dj__read_file(path, FIXTURE_LIMIT, &data, size), 0);
    free(path);
    return data;
}

static inline bool host_fixture_has(const host_fixture *fixture, const char *name)
{
    char *path = dj__path_join(fixture->dir, name);
    assert_non_null(path);
    const bool found = access(path, F_OK) == 0;
    free(path);
    return found;
}

/* Compiles kernel.c in the fixture's directory with the source tree's prelude. */
static inline dj_status host_fixture_compile(host_fixture *fixture, const char *source,
                                             const char *const *flags, size_t num_flags,
                                             dj_compile_job job)
{
    static const char *const includes[] = {"prelude"};
    const char *root = getenv("DJ_TEST_SOURCE_DIR");
    char *link = dj__path_join(fixture->dir, "prelude");
    char *include = dj__path_join(root != NULL ? root : ".", "include");
    assert_true(link != NULL && include != NULL);
    (void)unlink(link);
    assert_int_equal(symlink(include, link), 0);
    free(include);
    free(link);
    host_fixture_write(fixture, "kernel.c", source, 0600);
    dj__strbuf_clear(&fixture->command);
    dj__strbuf_clear(&fixture->log);
    memset(&fixture->err, 0, sizeof fixture->err);
    static const dj_compile_options plain = DJ_COMPILE_OPTIONS_INIT;
    job.size = sizeof job;
    job.options = job.options != NULL ? job.options : &plain;
    job.dir = fixture->dir;
    job.source = "kernel.c";
    job.flags = flags;
    job.num_flags = num_flags;
    job.includes = includes;
    job.num_includes = 1;
    job.command = &fixture->command;
    job.log = &fixture->log;
    return dj__host_compiler_ops.compile(fixture->compiler, &job, &fixture->err);
}

#endif
