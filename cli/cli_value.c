/* SPDX-License-Identifier: MIT */
/* Arguments of `deepjit run`; the syntax is described in deepjit(1). */
#include "cli_value.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_FILE_LIMIT ((size_t)1 << 40)
enum { VALUE_FIRST = 8 };

static bool value_usage(int *status, const char *text, const char *problem)
{
    cli_error("argument '%s': %s\nsee 'deepjit run --help' for what an argument looks like", text,
              problem);
    *status = CLI_USAGE;
    return false;
}

/* ---- Parsing ---- */

static uint64_t value_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void value_fill_random(cli_value *value, uint64_t state)
{
    const size_t step = cli_elem_size(value->elem);
    for (size_t i = 0; i < value->count; i++) {
        const uint64_t bits = value_random(&state);
        unsigned char *const at = value->data + i * step;
        if (value->elem == CLI_F32) {
            const float number = (float)(bits >> 40) * 0x1p-24f;
            memcpy(at, &number, sizeof number);
        } else if (value->elem == CLI_F64) {
            const double number = (double)(bits >> 11) * 0x1p-53;
            memcpy(at, &number, sizeof number);
        } else {
            cli_elem_store(value->elem, (bits >> 32) % (value->elem == CLI_BOOL ? 2 : 100), at);
        }
    }
}

static bool value_fill(cli_value *value, const char *fill)
{
    const size_t step = cli_elem_size(value->elem);
    unsigned char one[8];
    if (strcmp(fill, "zeros") == 0) {
        return true;
    }
    if (strcmp(fill, "random") == 0 || strncmp(fill, "random:", 7) == 0) {
        uint64_t seed = 0;
        if (fill[6] == ':' && !cli_elem_parse(CLI_U64, fill + 7, &seed)) {
            return false;
        }
        value_fill_random(value, seed);
        return true;
    }
    if (strcmp(fill, "iota") == 0) {
        for (size_t i = 0; i < value->count; i++) {
            cli_elem_store(value->elem, i, value->data + i * step);
        }
        return true;
    }
    if (!cli_elem_parse(value->elem, strcmp(fill, "ones") == 0 ? "1" : fill, one)) {
        return false;
    }
    for (size_t i = 0; i < value->count; i++) {
        memcpy(value->data + i * step, one, step);
    }
    return true;
}

/* "3,4]" or "3,4]=fill" into the shape; returns what follows the bracket, or NULL. */
static const char *value_parse_shape(cli_value *value, const char *text)
{
    for (;;) {
        char *end = NULL;
        if (*text < '0' || *text > '9' || value->num_dims == CLI_NPY_DIMS) {
            return NULL;
        }
        const unsigned long long dimension = strtoull(text, &end, 10);
        if (dimension > SIZE_MAX / 2) {
            return NULL;
        }
        value->shape[value->num_dims++] = (size_t)dimension;
        if (*end == ']') {
            return end + 1;
        }
        if (*end != ',') {
            return NULL;
        }
        text = end + 1;
    }
}

static bool value_parse_array(cli_value *value, const char *text, int *status)
{
    value->kind = CLI_VALUE_ARRAY;
    const char *const rest = value_parse_shape(value, text);
    if (rest == NULL || (*rest != '\0' && *rest != '=')) {
        return value_usage(status, value->text, "expected TYPE[N,...] or TYPE[N,...]=FILL");
    }
    if (!cli_npy_count(value->elem, value->shape, value->num_dims, &value->count)) {
        return value_usage(status, value->text, "the array is too large");
    }
    value->size = value->count * cli_elem_size(value->elem);
    value->data = calloc(value->size > 0 ? value->size : 1, 1);
    if (value->data == NULL) {
        cli_error("argument '%s': no memory for %zu bytes", value->text, value->size);
        *status = CLI_FAILURE;
        return false;
    }
    if (*rest == '=' && !value_fill(value, rest + 1)) {
        return value_usage(status, value->text,
                           "the fill is none of zeros, ones, iota, random[:SEED] and a number of "
                           "this type");
    }
    return true;
}

static bool value_parse_raw(cli_value *value, const char *path)
{
    cli_buffer file = {0};
    value->kind = CLI_VALUE_ARRAY;
    if (!cli_read_file(path, VALUE_FILE_LIMIT, &file)) {
        cli_buffer_fini(&file);
        return false;
    }
    const size_t step = cli_elem_size(value->elem);
    value->data = (unsigned char *)file.data;
    value->size = file.size;
    value->num_dims = 1;
    value->shape[0] = value->count = file.size / step;
    if (file.size % step != 0) {
        cli_error("%s: %zu bytes are no whole number of %s", path, file.size,
                  cli_elem_name(value->elem));
        return false;
    }
    return true;
}

static bool value_parse_npy(cli_value *value, const char *path)
{
    cli_buffer file = {0};
    cli_npy npy;
    char message[CLI_NPY_MESSAGE] = "";
    value->kind = CLI_VALUE_ARRAY;
    if (!cli_read_file(path, VALUE_FILE_LIMIT, &file)) {
        cli_buffer_fini(&file);
        return false;
    }
    value->data = (unsigned char *)file.data;
    if (!cli_npy_parse(file.data, file.size, &npy, message)) {
        cli_error("%s: %s", path, message);
        return false;
    }
    value->elem = npy.elem;
    value->num_dims = npy.num_dims;
    memcpy(value->shape, npy.shape, sizeof value->shape);
    value->count = npy.count;
    value->size = npy.data_size;
    memmove(value->data, value->data + npy.offset, npy.data_size);
    return true;
}

static int value_hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool value_parse_bytes(cli_value *value, const char *hex, int *status)
{
    const size_t length = strlen(hex);
    value->kind = CLI_VALUE_BYTES;
    value->size = length / 2;
    value->data = cli_alloc(value->size, 1);
    for (size_t i = 0; i < value->size; i++) {
        const int high = value_hex_digit(hex[2 * i]);
        const int low = value_hex_digit(hex[2 * i + 1]);
        if (high < 0 || low < 0) {
            return value_usage(status, value->text, "expected hexadecimal digits");
        }
        value->data[i] = (unsigned char)(high << 4 | low);
    }
    if (length == 0 || length % 2 != 0) {
        return value_usage(status, value->text, "expected an even number of hexadecimal digits");
    }
    return true;
}

static bool value_parse_scalar(cli_value *value, const char *text)
{
    free(value->data);
    value->kind = CLI_VALUE_SCALAR;
    value->size = cli_elem_size(value->elem);
    value->data = cli_alloc(8, 1);
    return cli_elem_parse(value->elem, text, value->data);
}

static bool value_parse_typed(cli_value *value, const char *rest, int *status)
{
    switch (*rest) {
    case ':':
        return value_parse_scalar(value, rest + 1) ||
               value_usage(status, value->text, "not a number of this type, or out of its range");
    case '[':
        return value_parse_array(value, rest + 1, status);
    case '@':
        return value_parse_raw(value, rest + 1);
    default:
        return value_usage(status, value->text, "expected ':', '[' or '@' after the type");
    }
}

static bool value_is_number(const char *text)
{
    unsigned char ignored[8];
    return cli_elem_parse(CLI_F64, text, ignored) || cli_elem_parse(CLI_I64, text, ignored) ||
           cli_elem_parse(CLI_U64, text, ignored) || cli_elem_parse(CLI_BOOL, text, ignored);
}

bool cli_value_parse(const char *text, cli_value *out, int *status)
{
    *out = (cli_value){.kind = CLI_VALUE_NULL, .text = text};
    *status = CLI_FAILURE;
    if (strcmp(text, "null") == 0) {
        return true;
    }
    if (text[0] == '@') {
        return value_parse_npy(out, text + 1);
    }
    if (strncmp(text, "bytes:", 6) == 0) {
        return value_parse_bytes(out, text + 6, status);
    }
    const size_t length = strcspn(text, ":[@");
    if (cli_elem_find(text, length, &out->elem)) {
        return value_parse_typed(out, text + length, status);
    }
    if (value_is_number(text)) {
        out->kind = CLI_VALUE_NUMBER;
        return true;
    }
    return value_usage(status, text,
                       "neither a number nor one of the types i8 i16 i32 i64 u8 u16 "
                       "u32 u64 f32 f64 bool followed by ':', '[' or '@'");
}

void cli_value_fini(cli_value *value)
{
    free(value->data);
    value->data = NULL;
}

/* ---- Parameters ---- */

static bool value_mismatch(const cli_value *value, const cli_param *param, const char *expected)
{
    cli_error("argument '%s' does not fit parameter %zu%s%s (%s%s%zu bytes): expected %s",
              value->text, param->index, param->name[0] != '\0' ? ", " : "", param->name,
              param->type, param->type[0] != '\0' ? ", " : "", param->size, expected);
    return false;
}

/* Integers of either sign go together, so do 1-byte integers and bool. */
static bool value_same_class(cli_elem left, cli_elem right)
{
    return cli_elem_size(left) == cli_elem_size(right) &&
           (cli_elem_kind(left) == 'f') == (cli_elem_kind(right) == 'f');
}

/* Where neither binary nor source tells, a number must say what it is: guessing by size would turn
 * 5 for a float into an integer's bits. */
static bool value_needs_type(const cli_value *value, const cli_param *param)
{
    char expected[320];
    if (param->type[0] != '\0') {
        return value_mismatch(value, param,
                              "TYPE:NUMBER or bytes:HEX, as the binary does not "
                              "say what kind of number this is");
    }
    static const char why[] = "as the binary has no names or types of parameters and the source "
                              "could not be read for them";
    if (param->size == 4 || param->size == 8) {
        const size_t bits = 8 * param->size;
        snprintf(expected, sizeof expected, "f%zu:%.64s or i%zu:%.64s, %s", bits, value->text, bits,
                 value->text, why);
    } else {
        snprintf(expected, sizeof expected, "TYPE:NUMBER of that size or bytes:HEX, %s", why);
    }
    return value_mismatch(value, param, expected);
}

static bool value_bind_array(const cli_value *value, const cli_param *param, bool *writable)
{
    const char *const star = strrchr(param->type, '*');
    cli_elem elem;
    if (param->size != sizeof(void *) ||
        (star == NULL && cli_elem_from_c(param->type, strlen(param->type), &elem))) {
        return value_mismatch(value, param, "a number");
    }
    const size_t pointee = star != NULL ? (size_t)(star - param->type) : 0;
    *writable = value->kind == CLI_VALUE_ARRAY &&
                (star == NULL || memmem(param->type, pointee, "const", 5) == NULL);
    if (value->kind == CLI_VALUE_ARRAY && pointee > 0 &&
        cli_elem_from_c(param->type, pointee, &elem) && !value_same_class(elem, value->elem)) {
        char expected[64];
        snprintf(expected, sizeof expected, "an array of %s", cli_elem_name(elem));
        return value_mismatch(value, param, expected);
    }
    return true;
}

static bool value_bind_scalar(cli_value *value, const cli_param *param)
{
    cli_elem elem;
    if (strchr(param->type, '*') != NULL) {
        return value_mismatch(value, param, "an array, such as f32[1024]=iota, or null");
    }
    if (value->kind == CLI_VALUE_NUMBER) {
        if (!cli_elem_from_c(param->type, strlen(param->type), &value->elem)) {
            return value_needs_type(value, param);
        }
        char expected[64];
        snprintf(expected, sizeof expected, "a number of type %s", cli_elem_name(value->elem));
        return value_parse_scalar(value, value->text) || value_mismatch(value, param, expected);
    }
    if (cli_elem_from_c(param->type, strlen(param->type), &elem) &&
        !value_same_class(elem, value->elem)) {
        char expected[64];
        snprintf(expected, sizeof expected, "%s:NUMBER, or the number alone", cli_elem_name(elem));
        return value_mismatch(value, param, expected);
    }
    return value->size == param->size || value_mismatch(value, param, "a number of that size");
}

bool cli_value_bind(cli_value *value, const cli_param *param, bool *writable)
{
    *writable = false;
    switch (value->kind) {
    case CLI_VALUE_ARRAY:
    case CLI_VALUE_NULL:
        return value_bind_array(value, param, writable);
    case CLI_VALUE_BYTES:
        return value->size == param->size || value_mismatch(value, param, "as many bytes");
    case CLI_VALUE_NUMBER:
    case CLI_VALUE_SCALAR:
        break;
    }
    return value_bind_scalar(value, param);
}

dj_arg cli_value_arg(const cli_value *value)
{
    if (value->kind == CLI_VALUE_ARRAY || value->kind == CLI_VALUE_NULL) {
        return (dj_arg){&value->device, sizeof value->device, 0};
    }
    return (dj_arg){value->data, value->size, 0};
}

/* ---- Results ---- */

typedef struct value_summary {
    const unsigned char *smallest, *largest;
    double sum;
    size_t numbers; /* elements that are not NaN */
} value_summary;

static value_summary value_look(const cli_value *value)
{
    const size_t step = cli_elem_size(value->elem);
    value_summary summary = {NULL, NULL, 0, 0};
    double smallest = 0;
    double largest = 0;
    for (size_t i = 0; i < value->count; i++) {
        const unsigned char *const at = value->data + i * step;
        const double number = cli_elem_number(value->elem, at);
        if (isnan(number)) {
            continue;
        }
        if (summary.numbers == 0 || number < smallest) {
            smallest = number;
            summary.smallest = at;
        }
        if (summary.numbers == 0 || number > largest) {
            largest = number;
            summary.largest = at;
        }
        summary.sum += number;
        summary.numbers++;
    }
    return summary;
}

void cli_value_summarise(const cli_value *value, const char *name)
{
    char text[32];
    const size_t step = cli_elem_size(value->elem);
    printf("%s %s[", name, cli_elem_name(value->elem));
    for (size_t i = 0; i < value->num_dims; i++) {
        printf("%s%zu", i > 0 ? "," : "", value->shape[i]);
    }
    putchar(']');
    const value_summary summary = value_look(value);
    if (summary.numbers > 0) {
        const double mean = summary.sum / (double)summary.numbers;
        printf(" min %s", cli_elem_format(value->elem, summary.smallest, text));
        printf(" max %s", cli_elem_format(value->elem, summary.largest, text));
        printf(" mean %.6g", mean);
    }
    if (summary.numbers < value->count) {
        printf(" nan %zu", value->count - summary.numbers);
    }
    printf(" first");
    for (size_t i = 0; i < value->count && i < VALUE_FIRST; i++) {
        printf(" %s", cli_elem_format(value->elem, value->data + i * step, text));
    }
    printf("%s\n", value->count > VALUE_FIRST ? " ..." : "");
}

void cli_value_print(const cli_value *value)
{
    char text[32];
    const size_t step = cli_elem_size(value->elem);
    const size_t row = value->num_dims > 0 ? value->shape[value->num_dims - 1] : 1;
    for (size_t i = 0; i < value->count; i++) {
        const bool last = (i + 1) % row == 0;
        printf("%s%c", cli_elem_format(value->elem, value->data + i * step, text),
               last ? '\n' : ' ');
    }
}

bool cli_value_save(const cli_value *value, const char *path)
{
    cli_buffer file = {0};
    const size_t length = strlen(path);
    if (length >= 4 && strcmp(path + length - 4, ".npy") == 0) {
        char header[1024];
        const size_t size =
            cli_npy_header(value->elem, value->shape, value->num_dims, header, sizeof header);
        cli_buffer_append(&file, header, size);
    }
    cli_buffer_append(&file, value->data, value->size);
    const bool ok = cli_write_file(path, file.data, file.size);
    cli_buffer_fini(&file);
    return ok;
}
