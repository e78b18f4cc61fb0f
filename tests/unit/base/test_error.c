/* SPDX-License-Identifier: MIT */
/* Status names, filling dj_error, and where a long message is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/strbuf.h"
#include <errno.h>
#include <string.h>

enum { MESSAGE_SIZE = sizeof(((dj_error *)NULL)->message) };

static void names_and_texts(void **state)
{
    (void)state;
#define CHECK_STATUS(name, number, text)                                                           \
    assert_int_equal(DJ_##name, number);                                                           \
    assert_string_equal(dj_status_name(DJ_##name), #name);                                         \
    assert_string_equal(dj_status_text(DJ_##name), text);
    DJ_STATUS_LIST(CHECK_STATUS)
#undef CHECK_STATUS
    assert_string_equal(dj_status_name(DJ__STATUS_COUNT), "UNKNOWN");
    assert_string_equal(dj_status_text(DJ__STATUS_COUNT), "unknown status");
    const int outside = 99;
    assert_string_equal(dj_status_name((dj_status)outside), "UNKNOWN");
    assert_string_equal(dj_status_text((dj_status)outside), "unknown status");
    assert_string_equal(dj_version(), DJ_VERSION_STRING);
}

static void fill_replaces_everything(void **state)
{
    (void)state;
    dj_error err;
    memset(&err, 'x', sizeof(err));
    assert_int_equal(dj__fail(&err, DJ_CORRUPT, "entry %d of %s", 3, "set"), DJ_CORRUPT);
    assert_int_equal(err.status, DJ_CORRUPT);
    assert_int_equal(err.native, 0);
    assert_string_equal(err.origin, "");
    assert_string_equal(err.message, "entry 3 of set");

    assert_int_equal(dj__fail_native(&err, DJ_DEVICE, "cuda", -7, "launch"), DJ_DEVICE);
    assert_int_equal(err.native, -7);
    assert_string_equal(err.origin, "cuda");

    dj__fail_native(&err, DJ_DEVICE, "a name of twenty-five bytes", 1, "x");
    assert_int_equal(strlen(err.origin), sizeof(err.origin) - 1);

    assert_int_equal(dj__fail_memory(&err), DJ_NO_MEMORY);
    assert_string_equal(err.message, "out of memory");
}

static void null_error_is_fine(void **state)
{
    (void)state;
    assert_int_equal(dj__fail(NULL, DJ_IO, "%s", "x"), DJ_IO);
    assert_int_equal(dj__fail_native(NULL, DJ_IO, "o", 1, "x"), DJ_IO);
    assert_int_equal(dj__fail_errno(NULL, ENOENT, "x"), DJ_NOT_FOUND);
    assert_int_equal(dj__fail_memory(NULL), DJ_NO_MEMORY);
    dj__error_prefix(NULL, "x");
}

static void errno_becomes_status(void **state)
{
    (void)state;
    static const struct {
        int error;
        dj_status status;
    } cases[] = {
        {EACCES, DJ_PERMISSION}, {EPERM, DJ_PERMISSION}, {EROFS, DJ_PERMISSION},
        {ENOENT, DJ_NOT_FOUND},  {ENOMEM, DJ_NO_MEMORY}, {ENOSPC, DJ_IO},
        {ENOTDIR, DJ_IO},        {99999, DJ_IO},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dj_error err = DJ_ERROR_INIT;
        assert_int_equal(dj__fail_errno(&err, cases[i].error, "open %s", "/x"), cases[i].status);
        assert_int_equal(err.status, cases[i].status);
        assert_int_equal(err.native, cases[i].error);
        assert_string_equal(err.origin, "errno");
        assert_int_equal(strncmp(err.message, "open /x: ", 9), 0);
        assert_string_equal(err.message + 9, strerror(cases[i].error));
    }
}

static void long_message_is_marked(void **state)
{
    (void)state;
    dj_error err = DJ_ERROR_INIT;
    char text[2 * MESSAGE_SIZE];
    memset(text, 'a', sizeof(text));

    text[MESSAGE_SIZE - 1] = '\0'; /* fits exactly */
    dj__fail(&err, DJ_IO, "%s", text);
    assert_string_equal(err.message, text);

    text[MESSAGE_SIZE - 1] = 'a';
    text[MESSAGE_SIZE] = '\0'; /* one byte too many */
    dj__fail(&err, DJ_IO, "%s", text);
    assert_int_equal(strlen(err.message), MESSAGE_SIZE - 1);
    assert_string_equal(err.message + MESSAGE_SIZE - 5, "a...");
}

/* Whatever its place, a sequence is there as a whole or not at all. */
static void cut_respects_utf8(void **state)
{
    (void)state;
    static const char *const letters[] = {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
        const size_t size = strlen(letters[i]);
        for (size_t offset = 0; offset < size; offset++) {
            dj__strbuf text;
            dj__strbuf_init(&text, 2 * MESSAGE_SIZE);
            dj__strbuf_append(&text, "aaaa", offset);
            while (text.size < MESSAGE_SIZE + 8) {
                dj__strbuf_puts(&text, letters[i]);
            }
            dj_error err = DJ_ERROR_INIT;
            dj__fail(&err, DJ_IO, "%s", dj__strbuf_str(&text));
            const size_t length = strlen(err.message);
            assert_true(length <= MESSAGE_SIZE - 1 && length > MESSAGE_SIZE - 1 - size);
            assert_string_equal(err.message + length - 3, "...");
            assert_memory_equal(err.message, text.data, length - 3);
            assert_int_equal((length - 3 - offset) % size, 0);
            dj__strbuf_fini(&text);
        }
    }
}

static void bytes_that_are_no_utf8_are_cut_anywhere(void **state)
{
    (void)state;
    char text[8];
    memset(text, 0x80, sizeof(text));
    text[7] = '\0';
    dj__mark_cut(text, sizeof(text));
    assert_memory_equal(text, "\x80...", 5);

    char small[4] = "abc";
    dj__mark_cut(small, sizeof(small));
    assert_string_equal(small, "...");
}

static void prefix_goes_first(void **state)
{
    (void)state;
    dj_error err = DJ_ERROR_INIT;
    dj__fail_native(&err, DJ_DEVICE, "host", 5, "no kernel");
    dj__error_prefix(&err, "loading %s", "k.so");
    assert_string_equal(err.message, "loading k.so: no kernel");
    assert_int_equal(err.status, DJ_DEVICE);
    assert_int_equal(err.native, 5);
    assert_string_equal(err.origin, "host");

    char text[MESSAGE_SIZE];
    memset(text, 'a', sizeof(text));
    text[MESSAGE_SIZE - 1] = '\0';
    dj__fail(&err, DJ_IO, "%s", text);
    dj__error_prefix(&err, "p");
    assert_int_equal(strlen(err.message), MESSAGE_SIZE - 1);
    assert_int_equal(strncmp(err.message, "p: aaa", 6), 0);
    assert_string_equal(err.message + MESSAGE_SIZE - 4, "...");
}

static void arguments_may_point_into_the_error(void **state)
{
    (void)state;
    dj_error err = DJ_ERROR_INIT;
    dj__fail(&err, DJ_IO, "inner");
    dj__fail(&err, DJ_CORRUPT, "outer (%s)", err.message);
    assert_string_equal(err.message, "outer (inner)");
    dj__error_prefix(&err, "[%s]", err.message);
    assert_string_equal(err.message, "[outer (inner)]: outer (inner)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_texts),
        cmocka_unit_test(fill_replaces_everything),
        cmocka_unit_test(null_error_is_fine),
        cmocka_unit_test(errno_becomes_status),
        cmocka_unit_test(long_message_is_marked),
        cmocka_unit_test(cut_respects_utf8),
        cmocka_unit_test(bytes_that_are_no_utf8_are_cut_anywhere),
        cmocka_unit_test(prefix_goes_first),
        cmocka_unit_test(arguments_may_point_into_the_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
