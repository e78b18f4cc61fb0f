/* SPDX-License-Identifier: MIT */
/* Strings with limits and lists of strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include <stdlib.h>
#include <string.h>

static void empty_is_usable(void **state)
{
    (void)state;
    dj__strbuf buf;
    dj__strbuf_init(&buf, 10);
    assert_string_equal(dj__strbuf_str(&buf), "");
    assert_int_equal(dj__strbuf_ok(&buf, NULL), DJ_OK);
    dj__strbuf_puts(&buf, "");
    assert_non_null(buf.data);
    assert_string_equal(buf.data, "");
    dj__strbuf_fini(&buf);
    dj__strbuf_fini(&buf);
}

static void grows_and_terminates(void **state)
{
    (void)state;
    dj__strbuf buf;
    dj__strbuf_init(&buf, SIZE_MAX);
    for (size_t i = 0; i < 10000; i++) {
        dj__strbuf_putc(&buf, (char)('a' + i % 26));
        assert_int_equal(buf.data[buf.size], '\0');
    }
    dj__strbuf_append(&buf, "x\0y", 3);
    dj__strbuf_printf(&buf, "%d-%s", -5, "end");
    assert_int_equal(buf.size, 10000 + 3 + 6);
    assert_memory_equal(buf.data + 10000, "x\0y-5-end", 10);
    for (size_t i = 0; i < 10000; i++) {
        assert_int_equal(buf.data[i], 'a' + i % 26);
    }
    dj__strbuf_fini(&buf);
}

static void limit_is_exact_and_remembered(void **state)
{
    (void)state;
    dj__strbuf buf;
    dj__strbuf_init(&buf, 5);
    dj__strbuf_puts(&buf, "12345");
    assert_int_equal(dj__strbuf_ok(&buf, NULL), DJ_OK);
    dj__strbuf_putc(&buf, '6');
    dj__strbuf_puts(&buf, "");
    dj__strbuf_printf(&buf, "%d", 7);
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj__strbuf_ok(&buf, &err), DJ_INVALID_ARGUMENT);
    assert_string_equal(err.message, "longer than 5 bytes");
    assert_string_equal(dj__strbuf_str(&buf), "12345");
    assert_null(dj__strbuf_steal(&buf));
    assert_int_equal(dj__strbuf_ok(&buf, NULL), DJ_INVALID_ARGUMENT);

    dj__strbuf_clear(&buf);
    assert_int_equal(buf.size, 0);
    assert_string_equal(dj__strbuf_str(&buf), "");
    dj__strbuf_printf(&buf, "%s", "abcdef");
    assert_int_equal(dj__strbuf_ok(&buf, NULL), DJ_INVALID_ARGUMENT);
    assert_string_equal(dj__strbuf_str(&buf), "");
    dj__strbuf_clear(&buf);
    dj__strbuf_printf(&buf, "%s", "abcde");
    assert_int_equal(dj__strbuf_ok(&buf, NULL), DJ_OK);
    assert_string_equal(dj__strbuf_str(&buf), "abcde");
    dj__strbuf_fini(&buf);
}

static void limit_of_zero_holds_the_empty_text(void **state)
{
    (void)state;
    dj__strbuf buf;
    dj__strbuf_init(&buf, 0);
    dj__strbuf_puts(&buf, "");
    assert_int_equal(dj__strbuf_ok(&buf, NULL), DJ_OK);
    dj__strbuf_putc(&buf, 'a');
    assert_int_equal(dj__strbuf_ok(&buf, NULL), DJ_INVALID_ARGUMENT);
    dj__strbuf_fini(&buf);
}

static void sizes_do_not_wrap(void **state)
{
    (void)state;
    dj__strbuf buf;
    dj__strbuf_init(&buf, SIZE_MAX);
    dj__strbuf_puts(&buf, "ab");
    volatile size_t huge = SIZE_MAX - 2;
    dj__strbuf_append(&buf, "x", huge); /* size + huge + NUL would wrap; nothing is read */
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj__strbuf_ok(&buf, &err), DJ_NO_MEMORY);
    assert_string_equal(err.message, "out of memory");
    assert_string_equal(dj__strbuf_str(&buf), "ab");
    dj__strbuf_fini(&buf);

    dj__strlist list;
    dj__strlist_init(&list);
    huge = SIZE_MAX;
    dj__strlist_addn(&list, "x", huge);
    assert_int_equal(dj__strlist_ok(&list, NULL), DJ_NO_MEMORY);
    assert_int_equal(list.count, 0);
    dj__strlist_fini(&list);
}

static void steal_hands_over(void **state)
{
    (void)state;
    dj__strbuf buf;
    dj__strbuf_init(&buf, 100);
    dj__strbuf_puts(&buf, "mine");
    char *text = dj__strbuf_steal(&buf);
    assert_string_equal(text, "mine");
    free(text);
    assert_int_equal(buf.size, 0);
    assert_null(buf.data);
    text = dj__strbuf_steal(&buf);
    assert_string_equal(text, "");
    free(text);
    dj__strbuf_puts(&buf, "again");
    assert_string_equal(dj__strbuf_str(&buf), "again");
    dj__strbuf_fini(&buf);
}

static void quoting_is_a_shells(void **state)
{
    (void)state;
    static const struct {
        const char *arg;
        const char *text;
    } cases[] = {
        {"", "''"},
        {"-O3", "-O3"},
        {"-DX=1,2", "-DX=1,2"},
        {"/usr/bin/g++", "/usr/bin/g++"},
        {"a b", "'a b'"},
        {"a'b", "'a'\\''b'"},
        {"'", "''\\'''"},
        {"$HOME", "'$HOME'"},
        {"line\nnext", "'line\nnext'"},
        {"~", "'~'"},
        {"a*", "'a*'"},
        {"\\", "'\\'"},
        {"\"", "'\"'"},
        {"\xC3\xA9", "'\xC3\xA9'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dj__strbuf buf;
        dj__strbuf_init(&buf, 100);
        dj__strbuf_put_quoted(&buf, cases[i].arg);
        assert_string_equal(dj__strbuf_str(&buf), cases[i].text);
        dj__strbuf_fini(&buf);
    }
}

static void list_is_an_argument_vector(void **state)
{
    (void)state;
    dj__strlist list;
    dj__strlist_init(&list);
    assert_null(dj__strlist_items(&list));
    for (size_t i = 0; i < 100; i++) {
        dj__strlist_addf(&list, "item %zu", i);
        assert_int_equal(list.count, i + 1);
        assert_null(list.items[list.count]);
    }
    dj__strlist_addn(&list, "abcdef", 3);
    dj__strlist_addn(&list, NULL, 0);
    static const char *const more[] = {"x", "y"};
    dj__strlist_add_all(&list, more, 2);
    dj__strlist_add_all(&list, NULL, 0);
    assert_int_equal(dj__strlist_ok(&list, NULL), DJ_OK);
    assert_int_equal(list.count, 104);
    const char *const *items = dj__strlist_items(&list);
    assert_string_equal(items[0], "item 0");
    assert_string_equal(items[99], "item 99");
    assert_string_equal(items[100], "abc");
    assert_string_equal(items[101], "");
    assert_string_equal(items[102], "x");
    assert_string_equal(items[103], "y");
    assert_ptr_not_equal(items[102], more[0]);
    assert_null(items[104]);
    dj__strlist_fini(&list);
    assert_int_equal(list.count, 0);
    dj__strlist_fini(&list);
}

static void format_allocates(void **state)
{
    (void)state;
    char *text = dj__format("%s/%d", "dir", 7);
    assert_string_equal(text, "dir/7");
    free(text);
    text = dj__format("%s", "");
    assert_string_equal(text, "");
    free(text);
}

static void concat_joins_parts(void **state)
{
    (void)state;
    char *text = dj__concat((const char *const[]){"dir", "/", "", "name", NULL});
    assert_string_equal(text, "dir/name");
    free(text);
    text = dj__concat((const char *const[]){NULL});
    assert_string_equal(text, "");
    free(text);
    dj__strlist list;
    dj__strlist_init(&list);
    dj__strlist_add_joined(&list, "-O", "3");
    dj__strlist_add_joined(&list, "", "");
    assert_int_equal(dj__strlist_ok(&list, NULL), DJ_OK);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0], "-O3");
    assert_string_equal(list.items[1], "");
    dj__strlist_fini(&list);
}

static void nocase_is_ascii_only(void **state)
{
    (void)state;
    assert_true(dj__equal_nocase("", ""));
    assert_true(dj__equal_nocase("YeS", "yEs"));
    assert_true(dj__equal_nocase("INFO-9", "info-9"));
    assert_false(dj__equal_nocase("yes", "yes "));
    assert_false(dj__equal_nocase("yes", "ye"));
    assert_false(dj__equal_nocase("", "a"));
    assert_false(dj__equal_nocase("@[", "`{"));
    assert_false(dj__equal_nocase("\xC9", "\xE9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_is_usable),
        cmocka_unit_test(grows_and_terminates),
        cmocka_unit_test(limit_is_exact_and_remembered),
        cmocka_unit_test(limit_of_zero_holds_the_empty_text),
        cmocka_unit_test(sizes_do_not_wrap),
        cmocka_unit_test(steal_hands_over),
        cmocka_unit_test(quoting_is_a_shells),
        cmocka_unit_test(list_is_an_argument_vector),
        cmocka_unit_test(format_allocates),
        cmocka_unit_test(concat_joins_parts),
        cmocka_unit_test(nocase_is_ascii_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
