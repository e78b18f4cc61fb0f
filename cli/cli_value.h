/* SPDX-License-Identifier: MIT */
/*
 * cli_value.h: the arguments of `deepjit run`: from text or file to bytes, checked against the
 * kernel's parameters, and shown afterwards.
 */
#ifndef DJ_CLI_VALUE_H
#define DJ_CLI_VALUE_H

#include "cli.h"
#include "cli_npy.h"

typedef enum cli_value_kind {
    CLI_VALUE_NUMBER, /* a number that takes its parameter's type: becomes SCALAR when bound */
    CLI_VALUE_SCALAR,
    CLI_VALUE_BYTES, /* a parameter's bytes as they are, for structures */
    CLI_VALUE_ARRAY,
    CLI_VALUE_NULL
} cli_value_kind;

typedef struct cli_value {
    cli_value_kind kind;
    const char *text; /* as given */
    cli_elem elem;
    size_t num_dims;
    size_t shape[CLI_NPY_DIMS];
    size_t count;
    unsigned char *data; /* a scalar's or array's bytes */
    size_t size;
    void *device; /* an array's device memory, or NULL; the parameter of ARRAY and NULL */
} cli_value;

/* False: reported, and *status says with which exit status to end. */
bool cli_value_parse(const char *text, cli_value *out, int *status);
void cli_value_fini(cli_value *value);

/* What the kernel says about one of its parameters. */
typedef struct cli_param {
    size_t index;
    const char *name; /* "" if unknown */
    const char *type; /* "" if unknown */
    size_t size;
} cli_param;

/* Checks that the value can be that parameter and gives plain numbers its type. False: reported.
 * *writable tells whether the kernel may change an array. */
bool cli_value_bind(cli_value *value, const cli_param *param, bool *writable);
/* The argument as the library takes it. */
dj_arg cli_value_arg(const cli_value *value);

/* One line about an array: type, shape, smallest, largest, mean, first elements. */
void cli_value_summarise(const cli_value *value, const char *name);
/* All elements, one line for each row of the last dimension. */
void cli_value_print(const cli_value *value);
/* As .npy if the name ends so, else raw. False: reported. */
bool cli_value_save(const cli_value *value, const char *path);

#endif
