/* SPDX-License-Identifier: MIT */
/* The list of back ends. */
#include <deepjit/sys/compiler.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_registry_find(void **state)
{
    (void)state;
    const dj_backend *host = dj_backend_find("host");
    assert_non_null(host);
    assert_string_equal(dj_backend_name(host), "host");
    assert_null(dj_backend_find("Host"));
    assert_null(dj_backend_find("hos"));
    assert_null(dj_backend_find(""));
    assert_null(dj_backend_find(NULL));
    assert_string_equal(dj_backend_name(NULL), "");
}

static void test_registry_order(void **state)
{
    (void)state;
    size_t count = 0;
    for (const dj_backend *backend; (backend = dj_backend_at(count)) != NULL; count++) {
        assert_int_equal(backend->size, sizeof *backend);
        assert_int_equal(backend->driver->size, sizeof *backend->driver);
        assert_int_equal(backend->compiler->size, sizeof *backend->compiler);
        assert_ptr_equal(dj_backend_find(backend->name), backend);
    }
    assert_true(count > 0);
    assert_null(dj_backend_at(count));
    assert_null(dj_backend_at(SIZE_MAX));
    /* The host is there when nothing else is. */
    assert_ptr_equal(dj_backend_at(count - 1), dj_backend_find("host"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registry_find),
        cmocka_unit_test(test_registry_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
