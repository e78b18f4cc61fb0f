/* SPDX-License-Identifier: MIT */
/*
 * What the bytes are that should have been a cubin. Post hooks, hand-made caches and wrong compiler
 * options produce them, and drivers accept some of them without a word, so the message names the
 * kind and the way out.
 */
#include "backend/cuda/cubin.h"

#include "base/error.h"
#include <stdio.h>
#include <string.h>

#define KIND_TEXT_LIMIT 65536 /* bytes that are looked at */

typedef struct kind_text {
    const unsigned char *data;
    size_t size;
} kind_text;

static bool kind_has_magic(const unsigned char *data, size_t size, const char *magic, size_t length)
{
    return size >= length && memcmp(data, magic, length) == 0;
}

static bool kind_is_text(kind_text text)
{
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = text.data[i];
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool kind_contains(kind_text text, const char *word)
{
    const size_t length = strlen(word);
    for (size_t at = 0; at + length <= text.size; at++) {
        const void *const found = memchr(text.data + at, word[0], text.size - length - at + 1);
        if (found == NULL) {
            return false;
        }
        at = (size_t)((const unsigned char *)found - text.data);
        if (memcmp(found, word, length) == 0) {
            return true;
        }
    }
    return false;
}

static dj_status kind_fail_text(kind_text text, dj_error *err)
{
    const char *what = "this is text, not a cubin";
    if (kind_contains(text, ".version") && kind_contains(text, ".target")) {
        what = "this is PTX text, not a cubin: assemble it with ptxas, or compile with nvcc -cubin";
    } else if (kind_contains(text, "target triple") || kind_contains(text, "; ModuleID")) {
        what = "this is LLVM IR text, not a cubin: compile with nvcc -cubin";
    } else if (kind_contains(text, "__global__")) {
        what = "this is CUDA source text, not a cubin: compile it first, with nvcc -cubin";
    }
    return dj__fail(err, DJ_INVALID_ARGUMENT, "%s", what);
}

static dj_status kind_fail_elf(const unsigned char *data, size_t size, dj_error *err)
{
    static const struct {
        unsigned machine;
        const char *name;
    } machines[] = {{3, "x86"},     {21, "POWER"},     {40, "Arm"},     {62, "x86-64"},
                    {183, "Arm64"}, {224, "AMD GPUs"}, {243, "RISC-V"}, {258, "LoongArch"}};
    if (size < 20) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "not a cubin: an ELF file cut off after %zu bytes, within its header",
                        size);
    }
    if (data[4] != 2) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "not a cubin: an ELF file, but of class %u instead of 64-bit", data[4]);
    }
    if (data[5] != 1) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "not a cubin: an ELF file, but of data encoding %u instead of "
                        "little-endian",
                        data[5]);
    }
    const unsigned machine = data[18] | (unsigned)data[19] << 8;
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        if (machines[i].machine == machine) {
            return dj__fail(err, DJ_INVALID_ARGUMENT, "not a cubin: an ELF file for %s",
                            machines[i].name);
        }
    }
    return dj__fail(err, DJ_INVALID_ARGUMENT, "not a cubin: an ELF file for machine %u, not 190",
                    machine);
}

dj_status dj__cubin_fail_kind(const void *data, size_t size, dj_error *err)
{
    static const struct {
        const char *magic;
        size_t length;
        const char *what;
    } kinds[] = {
        {"\x50\xed\x55\xba", 4,
         "this is a fat binary, not a cubin: compile with nvcc -cubin instead of -fatbin"},
        {"\xb1\x43\x62\x46", 4, "this is the wrapper of a fat binary, not a cubin"},
        {"BC\xc0\xde", 4, "this is LLVM bitcode, not a cubin: compile with nvcc -cubin"},
        {"\xed\x43\x4e\x7f", 4, "this is NVVM link-time IR, not a cubin: compile without -dlto"},
        {"!<arch>\n", 8, "this is an archive of object files, not a cubin"},
        {"\x1f\x8b", 2, "this is compressed with gzip, not a cubin"},
        {"\x28\xb5\x2f\xfd", 4, "this is compressed with zstd, not a cubin"},
    };
    const unsigned char *const bytes = data;
    if (size == 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "not a cubin: it is empty");
    }
    if (kind_has_magic(bytes, size,
                       "\x7f"
                       "ELF",
                       4)) {
        return kind_fail_elf(bytes, size, err);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kind_has_magic(bytes, size, kinds[i].magic, kinds[i].length)) {
            return dj__fail(err, DJ_INVALID_ARGUMENT, "%s", kinds[i].what);
        }
    }
    const kind_text text = {bytes, size < KIND_TEXT_LIMIT ? size : KIND_TEXT_LIMIT};
    if (kind_is_text(text)) {
        return kind_fail_text(text, err);
    }
    char head[3 * 8 + 1] = "";
    for (size_t i = 0; i < 8 && i < size; i++) {
        (void)snprintf(head + 3 * i, 4, " %02x", bytes[i]);
    }
    return dj__fail(err, DJ_INVALID_ARGUMENT, "not a cubin: its %zu bytes begin with%s", size,
                    head);
}
