/* SPDX-License-Identifier: MIT */
/* Toolchain identity with stand-in compilers: contents decide, memos hold exactly as long as the
 * files are the same, damage costs nothing but time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/fs.h"
#include "compile/toolchain.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The stand-in: a main program and a library beside it. */
struct dj_compiler {
    char program[PATH_MAX + 64];
    char library[PATH_MAX + 64];
    const char *version;
    bool missing;
    int located;
    int described;
};

static dj_status stand_in_locate(dj_compiler *compiler, dj__strlist *programs, dj_error *err)
{
    compiler->located++;
    if (compiler->missing) {
        return dj__fail(err, DJ_UNAVAILABLE, "no compiler: set DJ_TEST_COMPILER");
    }
    dj__strlist_add(programs, compiler->program);
    return DJ_OK;
}

static dj_status stand_in_describe(dj_compiler *compiler, dj__strlist *files, dj__strbuf *version,
                                   dj_error *err)
{
    (void)err;
    compiler->described++;
    dj__strlist_add(files, compiler->program);
    dj__strlist_add(files, compiler->library);
    dj__strbuf_puts(version, compiler->version);
    return DJ_OK;
}

static const dj_compiler_ops stand_in = {
    .size = sizeof(stand_in), .locate = stand_in_locate, .describe = stand_in_describe};

static char top[PATH_MAX];
static char memos[PATH_MAX + 32];
static char more_memos[PATH_MAX + 32];
static const char *const memo_dirs[] = {memos, more_memos};
static const dj__toolchain_dirs dirs = {.write = memos, .read = memo_dirs, .num_read = 2};

static int make_top(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(top, sizeof(top) - 64, "%s/dj_toolchain_XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(top) == NULL) {
        return -1;
    }
    snprintf(memos, sizeof(memos), "%s/memos", top);
    snprintf(more_memos, sizeof(more_memos), "%s/more", top);
    return dj__make_dirs(memos, 0755) == 0 && dj__make_dirs(more_memos, 0755) == 0 ? 0 : -1;
}

static int remove_top(void **state)
{
    (void)state;
    return dj__remove_tree(top) == 0 ? 0 : -1;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static bool old_enough(const char *path)
{
    struct stat st;
    struct timespec now;
    assert_int_equal(stat(path, &st), 0);
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - st.st_ctim.tv_sec > 3 && now.tv_sec - st.st_mtim.tv_sec > 3;
}

static void make_compiler(dj_compiler *compiler, const char *dir, const char *program,
                          const char *library)
{
    char path[PATH_MAX + 32];
    memset(compiler, 0, sizeof(*compiler));
    snprintf(path, sizeof(path), "%s/%s", top, dir);
    assert_int_equal(dj__make_dirs(path, 0755), 0);
    snprintf(compiler->program, sizeof(compiler->program), "%s/cc", path);
    snprintf(compiler->library, sizeof(compiler->library), "%s/cc1 back end", path);
    write_file(compiler->program, program);
    write_file(compiler->library, library);
    compiler->version = "cc 1.0\nand more\n";
}

static void identify(dj_compiler *compiler, char identity[DJ__HEX_SIZE])
{
    dj__toolchain toolchain;
    dj_error err = DJ_ERROR_INIT;
    const dj_status status =
        dj__toolchain_identify(&stand_in, compiler, "test", &dirs, NULL, &toolchain, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, DJ_OK);
    assert_true(dj__is_hex32(toolchain.identity, strlen(toolchain.identity)));
    assert_string_equal(toolchain.path, compiler->program);
    assert_string_equal(toolchain.version, "cc 1.0");
    memcpy(identity, toolchain.identity, DJ__HEX_SIZE);
    dj__toolchain_fini(&toolchain);
    assert_null(toolchain.path);
}

/* A name of a memo in a directory; the number of files is returned. */
static size_t list_memos(const char *path, char name[256])
{
    dj__strlist names;
    dj__strlist_init(&names);
    const int dir = dj__open_dir(path);
    assert_true(dir >= 0);
    assert_int_equal(dj__list_dir(dir, &names), 0);
    close(dir);
    const size_t count = names.count;
    if (count > 0) {
        snprintf(name, 256, "%s", names.items[0]);
    }
    dj__strlist_fini(&names);
    return count;
}

static void contents_decide_and_paths_do_not(void **state)
{
    (void)state;
    dj_compiler a;
    dj_compiler b;
    dj_compiler c;
    char ids[4][DJ__HEX_SIZE];
    make_compiler(&a, "a", "program", "library");
    make_compiler(&b, "some other/b", "program", "library");
    make_compiler(&c, "c", "program", "Library");
    identify(&a, ids[0]);
    identify(&b, ids[1]);
    identify(&c, ids[2]);
    assert_string_equal(ids[0], ids[1]);
    assert_string_not_equal(ids[0], ids[2]);
    /* Which file has which content counts. */
    make_compiler(&c, "c", "library", "program");
    identify(&c, ids[3]);
    assert_string_not_equal(ids[0], ids[3]);
}

static void fresh_files_make_no_memo(void **state)
{
    (void)state;
    dj_compiler compiler;
    char first[DJ__HEX_SIZE];
    char second[DJ__HEX_SIZE];
    char name[256];
    make_compiler(&compiler, "a", "program", "library");
    /* From the future, so that this does not depend on how fast the test runs. */
    const struct timespec times[2] = {{.tv_sec = 4000000000}, {.tv_sec = 4000000000}};
    assert_int_equal(utimensat(AT_FDCWD, compiler.program, times, 0), 0);
    identify(&compiler, first);
    assert_int_equal(list_memos(memos, name), 0);
    write_file(compiler.library, "librarY");
    identify(&compiler, second);
    assert_string_not_equal(first, second);
    assert_int_equal(compiler.described, 2);
}

/* Only what has been there for a while makes a memo, and no ctime can be set: so this compiler
 * consists of programs of the system, the first one by a link of ours. False if the system is
 * brand-new. */
static bool make_old_compiler(dj_compiler *compiler)
{
    if (!old_enough("/bin/sh") || !old_enough("/bin/ls")) {
        return false;
    }
    memset(compiler, 0, sizeof(*compiler));
    snprintf(compiler->program, sizeof(compiler->program), "%s/cc", top);
    snprintf(compiler->library, sizeof(compiler->library), "/bin/ls");
    assert_int_equal(symlink("/bin/sh", compiler->program), 0);
    compiler->version = "cc 1.0";
    return true;
}

#define NEED_OLD_COMPILER(compiler)                                                                \
    if (!make_old_compiler(compiler)) {                                                            \
        print_message("no file here is old enough\n");                                             \
        skip();                                                                                    \
    }

static void a_memo_saves_describing(void **state)
{
    (void)state;
    dj_compiler compiler;
    char first[DJ__HEX_SIZE];
    char second[DJ__HEX_SIZE];
    char name[256];
    NEED_OLD_COMPILER(&compiler);
    identify(&compiler, first);
    assert_int_equal(compiler.described, 1);
    assert_int_equal(list_memos(memos, name), 1);
    assert_memory_equal(name, "test.", 5);
    assert_true(dj__is_hex32(name + 5, strlen(name + 5)));
    identify(&compiler, second);
    assert_int_equal(compiler.described, 1);
    assert_int_equal(compiler.located, 2);
    assert_string_equal(first, second);

    /* The memo may lie in any directory that is read. */
    char paths[2][2 * PATH_MAX];
    snprintf(paths[0], sizeof(paths[0]), "%s/%s", memos, name);
    snprintf(paths[1], sizeof(paths[1]), "%s/%s", more_memos, name);
    assert_int_equal(rename(paths[0], paths[1]), 0);
    identify(&compiler, second);
    assert_int_equal(compiler.described, 1);

    /* It is for one scope. */
    dj__toolchain toolchain;
    dj__toolchain_dirs scoped = dirs;
    scoped.scope = "PATH=/elsewhere";
    assert_int_equal(
        dj__toolchain_identify(&stand_in, &compiler, "test", &scoped, NULL, &toolchain, NULL),
        DJ_OK);
    assert_int_equal(compiler.described, 2);
    dj__toolchain_fini(&toolchain);
}

/* Looking again asks nobody and reads nothing; any doubt is "no". */
static void looking_again_starts_nothing(void **state)
{
    (void)state;
    dj_compiler compiler;
    if (!make_old_compiler(&compiler)) {
        skip();
    }
    const dj__toolchain_dirs nowhere = {0};
    dj__toolchain toolchain;
    assert_int_equal(
        dj__toolchain_identify(&stand_in, &compiler, "host", &nowhere, NULL, &toolchain, NULL),
        DJ_OK);
    assert_int_equal(compiler.described, 1);
    assert_true(dj__toolchain_is_current(&stand_in, &compiler, &toolchain));
    assert_true(dj__toolchain_is_current(&stand_in, &compiler, &toolchain));
    assert_int_equal(compiler.described, 1);
    assert_int_equal(unlink(compiler.program), 0);
    assert_int_equal(symlink("/bin/ls", compiler.program), 0);
    assert_false(dj__toolchain_is_current(&stand_in, &compiler, &toolchain));
    compiler.missing = true;
    assert_false(dj__toolchain_is_current(&stand_in, &compiler, &toolchain));
    dj__toolchain_fini(&toolchain);
    /* Files that are too new to be told by their times are never taken as known. */
    dj_compiler fresh;
    make_compiler(&fresh, "fresh", "program", "library");
    const struct timespec times[2] = {{.tv_sec = 4000000000}, {.tv_sec = 4000000000}};
    assert_int_equal(utimensat(AT_FDCWD, fresh.program, times, 0), 0);
    assert_int_equal(
        dj__toolchain_identify(&stand_in, &fresh, "host", &nowhere, NULL, &toolchain, NULL), DJ_OK);
    assert_false(dj__toolchain_is_current(&stand_in, &fresh, &toolchain));
    dj__toolchain_fini(&toolchain);
}

static void a_link_that_leads_elsewhere_is_another_compiler(void **state)
{
    (void)state;
    dj_compiler compiler;
    char first[DJ__HEX_SIZE];
    char second[DJ__HEX_SIZE];
    NEED_OLD_COMPILER(&compiler);
    identify(&compiler, first);
    assert_int_equal(unlink(compiler.program), 0);
    assert_int_equal(symlink("/bin/cat", compiler.program), 0);
    identify(&compiler, second);
    assert_int_equal(compiler.described, 2);
    assert_string_not_equal(first, second);
    /* A copy in its place has other stat data, and the same identity again. */
    assert_int_equal(unlink(compiler.program), 0);
    char *data;
    size_t size;
    assert_int_equal(dj__read_file("/bin/cat", 64 << 20, &data, &size), 0);
    assert_int_equal(dj__write_new_at(AT_FDCWD, compiler.program, data, size, 0700, false), 0);
    free(data);
    identify(&compiler, first);
    assert_int_equal(compiler.described, 3);
    assert_string_equal(first, second);
}

static void a_damaged_memo_is_written_anew(void **state)
{
    (void)state;
    dj_compiler compiler;
    char first[DJ__HEX_SIZE];
    char second[DJ__HEX_SIZE];
    char name[256];
    char *data;
    char *again;
    size_t size;
    size_t size_again;
    NEED_OLD_COMPILER(&compiler);
    identify(&compiler, first);
    assert_int_equal(list_memos(memos, name), 1);
    const int dir = dj__open_dir(memos);
    assert_int_equal(dj__read_at(dir, name, 1 << 20, &data, &size), 0);

    int described = compiler.described;
    const size_t step = size / 40 + 1;
    for (size_t i = 0; i < 2 * size; i += step) { /* flipped bytes, then shorter files */
        const size_t cut = i < size ? size : i - size;
        data[i % size] ^= 0x20;
        assert_int_equal(dj__write_replace_at(dir, name, data, cut, 0600, false), 0);
        data[i % size] ^= 0x20;
        if (i < size || cut < size) {
            identify(&compiler, second);
            assert_int_equal(compiler.described, ++described);
            assert_string_equal(first, second);
        }
        assert_int_equal(dj__read_at(dir, name, 1 << 20, &again, &size_again), 0);
        assert_int_equal(size_again, size);
        assert_memory_equal(again, data, size);
        free(again);
    }
    free(data);
    close(dir);
}

static void a_missing_directory_only_costs_time(void **state)
{
    (void)state;
    dj_compiler compiler;
    char identity[DJ__HEX_SIZE];
    dj__toolchain toolchain;
    NEED_OLD_COMPILER(&compiler);
    const dj__toolchain_dirs nowhere = {0};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            dj__toolchain_identify(&stand_in, &compiler, "test", &nowhere, NULL, &toolchain, NULL),
            DJ_OK);
        dj__toolchain_fini(&toolchain);
    }
    assert_int_equal(compiler.described, 2);
    assert_int_equal(rmdir(memos), 0);
    assert_int_equal(rmdir(more_memos), 0);
    identify(&compiler, identity);
    assert_int_equal(compiler.described, 3);
}

static void errors(void **state)
{
    (void)state;
    dj_compiler compiler;
    dj__toolchain toolchain;
    dj_error err = DJ_ERROR_INIT;
    make_compiler(&compiler, "a", "program", "library");
    assert_int_equal(unlink(compiler.library), 0);
    assert_int_equal(
        dj__toolchain_identify(&stand_in, &compiler, "test", &dirs, NULL, &toolchain, &err),
        DJ_UNAVAILABLE);
    assert_non_null(strstr(err.message, compiler.library));
    assert_int_equal(err.native, ENOENT);
    assert_null(toolchain.path);
    assert_null(toolchain.version);

    compiler.missing = true;
    assert_int_equal(
        dj__toolchain_identify(&stand_in, &compiler, "test", &dirs, NULL, &toolchain, &err),
        DJ_UNAVAILABLE);
    assert_string_equal(err.message, "no compiler: set DJ_TEST_COMPILER");
}

/* ---- recorded identities ---- */

/* Records what a compiler made of one content would have, at a time. */
static void record(const char *dir, const char *backend, char digit, time_t when)
{
    char name[64];
    char path[2 * PATH_MAX];
    char hex[DJ__HEX_SIZE];
    dj__strbuf memo;
    dj__strbuf_init(&memo, 4096);
    dj__strbuf_printf(&memo, "deepjit-toolchain-1\nmachine m\nidentity %032d\nversion v\n",
                      digit - '0');
    dj__xxh128_hex(memo.data, memo.size, hex);
    dj__strbuf_printf(&memo, "sum %s\n", hex);
    snprintf(name, sizeof(name), "%s.%032ld", backend, (long)when);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    write_file(path, memo.data);
    const struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    dj__strbuf_fini(&memo);
}

static void recorded_identities_newest_first(void **state)
{
    (void)state;
    char path[PATH_MAX + 128];
    dj__strlist found;
    dj__strlist_init(&found);
    assert_int_equal(dj__toolchain_recorded("test", &dirs, &found, NULL), DJ_OK);
    assert_int_equal(found.count, 0);

    record(memos, "test", '1', 1000);
    record(memos, "test", '2', 3000);
    record(more_memos, "test", '3', 2000);
    record(more_memos, "test", '2', 500);
    record(more_memos, "tester", '4', 9000);
    snprintf(path, sizeof(path), "%s/test.%032d", memos, 77);
    write_file(path, "deepjit-toolchain-1\nnot a memo\n");
    snprintf(path, sizeof(path), "%s/test.short", memos);
    write_file(path, "");

    assert_int_equal(dj__toolchain_recorded("test", &dirs, &found, NULL), DJ_OK);
    assert_int_equal(found.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(found.items[i][31], "231"[i]);
    }
    dj__strlist_fini(&found);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_top, remove_top)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(contents_decide_and_paths_do_not),
        TEST(fresh_files_make_no_memo),
        TEST(a_memo_saves_describing),
        TEST(looking_again_starts_nothing),
        TEST(a_link_that_leads_elsewhere_is_another_compiler),
        TEST(a_damaged_memo_is_written_anew),
        TEST(a_missing_directory_only_costs_time),
        TEST(errors),
        TEST(recorded_identities_newest_first),
    };
    return cmocka_run_group_tests_name("toolchain", tests, NULL, NULL);
}
