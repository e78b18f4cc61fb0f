/* SPDX-License-Identifier: MIT */
/* link: -Wl,--wrap=malloc,--wrap=realloc,--wrap=calloc */
/* Every allocation of the base library fails once; nothing crashes, leaks or goes unreported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

/* The allocation that fails, counted from 1; 0: none. Only the test's thread allocates. */
static unsigned fail_at;
static unsigned allocations;

static bool may_allocate(void)
{
    return ++allocations != fail_at;
}

void *__wrap_malloc(size_t size)
{
    return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *memory, size_t size)
{
    return may_allocate() ? __real_realloc(memory, size) : NULL;
}

/* Runs `scenario` with its first, second, ... allocation failing, until none is left to fail. */
static void fail_each(dj_status (*scenario)(dj_error *err), unsigned at_least)
{
    for (unsigned n = 1;; n++) {
        dj_error err = DJ_ERROR_INIT;
        allocations = 0;
        fail_at = n;
        const dj_status status = scenario(&err);
        fail_at = 0;
        if (allocations < n) {
            assert_int_equal(status, DJ_OK);
            assert_true(n > at_least);
            return;
        }
        assert_int_equal(status, DJ_NO_MEMORY);
        assert_int_equal(err.status, DJ_NO_MEMORY);
        assert_string_equal(err.message, "out of memory");
    }
}

static dj_status write_text(dj_error *err)
{
    dj__strbuf buf;
    dj__json json;
    dj__strbuf_init(&buf, 100000);
    dj__json_init(&json, &buf);
    dj__json_begin_array(&json);
    for (int i = 0; i < 100; i++) {
        dj__json_string(&json, "text with \x01 and \xFF");
        dj__strbuf_printf(&buf, "%d", i);
        dj__strbuf_put_quoted(&buf, "it's");
    }
    dj__json_end_array(&json);
    const dj_status status = dj__strbuf_ok(&buf, err);
    char *text = dj__strbuf_steal(&buf);
    assert_int_equal(text == NULL, status != DJ_OK);
    free(text);
    dj__strbuf_fini(&buf);
    return status;
}

static dj_status fill_list(dj_error *err)
{
    static const char *const more[] = {"x", "y", "z"};
    dj__strlist list;
    dj__strlist_init(&list);
    for (int i = 0; i < 10; i++) {
        dj__strlist_add(&list, "plain");
        dj__strlist_addf(&list, "formatted %d", i);
        dj__strlist_add_all(&list, more, 3);
        /* An argument vector at every moment. */
        assert_true(list.items == NULL || list.items[list.count] == NULL);
    }
    const dj_status status = dj__strlist_ok(&list, err);
    assert_int_equal(list.count == 50, status == DJ_OK);
    dj__strlist_fini(&list);
    return status;
}

static dj_status format_text(dj_error *err)
{
    char *text = dj__format("%s", "text");
    if (text == NULL) {
        return dj__fail_memory(err);
    }
    free(text);
    return DJ_OK;
}

static dj_status read_environment(dj_error *err)
{
    char first[] = "DJ_A=a:b:c";
    char second[] = "DJ_B=2";
    char *environment[] = {first, second, NULL};
    dj__env *env;
    dj_status status = dj__env_create("MYLIB", environment, &env, err);
    if (status != DJ_OK) {
        assert_null(env);
        return status;
    }
    dj__strlist list;
    dj__strlist_init(&list);
    status = dj__env_list(env, "A", &list, err);
    dj__strlist_fini(&list);
    dj__env_destroy(env);
    return status;
}

static void *return_argument(void *arg)
{
    return arg;
}

static dj_status start_thread(dj_error *err)
{
    pthread_t thread;
    const int error = dj__thread_start(&thread, "t", return_argument, err);
    if (error != 0) {
        assert_int_equal(error, ENOMEM);
        return dj__fail_memory(err);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    return DJ_OK;
}

static void text_without_memory(void **state)
{
    (void)state;
    fail_each(write_text, 5);
}

static void list_without_memory(void **state)
{
    (void)state;
    fail_each(fill_list, 50);
}

static void format_without_memory(void **state)
{
    (void)state;
    fail_each(format_text, 1);
}

static void environment_without_memory(void **state)
{
    (void)state;
    fail_each(read_environment, 6);
}

static void thread_without_memory(void **state)
{
    (void)state;
    fail_each(start_thread, 1);
}

static void keep_text(void *user, dj_log_level level, const char *message)
{
    (void)level;
    memcpy(user, message, strlen(message) + 1);
}

/* The one place that gives less instead of failing. */
static void long_log_message_is_cut(void **state)
{
    (void)state;
    char text[2 * PIPE_BUF];
    memset(text, 'm', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    char got[2 * PIPE_BUF] = "";
    dj__log log = {.fn = keep_text, .user = got, .level = DJ_LOG_WARN};
    allocations = 0;
    fail_at = 1;
    dj__log_write(&log, DJ_LOG_WARN, "%s", text);
    fail_at = 0;
    assert_int_equal(allocations, 1);
    const size_t size = strlen(got);
    assert_true(size > PIPE_BUF - 40 && size < PIPE_BUF);
    assert_string_equal(got + size - 4, "m...");
    assert_int_equal(strspn(got, "m"), size - 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_without_memory),   cmocka_unit_test(list_without_memory),
        cmocka_unit_test(format_without_memory), cmocka_unit_test(environment_without_memory),
        cmocka_unit_test(thread_without_memory), cmocka_unit_test(long_log_message_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
