/* SPDX-License-Identifier: MIT */
/*
 * The stand-in driver: memory. Device addresses lie in a range that the host cannot touch and are
 * never given out twice; what they hold lies elsewhere. So following a device pointer on the host
 * ends in a fault, and a freed one is known to be free.
 */
#include "standin_cuda_state.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RANGE_BYTES ((uint64_t)1 << 36)
#define RANGE_ALIGN ((uint64_t)512)

typedef struct block {
    struct block *next;
    uint64_t address;
    size_t size;
    const void *owner; /* context or library */
    int device;
    unsigned char *data;
} block;

static block *blocks;
static uint64_t range;
static uint64_t range_used;

static uint64_t take_addresses(size_t size)
{
    if (range == 0) {
        void *mapped =
            mmap(NULL, RANGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) {
            return 0;
        }
        range = (uint64_t)(uintptr_t)mapped;
    }
    const uint64_t wanted = (size + RANGE_ALIGN) / RANGE_ALIGN * RANGE_ALIGN; /* with a gap */
    if (wanted > RANGE_BYTES - range_used) {
        return 0;
    }
    range_used += wanted;
    return range + range_used - wanted;
}

static size_t used_bytes(int device)
{
    size_t used = 0;
    for (const block *one = blocks; one != NULL; one = one->next) {
        used += one->device == device ? one->size : 0;
    }
    return used;
}

dj__cu_result standin_alloc(size_t size, const void *owner, int device, dj__cu_deviceptr *out)
{
    if (size > STANDIN_MEMORY - used_bytes(device)) {
        return DJ__CU_OUT_OF_MEMORY;
    }
    block *made = calloc(1, sizeof *made);
    unsigned char *data = calloc(1, size);
    const uint64_t address = made != NULL && data != NULL ? take_addresses(size) : 0;
    if (address == 0) {
        free(made);
        free(data);
        return DJ__CU_OUT_OF_MEMORY;
    }
    *made = (block){blocks, address, size, owner, device, data};
    blocks = made;
    *out = address;
    return DJ__CU_SUCCESS;
}

static void free_block(block **at)
{
    block *one = *at;
    *at = one->next;
    free(one->data);
    free(one);
}

void standin_free_owned(const void *owner)
{
    for (block **at = &blocks; *at != NULL;) {
        if ((*at)->owner == owner) {
            free_block(at);
        } else {
            at = &(*at)->next;
        }
    }
}

size_t standin_live_allocations(size_t *bytes)
{
    size_t count = 0;
    *bytes = 0;
    for (const block *one = blocks; one != NULL; one = one->next) {
        count++;
        *bytes += one->size;
    }
    return count;
}

void *standin_resolve(dj__cu_deviceptr address, size_t size)
{
    if (range == 0 || address < range || address - range >= RANGE_BYTES) {
        return (void *)(uintptr_t)address;
    }
    for (const block *one = blocks; one != NULL; one = one->next) {
        const uint64_t offset = address - one->address; /* large where address is smaller */
        if (offset < one->size && size <= one->size - offset) {
            return one->data + offset;
        }
    }
    return NULL;
}

static bool is_device_address(dj__cu_deviceptr address)
{
    return range != 0 && address >= range && address - range < RANGE_BYTES;
}

dj__cu_result cuMemAlloc_v2(dj__cu_deviceptr *memory, size_t size)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    if (result == DJ__CU_SUCCESS && (memory == NULL || size == 0)) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        result = standin_unsafe();
    }
    if (result == DJ__CU_SUCCESS) {
        standin_context *context = standin_current();
        result = standin_alloc(size, context, context->device, memory);
    }
    return standin_leave(result);
}

dj__cu_result cuMemFree_v2(dj__cu_deviceptr memory)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    if (result == DJ__CU_SUCCESS) {
        result = standin_unsafe();
    }
    if (result == DJ__CU_SUCCESS) {
        block **at = &blocks;
        while (*at != NULL && (*at)->address != memory) {
            at = &(*at)->next;
        }
        result = *at != NULL ? DJ__CU_SUCCESS : DJ__CU_INVALID_VALUE;
        if (*at != NULL) {
            free_block(at);
        }
    }
    return standin_leave(result);
}

dj__cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    if (result == DJ__CU_SUCCESS && (free_bytes == NULL || total == NULL)) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        *total = STANDIN_MEMORY;
        *free_bytes = STANDIN_MEMORY - used_bytes(standin_current()->device);
    }
    return standin_leave(result);
}

/* The real driver does not allow these on the legacy stream of a capturing context, nor for a
 * thread that must not do what is unsafe. */
static dj__cu_result copy(dj__cu_deviceptr to, dj__cu_deviceptr from, size_t size)
{
    dj__cu_result result = standin_use_legacy(standin_current());
    if (result == DJ__CU_SUCCESS) {
        result = standin_unsafe();
    }
    if (result != DJ__CU_SUCCESS || size == 0) {
        return result;
    }
    void *target = standin_resolve(to, size);
    const void *source = standin_resolve(from, size);
    if (target == NULL || source == NULL) {
        return DJ__CU_INVALID_VALUE;
    }
    memmove(target, source, size);
    return DJ__CU_SUCCESS;
}

dj__cu_result cuMemcpy(dj__cu_deviceptr to, dj__cu_deviceptr from, size_t size)
{
    const dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    return standin_leave(result == DJ__CU_SUCCESS ? copy(to, from, size) : result);
}

dj__cu_result cuMemcpyHtoD_v2(dj__cu_deviceptr to, const void *from, size_t size)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    if (result == DJ__CU_SUCCESS) {
        result = is_device_address(to) ? copy(to, (dj__cu_deviceptr)(uintptr_t)from, size)
                                       : DJ__CU_INVALID_VALUE;
    }
    return standin_leave(result);
}

dj__cu_result cuMemcpyDtoH_v2(void *to, dj__cu_deviceptr from, size_t size)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    if (result == DJ__CU_SUCCESS) {
        result = is_device_address(from) ? copy((dj__cu_deviceptr)(uintptr_t)to, from, size)
                                         : DJ__CU_INVALID_VALUE;
    }
    return standin_leave(result);
}

dj__cu_result cuMemcpyDtoD_v2(dj__cu_deviceptr to, dj__cu_deviceptr from, size_t size)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    if (result == DJ__CU_SUCCESS) {
        result = is_device_address(to) && is_device_address(from) ? copy(to, from, size)
                                                                  : DJ__CU_INVALID_VALUE;
    }
    return standin_leave(result);
}

dj__cu_result cuMemsetD8_v2(dj__cu_deviceptr to, unsigned char value, size_t size)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    if (result == DJ__CU_SUCCESS) {
        void *target = is_device_address(to) ? standin_resolve(to, size) : NULL;
        result = target != NULL ? DJ__CU_SUCCESS : DJ__CU_INVALID_VALUE;
        if (target != NULL) {
            memset(target, value, size);
        }
    }
    return standin_leave(result);
}
