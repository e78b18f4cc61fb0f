/* SPDX-License-Identifier: MIT */
/* The cubin reader: what is read, of made and of real cubins, and every kind of damage. */
#include "../../standins/cubin_builder.h"
#include "backend/cuda/cubin.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static const cubin_param cubin_test_params[] = {{8, 8}, {4, 4}, {1, 1}, {128, 64}, {12, 4}};

static const cubin_kernel cubin_test_kernels[] = {
    {.name = "scale",
     .params = cubin_test_params,
     .num_params = 5,
     .registers = 24,
     .shared = 4096,
     .local = 40,
     .max_threads = 256,
     .cluster = {4, 2, 1}},
    {.name = "_Z4noneILi3EEvv", .registers = 4, .hidden = true},
};

static const cubin_spec cubin_test_spec = {
    .sm = 90, .suffix = 'a', .kernels = cubin_test_kernels, .num_kernels = 2};

/* Sections of the first kernel. */
enum {
    TEXT0 = CUBIN_BUILD_FIXED + CUBIN_BUILD_TEXT,
    INFO0 = CUBIN_BUILD_FIXED + CUBIN_BUILD_INFO,
    SHARED0 = CUBIN_BUILD_FIXED + CUBIN_BUILD_SHARED,
    INFO1 = INFO0 + CUBIN_BUILD_EACH,
};
/* Fields of a section header. */
enum { SH_NAME = 0, SH_TYPE = 4, SH_OFFSET = 24, SH_SIZE = 32, SH_LINK = 40, SH_INFO = 44 };

static uint64_t get_int(const uint8_t *at, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

static void set_int(uint8_t *at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint8_t *section_at(uint8_t *cubin, size_t index)
{
    return cubin + get_int(cubin + 40, 8) + 64 * index;
}

static uint8_t *content_at(uint8_t *cubin, size_t index)
{
    return cubin + get_int(section_at(cubin, index) + SH_OFFSET, 8);
}

/* The first record of the attribute in a section of them; fails the test without one. */
static uint8_t *record_at(uint8_t *cubin, size_t section, unsigned attribute)
{
    uint8_t *at = content_at(cubin, section);
    const uint8_t *const end = at + get_int(section_at(cubin, section) + SH_SIZE, 8);
    while (at < end && at[1] != attribute) {
        at += 4 + (at[0] == 4 ? get_int(at + 2, 2) : 0);
    }
    assert_true(at < end);
    return at;
}

static void assert_read(const void *data, size_t size, dj__cubin *cubin)
{
    dj_error err = DJ_ERROR_INIT;
    if (dj__cubin_read(data, size, cubin, &err) != DJ_OK) {
        fail_msg("%s", err.message);
    }
}

static void assert_refused(const void *data, size_t size, const char *words)
{
    dj__cubin cubin;
    dj_error err = DJ_ERROR_INIT;
    memset(&cubin, 0xa5, sizeof cubin);
    assert_int_equal(dj__cubin_read(data, size, &cubin, &err), DJ_INVALID_ARGUMENT);
    if (strstr(err.message, words) == NULL) {
        fail_msg("'%s' does not say '%s'", err.message, words);
    }
    assert_null(cubin.memory);
    assert_null(cubin.info.kernels);
}

/* An exact copy of its own, so that a sanitizer sees every byte read too far. */
static void assert_sane(const uint8_t *data, size_t size, bool may_pass)
{
    uint8_t *const copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    dj__cubin cubin;
    dj_error err = DJ_ERROR_INIT;
    const dj_status status = dj__cubin_read(copy, size, &cubin, &err);
    free(copy);
    if (status != DJ_OK) {
        assert_int_equal(status, DJ_INVALID_ARGUMENT);
        assert_true(err.message[0] != '\0');
        assert_null(cubin.memory);
        return;
    }
    assert_true(may_pass);
    for (size_t i = 0; i < cubin.info.num_kernels; i++) {
        const dj_kernel_info *const kernel = &cubin.info.kernels[i];
        assert_true(kernel->name[0] != '\0');
        assert_true(i == 0 || strcmp(kernel[-1].name, kernel->name) < 0);
        for (size_t k = 0; k < kernel->num_params; k++) {
            const dj_param_info *const param = &kernel->params[k];
            assert_non_null(param->name);
            assert_non_null(param->type);
            assert_true(param->align > 0 && (param->align & (param->align - 1)) == 0);
        }
    }
    dj__cubin_fini(&cubin);
}

static void check_kernel(const cubin_spec *spec, const cubin_kernel *want,
                         const dj_kernel_info *kernel)
{
    assert_string_equal(kernel->name, want->name);
    assert_int_equal(kernel->registers, want->registers);
    assert_int_equal(kernel->shared_bytes, want->shared);
    assert_int_equal(kernel->local_bytes, want->local);
    assert_int_equal(kernel->max_threads, want->max_threads);
    assert_memory_equal(kernel->cluster, want->cluster, sizeof want->cluster);
    assert_int_equal(kernel->num_params, want->num_params);
    for (size_t i = 0; i < want->num_params; i++) {
        const dj_param_info *const param = &kernel->params[i];
        assert_int_equal(param->offset, cubin_param_offset(spec->sm, want, i));
        assert_int_equal(param->size, want->params[i].size);
        assert_int_equal(param->align, want->params[i].align);
        assert_string_equal(param->name, "");
        assert_string_equal(param->type, "");
    }
}

static void test_reads_back(void **state)
{
    (void)state;
    static const struct {
        int sm;
        char suffix;
        bool old_layout;
        const char *arch;
    } targets[] = {{75, 0, true, "75"},       {80, 0, true, "80"},       {80, 0, false, "80"},
                   {90, 0, true, "90"},       {90, 'a', true, "90a"},    {90, 0, false, "90"},
                   {90, 'a', false, "90a"},   {100, 0, false, "100"},    {100, 'f', false, "100f"},
                   {103, 'a', false, "103a"}, {120, 'a', false, "120a"}, {121, 'f', false, "121f"}};
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        cubin_spec spec = cubin_test_spec;
        spec.sm = targets[i].sm;
        spec.suffix = targets[i].suffix;
        spec.old_layout = targets[i].old_layout;
        size_t size = 0;
        void *const data = cubin_build(&spec, &size);
        dj__cubin cubin;
        assert_read(data, size, &cubin);
        free(data); /* which the result need not */
        assert_string_equal(cubin.info.arch, targets[i].arch);
        assert_int_equal(cubin.sm, targets[i].sm);
        assert_int_equal(cubin.info.num_kernels, 2);
        check_kernel(&spec, &cubin_test_kernels[1], &cubin.info.kernels[0]); /* sorted by name */
        check_kernel(&spec, &cubin_test_kernels[0], &cubin.info.kernels[1]);
        dj__cubin_fini(&cubin);
        assert_null(cubin.memory);
        dj__cubin_fini(&cubin); /* twice does no harm */
    }
}

static void test_offsets_follow_the_constant_bank(void **state)
{
    (void)state;
    /* As nvcc places a struct of 128 bytes, aligned to 64, behind 13 bytes. */
    static const struct {
        int sm;
        uint32_t offset;
    } wants[] = {{80, 0x20}, {90, 0x30}, {100, 0x40}};
    for (size_t i = 0; i < 3; i++) {
        cubin_spec spec = cubin_test_spec;
        spec.sm = wants[i].sm;
        size_t size = 0;
        void *const data = cubin_build(&spec, &size);
        dj__cubin cubin;
        assert_read(data, size, &cubin);
        assert_int_equal(cubin.info.kernels[1].params[3].offset, wants[i].offset);
        assert_int_equal(cubin.info.kernels[1].params[4].offset, wants[i].offset + 128);
        dj__cubin_fini(&cubin);
        free(data);
    }
}

static void test_no_kernels(void **state)
{
    (void)state;
    size_t size = 0;
    void *const data = cubin_build(&(cubin_spec){.sm = 90}, &size);
    dj__cubin cubin;
    assert_read(data, size, &cubin);
    assert_int_equal(cubin.info.num_kernels, 0);
    assert_null(cubin.info.kernels);
    assert_string_equal(cubin.info.arch, "90");
    dj__cubin_fini(&cubin);
    free(data);
}

static void test_large_parameters(void **state)
{
    (void)state;
    static const cubin_param params[] = {{20000, 32}, {8, 8}};
    static const cubin_kernel kernel = {
        .name = "large", .params = params, .num_params = 2, .registers = 8, .large_params = true};
    const cubin_spec spec = {.sm = 100, .suffix = 'f', .kernels = &kernel, .num_kernels = 1};
    size_t size = 0;
    void *const data = cubin_build(&spec, &size);
    dj__cubin cubin;
    assert_read(data, size, &cubin);
    assert_string_equal(cubin.info.arch, "100f");
    check_kernel(&spec, &kernel, &cubin.info.kernels[0]);
    dj__cubin_fini(&cubin);
    free(data);
}

static void test_many_kernels_and_parameters(void **state)
{
    (void)state;
    enum { KERNELS = 3000, PARAMS = 32764 }; /* of one byte: the largest block */
    cubin_kernel *const kernels = calloc(KERNELS, sizeof *kernels);
    cubin_param *const params = calloc(PARAMS + 1, sizeof *params);
    char(*const names)[16] = calloc(KERNELS, sizeof *names);
    for (size_t i = 0; i < PARAMS + 1; i++) {
        params[i] = (cubin_param){1, 1};
    }
    for (size_t i = 0; i < KERNELS; i++) {
        (void)snprintf(names[i], sizeof names[i], "k%04zu", KERNELS - i);
        kernels[i] = (cubin_kernel){.name = names[i], .registers = (uint32_t)i};
    }
    kernels[0].params = params;
    kernels[0].num_params = PARAMS;
    cubin_spec spec = {.sm = 90, .kernels = kernels, .num_kernels = KERNELS};
    size_t size = 0;
    void *data = cubin_build(&spec, &size);
    dj__cubin cubin;
    assert_read(data, size, &cubin);
    assert_int_equal(cubin.info.num_kernels, KERNELS);
    for (size_t i = 0; i < KERNELS; i++) {
        check_kernel(&spec, &kernels[KERNELS - 1 - i], &cubin.info.kernels[i]);
    }
    dj__cubin_fini(&cubin);
    free(data);

    spec.num_kernels = 1;
    kernels[0].num_params = PARAMS + 1;
    data = cubin_build(&spec, &size);
    assert_refused(data, size, "the attributes of kernel k3000 make no sense");
    free(data);
    free(kernels);
    free(params);
    free(names);
}

/* Damages a good cubin and expects the words. */
typedef void (*damage_fn)(uint8_t *cubin, size_t size);

static void expect_damage(damage_fn damage, const char *words)
{
    size_t size = 0;
    uint8_t *const data = cubin_build(&cubin_test_spec, &size);
    damage(data, size);
    assert_refused(data, size, words);
    free(data);
}

/* The same, but the reader copes. */
static void expect_read(damage_fn damage, dj__cubin *cubin)
{
    size_t size = 0;
    uint8_t *const data = cubin_build(&cubin_test_spec, &size);
    damage(data, size);
    assert_read(data, size, cubin);
    free(data);
}

static void test_kinds_of_bytes(void **state)
{
    (void)state;
#define BYTES(text) text, sizeof text - 1
    static const struct {
        const char *data;
        size_t size;
        const char *words;
    } kinds[] = {
        {BYTES(""), "it is empty"},
        {BYTES("//\n// Generated by NVIDIA NVVM Compiler\n.version 8.8\n.target sm_90a\n"),
         "this is PTX text, not a cubin"},
        {BYTES("#include <x>\nextern \"C\" __global__ void f() {}\n"), "CUDA source text"},
        {BYTES("; ModuleID = 'x'\ntarget triple = \"nvptx64\"\n"), "LLVM IR text"},
        {BYTES("hello\n"), "this is text, not a cubin"},
        {BYTES("BC\xc0\xde\x35\x14"), "LLVM bitcode"},
        {BYTES("\x50\xed\x55\xba\1\0\x10\0"), "fat binary, not a cubin"},
        {BYTES("\xed\x43\x4e\x7f\0\0"), "link-time IR"},
        {BYTES("!<arch>\n/"), "archive"},
        {BYTES("\x1f\x8b\x08\0"), "gzip"},
        {BYTES("\0\0\0\0\0\0\0\0\0\0"), "its 10 bytes begin with 00 00 00 00 00 00 00 00"},
        {BYTES("\0"), "its 1 bytes begin with 00"},
        {BYTES("\x7f"
               "ELF\2\1\1\0"),
         "cut off after 8 bytes"},
        {BYTES("\x7f"
               "ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\xbe\0"),
         "class 1 instead of 64-bit"},
        {BYTES("\x7f"
               "ELF\2\2\1\0\0\0\0\0\0\0\0\0\0\2\0\xbe"),
         "encoding 2 instead of little-endian"},
        {BYTES("\x7f"
               "ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0\x3e\0"),
         "an ELF file for x86-64"},
        {BYTES("\x7f"
               "ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0\x99\x99"),
         "for machine 39321"},
        {BYTES("\x7f"
               "ELF\2\1\1\x41\x08\0\0\0\0\0\0\0\2\0\xbe\0"),
         "truncated cubin: its 20 bytes"},
    };
#undef BYTES
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        assert_refused(kinds[i].data, kinds[i].size, kinds[i].words);
    }
    /* A text is not searched to its end. */
    char *const text = malloc(1 << 20);
    assert_non_null(text);
    memset(text, '.', 1 << 20);
    assert_refused(text, 1 << 20, "this is text, not a cubin");
    free(text);
}

static void test_truncated_anywhere(void **state)
{
    (void)state;
    size_t size = 0;
    uint8_t *const data = cubin_build(&cubin_test_spec, &size);
    for (size_t length = 0; length < size; length++) {
        assert_sane(data, length, false);
    }
    assert_refused(data, size - 1, "truncated cubin");
    assert_sane(data, size, true);
    free(data);
}

static void test_any_byte_wrong(void **state)
{
    (void)state;
    static const uint8_t flips[] = {0x01, 0x04, 0x80, 0xff};
    static const bool old[] = {false, true};
    for (size_t layout = 0; layout < 2; layout++) {
        cubin_spec spec = cubin_test_spec;
        spec.old_layout = old[layout];
        size_t size = 0;
        uint8_t *const data = cubin_build(&spec, &size);
        for (size_t i = 0; i < size; i++) {
            for (size_t k = 0; k < sizeof flips; k++) {
                data[i] ^= flips[k];
                assert_sane(data, size, true);
                data[i] ^= flips[k];
            }
        }
        free(data);
    }
}

static void test_unaligned(void **state)
{
    (void)state;
    size_t size = 0;
    uint8_t *const data = cubin_build(&cubin_test_spec, &size);
    uint8_t *const moved = malloc(size + 1);
    assert_non_null(moved);
    memcpy(moved + 1, data, size);
    dj__cubin cubin;
    assert_read(moved + 1, size, &cubin);
    assert_int_equal(cubin.info.num_kernels, 2);
    dj__cubin_fini(&cubin);
    free(moved);
    free(data);
}

static void break_abi(uint8_t *cubin, size_t size)
{
    (void)size;
    cubin[7] = 0x42;
}

static void break_type(uint8_t *cubin, size_t size)
{
    (void)size;
    cubin[16] = 3;
}

static void break_header_size(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(cubin + 58, 63, 2);
}

static void break_no_sections(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(cubin + 60, 0, 2);
}

static void break_huge_sections(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(cubin + 60, 0xfeff, 2);
}

static void break_sections_offset(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(cubin + 40, UINT64_MAX - 32, 8);
}

static void break_names_index(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(cubin + 62, 0xff, 2);
}

static void break_info_offset(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, INFO0) + SH_OFFSET, UINT64_MAX - 7, 8);
}

static void break_program_headers(uint8_t *cubin, size_t size)
{
    set_int(cubin + 32, size - 55, 8);
    set_int(cubin + 56, 1, 2);
}

static void break_text_size(uint8_t *cubin, size_t size)
{
    set_int(section_at(cubin, TEXT0) + SH_SIZE, size, 8);
}

static void break_info_size(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, INFO0) + SH_SIZE, UINT64_MAX, 8);
}

static void break_no_symbols(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, CUBIN_BUILD_SYMBOLS) + SH_TYPE, 1, 4);
}

static void break_two_symbol_tables(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, CUBIN_BUILD_COMPAT) + SH_TYPE, 2, 4);
}

static void break_own_link(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, CUBIN_BUILD_SYMBOLS) + SH_LINK, CUBIN_BUILD_SYMBOLS, 4);
}

static void break_link(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, CUBIN_BUILD_SYMBOLS) + SH_LINK, UINT32_MAX, 4);
}

static void break_symbols_size(uint8_t *cubin, size_t size)
{
    (void)size;
    uint8_t *const section = section_at(cubin, CUBIN_BUILD_SYMBOLS);
    set_int(section + SH_SIZE, get_int(section + SH_SIZE, 8) - 1, 8);
}

/* Symbols 3 and 4 of the table are the kernels. */
static uint8_t *symbol_of(uint8_t *cubin, size_t kernel)
{
    return content_at(cubin, CUBIN_BUILD_SYMBOLS) + 24 * (3 + kernel);
}

static void break_symbol_section(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(symbol_of(cubin, 0) + 6, 0xfff1, 2);
}

static void break_same_section(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(symbol_of(cubin, 1) + 6, TEXT0, 2);
}

static void break_name_offset(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(symbol_of(cubin, 0), UINT32_MAX, 4);
}

static void break_empty_name(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(symbol_of(cubin, 0), 0, 4);
}

static void break_same_name(uint8_t *cubin, size_t size)
{
    (void)size;
    memcpy(symbol_of(cubin, 1), symbol_of(cubin, 0), 4);
}

/* The last name loses its end: the table ends first. */
static void break_name_end(uint8_t *cubin, size_t size)
{
    (void)size;
    uint8_t *const section = section_at(cubin, CUBIN_BUILD_STRINGS);
    const uint64_t names = get_int(section + SH_SIZE, 8);
    content_at(cubin, CUBIN_BUILD_STRINGS)[names - 1] = 'x';
    set_int(symbol_of(cubin, 0), 1, 4);
    memset(content_at(cubin, CUBIN_BUILD_STRINGS) + 1, 'x', names - 1);
}

static void break_no_info(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, INFO0) + SH_TYPE, 1, 4);
}

static void break_two_infos(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, INFO1) + SH_INFO, TEXT0, 4);
}

static void break_two_globals(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, INFO0) + SH_INFO, 0, 4);
}

static void break_info_target(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, INFO0) + SH_INFO, UINT32_MAX, 4);
}

static void break_overlap(uint8_t *cubin, size_t size)
{
    for (size_t i = INFO0; i <= INFO1; i += CUBIN_BUILD_EACH) {
        /* Both begin as a good section does and have nearly all of the file. */
        uint8_t *const section = section_at(cubin, i);
        const uint64_t offset = get_int(section_at(cubin, INFO0) + SH_OFFSET, 8);
        set_int(section + SH_OFFSET, offset, 8);
        set_int(section + SH_SIZE, size - offset, 8);
    }
    uint8_t *const records = content_at(cubin, INFO0); /* one that covers the section */
    set_int(records, 4 | 0x7fu << 8 | (uint32_t)(size - (size_t)(records - cubin) - 4) << 16, 4);
}

static void break_record_format(uint8_t *cubin, size_t size)
{
    (void)size;
    content_at(cubin, INFO0)[0] = 5;
}

static void break_record_size(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(record_at(cubin, INFO0, 0x0a) + 2, 0xfff0, 2);
}

static void break_info_tail(uint8_t *cubin, size_t size)
{
    (void)size;
    uint8_t *const section = section_at(cubin, INFO0);
    set_int(section + SH_SIZE, get_int(section + SH_SIZE, 8) - 9, 8);
}

static void break_param_twice(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(record_at(cubin, INFO0, 0x17) + 8, 0, 2); /* the last one's ordinal */
}

static void break_param_gap(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(record_at(cubin, INFO0, 0x17) + 8, 5, 2);
}

static void break_param_outside(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(record_at(cubin, INFO0, 0x17) + 10, 0xffff, 2);
}

static void break_threads(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(record_at(cubin, INFO0, 0x05) + 4, UINT32_MAX, 4);
}

static void break_globals(uint8_t *cubin, size_t size)
{
    (void)size;
    content_at(cubin, CUBIN_BUILD_GLOBALS)[0] = 0;
}

static void test_damage(void **state)
{
    (void)state;
    static const struct {
        damage_fn damage;
        const char *words;
    } damages[] = {
        {break_abi, "unknown kind (OS ABI 0x42"},
        {break_type, "ELF type 3"},
        {break_header_size, "section headers of 63 bytes"},
        {break_no_sections, "0 section headers"},
        {break_huge_sections, "end before its section and program headers"},
        {break_sections_offset, "truncated cubin"},
        {break_names_index, "names in number 255"},
        {break_info_offset, "should lie at byte 18446744073709551608"},
        {break_program_headers, "end before its section and program headers"},
        {break_text_size, "section 7 ends behind the end"},
        {break_info_size, "have 18446744073709551615 bytes"},
        {break_no_symbols, "has no symbol table"},
        {break_two_symbol_tables, "symbol table makes no sense"},
        {break_own_link, "no table of names"},
        {break_link, "symbol table makes no sense"},
        {break_symbols_size, "symbol table makes no sense"},
        {break_symbol_section, "the kernel of symbol 3 lies in no section"},
        {break_same_section, "the kernel of symbol 4 shares its section"},
        {break_name_offset, "the kernel of symbol 3 has no proper name"},
        {break_empty_name, "the kernel of symbol 3 has no proper name"},
        {break_name_end, "the kernel of symbol 3 has no proper name"},
        {break_same_name, "it has two times the kernel scale"},
        {break_no_info, "nothing describes kernel scale"},
        {break_two_infos, "two sections with the same attributes"},
        {break_two_globals, "two sections with the same attributes"},
        {break_info_target, "attributes of section 4294967295"},
        {break_overlap, "its parts overlap"},
        {break_record_format, "the attributes of kernel scale make no sense"},
        {break_record_size, "the attributes of kernel scale make no sense"},
        {break_info_tail, "the attributes of kernel scale make no sense"},
        {break_param_twice, "parameter 0 of kernel scale makes no sense"},
        {break_param_gap, "parameter 5 of kernel scale makes no sense"},
        {break_param_outside, "parameter 4 of kernel scale makes no sense"},
        {break_threads, "the attributes of kernel scale make no sense"},
        {break_globals, "the attributes of its symbols make no sense"},
    };
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        expect_damage(damages[i].damage, damages[i].words);
    }
}

/* Sections without end whose content is the whole file each: the time must not multiply. */
static void test_overlap_costs_nothing(void **state)
{
    (void)state;
    enum { KERNELS = 8000 };
    cubin_kernel *const kernels = calloc(KERNELS, sizeof *kernels);
    char(*const names)[16] = calloc(KERNELS, sizeof *names);
    for (size_t i = 0; i < KERNELS; i++) {
        (void)snprintf(names[i], sizeof names[i], "k%zu", i);
        kernels[i] = (cubin_kernel){.name = names[i]};
    }
    size_t size = 0;
    uint8_t *const data =
        cubin_build(&(cubin_spec){.sm = 90, .kernels = kernels, .num_kernels = KERNELS}, &size);
    const uint64_t first = get_int(section_at(data, INFO0) + SH_OFFSET, 8);
    for (size_t i = 0; i < KERNELS; i++) {
        uint8_t *const section = section_at(data, INFO0 + CUBIN_BUILD_EACH * i);
        set_int(section + SH_OFFSET, first, 8);
        set_int(section + SH_SIZE, (size - first) / 4 * 4, 8);
    }
    for (uint64_t at = first; at + 4 <= size && at < get_int(data + 40, 8); at += 4) {
        set_int(data + at, 0x00007f01, 4);
    }
    assert_refused(data, size, "");
    free(data);
    free(kernels);
    free(names);
}

static void hide_numbers(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, CUBIN_BUILD_GLOBALS) + SH_TYPE, 1, 4);
    set_int(section_at(cubin, SHARED0) + SH_TYPE, 0, 4);
    record_at(cubin, INFO0, 0x05)[1] = 0x7e; /* an attribute nobody knows */
    record_at(cubin, INFO0, 0x3d)[1] = 0x7f;
}

static void ask_for_stack(uint8_t *cubin, size_t size)
{
    (void)size;
    /* Of the last kernel first. Frame, then the stack with what is called. */
    uint8_t *const frame = record_at(cubin, CUBIN_BUILD_GLOBALS, 0x11) + 8;
    uint8_t *const stack = record_at(cubin, CUBIN_BUILD_GLOBALS, 0x12) + 8;
    set_int(frame, 16, 4);
    set_int(stack, 96, 4);
    set_int(frame + 36, 48, 4);
    set_int(stack + 36, UINT32_MAX, 4); /* a recursion */
}

static void test_what_is_not_said(void **state)
{
    (void)state;
    dj__cubin cubin;
    expect_read(hide_numbers, &cubin);
    const dj_kernel_info *kernel = &cubin.info.kernels[1];
    assert_string_equal(kernel->name, "scale");
    assert_int_equal(kernel->registers, -1);
    assert_int_equal(kernel->local_bytes, -1);
    assert_int_equal(kernel->shared_bytes, 0); /* toolkits leave out an empty section */
    assert_int_equal(kernel->max_threads, 0);
    assert_int_equal(kernel->cluster[0], 0);
    assert_int_equal(kernel->num_params, 5);
    dj__cubin_fini(&cubin);

    expect_read(ask_for_stack, &cubin);
    assert_int_equal(cubin.info.kernels[0].local_bytes, 96);
    assert_int_equal(cubin.info.kernels[1].local_bytes, 48);
    dj__cubin_fini(&cubin);

    /* On older architectures the section has the registers too. */
    cubin_spec spec = cubin_test_spec;
    spec.sm = 80;
    spec.suffix = 0;
    spec.relocatable = true;
    size_t size = 0;
    uint8_t *const data = cubin_build(&spec, &size);
    set_int(section_at(data, CUBIN_BUILD_GLOBALS) + SH_TYPE, 1, 4);
    assert_read(data, size, &cubin);
    assert_int_equal(cubin.info.kernels[1].registers, 24);
    assert_int_equal(cubin.info.kernels[1].shared_bytes, -1); /* the linker will know */
    dj__cubin_fini(&cubin);
    free(data);
}

static void spoil_note(uint8_t *cubin, size_t size)
{
    (void)size;
    /* Strings that begin behind the note. */
    set_int(content_at(cubin, CUBIN_BUILD_TOOL) + 44, UINT32_MAX, 4);
    set_int(section_at(cubin, CUBIN_BUILD_COMPAT) + SH_TYPE, 1, 4);
}

static void contradict_note(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, CUBIN_BUILD_COMPAT) + SH_TYPE, 1, 4);
    cubin[49] = 89; /* of e_flags, where the note says 90a */
}

static void mark_in_flags(uint8_t *cubin, size_t size)
{
    spoil_note(cubin, size);
    cubin[48] |= 8;
}

static void mark_in_compat(uint8_t *cubin, size_t size)
{
    (void)size;
    set_int(section_at(cubin, CUBIN_BUILD_TOOL) + SH_TYPE, 1, 4);
}

static void test_suffix_sources(void **state)
{
    (void)state;
    static const struct {
        damage_fn damage;
        const char *arch;
    } cases[] = {{spoil_note, "90"},
                 {contradict_note, "89"},
                 {mark_in_flags, "90a"},
                 {mark_in_compat, "90a"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dj__cubin cubin;
        expect_read(cases[i].damage, &cubin);
        assert_string_equal(cubin.info.arch, cases[i].arch);
        dj__cubin_fini(&cubin);
    }
}

/* ---- Real ones ---- */

static const char cubin_test_source[] =
    "struct P3 { float x, y, z; };\n"
    "struct __align__(64) Map { char b[128]; };\n"
    "struct Large { char b[20000]; };\n"
    "extern \"C\" __global__ void none() {}\n"
    "extern \"C\" __global__ void types(float *a, int b, char c, double d, P3 p, Map t, short s)\n"
    "{ a[0] = b + c + d + p.x + t.b[3] + s; }\n"
    "static __global__ void hidden(float *a) { a[1] = 2; }\n"
    "template <int N> __global__ void __launch_bounds__(N) reverse(float *a)\n"
    "{ __shared__ float s[N]; s[threadIdx.x] = a[threadIdx.x]; __syncthreads();\n"
    "  a[threadIdx.x] = s[N - 1 - threadIdx.x]; }\n"
    "template __global__ void reverse<128>(float *);\n"
    "extern \"C\" __global__ void __launch_bounds__(64) dynamic(int *a)\n"
    "{ extern __shared__ int d[]; d[threadIdx.x] = a[threadIdx.x]; __syncthreads();\n"
    "  a[threadIdx.x] = d[63 - threadIdx.x]; }\n"
    "extern \"C\" __global__ void __maxnreg__(32) spill(float *a, int n)\n"
    "{ float v[200]; for (int i = 0; i < 200; i++) v[i] = a[i * n];\n"
    "  for (int k = 0; k < n; k++) for (int i = 0; i < 200; i++) v[i] = v[i] * v[(i + 7) % 200];\n"
    "  for (int i = 0; i < 200; i++) a[i] = v[i]; }\n"
    "extern \"C\" __global__ void large(Large b, int *a) { a[0] = b.b[threadIdx.x]; }\n"
    "#if __CUDA_ARCH__ >= 900\n"
    "extern \"C\" __global__ void __cluster_dims__(4, 2, 1) cluster(int *a) { a[blockIdx.x] = 1; "
    "}\n"
    "#endif\n"
    "int main() { hidden<<<1, 1>>>(nullptr); }\n";

typedef struct nvcc_fixture {
    char dir[64];
    char source[96], cubin[96], log[96];
} nvcc_fixture;

static bool nvcc_fixture_init(nvcc_fixture *fixture)
{
    if (system("command -v nvcc >/dev/null 2>&1 || test -x /usr/local/cuda/bin/nvcc") != 0) {
        print_message("skipped: no nvcc on PATH or in /usr/local/cuda/bin\n");
        return false;
    }
    (void)snprintf(fixture->dir, sizeof fixture->dir, "/tmp/dj_cubin_XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    (void)snprintf(fixture->source, sizeof fixture->source, "%s/k.cu", fixture->dir);
    (void)snprintf(fixture->cubin, sizeof fixture->cubin, "%s/k.cubin", fixture->dir);
    (void)snprintf(fixture->log, sizeof fixture->log, "%s/log", fixture->dir);
    FILE *const file = fopen(fixture->source, "w");
    assert_non_null(file);
    assert_true(fputs(cubin_test_source, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return true;
}

static void nvcc_fixture_fini(const nvcc_fixture *fixture)
{
    (void)unlink(fixture->source);
    (void)unlink(fixture->cubin);
    (void)unlink(fixture->log);
    (void)rmdir(fixture->dir);
}

static char *slurp(const char *path, size_t *size)
{
    FILE *const file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long length = ftell(file);
    assert_true(length >= 0);
    rewind(file);
    char *const data = calloc(1, (size_t)length + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)length, file), (size_t)length);
    (void)fclose(file);
    *size = (size_t)length;
    return data;
}

static const dj_kernel_info *kernel_named(const dj__cubin *cubin, const char *name)
{
    for (size_t i = 0; i < cubin->info.num_kernels; i++) {
        if (strcmp(cubin->info.kernels[i].name, name) == 0) {
            return &cubin->info.kernels[i];
        }
    }
    fail_msg("no kernel %s", name);
    return NULL;
}

/* What ptxas -v says: "... entry function 'name' for ...", "N bytes stack frame, ...", "Used N
 * registers, ... N bytes smem". */
static void check_against_log(const dj__cubin *cubin, const char *log)
{
    for (size_t i = 0; i < cubin->info.num_kernels; i++) {
        const dj_kernel_info *const kernel = &cubin->info.kernels[i];
        char head[160];
        unsigned frame = 0;
        unsigned registers = 0;
        unsigned shared = 0;
        (void)snprintf(head, sizeof head, "Compiling entry function '%s'", kernel->name);
        const char *at = strstr(log, head);
        assert_non_null(at);
        at = strchr(strstr(at, "Function properties"), '\n');
        assert_non_null(at);
        assert_int_equal(sscanf(at, " %u bytes stack frame", &frame), 1);
        at = strstr(at, "Used ");
        assert_non_null(at);
        assert_int_equal(sscanf(at, "Used %u registers", &registers), 1);
        const char *const end = strchr(at, '\n');
        const char *const smem = strstr(at, " bytes smem");
        if (smem != NULL && end != NULL && smem < end) {
            const char *number = smem;
            while (number[-1] != ' ') {
                number--;
            }
            assert_int_equal(sscanf(number, "%u", &shared), 1);
        }
        assert_int_equal(kernel->registers, registers);
        assert_int_equal(kernel->shared_bytes, shared);
        assert_int_equal(kernel->local_bytes, frame);
    }
}

static void check_real_kernels(const dj__cubin *cubin, bool optimized)
{
    static const struct {
        uint32_t size, align;
    } types[] = {{8, 8}, {4, 4}, {1, 1}, {8, 8}, {12, 4}, {128, 64}, {2, 2}};
    const dj_kernel_info *kernel = kernel_named(cubin, "types");
    assert_int_equal(kernel->num_params, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(kernel->params[i].size, types[i].size);
        assert_int_equal(kernel->params[i].align, types[i].align);
    }
    assert_int_equal(kernel->params[4].offset, 24);
    assert_int_equal(kernel->params[5].offset, cubin->sm >= 100 ? 64 : cubin->sm >= 90 ? 48 : 96);
    assert_int_equal(kernel->params[6].offset, kernel->params[5].offset + 128);

    assert_int_equal(kernel_named(cubin, "none")->num_params, 0);
    assert_int_equal(kernel_named(cubin, "_Z6hiddenPf")->num_params, 1);
    kernel = kernel_named(cubin, "_Z7reverseILi128EEvPf");
    assert_int_equal(kernel->max_threads, 128);
    assert_int_equal(kernel->shared_bytes, 512);
    kernel = kernel_named(cubin, "dynamic");
    assert_int_equal(kernel->max_threads, 64);
    assert_int_equal(kernel->shared_bytes, 0);
    kernel = kernel_named(cubin, "spill");
    assert_int_equal(kernel->max_threads, 0);
    assert_true(kernel->local_bytes > 400);
    assert_true(!optimized || kernel->registers == 32);
    kernel = kernel_named(cubin, "large");
    assert_int_equal(kernel->num_params, 2);
    assert_int_equal(kernel->params[0].size, 20000);
    assert_int_equal(kernel->params[1].offset, 20000);
    if (cubin->sm >= 90) {
        kernel = kernel_named(cubin, "cluster");
        assert_memory_equal(kernel->cluster, ((const uint32_t[]){4, 2, 1}), 12);
    }
}

static void test_real_cubins(void **state)
{
    (void)state;
    static const struct {
        const char *arch, *flags;
        bool optimized;
    } builds[] = {{"80", "", true},   {"90a", "", true},           {"100", "", true},
                  {"100f", "", true}, {"120a", "-lineinfo", true}, {"90", "-G", false}};
    nvcc_fixture fixture;
    if (!nvcc_fixture_init(&fixture)) {
        skip();
    }
    for (size_t i = 0; i < sizeof builds / sizeof builds[0]; i++) {
        char command[640];
        (void)snprintf(command, sizeof command,
                       "PATH=\"$PATH:/usr/local/cuda/bin\" nvcc -cubin -w -Xptxas -v -arch=sm_%s "
                       "%s -o %s %s >%s 2>&1",
                       builds[i].arch, builds[i].flags, fixture.cubin, fixture.source, fixture.log);
        const int result = system(command);
        size_t size = 0;
        char *const log = slurp(fixture.log, &size);
        if (result != 0) {
            fail_msg("nvcc: %s", log);
        }
        char *const data = slurp(fixture.cubin, &size);
        dj__cubin cubin;
        assert_read(data, size, &cubin);
        assert_string_equal(cubin.info.arch, builds[i].arch);
        assert_int_equal(cubin.info.num_kernels, cubin.sm >= 90 ? 8 : 7);
        check_real_kernels(&cubin, builds[i].optimized);
        check_against_log(&cubin, log);
        dj__cubin_fini(&cubin);
        assert_refused(data, size - 64, "truncated cubin");
        free(data);
        free(log);
    }
    nvcc_fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_back),
        cmocka_unit_test(test_offsets_follow_the_constant_bank),
        cmocka_unit_test(test_no_kernels),
        cmocka_unit_test(test_large_parameters),
        cmocka_unit_test(test_many_kernels_and_parameters),
        cmocka_unit_test(test_kinds_of_bytes),
        cmocka_unit_test(test_truncated_anywhere),
        cmocka_unit_test(test_any_byte_wrong),
        cmocka_unit_test(test_unaligned),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_overlap_costs_nothing),
        cmocka_unit_test(test_what_is_not_said),
        cmocka_unit_test(test_suffix_sources),
        cmocka_unit_test(test_real_cubins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
