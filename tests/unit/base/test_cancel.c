/* SPDX-License-Identifier: MIT */
/* Cancellation: flag, descriptor, references, use from a signal handler. */
#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static dj_cancel *test_cancel_in_handler;

static bool test_cancel_readable(const dj_cancel *cancel)
{
    struct pollfd fd = {.fd = dj__cancel_fd(cancel), .events = POLLIN};
    return poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN) != 0;
}

static void test_cancel_flag_and_descriptor(void **state)
{
    (void)state;
    dj_cancel *cancel = NULL;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj_cancel_create(&cancel, &err), DJ_OK);
    assert_false(dj_cancel_requested(cancel));
    assert_false(test_cancel_readable(cancel));
    dj_cancel_request(cancel);
    assert_true(dj_cancel_requested(cancel));
    assert_true(test_cancel_readable(cancel));
    dj_cancel_request(cancel); /* stays cancelled, stays readable */
    assert_true(dj_cancel_requested(cancel));
    assert_true(test_cancel_readable(cancel));
    dj_cancel_release(cancel);
}

static void test_cancel_references(void **state)
{
    (void)state;
    dj_cancel *cancel = NULL;
    assert_int_equal(dj_cancel_create(&cancel, NULL), DJ_OK);
    assert_ptr_equal(dj_cancel_retain(cancel), cancel);
    dj_cancel_release(cancel);
    dj_cancel_request(cancel);
    assert_true(dj_cancel_requested(cancel));
    dj_cancel_release(cancel);
}

static void test_cancel_null(void **state)
{
    (void)state;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj_cancel_create(NULL, &err), DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "out"));
    assert_null(dj_cancel_retain(NULL));
    dj_cancel_release(NULL);
    dj_cancel_request(NULL);
    assert_false(dj_cancel_requested(NULL));
}

static void test_cancel_handler(int signal)
{
    (void)signal;
    dj_cancel_request(test_cancel_in_handler);
}

static void test_cancel_keeps_errno(void **state)
{
    (void)state;
    assert_int_equal(dj_cancel_create(&test_cancel_in_handler, NULL), DJ_OK);
    struct sigaction action = {.sa_handler = test_cancel_handler};
    struct sigaction old;
    assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
    errno = ERANGE;
    raise(SIGUSR1);
    assert_int_equal(errno, ERANGE);
    assert_true(dj_cancel_requested(test_cancel_in_handler));
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
    dj_cancel_release(test_cancel_in_handler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel_flag_and_descriptor),
        cmocka_unit_test(test_cancel_references),
        cmocka_unit_test(test_cancel_null),
        cmocka_unit_test(test_cancel_keeps_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
