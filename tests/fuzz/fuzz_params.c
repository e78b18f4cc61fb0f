/* SPDX-License-Identifier: MIT */
/*
 * The command's reading of kernel parameters, on any source. What it finds is text, and never more
 * of it than the source has.
 */
#include "../../cli/cli_params.c"
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"k", "_Z1kPfi", "_ZN1a1kEv"};
    const char *const source = (const char *)data;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cli_source_params params;
        const bool found = cli_params_find(source, size, names[i], &params);
        size_t total = 0;
        for (size_t k = 0; k < params.count; k++) {
            total += strlen(params.items[k].type) + strlen(params.items[k].name);
        }
        if ((!found && params.count != 0) || total > 2 * size) {
            abort();
        }
        cli_params_fini(&params);
    }
    return 0;
}
