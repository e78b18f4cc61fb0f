/* SPDX-License-Identifier: MIT */
/* Paths, whole-file reads and writes, directories, removal of trees. */
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char test_fs_path[256];
static int test_fs_dir = -1;

/* "<directory of the test>/<name>" */
static const char *test_fs_under(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", test_fs_path, name);
    return path;
}

static mode_t test_fs_mode(const char *name)
{
    struct stat st;
    assert_int_equal(fstatat(test_fs_dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

static bool test_fs_exists(const char *name)
{
    struct stat st;
    return fstatat(test_fs_dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_fs_expect(const char *name, const char *content)
{
    char *data;
    size_t size;
    assert_int_equal(dj__read_at(test_fs_dir, name, 1 << 20, &data, &size), 0);
    assert_int_equal(size, strlen(content));
    assert_string_equal(data, content);
    free(data);
}

static size_t test_fs_count(void)
{
    dj__strlist names;
    dj__strlist_init(&names);
    assert_int_equal(dj__list_dir(test_fs_dir, &names), 0);
    const size_t count = names.count;
    dj__strlist_fini(&names);
    return count;
}

static void test_fs_normalize(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"/", "/"},
        {"//", "/"},
        {"/a", "/a"},
        {"/a/", "/a"},
        {"/a//b/./c/", "/a/b/c"},
        {"/a/b/../c", "/a/c"},
        {"/a/..", "/"},
        {"/..", "/"},
        {"/../../a", "/a"},
        {"/a/b/c/../../d/..", "/a"},
        {"/.", "/"},
        {"/.../..a/b..", "/.../..a/b.."},
        {"/a\nb/ c", "/a\nb/ c"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = dj__path_normalize(cases[i][0]);
        assert_non_null(path);
        assert_string_equal(path, cases[i][1]);
        free(path);
    }
    assert_null(dj__path_normalize("a/b"));
    assert_null(dj__path_normalize(""));
    assert_null(dj__path_normalize(NULL));
}

static void test_fs_join(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"/a", "b", "/a/b"}, {"/a/", "b", "/a/b"}, {"/", "b", "/b"}, {"a", "b/c", "a/b/c"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = dj__path_join(cases[i][0], cases[i][1]);
        assert_non_null(path);
        assert_string_equal(path, cases[i][2]);
        free(path);
    }
}

static void test_fs_contained(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "a/b", "...", "..a/b..", "a b/\n"};
    static const char *const bad[] = {"",     "/",   "/a",  ".",    "..",   "a/",
                                      "a//b", "./a", "a/.", "a/..", "../a", "a/../b"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(dj__path_is_contained(good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(dj__path_is_contained(bad[i]));
    }
}

static void test_fs_write_and_read(void **state)
{
    (void)state;
    char *data;
    size_t size;
    const mode_t old = umask(0777); /* modes are exact whatever it says */
    assert_int_equal(dj__write_new_at(test_fs_dir, "f", "a\0b", 3, 0664, true), 0);
    umask(old);
    assert_int_equal(test_fs_mode("f"), 0664);
    assert_int_equal(dj__read_at(test_fs_dir, "f", 3, &data, &size), 0);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "a\0b", 4);
    free(data);
    assert_int_equal(dj__read_at(test_fs_dir, "f", 2, &data, &size), EFBIG);
    assert_null(data);
    assert_int_equal(dj__read_file(test_fs_under("f"), SIZE_MAX, &data, &size), 0);
    assert_int_equal(size, 3);
    free(data);

    assert_int_equal(dj__write_new_at(test_fs_dir, "f", "x", 1, 0600, false), EEXIST);
    assert_int_equal(test_fs_mode("f"), 0664);
    assert_int_equal(dj__write_new_at(test_fs_dir, "empty", NULL, 0, 0600, false), 0);
    test_fs_expect("empty", "");
    assert_int_equal(dj__read_at(test_fs_dir, "missing", 9, &data, &size), ENOENT);
}

static void test_fs_read_fd_again(void **state)
{
    (void)state;
    assert_int_equal(dj__write_new_at(test_fs_dir, "again", "text", 4, 0600, false), 0);
    const int fd = openat(test_fs_dir, "again", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int i = 0; i < 2; i++) {
        char *data;
        size_t size;
        assert_int_equal(dj__read_fd(fd, 100, &data, &size), 0);
        assert_string_equal(data, "text");
        free(data);
    }
    close(fd);
}

static void test_fs_read_other_kinds(void **state)
{
    (void)state;
    char *data;
    size_t size;
    assert_int_equal(dj__make_dir_at(test_fs_dir, "d", 0700), 0);
    assert_int_equal(dj__read_at(test_fs_dir, "d", 100, &data, &size), EISDIR);
    assert_int_equal(mkfifoat(test_fs_dir, "fifo", 0600), 0); /* must not wait for a writer */
    assert_int_equal(dj__read_at(test_fs_dir, "fifo", 100, &data, &size), EINVAL);
    assert_int_equal(symlinkat("target", test_fs_dir, "link"), 0);
    assert_int_equal(dj__write_new_at(test_fs_dir, "target", "t", 1, 0600, false), 0);
    assert_int_equal(dj__read_at(test_fs_dir, "link", 100, &data, &size), ELOOP);
    assert_int_equal(dj__read_file(test_fs_under("link"), 100, &data, &size), 0);
    free(data);
    /* Files whose size is not known before. */
    assert_int_equal(dj__read_file("/proc/self/status", 1 << 20, &data, &size), 0);
    assert_true(size > 100);
    assert_int_equal(strlen(data), size);
    free(data);
    assert_int_equal(dj__read_file("/proc/self/status", 10, &data, &size), EFBIG);
}

static void test_fs_large_file(void **state)
{
    (void)state;
    const size_t size = (3 << 20) + 17;
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)(i * 31 >> 3);
    }
    char *data;
    size_t got;
    assert_int_equal(dj__write_new_at(test_fs_dir, "large", text, size, 0600, false), 0);
    assert_int_equal(dj__read_at(test_fs_dir, "large", size, &data, &got), 0);
    assert_int_equal(got, size);
    assert_memory_equal(data, text, size);
    free(data);
    free(text);
}

static void test_fs_failed_write_leaves_nothing(void **state)
{
    (void)state;
    /* RLIMIT_FSIZE makes the second half of a write fail with EFBIG, as a full disk would. */
    struct rlimit old_limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    void (*old_handler)(int) = signal(SIGXFSZ, SIG_IGN);
    const struct rlimit small = {.rlim_cur = 2, .rlim_max = old_limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int error = dj__write_new_at(test_fs_dir, "half", "half", 4, 0600, false);
    const int replace_error = dj__write_replace_at(test_fs_dir, "half", "half", 4, 0600, false);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
    signal(SIGXFSZ, old_handler);
    assert_int_equal(error, EFBIG);
    assert_int_equal(replace_error, EFBIG);
    assert_int_equal(test_fs_count(), 0);

    /* The name exists as a directory: the rename fails, the temporary file goes. */
    assert_int_equal(dj__make_dir_at(test_fs_dir, "taken", 0700), 0);
    const size_t before = test_fs_count();
    assert_int_not_equal(dj__write_replace_at(test_fs_dir, "taken", "x", 1, 0600, true), 0);
    assert_int_equal(test_fs_count(), before);
}

static void test_fs_replace(void **state)
{
    (void)state;
    const mode_t old = umask(0);
    assert_int_equal(dj__write_replace_at(test_fs_dir, "r", "one", 3, 0640, true), 0);
    umask(old);
    test_fs_expect("r", "one");
    assert_int_equal(test_fs_mode("r"), 0640);
    const size_t before = test_fs_count();
    assert_int_equal(dj__write_replace_at(test_fs_dir, "r", "second", 6, 0600, false), 0);
    test_fs_expect("r", "second");
    assert_int_equal(test_fs_mode("r"), 0600);
    assert_int_equal(test_fs_count(), before);
    /* A link is replaced, what it names is not touched. */
    assert_int_equal(symlinkat("r", test_fs_dir, "l"), 0);
    assert_int_equal(dj__write_replace_at(test_fs_dir, "l", "third", 5, 0600, false), 0);
    test_fs_expect("l", "third");
    test_fs_expect("r", "second");
}

static void test_fs_make_dir(void **state)
{
    (void)state;
    const mode_t old = umask(0777);
    assert_int_equal(dj__make_dir_at(test_fs_dir, "shared", 0775), 0);
    umask(old);
    assert_int_equal(test_fs_mode("shared"), 0775);
    assert_int_equal(dj__make_dir_at(test_fs_dir, "shared", 0700), 0);
    assert_int_equal(test_fs_mode("shared"), 0775); /* existing ones are left as they are */
    assert_int_equal(dj__make_dir_at(test_fs_dir, "sticky", 03770), 0);
    assert_int_equal(test_fs_mode("sticky"), 03770);
    assert_int_equal(dj__write_new_at(test_fs_dir, "file", "", 0, 0600, false), 0);
    assert_int_equal(dj__make_dir_at(test_fs_dir, "file", 0700), ENOTDIR);
    assert_int_equal(symlinkat("shared", test_fs_dir, "alias"), 0);
    assert_int_equal(dj__make_dir_at(test_fs_dir, "alias", 0700), ENOTDIR);
    assert_int_equal(dj__open_dir_at(test_fs_dir, "alias"), -ENOTDIR);
    assert_int_equal(dj__open_dir_at(test_fs_dir, "nothing"), -ENOENT);
    const int fd = dj__open_dir(test_fs_under("alias"));
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(dj__close(fd), 0);
    assert_int_equal(dj__close(-1), EBADF);
}

static void test_fs_make_dirs(void **state)
{
    (void)state;
    assert_int_equal(dj__make_dirs(test_fs_under("p/q//r/"), 0750), 0);
    assert_int_equal(test_fs_mode("p"), 0750);
    assert_int_equal(test_fs_mode("p/q/r"), 0750);
    assert_int_equal(dj__make_dirs(test_fs_under("p/q/r"), 0700), 0);
    assert_int_equal(test_fs_mode("p/q/r"), 0750);
    assert_int_equal(dj__make_dirs("/", 0700), 0);
    assert_int_equal(dj__make_dirs("", 0700), ENOENT);
    /* Parents may be links; a file or a dangling link cannot be one. */
    assert_int_equal(symlinkat("p", test_fs_dir, "pl"), 0);
    assert_int_equal(dj__make_dirs(test_fs_under("pl/new"), 0700), 0);
    assert_true(test_fs_exists("p/new"));
    assert_int_equal(dj__write_new_at(test_fs_dir, "plain", "", 0, 0600, false), 0);
    assert_int_equal(dj__make_dirs(test_fs_under("plain/x"), 0700), ENOTDIR);
    assert_int_equal(dj__make_dirs(test_fs_under("plain"), 0700), ENOTDIR);
    assert_int_equal(symlinkat("nowhere", test_fs_dir, "dangling"), 0);
    assert_int_equal(dj__make_dirs(test_fs_under("dangling/x"), 0700), ENOENT);
    /* Relative paths start here. */
    assert_int_equal(fchdir(test_fs_dir), 0);
    const int error = dj__make_dirs("rel/a", 0700);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(error, 0);
    assert_true(test_fs_exists("rel/a"));
}

static void *test_fs_racer(void *arg)
{
    for (int i = 0; i < 50; i++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/race/%d/a/b/c", test_fs_path, i);
        if (dj__make_dirs(path, 0700) != 0) {
            return arg;
        }
    }
    return NULL;
}

static void test_fs_make_dirs_race(void **state)
{
    (void)state;
    pthread_t threads[4];
    int marks[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, test_fs_racer, &marks[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_true(test_fs_exists("race/49/a/b/c"));
}

static void test_fs_unique_dirs(void **state)
{
    (void)state;
    char first[128];
    char second[128];
    const mode_t old = umask(0777);
    assert_int_equal(dj__make_unique_dir_at(test_fs_dir, "u-", first), 0);
    umask(0);
    assert_int_equal(dj__make_unique_dir_at(test_fs_dir, "u-", second), 0);
    umask(old);
    assert_int_equal(test_fs_mode(first), 0700);
    assert_int_equal(test_fs_mode(second), 0700);
    assert_memory_equal(first, "u-", 2);
    assert_int_equal(strlen(first), 2 + 32);
    assert_string_not_equal(first, second);
    char prefix[128];
    memset(prefix, 'p', sizeof(prefix) - 1);
    prefix[127] = '\0';
    assert_int_equal(dj__make_unique_dir_at(test_fs_dir, prefix, first), ENAMETOOLONG);
}

static void test_fs_list(void **state)
{
    (void)state;
    assert_int_equal(dj__make_dirs(test_fs_under("list/sub"), 0700), 0);
    const int dir = dj__open_dir_at(test_fs_dir, "list");
    assert_true(dir >= 0);
    static const char *const made[] = {"b", "a\nb", ".hidden", "a"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(dj__write_new_at(dir, made[i], "", 0, 0600, false), 0);
    }
    static const char *const sorted[] = {".hidden", "a", "a\nb", "b", "sub"};
    for (int round = 0; round < 2; round++) { /* the descriptor's position does not matter */
        dj__strlist names;
        dj__strlist_init(&names);
        assert_int_equal(dj__list_dir(dir, &names), 0);
        assert_int_equal(names.count, 5);
        for (size_t i = 0; i < 5; i++) {
            assert_string_equal(names.items[i], sorted[i]);
        }
        dj__strlist_fini(&names);
    }
    assert_int_equal(dj__rename_at(dir, "b", test_fs_dir, "moved"), 0);
    assert_true(test_fs_exists("moved"));
    assert_int_equal(dj__rename_at(dir, "b", test_fs_dir, "moved"), ENOENT);
    assert_int_equal(dj__fsync_dir(dir), 0);
    close(dir);
}

static void test_fs_remove_follows_nothing(void **state)
{
    (void)state;
    assert_int_equal(dj__make_dirs(test_fs_under("keep"), 0700), 0);
    assert_int_equal(dj__make_dirs(test_fs_under("tree/sub"), 0700), 0);
    const int keep = dj__open_dir_at(test_fs_dir, "keep");
    assert_true(keep >= 0);
    assert_int_equal(dj__write_new_at(keep, "file", "kept", 4, 0600, false), 0);
    close(keep);
    assert_int_equal(symlinkat("../../keep", test_fs_dir, "tree/sub/link"), 0);
    assert_int_equal(symlinkat(test_fs_under("keep"), test_fs_dir, "tree/link"), 0);
    assert_int_equal(symlinkat("keep", test_fs_dir, "top-link"), 0);
    const int sub = dj__open_dir(test_fs_under("tree/sub"));
    assert_true(sub >= 0);
    assert_int_equal(dj__write_new_at(sub, "new\nline \xff", "", 0, 0, false), 0);
    assert_int_equal(mkfifoat(sub, "fifo", 0600), 0);
    close(sub);

    assert_int_equal(dj__remove_tree_at(test_fs_dir, "tree"), 0);
    assert_false(test_fs_exists("tree"));
    assert_int_equal(dj__remove_tree(test_fs_under("top-link//")), 0);
    assert_false(test_fs_exists("top-link"));
    char *data;
    size_t size;
    assert_int_equal(dj__read_file(test_fs_under("keep/file"), 10, &data, &size), 0);
    assert_string_equal(data, "kept");
    free(data);
    assert_int_equal(dj__remove_tree_at(test_fs_dir, "tree"), 0); /* missing is fine */
    assert_int_equal(dj__remove_tree(test_fs_under("keep/none/x")), 0);
    assert_int_equal(dj__remove_tree(test_fs_under("keep/file")), 0);
    assert_false(test_fs_exists("keep/file"));
}

static void test_fs_remove_without_rights(void **state)
{
    (void)state;
    assert_int_equal(dj__make_dirs(test_fs_under("shut/a/b"), 0700), 0);
    assert_int_equal(dj__make_dirs(test_fs_under("shut/c/d"), 0700), 0);
    assert_int_equal(fchmodat(test_fs_dir, "shut/a/b", 0, 0), 0);
    assert_int_equal(fchmodat(test_fs_dir, "shut/a", 0, 0), 0);
    assert_int_equal(fchmodat(test_fs_dir, "shut/c", 0500, 0), 0);
    assert_int_equal(dj__remove_tree_at(test_fs_dir, "shut"), 0);
    assert_false(test_fs_exists("shut"));
}

/* Deeper than the removal may hold descriptors and than a path may be long, and many names in one
 * directory. */
static void test_fs_remove_deep_and_wide(void **state)
{
    (void)state;
    int dir = dup(test_fs_dir);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(mkdirat(dir, "deep-directory", 0700), 0);
        const int next = dj__open_dir_at(dir, "deep-directory");
        assert_true(next >= 0);
        if (i % 100 == 0) {
            assert_int_equal(dj__write_new_at(next, "file", "", 0, 0600, false), 0);
        }
        close(dir);
        dir = next;
    }
    close(dir);
    assert_int_equal(dj__make_dir_at(test_fs_dir, "wide", 0700), 0);
    dir = dj__open_dir_at(test_fs_dir, "wide");
    for (int i = 0; i < 1500; i++) {
        char name[32];
        snprintf(name, sizeof(name), "file-%d", i);
        assert_int_equal(dj__write_new_at(dir, name, "", 0, 0600, false), 0);
    }
    close(dir);
    assert_int_equal(dj__remove_tree_at(test_fs_dir, "deep-directory"), 0);
    assert_false(test_fs_exists("deep-directory"));
    assert_int_equal(dj__remove_tree_at(test_fs_dir, "wide"), 0);
    assert_false(test_fs_exists("wide"));
}

/* What cannot be removed is reported, the rest goes. */
static void test_fs_remove_reports(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        print_message("skipped: root may remove everything\n");
        skip();
    }
    assert_int_not_equal(dj__remove_tree("/proc/self/task"), 0);
}

static void test_fs_local(void **state)
{
    (void)state;
    const int proc = dj__open_dir("/proc");
    assert_true(proc >= 0);
    assert_false(dj__fs_is_local(proc));
    close(proc);
    const int shm = dj__open_dir("/dev/shm");
    if (shm < 0) {
        print_message("skipped: no /dev/shm\n");
        skip();
    }
    assert_true(dj__fs_is_local(shm)); /* tmpfs */
    close(shm);
    assert_false(dj__fs_is_local(-1));
}

static void test_fs_executable(void **state)
{
    (void)state;
    assert_true(dj__is_executable("/bin/sh"));
    assert_false(dj__is_executable("/bin"));
    assert_false(dj__is_executable("/no/such/file"));
    assert_int_equal(dj__write_new_at(test_fs_dir, "no-x", "", 0, 0644, false), 0);
    assert_false(dj__is_executable(test_fs_under("no-x")));
}

static int test_fs_set_up(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(test_fs_path, sizeof(test_fs_path), "%s/dj-fs-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(test_fs_path) == NULL) {
        return -1;
    }
    test_fs_dir = dj__open_dir(test_fs_path);
    return test_fs_dir >= 0 ? 0 : -1;
}

static int test_fs_tear_down(void **state)
{
    (void)state;
    close(test_fs_dir);
    return dj__remove_tree(test_fs_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fs_normalize),
        cmocka_unit_test(test_fs_join),
        cmocka_unit_test(test_fs_contained),
        cmocka_unit_test_setup_teardown(test_fs_write_and_read, test_fs_set_up, test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_read_fd_again, test_fs_set_up, test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_read_other_kinds, test_fs_set_up,
                                        test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_large_file, test_fs_set_up, test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_failed_write_leaves_nothing, test_fs_set_up,
                                        test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_replace, test_fs_set_up, test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_make_dir, test_fs_set_up, test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_make_dirs, test_fs_set_up, test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_make_dirs_race, test_fs_set_up, test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_unique_dirs, test_fs_set_up, test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_list, test_fs_set_up, test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_remove_follows_nothing, test_fs_set_up,
                                        test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_remove_without_rights, test_fs_set_up,
                                        test_fs_tear_down),
        cmocka_unit_test_setup_teardown(test_fs_remove_deep_and_wide, test_fs_set_up,
                                        test_fs_tear_down),
        cmocka_unit_test(test_fs_remove_reports),
        cmocka_unit_test(test_fs_local),
        cmocka_unit_test_setup_teardown(test_fs_executable, test_fs_set_up, test_fs_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
