/* SPDX-License-Identifier: MIT */
/* Digests against values computed by other implementations (Python's hashlib, xxhsum). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include <stdlib.h>
#include <string.h>

static void blake2b_text(const char *text, char hex[DJ__HEX_SIZE])
{
    dj__blake2b hash;
    dj__blake2b_init(&hash);
    dj__blake2b_update(&hash, text, strlen(text));
    dj__blake2b_final(&hash, hex);
}

static void blake2b_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *hex;
    } cases[] = {
        {"", "cae66941d9efbd404e4d88758ea67670"},
        {"a", "27c35e6e9373877f29e562464e46497e"},
        {"abc", "cf4ab791c62b8d2b2109c90275287816"},
        {"message digest", "a235c121347fdd24feffe048dbe68ccc"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char hex[DJ__HEX_SIZE];
        blake2b_text(cases[i].text, hex);
        assert_string_equal(hex, cases[i].hex);
    }
}

/* bytes(range(256)) * 257, in pieces of every size. */
static void blake2b_in_pieces(void **state)
{
    (void)state;
    enum { SIZE = 256 * 257 };
    unsigned char *data = malloc(SIZE);
    assert_non_null(data);
    for (size_t i = 0; i < SIZE; i++) {
        data[i] = (unsigned char)i;
    }
    for (size_t piece = 1; piece < SIZE; piece = piece * 3 + 1) {
        dj__blake2b hash;
        dj__blake2b_init(&hash);
        dj__blake2b_update(&hash, NULL, 0);
        for (size_t at = 0; at < SIZE; at += piece) {
            dj__blake2b_update(&hash, data + at, SIZE - at < piece ? SIZE - at : piece);
        }
        char hex[DJ__HEX_SIZE];
        dj__blake2b_final(&hash, hex);
        assert_string_equal(hex, "3ba1a06915ef7099ba37d90d903b8274");
    }
    free(data);
}

static void blake2b_states_are_independent(void **state)
{
    (void)state;
    dj__blake2b first;
    dj__blake2b_init(&first);
    dj__blake2b_update(&first, "ab", 2);
    dj__blake2b second = first;
    dj__blake2b_update(&first, "c", 1);
    dj__blake2b_update(&second, "d", 1);
    char one[DJ__HEX_SIZE];
    char two[DJ__HEX_SIZE];
    dj__blake2b_final(&first, one);
    dj__blake2b_final(&second, two);
    assert_string_equal(one, "cf4ab791c62b8d2b2109c90275287816");
    assert_string_not_equal(one, two);
}

static void xxh3_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *hex;
        uint64_t plain;
        uint64_t seeded;
    } cases[] = {
        {"", "99aa06d3014798d86001c324468d497f", 0x2d06800538d394c2, 0xb029411ff43d84d2},
        {"a", "a96faf705af16834e6c632b61e964e1f", 0xe6c632b61e964e1f, 0x4c437dd47f0716f4},
        {"abc", "06b05ab6733a618578af5f94892f3950", 0x78af5f94892f3950, 0xd8438def21bbdcc3},
        {"message digest", "34ab715d95e3b6490abfabecb8e3a424", 0x160d8e9329be94f9,
         0x6d27094dba7a6019},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *text = cases[i].text;
        char hex[DJ__HEX_SIZE];
        dj__xxh128_hex(text, strlen(text), hex);
        assert_string_equal(hex, cases[i].hex);
        assert_true(dj__xxh64(text, strlen(text), 0) == cases[i].plain);
        assert_true(dj__xxh64(text, strlen(text), 42) == cases[i].seeded);
    }
}

static void hex32(void **state)
{
    (void)state;
    const char *good = "0123456789abcdef0123456789abcdef";
    assert_true(dj__is_hex32(good, 32));
    assert_false(dj__is_hex32(good, 31));
    assert_false(dj__is_hex32("0123456789abcdef0123456789abcdef0", 33));
    assert_false(dj__is_hex32("", 0));
    static const char wrong[] = {'A', 'F', 'g', '/', ':', '`', ' ', '\0', '-', '\n'};
    for (size_t i = 0; i < sizeof(wrong); i++) {
        char text[33];
        memcpy(text, good, sizeof(text));
        text[3 * i] = wrong[i];
        assert_false(dj__is_hex32(text, 32));
    }
}

static void random_fills_everything(void **state)
{
    (void)state;
    unsigned char one[32] = {0};
    unsigned char two[32] = {0};
    assert_true(dj__random_bytes(one, sizeof(one)));
    assert_true(dj__random_bytes(two, sizeof(two)));
    assert_memory_not_equal(one, two, sizeof(one));
    assert_true(dj__random_bytes(NULL, 0));

    /* Every 32-byte block of a large request differs from the zeros it had. */
    enum { SIZE = 1 << 20 };
    unsigned char *large = calloc(1, SIZE);
    assert_non_null(large);
    assert_true(dj__random_bytes(large, SIZE));
    const unsigned char zeros[32] = {0};
    for (size_t i = 0; i < SIZE; i += sizeof(zeros)) {
        assert_memory_not_equal(large + i, zeros, sizeof(zeros));
    }
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blake2b_vectors),
        cmocka_unit_test(blake2b_in_pieces),
        cmocka_unit_test(blake2b_states_are_independent),
        cmocka_unit_test(xxh3_vectors),
        cmocka_unit_test(hex32),
        cmocka_unit_test(random_fills_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
