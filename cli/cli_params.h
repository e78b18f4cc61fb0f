/* SPDX-License-Identifier: MIT */
/*
 * cli_params.h: names and types of a kernel's parameters from its source text, for binaries that
 * hold only sizes.
 *
 * Reads DJ_KERNEL, DJ_BLOCK_KERNEL and plain __global__ functions; macros are not expanded. What
 * it does not understand it does not know: a wrong name would be worse than none.
 * Knows nothing of the library, so that it can be fuzzed alone.
 */
#ifndef DJ_CLI_PARAMS_H
#define DJ_CLI_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_source_param {
    char *name; /* "" if unknown */
    char *type; /* as written, but for white space and qualifiers of pointers; "" if unknown */
} cli_source_param;

typedef struct cli_source_params {
    cli_source_param *items;
    size_t count;
} cli_source_params;

/* `kernel` is the name in the binary, mangled or not. False, and nothing in `out`, if the source
 * does not define it readably, or in several ways. */
bool cli_params_find(const char *source, size_t size, const char *kernel, cli_source_params *out);
void cli_params_fini(cli_source_params *params);

#endif
