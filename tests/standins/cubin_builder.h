/* SPDX-License-Identifier: MIT */
/*
 * Makes small cubins in memory, laid out as ptxas lays them out but with nothing to execute: for
 * tests, for the stand-in compiler and driver, and for the fuzzer's corpus.
 *
 *     const cubin_param params[] = {{8, 8}, {4, 4}};
 *     const cubin_kernel kernel = {.name = "scale", .params = params, .num_params = 2,
 *                                  .registers = 16};
 *     size_t size;
 *     void *cubin = cubin_build(&(cubin_spec){.sm = 90, .suffix = 'a', .kernels = &kernel,
 *                                             .num_kernels = 1}, &size);
 *
 * Alignments place the parameters and are not written, as no toolkit writes them.
 */
#ifndef DJ_TEST_CUBIN_BUILDER_H
#define DJ_TEST_CUBIN_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cubin_param {
    uint32_t size;
    uint32_t align; /* 0: 1 */
} cubin_param;

typedef struct cubin_kernel {
    const char *name;
    const cubin_param *params;
    size_t num_params;
    uint32_t registers;
    uint32_t shared; /* static, as the source says: without the system's part */
    uint32_t local;
    uint32_t max_threads; /* 0: no bound */
    uint32_t cluster[3];  /* 0, 0, 0: none */
    bool hidden;          /* a static function */
    bool large_params;    /* records for blocks beyond 4 KiB */
    const void *code;     /* NULL: 128 bytes of no meaning */
    size_t code_size;
} cubin_kernel;

typedef struct cubin_spec {
    int sm;
    char suffix; /* 'a', 'f', 0 */
    bool
        old_layout; /* OS ABI 0x33, as toolkits before 12.8 write, and 12.8 and 12.9 below sm_100 */
    bool relocatable; /* as nvcc -rdc=true */
    const cubin_kernel *kernels;
    size_t num_kernels;
} cubin_spec;

/* Sections: these, then four for each kernel. */
enum {
    CUBIN_BUILD_NAMES = 1,
    CUBIN_BUILD_STRINGS,
    CUBIN_BUILD_SYMBOLS,
    CUBIN_BUILD_TOOL,
    CUBIN_BUILD_COMPAT,
    CUBIN_BUILD_GLOBALS,
    CUBIN_BUILD_FIXED,
    CUBIN_BUILD_TEXT = 0,
    CUBIN_BUILD_INFO,
    CUBIN_BUILD_SHARED,
    CUBIN_BUILD_CONSTANT,
    CUBIN_BUILD_EACH
};

typedef struct cubin_bytes {
    uint8_t *data;
    size_t size, capacity;
} cubin_bytes;

static inline void cubin_put(cubin_bytes *out, const void *data, size_t size)
{
    if (size == 0) {
        return;
    }
    if (out->size + size > out->capacity) {
        out->capacity = 2 * (out->size + size) + 1024;
        out->data = realloc(out->data, out->capacity);
        if (out->data == NULL) {
            abort();
        }
    }
    if (data != NULL) {
        memcpy(out->data + out->size, data, size);
    } else {
        memset(out->data + out->size, 0, size);
    }
    out->size += size;
}

static inline void cubin_put_int(cubin_bytes *out, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const uint8_t byte = (uint8_t)(value >> (8 * i));
        cubin_put(out, &byte, 1);
    }
}

static inline void cubin_put_align(cubin_bytes *out, size_t align)
{
    cubin_put(out, NULL, (align - out->size % align) % align);
}

/* Appends "<prefix><name>" and its NUL; returns where it begins. */
static inline uint32_t cubin_put_name(cubin_bytes *out, const char *prefix, const char *name)
{
    const size_t at = out->size;
    cubin_put(out, prefix, strlen(prefix));
    cubin_put(out, name, strlen(name) + 1);
    return (uint32_t)at;
}

/* A record with payload, all of 32-bit words. */
static inline void cubin_put_record(cubin_bytes *out, unsigned attribute, const uint32_t *words,
                                    size_t count)
{
    cubin_put_int(out, 4 | attribute << 8 | (uint32_t)(4 * count) << 16, 4);
    for (size_t i = 0; i < count; i++) {
        cubin_put_int(out, words[i], 4);
    }
}

static inline uint32_t cubin_param_base(int sm)
{
    return sm >= 100 ? 0x380 : sm >= 90 ? 0x210 : 0x160;
}

/* Where parameter `index` begins in the block: aligned as an address of the constant bank. With
 * num_params, the block's size. */
static inline uint32_t cubin_param_offset(int sm, const cubin_kernel *kernel, size_t index)
{
    const uint32_t base = cubin_param_base(sm);
    uint32_t at = base;
    for (size_t i = 0; i < kernel->num_params; i++) {
        const uint32_t align = kernel->params[i].align > 0 ? kernel->params[i].align : 1;
        at = (at + align - 1) / align * align;
        if (i == index) {
            break;
        }
        at += kernel->params[i].size;
    }
    return at - base;
}

static inline void cubin_put_info(cubin_bytes *out, const cubin_spec *spec, size_t index)
{
    const cubin_kernel *const kernel = &spec->kernels[index];
    const uint32_t bytes = cubin_param_offset(spec->sm, kernel, kernel->num_params);
    cubin_put_record(out, 0x37, (const uint32_t[]){130}, 1);
    for (size_t i = kernel->num_params; i-- > 0;) {
        const uint32_t size = kernel->params[i].size;
        const uint32_t place = cubin_param_offset(spec->sm, kernel, i) << 16 | (uint32_t)i;
        if (kernel->large_params) {
            cubin_put_record(out, 0x45, (const uint32_t[]){0, place, size}, 3);
        } else {
            cubin_put_record(out, 0x17, (const uint32_t[]){0, place, size << 18 | 0x1f000}, 3);
        }
    }
    cubin_put_int(out, 0x00ff1b03, 4); /* no limit of registers */
    if (kernel->cluster[0] != 0) {
        cubin_put_int(out, 0x00003e01, 4);
        cubin_put_record(out, 0x3d, kernel->cluster, 3);
    }
    if (kernel->max_threads != 0) {
        cubin_put_record(out, 0x05, (const uint32_t[]){kernel->max_threads, 1, 1}, 3);
    }
    if (kernel->num_params > 0) {
        cubin_put_int(out, 0x1903 | bytes << 16, 4);
        cubin_put_record(
            out, 0x0a,
            (const uint32_t[]){(uint32_t)(1 + index), bytes << 16 | cubin_param_base(spec->sm)}, 2);
    }
}

/* The note in which ptxas leaves its command line. */
static inline void cubin_put_tool(cubin_bytes *out, const cubin_spec *spec)
{
    char text[64];
    const int length = snprintf(text, sizeof text, "%cptxas%c-arch sm_%d%.1s -m 64 ", 0, 0,
                                spec->sm, (const char[]){spec->suffix, '\0'});
    const size_t size = 24 + ((size_t)length + 1 + 3) / 4 * 4;
    cubin_put_int(out, 12, 4);
    cubin_put_int(out, size, 4);
    cubin_put_int(out, 2000, 4);
    cubin_put(out, "NVIDIA Corp", 12);
    const uint32_t numbers[] = {2, 0, 1, 0, 0, 7};
    for (size_t i = 0; i < 6; i++) {
        cubin_put_int(out, numbers[i], 4);
    }
    cubin_put(out, text, (size_t)length + 1);
    cubin_put_align(out, 4);
}

static inline void cubin_put_symbol(cubin_bytes *out, uint32_t name, unsigned info, unsigned other,
                                    size_t section, uint64_t size)
{
    cubin_put_int(out, name, 4);
    cubin_put_int(out, info, 1);
    cubin_put_int(out, other, 1);
    cubin_put_int(out, section, 2);
    cubin_put_int(out, 0, 8);
    cubin_put_int(out, size, 8);
}

static inline size_t cubin_code_size(const cubin_kernel *kernel)
{
    return kernel->code != NULL ? kernel->code_size : 128;
}

typedef struct cubin_place {
    uint32_t name, type, flags, link, info;
    size_t offset, size;
} cubin_place;

/* Ends the section that began at `offset`. */
static inline void cubin_end(const cubin_bytes *out, cubin_place *place, const char *prefix,
                             const char *name, cubin_bytes *names)
{
    place->name = cubin_put_name(names, prefix, name);
    place->size = out->size - place->offset;
}

static inline void cubin_build_symbols(cubin_bytes *out, const cubin_spec *spec, cubin_place *at,
                                       cubin_bytes *names)
{
    cubin_bytes symbols = {0};
    at[CUBIN_BUILD_STRINGS] = (cubin_place){.type = 3, .offset = out->size};
    cubin_put(out, NULL, 1);
    cubin_put_symbol(&symbols, 0, 0, 0, 0, 0);
    for (size_t i = 0; i < 2 * spec->num_kernels; i++) {
        const bool function = i >= spec->num_kernels;
        const cubin_kernel *const kernel = &spec->kernels[i % spec->num_kernels];
        const uint32_t name = (uint32_t)(out->size - at[CUBIN_BUILD_STRINGS].offset);
        (void)cubin_put_name(out, function ? "" : ".nv.constant0.", kernel->name);
        cubin_put_symbol(&symbols, name,
                         !function        ? 3
                         : kernel->hidden ? 2
                                          : 0x12,
                         function ? 0x10 : 0,
                         CUBIN_BUILD_FIXED + CUBIN_BUILD_EACH * (i % spec->num_kernels) +
                             (function ? CUBIN_BUILD_TEXT : CUBIN_BUILD_CONSTANT),
                         function ? cubin_code_size(kernel) : 0);
    }
    cubin_end(out, &at[CUBIN_BUILD_STRINGS], ".strtab", "", names);
    cubin_put_align(out, 8);
    at[CUBIN_BUILD_SYMBOLS] = (cubin_place){.type = 2,
                                            .link = CUBIN_BUILD_STRINGS,
                                            .info = (uint32_t)spec->num_kernels + 1,
                                            .offset = out->size};
    cubin_put(out, symbols.data, symbols.size);
    cubin_end(out, &at[CUBIN_BUILD_SYMBOLS], ".symtab", "", names);
    free(symbols.data);
}

static inline void cubin_build_globals(cubin_bytes *out, const cubin_spec *spec, cubin_place *at,
                                       cubin_bytes *names)
{
    static const uint8_t compat[] = {2, 9, 0, 0, 2, 2, 1, 0};
    at[CUBIN_BUILD_TOOL] = (cubin_place){.type = 7, .offset = out->size};
    if (!spec->old_layout) {
        cubin_put_tool(out, spec);
    }
    cubin_end(out, &at[CUBIN_BUILD_TOOL], ".note.nv.tkinfo", "", names);
    at[CUBIN_BUILD_COMPAT] = (cubin_place){.type = 0x70000086, .offset = out->size};
    if (!spec->old_layout) {
        cubin_put(out, compat, sizeof compat);
        out->data[out->size - sizeof compat + 2] = spec->suffix == 'a';
    }
    cubin_end(out, &at[CUBIN_BUILD_COMPAT], ".nv.compat", "", names);
    at[CUBIN_BUILD_GLOBALS] =
        (cubin_place){.type = 0x70000000, .link = CUBIN_BUILD_SYMBOLS, .offset = out->size};
    for (size_t i = spec->num_kernels; i-- > 0;) {
        const uint32_t symbol = (uint32_t)(1 + spec->num_kernels + i);
        const cubin_kernel *const kernel = &spec->kernels[i];
        cubin_put_record(out, 0x2f, (const uint32_t[]){symbol, kernel->registers}, 2);
        cubin_put_record(out, 0x11, (const uint32_t[]){symbol, kernel->local}, 2);
        cubin_put_record(out, 0x12, (const uint32_t[]){symbol, kernel->local}, 2);
    }
    cubin_end(out, &at[CUBIN_BUILD_GLOBALS], ".nv.info", "", names);
}

static inline void cubin_build_kernel(cubin_bytes *out, const cubin_spec *spec, size_t index,
                                      cubin_place *at, cubin_bytes *names)
{
    const cubin_kernel *const kernel = &spec->kernels[index];
    const uint32_t text = (uint32_t)(CUBIN_BUILD_FIXED + CUBIN_BUILD_EACH * index);
    const uint32_t old_registers = spec->sm < 90 ? kernel->registers << 24 : 0;
    cubin_put_align(out, 128);
    at[CUBIN_BUILD_TEXT] =
        (cubin_place){.type = 1,
                      .flags = 6,
                      .link = CUBIN_BUILD_SYMBOLS,
                      .info = (uint32_t)(1 + spec->num_kernels + index) | old_registers,
                      .offset = out->size};
    cubin_put(out, kernel->code, cubin_code_size(kernel));
    cubin_end(out, &at[CUBIN_BUILD_TEXT], ".text.", kernel->name, names);
    cubin_put_align(out, 4);
    at[CUBIN_BUILD_INFO] = (cubin_place){.type = 0x70000000,
                                         .flags = 0x40,
                                         .link = CUBIN_BUILD_SYMBOLS,
                                         .info = text,
                                         .offset = out->size};
    cubin_put_info(out, spec, index);
    cubin_end(out, &at[CUBIN_BUILD_INFO], ".nv.info.", kernel->name, names);
    at[CUBIN_BUILD_SHARED] =
        (cubin_place){.type = 8, .flags = 0x43, .info = text, .offset = out->size};
    cubin_end(out, &at[CUBIN_BUILD_SHARED], spec->relocatable ? ".nv_debug.shared." : ".nv.shared.",
              kernel->name, names);
    at[CUBIN_BUILD_SHARED].size = kernel->shared + (spec->sm >= 90 ? 1024 : 0);
    at[CUBIN_BUILD_CONSTANT] =
        (cubin_place){.type = 1, .flags = 0x42, .info = text, .offset = out->size};
    cubin_put(out, NULL,
              cubin_param_base(spec->sm) +
                  cubin_param_offset(spec->sm, kernel, kernel->num_params));
    cubin_end(out, &at[CUBIN_BUILD_CONSTANT], ".nv.constant0.", kernel->name, names);
}

static inline void cubin_put_section(cubin_bytes *out, const cubin_place *place)
{
    cubin_put_int(out, place->name, 4);
    cubin_put_int(out, place->type, 4);
    cubin_put_int(out, place->flags, 8);
    cubin_put_int(out, 0, 8);
    cubin_put_int(out, place->offset, 8);
    cubin_put_int(out, place->size, 8);
    cubin_put_int(out, place->link, 4);
    cubin_put_int(out, place->info, 4);
    cubin_put_int(out, place->type == 0 ? 0 : place->type == 1 ? 128 : 4, 8);
    cubin_put_int(out, place->type == 2 ? 24 : 0, 8);
}

/* The ELF header, to be written over the first 64 bytes. */
static inline void cubin_build_header(uint8_t *to, const cubin_spec *spec, size_t sections,
                                      size_t offset)
{
    cubin_bytes head = {0};
    const uint32_t sm = (uint32_t)spec->sm;
    const bool specific = spec->suffix == 'a';
    const uint8_t ident[16] = {
        0x7f, 'E', 'L', 'F', 2, 1, 1, spec->old_layout ? 0x33 : 0x41, spec->old_layout ? 7 : 8};
    cubin_put(&head, ident, sizeof ident);
    cubin_put_int(&head, spec->relocatable ? 1 : 2, 2);
    cubin_put_int(&head, 190, 2);
    cubin_put_int(&head, 1, 4);
    cubin_put(&head, NULL, 16);
    cubin_put_int(&head, offset, 8);
    cubin_put_int(&head,
                  spec->old_layout ? sm << 16 | 0x500 | sm | (specific ? 0x800 : 0)
                                   : 0x6000000 | sm << 8 | (sm >= 100 ? 2 : 4),
                  4);
    const size_t halves[] = {64, 56, 0, 64, sections, CUBIN_BUILD_NAMES};
    for (size_t i = 0; i < 6; i++) {
        cubin_put_int(&head, halves[i], 2);
    }
    memcpy(to, head.data, head.size);
    free(head.data);
}

/* The cubin in memory for free(3), and its size. Ends the program without memory. */
static inline void *cubin_build(const cubin_spec *spec, size_t *size)
{
    const size_t sections = CUBIN_BUILD_FIXED + CUBIN_BUILD_EACH * spec->num_kernels;
    cubin_place *const at = calloc(sections, sizeof *at);
    cubin_bytes out = {0};
    cubin_bytes names = {0};
    if (at == NULL) {
        abort();
    }
    cubin_put(&out, NULL, 64);
    cubin_put(&names, NULL, 1);
    cubin_build_symbols(&out, spec, at, &names);
    cubin_put_align(&out, 4);
    cubin_build_globals(&out, spec, at, &names);
    for (size_t i = 0; i < spec->num_kernels; i++) {
        cubin_build_kernel(&out, spec, i, at + CUBIN_BUILD_FIXED + CUBIN_BUILD_EACH * i, &names);
    }
    at[CUBIN_BUILD_NAMES] = (cubin_place){.type = 3, .offset = out.size};
    const uint32_t own_name = cubin_put_name(&names, ".shstrtab", "");
    cubin_put(&out, names.data, names.size);
    at[CUBIN_BUILD_NAMES].name = own_name;
    at[CUBIN_BUILD_NAMES].size = names.size;
    cubin_put_align(&out, 8);
    cubin_build_header(out.data, spec, sections, out.size);
    for (size_t i = 0; i < sections; i++) {
        cubin_put_section(&out, &at[i]);
    }
    free(names.data);
    free(at);
    *size = out.size;
    return out.data;
}

#endif
