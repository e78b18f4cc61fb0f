/* SPDX-License-Identifier: MIT */
/* The environment snapshot: look-up order, values, and the texts of errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/env.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dj__env *make_env(const char *prefix, const char *const *environment)
{
    /* environ-like: the snapshot does not write it. */
    union {
        const char *const *from;
        char *const *to;
    } cast = {environment};
    dj__env *env = NULL;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj__env_create(prefix, cast.to, &env, &err), DJ_OK);
    assert_non_null(env);
    return env;
}

static void check_prefix(const char *prefix, const char *message)
{
    char *const none[] = {NULL};
    dj__env *env = (dj__env *)(uintptr_t)1;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj__env_create(prefix, none, &env, &err), DJ_INVALID_ARGUMENT);
    assert_null(env);
    assert_int_equal(strncmp(err.message, message, strlen(message)), 0);
}

static void prefixes(void **state)
{
    (void)state;
    check_prefix("", "environment variable prefix must not be empty");
    check_prefix("DJ", "DJ is reserved for global environment variables");
    check_prefix("9LIB", "environment variable prefix must be letters, digits and underscores");
    check_prefix("MY-LIB", "environment variable prefix must be letters, digits and underscores");
    check_prefix("MY LIB", "environment variable prefix must be letters, digits and underscores");
    check_prefix("M\xC3\x9C",
                 "environment variable prefix must be letters, digits and underscores");
    char text[130];
    memset(text, 'P', sizeof(text) - 1);
    text[129] = '\0';
    check_prefix(text, "environment variable prefix must not be longer than 128 bytes");

    static const char *const none[] = {NULL};
    static const char *const good[] = {"_", "DJX", "dj", "_9", "MyLib_2"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        dj__env_destroy(make_env(good[i], none));
    }
    text[128] = '\0';
    dj__env *env = make_env(text, none);
    char name[256];
    dj__env_name(env, "JIT_DEBUG", name);
    assert_int_equal(strlen(name), 128 + 10);
    dj__env_destroy(env);
    dj__env_destroy(NULL);
}

static void raw_look_up(void **state)
{
    (void)state;
    static const char *const environment[] = {
        "PATH=/bin",   "TWICE=first", "EMPTY=", "A=B=C", "=odd", "NOEQUALS",
        "TWICE=again", "PATHS=x",     "PAT=y",  "Z=1",   "=",    NULL,
    };
    dj__env *env = make_env(NULL, environment);
    assert_string_equal(dj__env_raw(env, "PATH"), "/bin");
    assert_string_equal(dj__env_raw(env, "PATHS"), "x");
    assert_string_equal(dj__env_raw(env, "PAT"), "y");
    assert_string_equal(dj__env_raw(env, "TWICE"), "first");
    assert_string_equal(dj__env_raw(env, "EMPTY"), "");
    assert_string_equal(dj__env_raw(env, "A"), "B=C");
    assert_string_equal(dj__env_raw(env, "Z"), "1");
    assert_null(dj__env_raw(env, "NOEQUALS"));
    assert_null(dj__env_raw(env, ""));
    assert_null(dj__env_raw(env, "PA"));
    dj__env_destroy(env);

    static const char *const none[] = {NULL};
    env = make_env(NULL, none);
    assert_null(dj__env_raw(env, "PATH"));
    dj__env_destroy(env);
}

static void many_variables_are_found(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    dj__strlist list;
    dj__strlist_init(&list);
    for (unsigned i = 0; i < COUNT; i++) {
        dj__strlist_addf(&list, "V%u=%u", i * 7919 % COUNT, i);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        dj__strlist_addf(&list, "V%u=later", i);
    }
    assert_int_equal(dj__strlist_ok(&list, NULL), DJ_OK);
    dj__env *env = make_env(NULL, dj__strlist_items(&list));
    for (unsigned i = 0; i < COUNT; i++) {
        char name[16];
        char value[16];
        snprintf(name, sizeof(name), "V%u", i * 7919 % COUNT);
        snprintf(value, sizeof(value), "%u", i);
        assert_string_equal(dj__env_raw(env, name), value);
    }
    dj__env_destroy(env);
    dj__strlist_fini(&list);
}

static void snapshot_is_a_deep_copy(void **state)
{
    (void)state;
    char variable[] = "MYLIB_JIT_DEBUG=1";
    char *environment[] = {variable, NULL};
    char prefix[] = "MYLIB";
    dj__env *env;
    assert_int_equal(dj__env_create(prefix, environment, &env, NULL), DJ_OK);
    memset(variable, 'x', sizeof(variable) - 1);
    memset(prefix, 'x', sizeof(prefix) - 1);
    assert_string_equal(dj__env_setting(env, "JIT_DEBUG", NULL), "1");
    dj__env_destroy(env);

    assert_int_equal(setenv("DJ_TEST_ENV_SNAPSHOT", "before", 1), 0);
    assert_int_equal(dj__env_create(NULL, NULL, &env, NULL), DJ_OK);
    assert_int_equal(setenv("DJ_TEST_ENV_SNAPSHOT", "after", 1), 0);
    assert_string_equal(dj__env_setting(env, "TEST_ENV_SNAPSHOT", NULL), "before");
    assert_int_equal(unsetenv("DJ_TEST_ENV_SNAPSHOT"), 0);
    assert_string_equal(dj__env_setting(env, "TEST_ENV_SNAPSHOT", NULL), "before");
    dj__env_destroy(env);
}

static void setting_order(void **state)
{
    (void)state;
    static const char *const environment[] = {
        "DJ_BOTH=global", "MYLIB_BOTH=own", "DJ_GLOBAL=g", "PLAIN=never",
        "MYLIB_EMPTY=",   "DJ_EMPTY=full",  NULL,
    };
    dj__env *env = make_env("MYLIB", environment);
    char name[256];
    assert_string_equal(dj__env_setting(env, "BOTH", name), "own");
    assert_string_equal(name, "MYLIB_BOTH");
    assert_string_equal(dj__env_setting(env, "GLOBAL", name), "g");
    assert_string_equal(name, "DJ_GLOBAL");
    assert_null(dj__env_setting(env, "PLAIN", name));
    assert_string_equal(name, "MYLIB_PLAIN");
    assert_string_equal(dj__env_setting(env, "EMPTY", NULL), "");
    dj__env_name(env, "GLOBAL", name);
    assert_string_equal(name, "MYLIB_GLOBAL");
    dj__env_destroy(env);

    env = make_env(NULL, environment);
    assert_string_equal(dj__env_setting(env, "BOTH", name), "global");
    assert_null(dj__env_setting(env, "PLAIN", name));
    assert_string_equal(name, "DJ_PLAIN");
    dj__env_destroy(env);
}

static void booleans(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int value; /* -1: invalid */
    } cases[] = {
        {"YeS", 1},
        {"TrUe", 1},
        {"nO", 0},
        {"FALSE", 0},
        {"0", 0},
        {"-0", 0},
        {"1", 1},
        {"-2", 1},
        {"9223372036854775807", 1},
        {"-9223372036854775808", 1},
        {"9223372036854775808", -1},
        {"sometimes", -1},
        {"", -1},
        {"on", -1},
        {"off", -1},
        {"true ", -1},
        {" 1", -1},
        {"+1", -1},
        {"1.0", -1},
        {"0x1", -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool value = cases[i].value != 1;
        assert_int_equal(dj__parse_bool(cases[i].text, &value), cases[i].value >= 0);
        assert_int_equal(value, cases[i].value == 1 || cases[i].value < 0);
    }
}

static void integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
        int64_t value;
    } cases[] = {
        {"-17", true, -17},
        {"0", true, 0},
        {"-0", true, 0},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"12x", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"--1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1\n", false, 0},
        {"0x10", false, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t value = 4711;
        assert_int_equal(dj__parse_int(cases[i].text, &value), cases[i].valid);
        assert_true(value == (cases[i].valid ? cases[i].value : 4711));
    }
}

static void typed_settings(void **state)
{
    (void)state;
    static const char *const environment[] = {
        "MYLIB_JIT_DEBUG=sometimes", "DJ_YES=yes", "DJ_N=12x", "MYLIB_LOW=-1", "DJ_OK=20", NULL,
    };
    dj__env *env = make_env("MYLIB", environment);
    dj_error err = DJ_ERROR_INIT;
    bool flag = false;
    assert_int_equal(dj__env_bool(env, "YES", &flag, &err), DJ_OK);
    assert_true(flag);
    assert_int_equal(dj__env_bool(env, "UNSET", &flag, &err), DJ_OK);
    assert_true(flag);
    assert_int_equal(dj__env_bool(env, "JIT_DEBUG", &flag, &err), DJ_INVALID_ARGUMENT);
    assert_true(flag);
    assert_string_equal(err.message, "invalid value for MYLIB_JIT_DEBUG: sometimes "
                                     "(accepted: true, false, yes, no or an integer)");

    int64_t number = 5;
    assert_int_equal(dj__env_int(env, "UNSET", 0, 9, &number, &err), DJ_OK);
    assert_true(number == 5);
    assert_int_equal(dj__env_int(env, "OK", 20, 20, &number, &err), DJ_OK);
    assert_true(number == 20);
    assert_int_equal(dj__env_int(env, "OK", 0, 19, &number, &err), DJ_INVALID_ARGUMENT);
    assert_string_equal(err.message, "invalid value for DJ_OK: 20 "
                                     "(accepted: an integer from 0 to 19)");
    assert_int_equal(dj__env_int(env, "OK", 21, 30, &number, &err), DJ_INVALID_ARGUMENT);
    assert_int_equal(dj__env_int(env, "N", -5, 5, &number, &err), DJ_INVALID_ARGUMENT);
    assert_string_equal(err.message, "invalid value for DJ_N: 12x "
                                     "(accepted: an integer from -5 to 5)");
    assert_int_equal(dj__env_int(env, "LOW", 0, INT64_MAX, &number, &err), DJ_INVALID_ARGUMENT);
    assert_string_equal(err.message, "invalid value for MYLIB_LOW: -1 "
                                     "(accepted: an integer from 0 to 9223372036854775807)");
    assert_true(number == 20);
    dj__env_destroy(env);
}

static void check_list(const char *value, const char *const *expected, size_t count)
{
    char *variable = dj__format("DJ_L=%s", value);
    const char *const environment[] = {variable, NULL};
    dj__env *env = make_env(NULL, environment);
    dj__strlist list;
    dj__strlist_init(&list);
    dj_error err = DJ_ERROR_INIT;
    const dj_status status = dj__env_list(env, "L", &list, &err);
    if (expected != NULL) {
        assert_int_equal(status, DJ_OK);
        assert_int_equal(list.count, count);
        for (size_t i = 0; i < count; i++) {
            assert_string_equal(list.items[i], expected[i]);
        }
    } else {
        assert_int_equal(status, DJ_INVALID_ARGUMENT);
        char *message = dj__format("DJ_L contains an empty path: %s (accepted: ", value);
        assert_int_equal(strncmp(err.message, message, strlen(message)), 0);
        free(message);
    }
    dj__strlist_fini(&list);
    dj__env_destroy(env);
    free(variable);
}

static void lists(void **state)
{
    (void)state;
    check_list("a:b", (const char *const[]){"a", "b"}, 2);
    check_list("/x/../y/ z", (const char *const[]){"/x/../y/ z"}, 1);
    check_list("", NULL, 0);
    check_list(":", NULL, 0);
    check_list(":a", NULL, 0);
    check_list("a:", NULL, 0);
    check_list("a::b", NULL, 0);

    static const char *const none[] = {NULL};
    dj__env *env = make_env(NULL, none);
    dj__strlist list;
    dj__strlist_init(&list);
    assert_int_equal(dj__env_list(env, "L", &list, NULL), DJ_OK);
    assert_int_equal(list.count, 0);
    dj__strlist_fini(&list);
    dj__env_destroy(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes),
        cmocka_unit_test(raw_look_up),
        cmocka_unit_test(many_variables_are_found),
        cmocka_unit_test(snapshot_is_a_deep_copy),
        cmocka_unit_test(setting_order),
        cmocka_unit_test(booleans),
        cmocka_unit_test(integers),
        cmocka_unit_test(typed_settings),
        cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
