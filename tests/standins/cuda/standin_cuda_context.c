/* SPDX-License-Identifier: MIT */
/*
 * The stand-in driver: contexts. Records are never freed, so that a handle of a destroyed context
 * is known for what it is.
 */
#include "standin_cuda_state.h"
#include <stdlib.h>

enum { MAX_STACK = 16 };

static standin_context primaries[STANDIN_DEVICES];
static standin_context *created;
static unsigned long long last_id;
static _Thread_local standin_context *stack[MAX_STACK];
static _Thread_local size_t depth;

standin_context *standin_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

dj__cu_result standin_check_context(const standin_context *context)
{
    if (context == NULL) {
        return DJ__CU_INVALID_CONTEXT;
    }
    return context->alive ? context->lost : DJ__CU_CONTEXT_IS_DESTROYED;
}

/* Nobody can free what a lost context holds, so it does not count any more. */
void standin_lose(int code)
{
    standin_context *context = standin_current();
    if (context != NULL) {
        context->lost = code;
        standin_forget_globals(context);
        standin_free_owned(context);
    }
}

void standin_find_again(void)
{
    for (int i = 0; i < STANDIN_DEVICES; i++) {
        primaries[i].lost = 0;
    }
    for (standin_context *one = created; one != NULL; one = one->next) {
        one->lost = 0;
    }
}

size_t standin_live_contexts(void)
{
    size_t count = 0;
    for (int i = 0; i < STANDIN_DEVICES; i++) {
        count += primaries[i].alive;
    }
    for (const standin_context *one = created; one != NULL; one = one->next) {
        count += one->alive;
    }
    return count;
}

static bool is_context(const standin_context *context)
{
    for (int i = 0; i < STANDIN_DEVICES; i++) {
        if (context == &primaries[i]) {
            return primaries[i].generation > 0;
        }
    }
    const standin_context *one = created;
    while (one != NULL && one != context) {
        one = one->next;
    }
    return one != NULL;
}

static void end_context(standin_context *context)
{
    if (context->alive) {
        standin_forget_streams(context);
        standin_forget_globals(context);
        standin_free_owned(context);
        context->alive = false;
        context->lost = 0;
    }
}

static dj__cu_result check_ordinal(int device)
{
    return device >= 0 && device < standin_device_count() ? DJ__CU_SUCCESS : STANDIN_INVALID_DEVICE;
}

dj__cu_result cuDevicePrimaryCtxRetain(dj__cu_context *context, dj__cu_device device)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        result = context != NULL ? check_ordinal(device) : DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        standin_context *primary = &primaries[device];
        if (!primary->alive) {
            primary->device = device;
            primary->primary = true;
            primary->alive = true;
            primary->id = ++last_id;
            primary->generation++;
        }
        primary->references++;
        *context = primary;
    }
    return standin_leave(result);
}

dj__cu_result cuDevicePrimaryCtxRelease_v2(dj__cu_device device)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        result = check_ordinal(device);
    }
    if (result == DJ__CU_SUCCESS && primaries[device].references == 0) {
        result = DJ__CU_INVALID_CONTEXT;
    }
    if (result == DJ__CU_SUCCESS && --primaries[device].references == 0) {
        end_context(&primaries[device]);
    }
    return standin_leave(result);
}

/* Leaves the references alone: whoever retained it may still release it. */
dj__cu_result cuDevicePrimaryCtxReset_v2(dj__cu_device device)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        result = check_ordinal(device);
    }
    if (result == DJ__CU_SUCCESS) {
        end_context(&primaries[device]);
    }
    return standin_leave(result);
}

dj__cu_result cuDevicePrimaryCtxGetState(dj__cu_device device, unsigned *flags, int *active)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        result = flags != NULL && active != NULL ? check_ordinal(device) : DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        *flags = 0;
        *active = primaries[device].alive;
    }
    return standin_leave(result);
}

static dj__cu_result create_context(dj__cu_context *context, int device)
{
    dj__cu_result result = context != NULL ? check_ordinal(device) : DJ__CU_INVALID_VALUE;
    if (result != DJ__CU_SUCCESS) {
        return result;
    }
    standin_context *made = calloc(1, sizeof *made);
    if (made == NULL || depth >= MAX_STACK) {
        free(made);
        return DJ__CU_OUT_OF_MEMORY;
    }
    made->device = device;
    made->alive = true;
    made->id = ++last_id;
    made->generation = 1;
    made->next = created;
    created = made;
    stack[depth++] = made;
    *context = made;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuCtxCreate_v2(dj__cu_context *context, unsigned flags, dj__cu_device device)
{
    (void)flags;
    const dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    return standin_leave(result == DJ__CU_SUCCESS ? create_context(context, device) : result);
}

dj__cu_result cuCtxCreate_v4(dj__cu_context *context, void *params, unsigned flags,
                             dj__cu_device device)
{
    (void)params;
    (void)flags;
    const dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    return standin_leave(result == DJ__CU_SUCCESS ? create_context(context, device) : result);
}

dj__cu_result cuCtxDestroy_v2(dj__cu_context context)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS && (!is_context(context) || context->primary)) {
        result = DJ__CU_INVALID_CONTEXT;
    }
    if (result == DJ__CU_SUCCESS && !context->alive) {
        result = DJ__CU_CONTEXT_IS_DESTROYED;
    }
    if (result == DJ__CU_SUCCESS) {
        end_context(context);
        depth -= standin_current() == context;
    }
    return standin_leave(result);
}

dj__cu_result cuCtxPushCurrent_v2(dj__cu_context context)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS && (!is_context(context) || depth >= MAX_STACK)) {
        result = DJ__CU_INVALID_CONTEXT;
    }
    if (result == DJ__CU_SUCCESS) {
        stack[depth++] = context;
    }
    return standin_leave(result);
}

dj__cu_result cuCtxPopCurrent_v2(dj__cu_context *context)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS && depth == 0) {
        result = DJ__CU_INVALID_CONTEXT;
    }
    if (result == DJ__CU_SUCCESS) {
        depth--;
        if (context != NULL) {
            *context = stack[depth];
        }
    }
    return standin_leave(result);
}

dj__cu_result cuCtxGetCurrent(dj__cu_context *context)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS && context == NULL) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        *context = standin_current();
    }
    return standin_leave(result);
}

dj__cu_result cuCtxGetId(dj__cu_context context, unsigned long long *id)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    const standin_context *of = context != NULL ? context : standin_current();
    if (result == DJ__CU_SUCCESS && (id == NULL || (context != NULL && !is_context(context)))) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS && of == NULL) {
        result = DJ__CU_INVALID_CONTEXT;
    }
    if (result == DJ__CU_SUCCESS && !of->alive) {
        result = DJ__CU_CONTEXT_IS_DESTROYED;
    }
    if (result == DJ__CU_SUCCESS) {
        *id = of->id;
    }
    return standin_leave(result);
}

dj__cu_result cuCtxSetCurrent(dj__cu_context context)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS && context != NULL && !is_context(context)) {
        result = DJ__CU_INVALID_CONTEXT;
    }
    if (result == DJ__CU_SUCCESS && context != NULL && !context->alive) {
        result = DJ__CU_CONTEXT_IS_DESTROYED;
    }
    if (result == DJ__CU_SUCCESS) {
        depth -= depth > 0;
        if (context != NULL) {
            stack[depth++] = context;
        }
    }
    return standin_leave(result);
}

dj__cu_result cuCtxGetDevice(dj__cu_device *device)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    if (result == DJ__CU_SUCCESS && device == NULL) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        *device = standin_current()->device;
    }
    return standin_leave(result);
}

dj__cu_result cuCtxSynchronize(void)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    if (result == DJ__CU_SUCCESS && standin_any_capture(standin_current())) {
        standin_invalidate(standin_current());
        result = DJ__CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    return standin_leave(result == DJ__CU_SUCCESS ? standin_unsafe() : result);
}
