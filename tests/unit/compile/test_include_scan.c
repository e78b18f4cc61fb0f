/* SPDX-License-Identifier: MIT */
/* The include scanner: the original's line rules, order, cycles, containment, depth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fs.h"
#include "compile/include_scan.h"
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[PATH_MAX]; /* a directory for each test, with dir "one" and dir "two" */
static char dir_one[PATH_MAX + 8];
static char dir_two[PATH_MAX + 8];
static const char *dirs[2] = {dir_one, dir_two};
static const char *const prefixes[] = {"lib/", "other/"};
static const dj__scan_config config = {dirs, 2, prefixes, 2};

static int make_tree(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(top, sizeof(top) - 64, "%s/dj_scan_XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(top) == NULL) {
        return -1;
    }
    snprintf(dir_one, sizeof(dir_one), "%s/one", top);
    snprintf(dir_two, sizeof(dir_two), "%s/two", top);
    return dj__make_dirs(dir_one, 0755) == 0 && dj__make_dirs(dir_two, 0755) == 0 ? 0 : -1;
}

static int remove_tree(void **state)
{
    (void)state;
    return dj__remove_tree(top) == 0 ? 0 : -1;
}

static void write_bytes(const char *dir, const char *name, const void *data, size_t size)
{
    char *path = dj__path_join(dir, name);
    char *parent = strdup(path);
    assert_non_null(parent);
    *strrchr(parent, '/') = '\0';
    assert_int_equal(dj__make_dirs(parent, 0755), 0);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    free(parent);
    free(path);
}

static void write_text(const char *dir, const char *name, const char *text)
{
    write_bytes(dir, name, text, strlen(text));
}

/* ---- scanning into a text: "name=content;" for each visit ---- */

static void put_visit(void *user, const char *name, const char *path, const void *data, size_t size)
{
    dj__strbuf *seen = user;
    assert_true(strncmp(path, dir_one, strlen(dir_one)) == 0 ||
                strncmp(path, dir_two, strlen(dir_two)) == 0);
    dj__strbuf_printf(seen, "%s=", name);
    dj__strbuf_append(seen, data, size);
    dj__strbuf_putc(seen, ';');
}

static dj_status scan(const char *source, size_t size, dj__strbuf *seen, dj_error *err)
{
    dj__strbuf_init(seen, SIZE_MAX / 4);
    return dj__include_scan(&config, source, size, put_visit, seen, err);
}

static void assert_seen(const char *source, const char *expected)
{
    dj__strbuf seen;
    dj_error err = DJ_ERROR_INIT;
    const dj_status status = scan(source, strlen(source), &seen, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, DJ_OK);
    assert_string_equal(dj__strbuf_str(&seen), expected);
    dj__strbuf_fini(&seen);
}

/* The message has each of up to three texts. */
static void assert_fails(const char *source, dj_status expected, const char *one, const char *two,
                         const char *three)
{
    const char *const texts[] = {one, two, three};
    dj__strbuf seen;
    dj_error err = DJ_ERROR_INIT;
    const dj_status status = scan(source, strlen(source), &seen, &err);
    dj__strbuf_fini(&seen);
    assert_int_equal(status, expected);
    assert_int_equal(err.status, expected);
    for (int i = 0; i < 3; i++) {
        if (texts[i] != NULL && strstr(err.message, texts[i]) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", texts[i], err.message);
        }
    }
    assert_int_equal(scan(source, strlen(source), &seen, NULL), expected);
    dj__strbuf_fini(&seen);
}

/* ---- one line ---- */

static void lines(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int kind;
        const char *name;
    } cases[] = {
        {" \t# \tinclude \t<lib/x.cuh> // comment", 1, "lib/x.cuh"},
        {"#include<lib/x.h>", 1, "lib/x.h"},
        {"\f\v#include <lib/x.h>\r", 1, "lib/x.h"},
        {"#include <other/y z.h>junk", 1, "other/y z.h"},
        {"#include <lib/>", 1, "lib/"},
        {"", 0, NULL},
        {"#", 0, NULL},
        {"#inc", 0, NULL},
        {"#include", 0, NULL},
        {"#include <stdio.h>", 0, NULL},
        {"#include <library/x.h>", 0, NULL},
        {"#include <lib>", 0, NULL},
        {"#include MACRO", 0, NULL},
        {"#include /* c */ <lib/x.h>", 0, NULL},
        {"#include \\", 0, NULL},
        {"#include <lib/x\\", 0, NULL},
        {"#include \"lib/x.h", 0, NULL},
        {"#include_next <lib/x.h>", 0, NULL},
        {"// #include <lib/x.h>", 0, NULL},
        {"x #include <lib/x.h>", 0, NULL},
        {"#define include <lib/x.h>", 0, NULL},
        {"#include \"lib/x.h\"", -1, "\"lib/x.h\""},
        {"#include \"stdio.h\" ", -1, "\"stdio.h\""},
        {"#include \"\"", -1, "\"\""},
        {"#include < lib/x.h>", -1, "< lib/x.h>"},
        {"#include <lib/x.h\t>", -1, "<lib/x.h\t>"},
        {"#include <>", -1, "<>"},
        {"#include <lib/x.h\"", -1, "<lib/x.h\""},
        {"#include \"lib/x.h>", -1, "\"lib/x.h>"},
        {"#include < stdio.h >", -1, "< stdio.h >"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *name = "untouched";
        size_t size = 99;
        const int kind =
            dj__include_parse(cases[i].line, strlen(cases[i].line), &config, &name, &size);
        if (kind != cases[i].kind) {
            fail_msg("%s: %d", cases[i].line, kind);
        }
        if (cases[i].name == NULL) {
            assert_null(name);
            assert_int_equal(size, 0);
        } else {
            assert_int_equal(size, strlen(cases[i].name));
            assert_memory_equal(name, cases[i].name, size);
        }
    }
}

/* ---- trees ---- */

static void own_includes_come_first_and_each_file_once(void **state)
{
    (void)state;
    write_text(dir_one, "lib/a.h", "#include <lib/c.h>\n#include <stdio.h>\n#include <lib/b.h>\nA");
    write_text(dir_one, "lib/b.h", "#include <lib/c.h>\r\nB\r\n");
    write_text(dir_one, "lib/c.h", "C");
    write_text(dir_one, "other/d.h", "");
    assert_seen(
        "#include <lib/a.h>\n#include <lib/b.h>\nint x;\n#include <other/d.h>",
        "lib/c.h=C;lib/b.h=#include <lib/c.h>\r\nB\r\n;"
        "lib/a.h=#include <lib/c.h>\n#include <stdio.h>\n#include <lib/b.h>\nA;other/d.h=;");
    assert_seen("", "");
    assert_seen("\n\n#include <lib/c.h>\r\n", "lib/c.h=C;");
}

static void the_first_directory_that_has_it_wins(void **state)
{
    (void)state;
    write_text(dir_two, "lib/a.h", "two");
    assert_seen("#include <lib/a.h>", "lib/a.h=two;");
    char path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/lib/a.h", dir_one);
    assert_int_equal(dj__make_dirs(path, 0755), 0);
    assert_seen("#include <lib/a.h>", "lib/a.h=two;"); /* a directory is not it */
    write_text(dir_one, "lib/b.h", "one");
    write_text(dir_two, "lib/b.h", "two");
    assert_seen("#include <lib/b.h>", "lib/b.h=one;");
}

static void comments_are_not_understood(void **state)
{
    (void)state;
    assert_fails("/*\n#include <lib/none.h>\n*/", DJ_INVALID_ARGUMENT,
                 "<source>:2: ", "failed to open: lib/none.h", dir_two);
    assert_fails("#if 0\n#include \"x.h\"\n#endif", DJ_INVALID_ARGUMENT,
                 "<source>:2: non-standard include: \"x.h\"", NULL, NULL);
    write_text(dir_one, "lib/none.h", "now there");
    assert_seen("/*\n#include <lib/none.h>\n*/", "lib/none.h=now there;");
}

static void errors_name_file_and_line(void **state)
{
    (void)state;
    char where[2 * PATH_MAX];
    write_text(dir_one, "lib/a.h", "\n\n#include <lib/b.h>\n");
    write_text(dir_one, "lib/b.h", "\n#include <>\n");
    snprintf(where, sizeof(where), "%s/lib/b.h:2: non-standard include: <>", dir_one);
    assert_fails("#include <lib/a.h>", DJ_INVALID_ARGUMENT, where, NULL, NULL);
    write_text(dir_one, "lib/b.h", "#include <lib/none.h>\n");
    snprintf(where, sizeof(where), "%s/lib/b.h:1: failed to open: lib/none.h", dir_one);
    assert_fails("#include <lib/a.h>", DJ_INVALID_ARGUMENT, where, NULL, NULL);
}

static void cycles(void **state)
{
    (void)state;
    write_text(dir_one, "lib/a.h", "\n#include <lib/b.h>\n");
    write_text(dir_one, "lib/b.h", "#include <lib/c.h>\n");
    write_text(dir_one, "lib/c.h", "\n\n#include <lib/b.h>\n");
    assert_fails("#include <lib/a.h>", DJ_INVALID_ARGUMENT, "lib/c.h:3: ",
                 "circular include may occur: lib/b.h (lib/b.h -> lib/c.h -> lib/b.h)", NULL);
    write_text(dir_one, "lib/self.h", "#include <lib/self.h>\n");
    assert_fails("#include <lib/self.h>", DJ_INVALID_ARGUMENT,
                 "circular include may occur: lib/self.h (lib/self.h -> lib/self.h)", NULL, NULL);
    for (int i = 0; i < 30; i++) {
        char name[32];
        char text[64];
        snprintf(name, sizeof(name), "lib/%d.h", i);
        snprintf(text, sizeof(text), "#include <lib/%d.h>\n", (i + 1) % 30);
        write_text(dir_one, name, text);
    }
    assert_fails("#include <lib/0.h>", DJ_INVALID_ARGUMENT,
                 "lib/0.h (lib/0.h -> lib/1.h -> lib/2.h -> lib/3.h -> ... -> lib/26.h -> "
                 "lib/27.h -> lib/28.h -> lib/29.h -> lib/0.h)",
                 NULL, NULL);
}

static void nul_bytes_are_bytes(void **state)
{
    (void)state;
    static const char header[] = "a\0b\n\0#include <lib/none.h>\n";
    static const char source[] = "x\0y\n#include <lib/n.h>\n\0";
    dj__strbuf seen;
    write_bytes(dir_one, "lib/n.h", header, sizeof(header));
    assert_int_equal(scan(source, sizeof(source), &seen, NULL), DJ_OK);
    assert_int_equal(seen.size, strlen("lib/n.h=") + sizeof(header) + 1);
    assert_memory_equal(seen.data + strlen("lib/n.h="), header, sizeof(header));
    dj__strbuf_fini(&seen);

    static const char bad[] = "#include <lib/n.h\0x>";
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(scan(bad, sizeof(bad), &seen, &err), DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "failed to open"));
    dj__strbuf_fini(&seen);
}

static void names_stay_inside_their_directory(void **state)
{
    (void)state;
    static const char *const any[] = {""};
    const dj__scan_config all = {dirs, 2, any, 1};
    dj_error err = DJ_ERROR_INIT;
    dj__strbuf seen;
    write_text(top, "secret.h", "secret");
    write_text(dir_one, "lib/..dots.h", "fine");
    assert_seen("#include <lib/..dots.h>\n#include <lib/./..dots.h>",
                "lib/..dots.h=fine;lib/./..dots.h=fine;");
    assert_fails("#include <lib/../../secret.h>", DJ_INVALID_ARGUMENT,
                 "<source>:1: ", "lib/../../secret.h", "..");
    assert_fails("#include <lib/..>", DJ_INVALID_ARGUMENT, "lib/..", NULL, NULL);
    dj__strbuf_init(&seen, 1024);
    assert_int_equal(dj__include_scan(&all, "#include </etc/passwd>", 22, put_visit, &seen, &err),
                     DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "/etc/passwd"));
    dj__strbuf_fini(&seen);

    char link[PATH_MAX + 32];
    snprintf(link, sizeof(link), "%s/lib/link.h", dir_one);
    assert_int_equal(symlink("../../secret.h", link), 0);
    write_text(dir_two, "lib/link.h", "not reached");
    assert_fails("\n#include <lib/link.h>", DJ_INVALID_ARGUMENT, "<source>:2: ", dir_one,
                 "outside of its include directory");
    /* A link that stays inside is fine. */
    snprintf(link, sizeof(link), "%s/lib/inside.h", dir_one);
    assert_int_equal(symlink("..dots.h", link), 0);
    assert_seen("#include <lib/inside.h>", "lib/inside.h=fine;");
}

static void count_visit(void *user, const char *name, const char *path, const void *data,
                        size_t size)
{
    (void)name;
    (void)path;
    (void)data;
    (void)size;
    ++*(size_t *)user;
}

static void directories_may_be_links_missing_or_none(void **state)
{
    (void)state;
    char link[PATH_MAX + 32];
    char missing[PATH_MAX + 32];
    write_text(dir_one, "lib/a.h", "a");
    snprintf(link, sizeof(link), "%s/link", top);
    snprintf(missing, sizeof(missing), "%s/missing", top);
    assert_int_equal(symlink(dir_one, link), 0);
    const char *const through[] = {missing, link};
    const dj__scan_config some = {through, 2, prefixes, 2};
    const dj__scan_config none = {NULL, 0, prefixes, 2};
    static const char source[] = "#include <lib/a.h>";
    size_t visits = 0;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj__include_scan(&some, source, strlen(source), count_visit, &visits, NULL),
                     DJ_OK);
    assert_int_equal(visits, 1);
    assert_int_equal(dj__include_scan(&none, source, strlen(source), count_visit, &visits, &err),
                     DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "include directories: none"));
}

static void without_prefixes_nothing_is_scanned(void **state)
{
    (void)state;
    const dj__scan_config none = {dirs, 2, NULL, 0};
    static const char source[] = "#include \"x.h\"\n#include <lib/none.h>\n";
    size_t visits = 0;
    assert_int_equal(dj__include_scan(&none, source, strlen(source), count_visit, &visits, NULL),
                     DJ_OK);
    assert_int_equal(visits, 0);
}

static void what_is_no_regular_file_is_refused_without_waiting(void **state)
{
    (void)state;
    char path[PATH_MAX + 32];
    write_text(dir_one, "lib/a.h", "a");
    snprintf(path, sizeof(path), "%s/lib/fifo.h", dir_one);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_fails("#include <lib/fifo.h>", DJ_IO, "failed to open", path, "<source>:1: ");
    snprintf(path, sizeof(path), "%s/lib/loop.h", dir_one);
    assert_int_equal(symlink("loop.h", path), 0);
    assert_fails("#include <lib/loop.h>", DJ_IO, "failed to open", path, NULL);
    snprintf(path, sizeof(path), "%s/lib/big.h", dir_one);
    write_text(dir_one, "lib/big.h", "");
    assert_int_equal(truncate(path, (64 << 20) + 1), 0);
    assert_fails("#include <lib/big.h>", DJ_INVALID_ARGUMENT, "larger than 64 MiB", path, NULL);
}

static void names_may_be_as_long_as_they_like(void **state)
{
    (void)state;
    enum { LENGTH = 100000 };
    char *source = malloc(LENGTH + 64);
    assert_non_null(source);
    const int size = snprintf(source, LENGTH + 64, "#include <lib/%0*d>", LENGTH, 0);
    dj_error err = DJ_ERROR_INIT;
    dj__strbuf seen;
    assert_int_equal(scan(source, (size_t)size, &seen, &err), DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "failed to open: lib/000"));
    dj__strbuf_fini(&seen);
    free(source);
}

/* A chain far longer than a thread's small stack could hold if each file took a frame. */
enum { CHAIN = 3000 };

static void *scan_chain(void *arg)
{
    static const char source[] = "#include <lib/0.h>\n#include <lib/1500.h>\n";
    return dj__include_scan(&config, source, strlen(source), count_visit, arg, NULL) == DJ_OK ? NULL
                                                                                              : arg;
}

static void deep_chains_and_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    for (int i = 0; i < CHAIN; i++) {
        char name[32];
        char text[64] = "end";
        snprintf(name, sizeof(name), "lib/%d.h", i);
        if (i + 1 < CHAIN) {
            snprintf(text, sizeof(text), "#include <lib/%d.h>\n", i + 1);
        }
        write_text(dir_one, name, text);
    }
    pthread_t threads[THREADS];
    size_t visits[THREADS] = {0};
    pthread_attr_t small;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 128 << 10), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], &small, scan_chain, &visits[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = &failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
        assert_int_equal(visits[i], CHAIN);
    }
    pthread_attr_destroy(&small);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_tree, remove_tree)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines),
        TEST(own_includes_come_first_and_each_file_once),
        TEST(the_first_directory_that_has_it_wins),
        TEST(comments_are_not_understood),
        TEST(errors_name_file_and_line),
        TEST(cycles),
        TEST(nul_bytes_are_bytes),
        TEST(names_stay_inside_their_directory),
        TEST(directories_may_be_links_missing_or_none),
        TEST(without_prefixes_nothing_is_scanned),
        TEST(what_is_no_regular_file_is_refused_without_waiting),
        TEST(names_may_be_as_long_as_they_like),
        TEST(deep_chains_and_many_threads),
    };
    return cmocka_run_group_tests_name("include_scan", tests, NULL, NULL);
}
