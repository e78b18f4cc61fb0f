/* SPDX-License-Identifier: MIT */
/*
 * The command's .npy reader. What it accepts must lie within the file, and the header that we
 * write for the same array must read back as that array.
 *
 * The reader is part of the command, not of the library, and needs nothing of either.
 */
#include "../../cli/cli_elem.c"
#include "../../cli/cli_npy.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_npy_check(const unsigned char *file, size_t size)
{
    char message[CLI_NPY_MESSAGE] = "";
    cli_npy array;
    if (!cli_npy_parse(file, size, &array, message)) {
        if (message[0] == '\0' || memchr(message, '\0', sizeof message) == NULL) {
            abort();
        }
        return;
    }
    if (array.offset > size || array.data_size != size - array.offset ||
        array.data_size != array.count * cli_elem_size(array.elem)) {
        abort();
    }
    unsigned char header[1024];
    const size_t length =
        cli_npy_header(array.elem, array.shape, array.num_dims, (char *)header, sizeof header);
    if (length == 0) { /* more digits than real files have; nothing was written */
        return;
    }
    /* Without its data our header is right only for an empty array. */
    cli_npy back;
    const bool accepted = cli_npy_parse(header, length, &back, message);
    if (length % 64 != 0 || accepted != (array.count == 0) || back.elem != array.elem ||
        back.num_dims != array.num_dims || back.count != array.count || back.offset != length ||
        memcmp(back.shape, array.shape, array.num_dims * sizeof array.shape[0]) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* An exact copy, so that a sanitizer sees every byte read too far. */
    unsigned char *const copy = malloc(size > 0 ? size : 1);
    if (copy != NULL) {
        if (size > 0) {
            memcpy(copy, data, size);
        }
        fuzz_npy_check(copy, size);
        free(copy);
    }
    return 0;
}
