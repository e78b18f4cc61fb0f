/* SPDX-License-Identifier: MIT */
/* The framing of the key: every boundary counts, watchers see what is hashed, values are pinned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/key.h"
#include <stdlib.h>
#include <string.h>

typedef struct watched {
    size_t count;
    char log[512];
} watched;

static void watch(void *user, const char *field, const void *value, size_t size)
{
    watched *seen = user;
    seen->count++;
    strncat(seen->log, field, sizeof(seen->log) - strlen(seen->log) - 1);
    strncat(seen->log, "=", sizeof(seen->log) - strlen(seen->log) - 1);
    strncat(seen->log, value, size);
    strncat(seen->log, ";", sizeof(seen->log) - strlen(seen->log) - 1);
}

/* The key of pairs of texts, ended by NULL. */
static void make_key(const char *const *pairs, char hex[DJ__HEX_SIZE])
{
    dj__key key;
    dj__key_init(&key, NULL, NULL);
    for (size_t i = 0; pairs[i] != NULL; i += 2) {
        dj__key_text(&key, pairs[i], pairs[i + 1]);
    }
    dj__key_final(&key, hex);
    assert_true(dj__is_hex32(hex, strlen(hex)));
}

static void test_boundaries_count(void **state)
{
    (void)state;
    static const char *const lists[][5] = {
        {NULL},
        {"a", "", NULL},
        {"", "a", NULL},
        {"ab", "c", NULL},
        {"a", "bc", NULL},
        {"abc", "", NULL},
        {"a", "b", "c", "", NULL},
        {"a", "", "b", "c", NULL},
        {"a", "c", "b", "", NULL},
    };
    enum { COUNT = sizeof(lists) / sizeof(lists[0]) };
    char keys[COUNT][DJ__HEX_SIZE];
    for (size_t i = 0; i < COUNT; i++) {
        make_key(lists[i], keys[i]);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(keys[i], keys[j]);
        }
    }
}

static void test_bytes_and_length_count(void **state)
{
    (void)state;
    char keys[3][DJ__HEX_SIZE];
    static const char *const values[] = {"x\0y", "x\0z", "x\0y"};
    static const size_t sizes[] = {3, 3, 2};
    for (size_t i = 0; i < 3; i++) {
        dj__key key;
        dj__key_init(&key, NULL, NULL);
        dj__key_field(&key, "source", values[i], sizes[i]);
        dj__key_final(&key, keys[i]);
    }
    assert_string_not_equal(keys[0], keys[1]);
    assert_string_not_equal(keys[0], keys[2]);
    assert_string_not_equal(keys[1], keys[2]);
}

static void test_watchers_see_every_field(void **state)
{
    (void)state;
    watched seen = {0};
    char hex[DJ__HEX_SIZE];
    char unwatched[DJ__HEX_SIZE];
    static const char *const pairs[] = {"arch", "x86_64", "flag", "-O3", NULL};
    dj__key key;
    dj__key_init(&key, watch, &seen);
    dj__key_text(&key, "arch", "x86_64");
    dj__key_text(&key, "flag", "-O3");
    dj__key_final(&key, hex);
    assert_int_equal(seen.count, 3);
    assert_string_equal(seen.log, "format=deepjit-key-1;arch=x86_64;flag=-O3;");
    make_key(pairs, unwatched);
    assert_string_equal(hex, unwatched); /* watching changes nothing */
}

/* Computed with Python: hashlib.blake2b(framed, digest_size=16). A change here is a change of
 * every key on every disk and needs a new DJ__KEY_FORMAT. */
static void test_pinned_value(void **state)
{
    (void)state;
    char hex[DJ__HEX_SIZE];
    static const char *const pairs[] = {"arch", "x86_64", "flag", "-O3", NULL};
    make_key(pairs, hex);
    assert_string_equal(hex, "38a1d9c340e8b48ab450958463ec73e9");
}

/* The same fields, with what the first call saw up to the middle hashed beforehand. */
static void make_shared_key(const char *start, const char *rest, _Atomic(dj__key_start *) *known,
                            char hex[DJ__HEX_SIZE])
{
    dj__key key;
    dj__key_init(&key, NULL, NULL);
    dj__key_text(&key, "start", start);
    dj__key_share(&key, known);
    dj__key_text(&key, "rest", rest);
    dj__key_final(&key, hex);
}

static void test_sharing_changes_nothing(void **state)
{
    (void)state;
    enum { LONG = 5000 };
    char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    const char *const starts[] = {"a", "a", "b", "", text, text + LONG - 130, text, "a"};
    const char *const rests[] = {"1", "2", "2", "", text, "1", text + LONG - 2040, text};
    for (size_t first = 0; first < 8; first++) {
        _Atomic(dj__key_start *) known = NULL;
        for (size_t i = 0; i < 8; i++) {
            const size_t at = (first + i) % 8;
            const char *const pairs[] = {"start", starts[at], "rest", rests[at], NULL};
            char plain[DJ__HEX_SIZE];
            char shared[DJ__HEX_SIZE];
            make_key(pairs, plain);
            make_shared_key(starts[at], rests[at], &known, shared);
            assert_string_equal(shared, plain);
        }
        assert_non_null(atomic_load(&known));
        free(atomic_load(&known));
    }
    free(text);
}

/* Every way in which a value can meet the end of what is gathered before it is hashed; the sum was
 * computed with Python, from keys that were hashed field by field. */
static void test_sizes_around_the_buffer(void **state)
{
    (void)state;
    enum { LONG = 4200 };
    char *text = calloc(1, LONG);
    assert_non_null(text);
    dj__blake2b all;
    dj__blake2b_init(&all);
    for (size_t size = 0; size < LONG; size++) {
        char hex[DJ__HEX_SIZE];
        dj__key key;
        dj__key_init(&key, NULL, NULL);
        dj__key_field(&key, "x", text, size);
        dj__key_text(&key, "y", "z");
        dj__key_final(&key, hex);
        dj__blake2b_update(&all, hex, DJ__HEX_SIZE - 1);
    }
    free(text);
    char sum[DJ__HEX_SIZE];
    dj__blake2b_final(&all, sum);
    assert_string_equal(sum, "753680f05efb12ad4b1842688f5df801");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boundaries_count),
        cmocka_unit_test(test_bytes_and_length_count),
        cmocka_unit_test(test_watchers_see_every_field),
        cmocka_unit_test(test_pinned_value),
        cmocka_unit_test(test_sharing_changes_nothing),
        cmocka_unit_test(test_sizes_around_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
