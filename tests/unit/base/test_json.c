/* SPDX-License-Identifier: MIT */
/* The JSON writer: structure, escapes, and bytes that are not UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include <string.h>

static void check_bytes(const void *data, size_t size, const char *expected)
{
    dj__strbuf out;
    dj__json json;
    dj__strbuf_init(&out, 4096);
    dj__json_init(&json, &out);
    dj__json_bytes(&json, data, size);
    assert_string_equal(dj__strbuf_str(&out), expected);
    assert_int_equal(out.size, strlen(expected));
    dj__strbuf_fini(&out);
}

static void check_text(const char *text, const char *expected)
{
    check_bytes(text, strlen(text), expected);
}

static void structure(void **state)
{
    (void)state;
    dj__strbuf out;
    dj__json json;
    dj__strbuf_init(&out, 4096);
    dj__json_init(&json, &out);
    static const char *const flags[] = {"-O3", "-g"};
    dj__json_begin_object(&json);
    dj__json_key(&json, "z");
    dj__json_int(&json, INT64_MIN);
    dj__json_key(&json, "a\"");
    dj__json_uint(&json, UINT64_MAX);
    dj__json_key(&json, "list");
    dj__json_begin_array(&json);
    dj__json_bool(&json, true);
    dj__json_bool(&json, false);
    dj__json_null(&json);
    dj__json_string(&json, NULL);
    dj__json_begin_object(&json);
    dj__json_end_object(&json);
    dj__json_begin_array(&json);
    dj__json_end_array(&json);
    dj__json_string(&json, "");
    dj__json_end_array(&json);
    dj__json_key(&json, "flags");
    dj__json_strings(&json, flags, 2);
    dj__json_key(&json, "none");
    dj__json_strings(&json, NULL, 0);
    dj__json_key(&json, "last");
    dj__json_int(&json, -1);
    dj__json_end_object(&json);
    assert_int_equal(dj__strbuf_ok(&out, NULL), DJ_OK);
    assert_string_equal(dj__strbuf_str(&out),
                        "{\"z\":-9223372036854775808,\"a\\\"\":18446744073709551615,"
                        "\"list\":[true,false,null,null,{},[],\"\"],"
                        "\"flags\":[\"-O3\",\"-g\"],\"none\":[],\"last\":-1}");
    dj__strbuf_fini(&out);
}

static void escapes(void **state)
{
    (void)state;
    check_text("\b\f\n\r\t\\\"", "\"\\b\\f\\n\\r\\t\\\\\\\"\"");
    check_bytes("\0\x01\x1f", 3, "\"\\u0000\\u0001\\u001f\"");
    check_text(" /\x7f~", "\" /\x7f~\"");
    check_text("a\nb", "\"a\\nb\"");
    check_bytes(NULL, 0, "\"\"");
}

static void utf8_is_copied(void **state)
{
    (void)state;
    static const char *const good[] = {
        "\xC2\x80",     "\xC3\xA9",         "\xDF\xBF",         "\xE0\xA0\x80",
        "\xE2\x82\xAC", "\xED\x9F\xBF",     "\xEE\x80\x80",     "\xEF\xBF\xBF",
        "\xEF\xBF\xBD", "\xF0\x90\x80\x80", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        dj__strbuf expected;
        dj__strbuf_init(&expected, 64);
        dj__strbuf_printf(&expected, "\"a%sb\"", good[i]);
        char text[16];
        memcpy(text, "a", 1);
        memcpy(text + 1, good[i], strlen(good[i]));
        memcpy(text + 1 + strlen(good[i]), "b", 2);
        check_text(text, dj__strbuf_str(&expected));
        dj__strbuf_fini(&expected);
    }
}

/* Each byte that is part of no valid sequence becomes one replacement. */
static void invalid_utf8_is_replaced(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80",
        "\xBF",
        "\xC3",
        "\xC0\x80",
        "\xC1\xBF",
        "\xE2\x82",
        "\xE2",
        "\xE0\x80\x80",
        "\xE0\x9F\xBF",
        "\xED\xA0\x80",
        "\xED\xBF\xBF",
        "\xF0\x9F",
        "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xF8\x88\x80\x80",
        "\xFF",
        "\xFE",
        "\xF0\x9F\x98",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const size_t size = strlen(bad[i]);
        dj__strbuf expected;
        dj__strbuf_init(&expected, 64);
        dj__strbuf_puts(&expected, "\"");
        for (size_t k = 0; k < size; k++) {
            dj__strbuf_puts(&expected, "\\ufffd");
        }
        dj__strbuf_puts(&expected, "\"");
        check_text(bad[i], dj__strbuf_str(&expected));
        dj__strbuf_fini(&expected);
    }
    check_text("\xC3(", "\"\\ufffd(\"");
    check_text("\xE2\x82\"", "\"\\ufffd\\ufffd\\\"\"");
    check_text("ok\xFF\xC3\xA9", "\"ok\\ufffd\xC3\xA9\"");
    /* The size counts, not what lies behind it. */
    check_bytes("\xC3\xA9", 1, "\"\\ufffd\"");
    check_bytes("\xF0\x9F\x98\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"");
}

static void limit_of_the_buffer_is_kept(void **state)
{
    (void)state;
    dj__strbuf out;
    dj__json json;
    dj__strbuf_init(&out, 8);
    dj__json_init(&json, &out);
    dj__json_begin_array(&json);
    dj__json_string(&json, "too long for it");
    dj__json_end_array(&json);
    assert_int_equal(dj__strbuf_ok(&out, NULL), DJ_INVALID_ARGUMENT);
    assert_true(out.size <= 8);
    dj__strbuf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structure),
        cmocka_unit_test(escapes),
        cmocka_unit_test(utf8_is_copied),
        cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(limit_of_the_buffer_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
