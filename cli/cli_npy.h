/* SPDX-License-Identifier: MIT */
/*
 * cli_npy.h: numpy's .npy format, versions 1 to 3, little-endian, C order, the element types of
 * cli_elem.h. See numpy's documentation of numpy.lib.format. Knows nothing of the library.
 */
#ifndef DJ_CLI_NPY_H
#define DJ_CLI_NPY_H

#include "cli_elem.h"

enum { CLI_NPY_DIMS = 32, CLI_NPY_MESSAGE = 160 };

typedef struct cli_npy {
    cli_elem elem;
    size_t num_dims;
    size_t shape[CLI_NPY_DIMS];
    size_t count;     /* elements */
    size_t data_size; /* bytes: count times the element's size */
    size_t offset;    /* of the data in the file */
} cli_npy;

/* Reads the header of a whole file in memory and checks that the data is all there and nothing
 * else. False: `message` says what is wrong. */
bool cli_npy_parse(const void *file, size_t size, cli_npy *out, char message[CLI_NPY_MESSAGE]);

/* The product of the dimensions; false if the array's bytes cannot be counted in a size_t. */
bool cli_npy_count(cli_elem elem, const size_t *shape, size_t num_dims, size_t *count);

/* Writes a header (version 1) to `out` and returns its size, a multiple of 64; 0 if it does not
 * fit. 1,024 bytes are enough for 32 dimensions. */
size_t cli_npy_header(cli_elem elem, const size_t *shape, size_t num_dims, char *out, size_t room);

#endif
