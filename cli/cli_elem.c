/* SPDX-License-Identifier: MIT */
/* Element types: names, numbers and text. Values are unaligned bytes in memory order. */
#include "cli_elem.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef struct elem_info {
    const char *name;
    size_t size;
    char kind;
} elem_info;

static const elem_info elem_table[CLI_ELEM_COUNT] = {
#define ELEM_ROW(constant, name, bytes, kind, type) [CLI_##constant] = {name, bytes, kind},
    CLI_ELEM_LIST(ELEM_ROW)
#undef ELEM_ROW
};

const char *cli_elem_name(cli_elem elem)
{
    return elem_table[elem].name;
}

size_t cli_elem_size(cli_elem elem)
{
    return elem_table[elem].size;
}

char cli_elem_kind(cli_elem elem)
{
    return elem_table[elem].kind;
}

bool cli_elem_find(const char *name, size_t length, cli_elem *out)
{
    for (size_t i = 0; i < CLI_ELEM_COUNT; i++) {
        if (strlen(elem_table[i].name) == length && memcmp(elem_table[i].name, name, length) == 0) {
            *out = (cli_elem)i;
            return true;
        }
    }
    return false;
}

bool cli_elem_from_numpy(char kind, size_t bytes, cli_elem *out)
{
    for (size_t i = 0; i < CLI_ELEM_COUNT; i++) {
        if (elem_table[i].kind == kind && elem_table[i].size == bytes) {
            *out = (cli_elem)i;
            return true;
        }
    }
    return false;
}

typedef struct elem_c_type {
    const char *text;
    char kind;
    uint8_t size;
} elem_c_type;

static const elem_c_type elem_c_types[] = {
    {"float", 'f', sizeof(float)},
    {"double", 'f', sizeof(double)},
    {"bool", 'b', sizeof(bool)},
    {"_Bool", 'b', sizeof(bool)},
    {"char", 'i', 1},
    {"signed char", 'i', 1},
    {"unsigned char", 'u', 1},
    {"short", 'i', sizeof(short)},
    {"short int", 'i', sizeof(short)},
    {"unsigned short", 'u', sizeof(short)},
    {"unsigned short int", 'u', sizeof(short)},
    {"int", 'i', sizeof(int)},
    {"signed", 'i', sizeof(int)},
    {"signed int", 'i', sizeof(int)},
    {"unsigned", 'u', sizeof(int)},
    {"unsigned int", 'u', sizeof(int)},
    {"long", 'i', sizeof(long)},
    {"long int", 'i', sizeof(long)},
    {"unsigned long", 'u', sizeof(long)},
    {"unsigned long int", 'u', sizeof(long)},
    {"long long", 'i', sizeof(long long)},
    {"long long int", 'i', sizeof(long long)},
    {"unsigned long long", 'u', sizeof(long long)},
    {"unsigned long long int", 'u', sizeof(long long)},
    {"int8_t", 'i', 1},
    {"int16_t", 'i', 2},
    {"int32_t", 'i', 4},
    {"int64_t", 'i', 8},
    {"uint8_t", 'u', 1},
    {"uint16_t", 'u', 2},
    {"uint32_t", 'u', 4},
    {"uint64_t", 'u', 8},
    {"size_t", 'u', sizeof(size_t)},
    {"ssize_t", 'i', sizeof(ssize_t)},
    {"ptrdiff_t", 'i', sizeof(ptrdiff_t)},
    {"intptr_t", 'i', sizeof(intptr_t)},
    {"uintptr_t", 'u', sizeof(uintptr_t)},
};

bool cli_elem_from_c(const char *type, size_t length, cli_elem *out)
{
    char words[64] = "";
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        i += length - i > 5 && memcmp(type + i, "std::", 5) == 0 ? 5 : 0;
        const size_t start = i;
        while (i < length && type[i] != ' ' && type[i] != '\t') {
            i++;
        }
        const size_t size = i - start;
        const bool qualifier = (size == 5 && memcmp(type + start, "const", 5) == 0) ||
                               (size == 8 && memcmp(type + start, "volatile", 8) == 0);
        if (size > 0 && !qualifier) {
            if (used + size + 2 > sizeof words) {
                return false;
            }
            if (used > 0) {
                words[used++] = ' ';
            }
            memcpy(words + used, type + start, size);
            used += size;
            words[used] = '\0';
        }
        i++;
    }
    for (size_t i = 0; i < sizeof elem_c_types / sizeof elem_c_types[0]; i++) {
        if (strcmp(elem_c_types[i].text, words) == 0) {
            return cli_elem_from_numpy(elem_c_types[i].kind, elem_c_types[i].size, out);
        }
    }
    return false;
}

void cli_elem_store(cli_elem elem, uint64_t number, void *out)
{
    switch (elem) {
#define ELEM_STORE(constant, name, bytes, kind, type)                                              \
    case CLI_##constant: {                                                                         \
        const type value = (type)number;                                                           \
        memcpy(out, &value, sizeof value);                                                         \
        break;                                                                                     \
    }
        CLI_ELEM_LIST(ELEM_STORE)
#undef ELEM_STORE
    case CLI_ELEM_COUNT:
        break;
    }
}

static bool parse_float(cli_elem elem, const char *text, void *out)
{
    char *end = NULL;
    errno = 0;
    if (elem == CLI_F32) {
        const float value = strtof(text, &end);
        memcpy(out, &value, sizeof value);
    } else {
        const double value = strtod(text, &end);
        memcpy(out, &value, sizeof value);
    }
    /* Denormal results also set ERANGE; only overflow of a finite number is an error. */
    const double value = cli_elem_number(elem, out);
    const bool overflow = errno == ERANGE && (value > 1 || value < -1);
    return end != text && *end == '\0' && !overflow;
}

static bool parse_integer(cli_elem elem, const char *text, void *out)
{
    const bool is_signed = elem_table[elem].kind == 'i';
    const unsigned bits = (unsigned)elem_table[elem].size * 8;
    char *end = NULL;
    errno = 0;
    uint64_t number;
    if (is_signed) {
        const int64_t value = strtoll(text, &end, 0);
        const int64_t limit = (int64_t)(UINT64_MAX >> (65 - bits));
        if (value > limit || value < -limit - 1) {
            return false;
        }
        number = (uint64_t)value;
    } else {
        number = strtoull(text, &end, 0);
        if (text[0] == '-' || number > UINT64_MAX >> (64 - bits)) {
            return false;
        }
    }
    cli_elem_store(elem, number, out);
    return end != text && *end == '\0' && errno == 0;
}

bool cli_elem_parse(cli_elem elem, const char *text, void *out)
{
    if (text[0] == '\0' || text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r')) {
        return false;
    }
    if (elem == CLI_BOOL) {
        const bool on = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
        if (!on && strcmp(text, "false") != 0 && strcmp(text, "0") != 0) {
            return false;
        }
        cli_elem_store(elem, on, out);
        return true;
    }
    return elem_table[elem].kind == 'f' ? parse_float(elem, text, out)
                                        : parse_integer(elem, text, out);
}

double cli_elem_number(cli_elem elem, const void *value)
{
    if (elem == CLI_BOOL) { /* bytes other than 0 and 1 must not be read as bool */
        return *(const unsigned char *)value != 0;
    }
    switch (elem) {
#define ELEM_NUMBER(constant, name, bytes, kind, type)                                             \
    case CLI_##constant: {                                                                         \
        type number;                                                                               \
        memcpy(&number, value, sizeof number);                                                     \
        return (double)number;                                                                     \
    }
        CLI_ELEM_LIST(ELEM_NUMBER)
#undef ELEM_NUMBER
    case CLI_ELEM_COUNT:
        break;
    }
    return 0;
}

static void format_float(double value, bool single, char out[32])
{
    for (int digits = 6; digits <= (single ? 9 : 17); digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        const double back = single ? (double)strtof(out, NULL) : strtod(out, NULL);
        if (back == value) {
            break;
        }
    }
}

const char *cli_elem_format(cli_elem elem, const void *value, char out[32])
{
    if (elem == CLI_BOOL) {
        snprintf(out, 32, "%s", *(const unsigned char *)value != 0 ? "true" : "false");
    } else if (elem == CLI_U64) {
        uint64_t number;
        memcpy(&number, value, sizeof number);
        snprintf(out, 32, "%" PRIu64, number);
    } else if (elem == CLI_I64) {
        int64_t number;
        memcpy(&number, value, sizeof number);
        snprintf(out, 32, "%" PRId64, number);
    } else if (elem == CLI_F32 || elem == CLI_F64) {
        const bool single = elem == CLI_F32;
        format_float(cli_elem_number(elem, value), single, out);
    } else {
        snprintf(out, 32, "%.0f", cli_elem_number(elem, value));
    }
    return out;
}
