/* SPDX-License-Identifier: MIT */
/* A store over directories of one test, with its messages and counters at hand. */
#ifndef DJ_TEST_STORE_FIXTURE_H
#define DJ_TEST_STORE_FIXTURE_H

#include "base/fs.h"
#include "base/thread.h"
#include "cache/disk.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define FIX_MAX_ROOTS 3
#define FIX_DIGEST "0123456789abcdef0123456789abcdef"
#define FIX_DIGEST_2 "fedcba9876543210fedcba9876543210"
#define FIX_BINARY "binary of the kernel, not empty"

typedef struct store_fixture {
    char dir[256];                  /* everything lies here; removed at the end */
    char roots[FIX_MAX_ROOTS][300]; /* <dir>/r0, ... which do not exist yet */
    char tmpdir[300];               /* <dir>/tmpdir, exists */
    dj__env *env;
    dj__log log;
    dj__store_counters counters;
    unsigned warnings;
    char warning[2048]; /* the last one */
} store_fixture;

static inline void fix_log(void *user, dj_log_level level, const char *message)
{
    store_fixture *fix = user;
    if (level == DJ_LOG_WARN) {
        fix->warnings++;
        (void)snprintf(fix->warning, sizeof(fix->warning), "%s", message);
    }
}

static inline int fix_setup(void **state)
{
    store_fixture *fix = calloc(1, sizeof(*fix));
    assert_non_null(fix);
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(fix->dir, sizeof(fix->dir), "%s/dj-test-XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(fix->dir));
    for (size_t i = 0; i < FIX_MAX_ROOTS; i++) {
        (void)snprintf(fix->roots[i], sizeof(fix->roots[i]), "%s/r%zu", fix->dir, i);
    }
    (void)snprintf(fix->tmpdir, sizeof(fix->tmpdir), "%s/tmpdir", fix->dir);
    assert_int_equal(mkdir(fix->tmpdir, 0700), 0);
    char *const environment[] = {NULL};
    assert_int_equal(dj__env_create("MYLIB", environment, &fix->env, NULL), DJ_OK);
    fix->log = (dj__log){.fn = fix_log, .user = fix, .level = DJ_LOG_DEBUG};
    *state = fix;
    return 0;
}

static inline int fix_teardown(void **state)
{
    store_fixture *fix = *state;
    const int error = dj__remove_tree(fix->dir);
    dj__env_destroy(fix->env);
    free(fix);
    return error;
}

static inline dj__store_config fix_config(store_fixture *fix)
{
    return (dj__store_config){.fsync = DJ__FSYNC_NONE,
                              .tmpdir = fix->tmpdir,
                              .env = fix->env,
                              .log = &fix->log,
                              .counters = &fix->counters};
}

static inline dj_store *fix_open_config(const dj__store_config *config)
{
    dj_error err = DJ_ERROR_INIT;
    dj_store *store = NULL;
    assert_int_equal(dj__tiered_open(config, &store, &err), DJ_OK);
    assert_non_null(store);
    return store;
}

/* A store over the first `count` roots. */
static inline dj_store *fix_open(store_fixture *fix, size_t count)
{
    const char *roots[FIX_MAX_ROOTS];
    for (size_t i = 0; i < FIX_MAX_ROOTS; i++) {
        roots[i] = fix->roots[i];
    }
    dj__store_config config = fix_config(fix);
    config.roots = roots;
    config.num_roots = count;
    return fix_open_config(&config);
}

static inline dj_manifest fix_manifest(const char *tag, const char *digest)
{
    return (dj_manifest){.tag = tag,
                         .digest = digest,
                         .backend = "host",
                         .arch = "x86_64",
                         .binary_name = "kernel.so"};
}

/* "<a>/<b>", valid until seven more calls. */
static inline const char *fix_path(const char *a, const char *b)
{
    static char *paths[8];
    static unsigned next;
    char **path = &paths[next++ % 8];
    free(*path);
    *path = dj__format("%s/%s", a, b);
    assert_non_null(*path);
    return *path;
}

static inline const char *fix_entry(store_fixture *fix, size_t root, const char *tag,
                                    const char *digest)
{
    char name[512];
    (void)snprintf(name, sizeof(name), "cache/%s.%s", tag, digest);
    return fix_path(fix->roots[root], name);
}

static inline void fix_write(const char *dir, const char *name, const char *data, size_t size)
{
    const int fd = open(fix_path(dir, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    assert_int_equal(close(fd), 0);
}

static inline char *fix_read(const char *dir, const char *name, size_t *size)
{
    char *data = NULL;
    assert_int_equal(dj__read_file(fix_path(dir, name), 1 << 20, &data, size), 0);
    return data;
}

static inline bool fix_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static inline mode_t fix_mode(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

/* Number of names in a directory; 0 if there is none. */
static inline size_t fix_count(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return 0;
    }
    for (const struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        count += strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0;
    }
    (void)closedir(dir);
    return count;
}

static inline size_t fix_count_in(store_fixture *fix, size_t root, const char *sub)
{
    return fix_count(fix_path(fix->roots[root], sub));
}

/* The files of a usual build. */
static inline void fix_fill(const char *path, const char *binary)
{
    fix_write(path, "kernel.c", "int kernel;\n", 12);
    fix_write(path, "kernel.so", binary, strlen(binary));
    fix_write(path, "compiler.log", "a warning\n", 10);
    fix_write(path, "meta.json", "{}", 2);
}

static inline void fix_put(dj_store *store, const char *tag, const char *digest, const char *binary,
                           dj_entry *out)
{
    dj_error err = DJ_ERROR_INIT;
    dj_staging staging;
    const dj_manifest what = fix_manifest(tag, digest);
    assert_int_equal(dj_store_stage(store, &staging, &err), DJ_OK);
    fix_fill(staging.path, binary);
    assert_int_equal(dj_store_put(store, &staging, &what, out, &err), DJ_OK);
    assert_null(staging.path);
}

/* Publishes and expects that it works. */
static inline void fix_publish(dj_store *store, const char *tag, const char *digest,
                               const char *binary)
{
    dj_entry entry;
    fix_put(store, tag, digest, binary, &entry);
    assert_null(entry.reason);
    assert_int_equal(entry.binary_size, strlen(binary));
    dj__entry_fini(&entry);
}

static inline dj_status fix_get(dj_store *store, const char *tag, const char *digest,
                                dj_verify level, dj_entry *out)
{
    dj_error err = DJ_ERROR_INIT;
    const dj_manifest what = fix_manifest(tag, digest);
    return dj_store_get(store, &what, level, out, &err);
}

/* The status of a get whose result does not matter. */
static inline dj_status fix_try(dj_store *store, const char *tag, const char *digest,
                                dj_verify level)
{
    dj_entry entry;
    const dj_status status = fix_get(store, tag, digest, level, &entry);
    dj__entry_fini(&entry);
    return status;
}

static inline size_t fix_open_files(void)
{
    return fix_count("/proc/self/fd");
}

#endif
