/* SPDX-License-Identifier: MIT */
/* The environment of compilers and hooks. */
#include "backend/tool_env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const test_tool_keyed[] = {"CPATH", "LIBRARY_PATH", NULL};

/* Joins the environment that `variables` gives to tools: "A=1|B=2". */
static dj_status test_tool_join(const char *const *variables, bool keyed, char text[512],
                                dj_error *err)
{
    dj__env *env = NULL;
    dj__strlist list;
    dj__strlist_init(&list);
    assert_int_equal(dj__env_create("LIB", (char *const *)variables, &env, err), DJ_OK);
    dj_status status = keyed ? dj__tool_env_keyed(env, test_tool_keyed, &list, err)
                             : dj__tool_env(env, test_tool_keyed, &list, err);
    text[0] = '\0';
    for (size_t i = 0; status == DJ_OK && i < list.count; i++) {
        strncat(text, i > 0 ? "|" : "", 511 - strlen(text));
        strncat(text, list.items[i], 511 - strlen(text));
    }
    dj__strlist_fini(&list);
    dj__env_destroy(env);
    return status;
}

static void test_tool_env_exact(void **state)
{
    (void)state;
    char text[512];
    dj_error err = DJ_ERROR_INIT;
    const char *const variables[] = {
        "TMPDIR=/t",     "PATH=/bin",          "SECRET=1",   "LC_ALL=de_DE", "HOME=/root",
        "LIBRARY_PATH=", "LD_LIBRARY_PATH=/l", "CPATH=/a b", "LANG=de",      NULL};
    assert_int_equal(test_tool_join(variables, false, text, &err), DJ_OK);
    assert_string_equal(text, "CPATH=/a b|HOME=/root|LC_ALL=C|LD_LIBRARY_PATH=/l|LIBRARY_PATH=|"
                              "PATH=/bin|TMPDIR=/t");
    assert_int_equal(test_tool_join(variables, true, text, &err), DJ_OK);
    assert_string_equal(text, "CPATH=/a b|LIBRARY_PATH=");
    const char *const empty[] = {NULL};
    assert_int_equal(test_tool_join(empty, false, text, &err), DJ_OK);
    assert_string_equal(text, "LC_ALL=C");
    assert_int_equal(test_tool_join(empty, true, text, &err), DJ_OK);
    assert_string_equal(text, "");
}

static void test_tool_env_user(void **state)
{
    (void)state;
    char text[512];
    dj_error err = DJ_ERROR_INIT;
    const char *const variables[] = {"LIB_JIT_COMPILER_ENV=B:A,_C1,MISSING,CPATH,LC_ALL,B",
                                     "A=1",
                                     "B=2=3",
                                     "_C1=",
                                     "CPATH=/c",
                                     "LC_ALL=de",
                                     NULL};
    assert_int_equal(test_tool_join(variables, false, text, &err), DJ_OK);
    assert_string_equal(text, "A=1|B=2=3|CPATH=/c|LC_ALL=C|_C1=");
    assert_int_equal(test_tool_join(variables, true, text, &err), DJ_OK);
    assert_string_equal(text, "A=1|B=2=3|CPATH=/c|LC_ALL=de|_C1=");
}

static void test_tool_env_malformed(void **state)
{
    (void)state;
    static const char *const values[] = {"A::B", ":A", "A,", "A=1", "1A", "A B", ","};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[512];
        char variable[64] = "DJ_JIT_COMPILER_ENV=";
        dj_error err = DJ_ERROR_INIT;
        const char *const variables[] = {strcat(variable, values[i]), NULL};
        assert_int_equal(test_tool_join(variables, false, text, &err), DJ_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "invalid value for DJ_JIT_COMPILER_ENV: "));
        assert_non_null(strstr(err.message, values[i]));
        assert_int_equal(test_tool_join(variables, true, text, NULL), DJ_INVALID_ARGUMENT);
    }
    char text[512];
    const char *const empty[] = {"DJ_JIT_COMPILER_ENV=", NULL};
    assert_int_equal(test_tool_join(empty, false, text, NULL), DJ_OK);
    assert_string_equal(text, "LC_ALL=C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tool_env_exact),
        cmocka_unit_test(test_tool_env_user),
        cmocka_unit_test(test_tool_env_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
