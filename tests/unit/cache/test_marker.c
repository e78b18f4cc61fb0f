/* SPDX-License-Identifier: MIT */
/* The marker: round trip, every damaged byte, whose marker it is, limits, a pinned golden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/marker.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST "0123456789abcdef0123456789abcdef"
#define HASH_A "00000000000000000000000000000001"
#define HASH_B "ffffffffffffffffffffffffffffffff"

static dj__marker_file sample_files[] = {
    {.name = "kernel.c", .size = 0, .xxh = HASH_A},
    {.name = "kernel.so", .size = UINT64_MAX, .xxh = HASH_B},
    {.name = "with blank, 'quote' and \xc3\xa9", .size = 7, .xxh = HASH_A},
};

static dj__marker sample(void)
{
    return (dj__marker){.tag = "add",
                        .digest = DIGEST,
                        .backend = "host",
                        .arch = "x86 64, with blank",
                        .binary = "kernel.so",
                        .files = sample_files,
                        .num_files = 3};
}

static void write_sample(const dj__marker *marker, dj__strbuf *text)
{
    dj_error err = DJ_ERROR_INIT;
    dj__strbuf_init(text, DJ__MARKER_LIMIT);
    assert_int_equal(dj__marker_write(marker, text, &err), DJ_OK);
}

/* Parses a copy of exactly `size` bytes, so that a sanitizer sees any byte too far. */
static dj_entry_state parse(const char *data, size_t size, dj__marker *out)
{
    const char *problem = NULL;
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    char *exact = realloc(copy, size > 0 ? size : 1);
    assert_non_null(exact);
    const dj_entry_state state = dj__marker_parse(exact, size, out, &problem, NULL);
    free(exact);
    assert_non_null(problem);
    assert_int_equal(problem[0] == '\0', state == DJ_ENTRY_GOOD);
    if (state != DJ_ENTRY_GOOD) {
        assert_null(out->tag);
        assert_null(out->files);
        assert_int_equal(out->num_files, 0);
    }
    return state;
}

static dj_entry_state state_of(const char *data, size_t size)
{
    dj__marker marker;
    const dj_entry_state state = parse(data, size, &marker);
    dj__marker_fini(&marker);
    return state;
}

/* `body` with a tail that is right for it. */
static dj_entry_state state_of_body(const char *body)
{
    char text[2048];
    char hash[DJ__HEX_SIZE];
    dj__xxh128_hex(body, strlen(body), hash);
    const int size = snprintf(text, sizeof(text), "%send deepjit-entry 1 %s\n", body, hash);
    assert_true(size > 0 && (size_t)size < sizeof(text));
    return state_of(text, (size_t)size);
}

static void test_round_trip(void **state)
{
    (void)state;
    const dj__marker marker = sample();
    dj__strbuf text;
    dj__marker back;
    write_sample(&marker, &text);
    assert_int_equal(parse(text.data, text.size, &back), DJ_ENTRY_GOOD);
    assert_string_equal(back.tag, marker.tag);
    assert_string_equal(back.digest, marker.digest);
    assert_string_equal(back.backend, marker.backend);
    assert_string_equal(back.arch, marker.arch);
    assert_string_equal(back.binary, marker.binary);
    assert_int_equal(back.num_files, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(back.files[i].name, marker.files[i].name);
        assert_int_equal(back.files[i].size, marker.files[i].size);
        assert_string_equal(back.files[i].xxh, marker.files[i].xxh);
    }
    assert_ptr_equal(dj__marker_find(&back, "kernel.so"), &back.files[1]);
    assert_null(dj__marker_find(&back, "kernel"));
    dj__marker_fini(&back);
    dj__marker_fini(&back);
    dj__strbuf_fini(&text);
}

/* What is on disks today must stay readable. */
static void test_golden(void **state)
{
    (void)state;
    static const char golden[] = "deepjit-entry 1\n"
                                 "tag add\n"
                                 "digest " DIGEST "\n"
                                 "backend host\n"
                                 "arch x86_64\n"
                                 "binary kernel.so\n"
                                 "file 12 " HASH_A " kernel.c\n"
                                 "file 31 " HASH_B " kernel.so\n"
                                 "end deepjit-entry 1 1187578590aef6dcc3ec097eb404ef2e\n";
    dj__marker marker;
    dj__strbuf text;
    assert_int_equal(parse(golden, sizeof(golden) - 1, &marker), DJ_ENTRY_GOOD);
    write_sample(&marker, &text);
    assert_string_equal(text.data, golden);
    dj__strbuf_fini(&text);
    dj__marker_fini(&marker);
}

static void test_every_damaged_byte(void **state)
{
    (void)state;
    const dj__marker marker = sample();
    dj__strbuf text;
    write_sample(&marker, &text);
    for (size_t at = 0; at < text.size; at++) {
        for (unsigned mask = 1; mask < 256; mask++) {
            text.data[at] ^= (char)mask;
            assert_int_equal(state_of(text.data, text.size), DJ_ENTRY_DAMAGED);
            text.data[at] ^= (char)mask;
        }
    }
    for (size_t size = 1; size < text.size; size++) {
        assert_int_equal(state_of(text.data, size), DJ_ENTRY_DAMAGED);
    }
    dj__strbuf_putc(&text, '\n');
    assert_int_equal(state_of(text.data, text.size), DJ_ENTRY_DAMAGED);
    dj__strbuf_fini(&text);
}

static void test_whose_marker(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        dj_entry_state state;
    } cases[] = {
        {"", DJ_ENTRY_FOREIGN},
        {"\n", DJ_ENTRY_FOREIGN},
        {"{}", DJ_ENTRY_FOREIGN},
        {"deepjit-set 1\n", DJ_ENTRY_FOREIGN},
        {"deepjit-entry 2\nnew\nend deepjit-entry 2 more\n", DJ_ENTRY_FOREIGN},
        {"deepjit-entry 10\nend deepjit-entry 10 \n", DJ_ENTRY_FOREIGN},
        {"deepjit-entry 2\nnew\nend deepjit-entry 3 more\n", DJ_ENTRY_DAMAGED},
        {"deepjit-entry 1\nnew\nend deepjit-entry 2 more\n", DJ_ENTRY_DAMAGED},
        {"deepjit-entry 2\nnew\nend deepjit-entry 1 more\n", DJ_ENTRY_DAMAGED},
        {"deepjit-entry 01\nnew\nend deepjit-entry 01 more\n", DJ_ENTRY_FOREIGN},
        {"deepjit-entry 2\nnew\n", DJ_ENTRY_DAMAGED},
        {"other\nend deepjit-entry 1 x\n", DJ_ENTRY_DAMAGED},
        {"deepjit-entry 1\n", DJ_ENTRY_DAMAGED},
        {"deepjit-entry 1", DJ_ENTRY_DAMAGED},
        {"d", DJ_ENTRY_DAMAGED},
        {"end deepjit-entry 1 x\n", DJ_ENTRY_DAMAGED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(state_of(cases[i].text, strlen(cases[i].text)), cases[i].state);
    }
}

#define HEAD "deepjit-entry 1\ntag t\ndigest " DIGEST "\nbackend b\narch a\nbinary k\n"

/* A right checksum does not make wrong contents right. */
static void test_grammar(void **state)
{
    (void)state;
    assert_int_equal(state_of_body(HEAD "file 1 " HASH_A " k\n"), DJ_ENTRY_GOOD);
    assert_int_equal(state_of_body(HEAD "file 1 " HASH_A " j\nfile 1 " HASH_A " k\n"),
                     DJ_ENTRY_GOOD);
    static const char *const bad[] = {
        HEAD,
        HEAD "file 1 " HASH_A " j\n",
        HEAD "file 1 " HASH_A " k\nfile 1 " HASH_A " j\n",
        HEAD "file 1 " HASH_A " k\nfile 1 " HASH_A " k\n",
        HEAD "file 01 " HASH_A " k\n",
        HEAD "file  " HASH_A " k\n",
        HEAD "file -1 " HASH_A " k\n",
        HEAD "file 18446744073709551616 " HASH_A " k\n",
        HEAD "file 1 " HASH_A "0 k\n",
        HEAD "file 1 0000000000000000000000000000000A k\n",
        HEAD "file 1 " HASH_A " ../k\n",
        HEAD "file 1 " HASH_A " .\nfile 1 " HASH_A " k\n",
        HEAD "file 1 " HASH_A " ..\nfile 1 " HASH_A " k\n",
        HEAD "file 1 " HASH_A " .committed\nfile 1 " HASH_A " k\n",
        HEAD "file 1 " HASH_A " \nfile 1 " HASH_A " k\n",
        HEAD "file 1 " HASH_A " a\tb\nfile 1 " HASH_A " k\n",
        HEAD "file 1 " HASH_A " k\nextra\n",
        HEAD "\nfile 1 " HASH_A " k\n",
        "deepjit-entry 1\ndigest " DIGEST "\ntag t\nbackend b\narch a\nbinary k\n"
        "file 1 " HASH_A " k\n",
        "deepjit-entry 1\ntag t\ndigest 0123\nbackend b\narch a\nbinary k\n"
        "file 1 " HASH_A " k\n",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(state_of_body(bad[i]), DJ_ENTRY_DAMAGED);
    }
}

static void test_write_refuses(void **state)
{
    (void)state;
    dj__strbuf text;
    dj__strbuf_init(&text, DJ__MARKER_LIMIT);
    dj__marker marker = sample();
    marker.binary = "absent.so";
    assert_int_equal(dj__marker_write(&marker, &text, NULL), DJ_INVALID_ARGUMENT);
    marker = sample();
    marker.arch = "a\nb";
    assert_int_equal(dj__marker_write(&marker, &text, NULL), DJ_INVALID_ARGUMENT);
    marker = sample();
    marker.digest[3] = 'G';
    assert_int_equal(dj__marker_write(&marker, &text, NULL), DJ_INVALID_ARGUMENT);
    dj__marker_file files[] = {{.name = "k", .xxh = HASH_A}, {.name = "a", .xxh = HASH_A}};
    marker = sample();
    marker.binary = "k";
    marker.files = files;
    marker.num_files = 2;
    assert_int_equal(dj__marker_write(&marker, &text, NULL), DJ_INTERNAL);
    files[1].name = "l/m";
    assert_int_equal(dj__marker_write(&marker, &text, NULL), DJ_INVALID_ARGUMENT);
    dj__strbuf_fini(&text);
    marker = sample();
    dj__strbuf_init(&text, 64); /* the limit of a marker's size */
    assert_int_equal(dj__marker_write(&marker, &text, NULL), DJ_INVALID_ARGUMENT);
    dj__strbuf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_every_damaged_byte),
        cmocka_unit_test(test_whose_marker),
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_write_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
