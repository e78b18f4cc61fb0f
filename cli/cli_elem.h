/* SPDX-License-Identifier: MIT */
/*
 * cli_elem.h: the element types of arguments and files, and their text forms.
 * Knows nothing of the library, so that the file parsers can be fuzzed alone.
 */
#ifndef DJ_CLI_ELEM_H
#define DJ_CLI_ELEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*   X(constant, name, bytes, numpy kind, C type) */
#define CLI_ELEM_LIST(X)                                                                           \
    X(I8, "i8", 1, 'i', int8_t)                                                                    \
    X(I16, "i16", 2, 'i', int16_t)                                                                 \
    X(I32, "i32", 4, 'i', int32_t)                                                                 \
    X(I64, "i64", 8, 'i', int64_t)                                                                 \
    X(U8, "u8", 1, 'u', uint8_t)                                                                   \
    X(U16, "u16", 2, 'u', uint16_t)                                                                \
    X(U32, "u32", 4, 'u', uint32_t)                                                                \
    X(U64, "u64", 8, 'u', uint64_t)                                                                \
    X(F32, "f32", 4, 'f', float)                                                                   \
    X(F64, "f64", 8, 'f', double)                                                                  \
    X(BOOL, "bool", 1, 'b', bool)

typedef enum cli_elem {
#define CLI_ELEM_ENUM(constant, name, bytes, kind, type) CLI_##constant,
    CLI_ELEM_LIST(CLI_ELEM_ENUM)
#undef CLI_ELEM_ENUM
        CLI_ELEM_COUNT
} cli_elem;

const char *cli_elem_name(cli_elem elem);
size_t cli_elem_size(cli_elem elem);
char cli_elem_kind(cli_elem elem);

bool cli_elem_find(const char *name, size_t length, cli_elem *out);
bool cli_elem_from_numpy(char kind, size_t bytes, cli_elem *out);
/* From a C type as written, such as "const unsigned int"; false for any other type. */
bool cli_elem_from_c(const char *type, size_t length, cli_elem *out);

/* Parses one number or true/false into *out; false if it is no number of this type or too large.
 * `out` has room for 8 bytes. */
bool cli_elem_parse(cli_elem elem, const char *text, void *out);
/* The shortest text that reads back as the same value. */
const char *cli_elem_format(cli_elem elem, const void *value, char out[32]);
double cli_elem_number(cli_elem elem, const void *value);
/* Stores an integer, wrapped to the type. */
void cli_elem_store(cli_elem elem, uint64_t number, void *out);

#endif
