/* SPDX-License-Identifier: MIT */
/*
 * The cubin reader. The input is tried as it is, and with the identifying bytes of its header made
 * good, so that what lies behind them is reached. What is read must be whole: names sorted,
 * parameters complete and within what their fields can say.
 */
#include "backend/cuda/cubin.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_cubin_check(const dj__cubin *cubin)
{
    const dj_binary_info *const info = &cubin->info;
    if (memchr(info->arch, 0, sizeof info->arch) == NULL ||
        strtol(info->arch, NULL, 10) != cubin->sm) {
        abort();
    }
    for (size_t i = 0; i < info->num_kernels; i++) {
        const dj_kernel_info *const kernel = &info->kernels[i];
        if (kernel->name[0] == '\0' || (i > 0 && strcmp(kernel[-1].name, kernel->name) >= 0) ||
            kernel->registers < -1 || kernel->shared_bytes < -1 || kernel->local_bytes < -1 ||
            kernel->max_threads < 0) {
            abort();
        }
        for (size_t k = 0; k < kernel->num_params; k++) {
            const dj_param_info *const param = &kernel->params[k];
            if (param->name == NULL || param->type == NULL || param->align == 0 ||
                (param->align & (param->align - 1)) != 0 || param->offset > UINT16_MAX ||
                param->size > UINT16_MAX) {
                abort();
            }
        }
    }
}

static void fuzz_cubin_read(const uint8_t *data, size_t size)
{
    dj__cubin cubin;
    dj_error err = DJ_ERROR_INIT;
    const dj_status status = dj__cubin_read(data, size, &cubin, &err);
    if (status == DJ_OK) {
        fuzz_cubin_check(&cubin);
    } else if (status != DJ_INVALID_ARGUMENT || err.message[0] == '\0' || cubin.memory != NULL) {
        abort();
    }
    dj__cubin_fini(&cubin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    static const uint8_t kind[] = {2, 0, 190, 0, 1, 0, 0, 0};
    fuzz_cubin_read(data, size);
    if (size < 64) {
        return 0;
    }
    /* An exact copy, so that a sanitizer sees every byte read too far. */
    uint8_t *const copy = malloc(size);
    if (copy != NULL) {
        memcpy(copy, data, size);
        memcpy(copy, ident, sizeof ident);
        copy[7] = (data[7] & 1) != 0 ? 0x33 : 0x41;
        memcpy(copy + 16, kind, sizeof kind);
        memcpy(copy + 58, (const uint8_t[]){64, 0}, 2);
        fuzz_cubin_read(copy, size);
        free(copy);
    }
    return 0;
}
