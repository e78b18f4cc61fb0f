/* SPDX-License-Identifier: MIT */
/*
 * The stand-in driver: the table of everything it exports, so that a row of cuda_symbols.def
 * without a definition does not link; look-up by name; the tensor-map encoder.
 */
#include "standin_cuda_state.h"
#include <stdlib.h>
#include <string.h>

typedef void (*any_function)(void);

static const struct {
    const char *name;
    const char *since;
    any_function function;
} exports[] = {
#define CUDA_SYMBOL(need, name, exported, since, params) {#name, since, (any_function)exported},
#include "backend/cuda/cuda_symbols.def"
#include "standin_cuda_extras.def"
#undef CUDA_SYMBOL
};

/* "12.4": 12040 */
static int version_of(const char *text)
{
    char *end = NULL;
    const long major = strtol(text, &end, 10);
    return (int)(1000 * major + (*end == '.' ? 10 * strtol(end + 1, NULL, 10) : 0));
}

/* The newest form of the function that `version` knows. */
static void look_up(const char *symbol, void **function, int version, int *found)
{
    enum { FOUND = 0, NOT_FOUND = 1, VERSION_TOO_LOW = 2 };
    *found = NOT_FOUND;
    *function = NULL;
    for (size_t i = 0; i < sizeof exports / sizeof exports[0]; i++) {
        const int since = version_of(exports[i].since);
        if (strcmp(exports[i].name, symbol) != 0 || since > standin_version()) {
            continue;
        }
        if (since <= version) {
            memcpy(function, &exports[i].function, sizeof *function);
            *found = FOUND;
        } else if (*found == NOT_FOUND) {
            *found = VERSION_TOO_LOW;
        }
    }
}

dj__cu_result cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                  int *found)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_STARTS);
    if (result == DJ__CU_SUCCESS && (symbol == NULL || function == NULL || flags > 2)) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        int unused = 0;
        look_up(symbol, function, version, found != NULL ? found : &unused);
    }
    return standin_leave(result);
}

/* Not the hardware's format, but the same bytes for the same arguments, and none for bad ones. */
dj__cu_result cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address,
                                     const uint64_t *dims, const uint64_t *strides,
                                     const uint32_t *box, const uint32_t *element_strides,
                                     int interleave, int swizzle, int promotion, int fill)
{
    enum { MAP_BYTES = 128, MAX_RANK = 5, WORDS = MAP_BYTES / 4 };
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS &&
        (map == NULL || (uintptr_t)map % 64 != 0 || rank == 0 || rank > MAX_RANK || dims == NULL ||
         box == NULL || element_strides == NULL || (rank > 1 && strides == NULL) ||
         (uintptr_t)address % 16 != 0)) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        const uint64_t base = (uint64_t)(uintptr_t)address;
        uint32_t words[WORDS] = {0x444a544d, (uint32_t)type, rank, (uint32_t)base,
                                 (uint32_t)(base >> 32)};
        size_t used = 5;
        words[used++] = (uint32_t)(interleave | swizzle << 8 | promotion << 16 | fill << 24);
        for (unsigned i = 0; i < rank; i++) {
            words[used++] = (uint32_t)dims[i];
            words[used++] = box[i];
            words[used++] = element_strides[i];
            words[used++] = i + 1 < rank ? (uint32_t)strides[i] : 0;
        }
        memcpy(map, words, sizeof words);
    }
    return standin_leave(result);
}
