/* SPDX-License-Identifier: MIT */
/*
 * What the stand-in driver's files share. One lock guards everything; standin_enter takes it,
 * standin_leave gives it back. Handles are looked up, never followed, before they are known.
 */
#ifndef STANDIN_CUDA_STATE_H
#define STANDIN_CUDA_STATE_H

#include "backend/cuda/cubin.h"
#include "backend/cuda/cuda_api.h"
#include "standin_cuda.h"
#include <stdbool.h>

#define STANDIN_EXPORT __attribute__((visibility("default")))

/* Every function below has exactly the prototype that its callers use. */
#define CUDA_SYMBOL(need, name, exported, since, params)                                           \
    STANDIN_EXPORT dj__cu_result exported params;
#include "backend/cuda/cuda_symbols.def"
#include "standin_cuda_extras.def"
#undef CUDA_SYMBOL

enum {
    STANDIN_INVALID_DEVICE = 101,
    STANDIN_NOT_SUPPORTED = 801,
    STANDIN_CAPTURE_INVALIDATED = 901,
    STANDIN_CAPTURE_UNMATCHED = 903,
    STANDIN_CAPTURE_WRONG_THREAD = 908
};

enum { STANDIN_DEVICES = 2, STANDIN_MEMORY = 1 << 30 }; /* bytes of each device */
enum { STANDIN_CAPTURE_NONE = 0, STANDIN_CAPTURE_ACTIVE = 1, STANDIN_CAPTURE_INVALID = 2 };

/* What a call needs before anything else is looked at. */
typedef enum standin_need {
    STANDIN_STARTS = 0, /* before cuInit, too */
    STANDIN_NEEDS_INIT = 1,
    STANDIN_NEEDS_CONTEXT = 2 /* current, alive, its device not lost */
} standin_need;

typedef struct dj__cu_context_st {
    struct dj__cu_context_st *next;
    int device;
    bool primary;
    bool alive;
    unsigned references;   /* of a primary context */
    unsigned long long id; /* of this life; never used again */
    unsigned generation;   /* grows with each reset: older functions are void */
    int lost;              /* the error that this context is left with */
} standin_context;

typedef struct dj__cu_stream_st {
    struct dj__cu_stream_st *next;
    standin_context *context;
    bool blocking;
    int status;
    int mode;
    const void *thread; /* that began the capture */
    size_t nodes;
} standin_stream;

typedef struct dj__cu_function_st {
    struct dj__cu_function_st *next;
    struct dj__cu_kernel_st *kernel;
    standin_context *context;
    unsigned generation;
    int max_dynamic;
    int nonportable;
} standin_function;

typedef struct dj__cu_kernel_st {
    struct dj__cu_library_st *library;
    const dj_kernel_info *info;
    standin_function own[STANDIN_DEVICES]; /* what counts when the kernel itself is launched */
} standin_kernel;

/* A variable of a library; each context that asked for it has its own. */
enum { STANDIN_CONTEXTS_OF_GLOBAL = 8 };
typedef struct standin_global {
    struct standin_global *next;
    char name[256];
    size_t size;
    const unsigned char *data; /* initial values in the library's image, or NULL */
    struct {
        const standin_context *context;
        dj__cu_deviceptr address;
    } at[STANDIN_CONTEXTS_OF_GLOBAL];
} standin_global;

typedef struct dj__cu_library_st {
    struct dj__cu_library_st *next;
    dj__cubin cubin;
    unsigned char *image; /* a copy of the ELF file */
    size_t image_size;
    standin_kernel *kernels;
    size_t num_kernels;
    standin_global *globals;
} standin_library;

extern _Thread_local int standin_capture_mode;

/* standin_cuda_control.c */
dj__cu_result standin_enter(const char *name, standin_need need);
dj__cu_result standin_leave(dj__cu_result result);
void standin_lock(void);
void standin_unlock(void);
void standin_mark_initialised(void);
int standin_device_count(void);
int standin_version(void);
void standin_arch(int device, int *major, int *minor);
void standin_record(const standin_cuda_launch *launch);
const void *standin_thread(void);

/* standin_cuda_device.c */
int standin_device_attribute(int device, int attribute); /* -1: no such attribute */

/* standin_cuda_context.c */
standin_context *standin_current(void);
dj__cu_result standin_check_context(const standin_context *context);
void standin_lose(int code);
void standin_find_again(void);
size_t standin_live_contexts(void);

/* standin_cuda_stream.c */
/* Turns a handle, NULL and the special ones included, into its context and, for a created
 * stream, its record. `use`: 906 where the legacy stream must not be used. */
dj__cu_result standin_find_stream(dj__cu_stream handle, bool use, standin_context **context,
                                  standin_stream **stream);
/* For calls that a capture forbids unless the thread is in RELAXED mode. */
dj__cu_result standin_unsafe(void);
/* For calls that use the legacy stream of the current context. */
dj__cu_result standin_use_legacy(const standin_context *context);
bool standin_any_capture(const standin_context *context);
void standin_invalidate(const standin_context *context);
void standin_forget_streams(const standin_context *context);
size_t standin_live_streams(void);
size_t standin_live_graphs(void);

/* standin_cuda_memory.c */
dj__cu_result standin_alloc(size_t size, const void *owner, int device, dj__cu_deviceptr *out);
/* Host memory behind a device address if all of it is one allocation; a host address is itself.
 * NULL: a device address with nothing behind it. */
void *standin_resolve(dj__cu_deviceptr address, size_t size);
void standin_free_owned(const void *owner);
size_t standin_live_allocations(size_t *bytes);

/* standin_cuda_image.c */
bool standin_is_elf(const void *code);
/* How far the file reaches by its own section headers. */
size_t standin_image_size(const void *code);
/* Adds every variable of the image to `library`; false: no memory. */
bool standin_read_globals(standin_library *library);

/* standin_cuda_library.c */
standin_kernel *standin_find_kernel(const void *handle);
/* "90": that and later minors; "90a": exactly it; "100f": its family. */
bool standin_runs_on(const char *arch, int device);
size_t standin_live_libraries(void);
void standin_forget_globals(const standin_context *context);

/* standin_cuda_function.c */
/* A function as it counts in `context`; launches take kernels cast to functions, too. */
dj__cu_result standin_find_function(dj__cu_function handle, standin_context *context,
                                    bool or_kernel, standin_function **out);
void standin_forget_functions(const standin_library *library);
int standin_registers(const standin_kernel *kernel);
int standin_static_shared(const standin_kernel *kernel);
int standin_max_threads(const standin_kernel *kernel);

#endif
