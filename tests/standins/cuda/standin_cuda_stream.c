/* SPDX-License-Identifier: MIT */
/* The stand-in driver: streams, captures and the graphs they become. */
#include "standin_cuda_state.h"
#include <stdlib.h>

typedef struct graph {
    struct graph *next;
    size_t nodes;
} graph;

static standin_stream *streams;
static graph *graphs;

static const dj__cu_stream legacy = (dj__cu_stream)1;
static const dj__cu_stream per_thread = (dj__cu_stream)2;

size_t standin_live_streams(void)
{
    size_t count = 0;
    for (const standin_stream *one = streams; one != NULL; one = one->next) {
        count++;
    }
    return count;
}

size_t standin_live_graphs(void)
{
    size_t count = 0;
    for (const graph *one = graphs; one != NULL; one = one->next) {
        count++;
    }
    return count;
}

bool standin_any_capture(const standin_context *context)
{
    for (const standin_stream *one = streams; one != NULL; one = one->next) {
        if (one->context == context && one->status != STANDIN_CAPTURE_NONE) {
            return true;
        }
    }
    return false;
}

void standin_invalidate(const standin_context *context)
{
    for (standin_stream *one = streams; one != NULL; one = one->next) {
        if (one->context == context && one->status == STANDIN_CAPTURE_ACTIVE) {
            one->status = STANDIN_CAPTURE_INVALID;
        }
    }
}

void standin_forget_streams(const standin_context *context)
{
    for (standin_stream **at = &streams; *at != NULL;) {
        standin_stream *one = *at;
        if (one->context == context) {
            *at = one->next;
            free(one);
        } else {
            at = &one->next;
        }
    }
}

static bool blocking_capture(const standin_context *context)
{
    for (const standin_stream *one = streams; one != NULL; one = one->next) {
        if (one->context == context && one->blocking && one->status != STANDIN_CAPTURE_NONE) {
            return true;
        }
    }
    return false;
}

dj__cu_result standin_use_legacy(const standin_context *context)
{
    if (!blocking_capture(context)) {
        return DJ__CU_SUCCESS;
    }
    for (standin_stream *one = streams; one != NULL; one = one->next) {
        if (one->context == context && one->blocking && one->status == STANDIN_CAPTURE_ACTIVE) {
            one->status = STANDIN_CAPTURE_INVALID;
        }
    }
    return DJ__CU_STREAM_CAPTURE_IMPLICIT;
}

/* cuThreadExchangeStreamCaptureMode says which calls are prohibited for which thread. */
dj__cu_result standin_unsafe(void)
{
    dj__cu_result result = DJ__CU_SUCCESS;
    enum { GLOBAL = 0 };
    for (standin_stream *one = streams; one != NULL; one = one->next) {
        const bool own = one->thread == standin_thread();
        const bool forbidden = own ? one->mode != DJ__CU_CAPTURE_MODE_RELAXED
                                   : one->mode == GLOBAL && standin_capture_mode == GLOBAL;
        if (one->status != STANDIN_CAPTURE_NONE && forbidden &&
            standin_capture_mode != DJ__CU_CAPTURE_MODE_RELAXED) {
            one->status = STANDIN_CAPTURE_INVALID;
            result = DJ__CU_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

dj__cu_result standin_find_stream(dj__cu_stream handle, bool use, standin_context **context,
                                  standin_stream **stream)
{
    *stream = NULL;
    *context = standin_current();
    if (handle == NULL || handle == legacy || handle == per_thread) {
        const dj__cu_result result = standin_check_context(*context);
        return result == DJ__CU_SUCCESS && use && handle != per_thread
                   ? standin_use_legacy(*context)
                   : result;
    }
    standin_stream *one = streams;
    while (one != NULL && one != handle) {
        one = one->next;
    }
    if (one == NULL) {
        return DJ__CU_INVALID_HANDLE;
    }
    *stream = one;
    *context = one->context;
    return standin_check_context(one->context);
}

dj__cu_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS &&
        (mode == NULL || *mode < 0 || *mode > DJ__CU_CAPTURE_MODE_RELAXED)) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        const int before = standin_capture_mode;
        standin_capture_mode = *mode;
        *mode = before;
    }
    return standin_leave(result);
}

static dj__cu_result create_stream(dj__cu_stream *stream, unsigned flags)
{
    if (stream == NULL || flags > 1) {
        return DJ__CU_INVALID_VALUE;
    }
    standin_stream *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return DJ__CU_OUT_OF_MEMORY;
    }
    made->context = standin_current();
    made->blocking = flags == 0;
    made->next = streams;
    streams = made;
    *stream = made;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuStreamCreate(dj__cu_stream *stream, unsigned flags)
{
    const dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_CONTEXT);
    return standin_leave(result == DJ__CU_SUCCESS ? create_stream(stream, flags) : result);
}

dj__cu_result cuStreamDestroy_v2(dj__cu_stream stream)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        standin_stream **at = &streams;
        while (*at != NULL && *at != stream) {
            at = &(*at)->next;
        }
        result = *at != NULL ? DJ__CU_SUCCESS : DJ__CU_INVALID_HANDLE;
        if (*at != NULL) {
            *at = stream->next;
            free(stream);
        }
    }
    return standin_leave(result);
}

static dj__cu_result synchronize_stream(dj__cu_stream handle)
{
    standin_context *context = NULL;
    standin_stream *stream = NULL;
    const dj__cu_result result = standin_find_stream(handle, true, &context, &stream);
    if (result == DJ__CU_SUCCESS && stream != NULL && stream->status != STANDIN_CAPTURE_NONE) {
        stream->status = STANDIN_CAPTURE_INVALID;
        return DJ__CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result == DJ__CU_SUCCESS ? standin_unsafe() : result;
}

dj__cu_result cuStreamSynchronize(dj__cu_stream stream)
{
    const dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    return standin_leave(result == DJ__CU_SUCCESS ? synchronize_stream(stream) : result);
}

static dj__cu_result begin_capture(dj__cu_stream handle, int mode)
{
    standin_context *context = NULL;
    standin_stream *stream = NULL;
    const dj__cu_result result = standin_find_stream(handle, false, &context, &stream);
    if (result != DJ__CU_SUCCESS) {
        return result;
    }
    if (mode < 0 || mode > DJ__CU_CAPTURE_MODE_RELAXED) {
        return DJ__CU_INVALID_VALUE;
    }
    if (stream == NULL) {
        return DJ__CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream->status != STANDIN_CAPTURE_NONE) {
        return DJ__CU_INVALID_VALUE;
    }
    stream->status = STANDIN_CAPTURE_ACTIVE;
    stream->mode = mode;
    stream->thread = standin_thread();
    stream->nodes = 0;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuStreamBeginCapture_v2(dj__cu_stream stream, int mode)
{
    const dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    return standin_leave(result == DJ__CU_SUCCESS ? begin_capture(stream, mode) : result);
}

static dj__cu_result end_capture(dj__cu_stream handle, void **out)
{
    standin_context *context = NULL;
    standin_stream *stream = NULL;
    const dj__cu_result result = standin_find_stream(handle, false, &context, &stream);
    if (result != DJ__CU_SUCCESS) {
        return result;
    }
    if (stream == NULL || stream->status == STANDIN_CAPTURE_NONE) {
        return STANDIN_CAPTURE_UNMATCHED;
    }
    if (stream->mode != DJ__CU_CAPTURE_MODE_RELAXED && stream->thread != standin_thread()) {
        return STANDIN_CAPTURE_WRONG_THREAD;
    }
    const bool valid = stream->status == STANDIN_CAPTURE_ACTIVE;
    stream->status = STANDIN_CAPTURE_NONE;
    graph *made = valid ? calloc(1, sizeof *made) : NULL;
    *out = made;
    if (made == NULL) {
        return valid ? DJ__CU_OUT_OF_MEMORY : STANDIN_CAPTURE_INVALIDATED;
    }
    made->nodes = stream->nodes;
    made->next = graphs;
    graphs = made;
    return DJ__CU_SUCCESS;
}

dj__cu_result cuStreamEndCapture(dj__cu_stream stream, void **out)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        result = out != NULL ? end_capture(stream, out) : DJ__CU_INVALID_VALUE;
    }
    return standin_leave(result);
}

static dj__cu_result capture_status(dj__cu_stream handle, int *status)
{
    standin_context *context = NULL;
    standin_stream *stream = NULL;
    const dj__cu_result result = standin_find_stream(handle, false, &context, &stream);
    if (result != DJ__CU_SUCCESS) {
        return result;
    }
    *status = stream != NULL ? stream->status : STANDIN_CAPTURE_NONE;
    /* Of all calls on the legacy stream only this one leaves the capture valid. */
    return stream == NULL && handle != per_thread && blocking_capture(context)
               ? DJ__CU_STREAM_CAPTURE_IMPLICIT
               : DJ__CU_SUCCESS;
}

dj__cu_result cuStreamIsCapturing(dj__cu_stream stream, int *status)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        result = status != NULL ? capture_status(stream, status) : DJ__CU_INVALID_VALUE;
    }
    return standin_leave(result);
}

dj__cu_result cuStreamGetCtx(dj__cu_stream stream, dj__cu_context *context)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    standin_stream *found = NULL;
    if (result == DJ__CU_SUCCESS) {
        result = context != NULL ? standin_find_stream(stream, false, context, &found)
                                 : DJ__CU_INVALID_VALUE;
    }
    return standin_leave(result);
}

static graph **find_graph(const void *handle)
{
    graph **at = &graphs;
    while (*at != NULL && *at != handle) {
        at = &(*at)->next;
    }
    return at;
}

/* The nodes themselves are not modelled: their number is. */
dj__cu_result cuGraphGetNodes(void *handle, void **nodes, size_t *count)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS && (count == NULL || nodes != NULL)) {
        result = DJ__CU_INVALID_VALUE;
    }
    if (result == DJ__CU_SUCCESS) {
        const graph *one = *find_graph(handle);
        result = one != NULL ? DJ__CU_SUCCESS : DJ__CU_INVALID_VALUE;
        *count = one != NULL ? one->nodes : *count;
    }
    return standin_leave(result);
}

dj__cu_result cuGraphDestroy(void *handle)
{
    dj__cu_result result = standin_enter(__func__, STANDIN_NEEDS_INIT);
    if (result == DJ__CU_SUCCESS) {
        graph **at = find_graph(handle);
        graph *one = *at;
        result = one != NULL ? DJ__CU_SUCCESS : DJ__CU_INVALID_VALUE;
        if (one != NULL) {
            *at = one->next;
            free(one);
        }
    }
    return standin_leave(result);
}
