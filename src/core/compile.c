/* SPDX-License-Identifier: MIT */
/* dj_compile and dj_build: memory, then store, then compiler. */
#include "base/error.h"
#include "core/core.h"
#include "core/options.h"

static const dj_compile_options compile_unset = {.size = sizeof(compile_unset)};

static void compile_give_log(const dj_compile_options *options, const char *log, size_t size)
{
    if (options->on_log != NULL && size > 0) {
        options->on_log(options->on_log_user, log, size);
    }
}

/* ---- kernels ---------------------------------------------------------------------------- */

/* Bytes that verified but that the driver refuses are never removed: another driver may well
 * take them. One private rebuild tells a stale binary from an impossible one. */
static dj_status compile_rebuild(dj_runtime *runtime, const dj__request *request,
                                 dj_kernel **kernel, dj_error *err)
{
    dj__log_write(&runtime->log, DJ_LOG_WARN,
                  "%s: the cached binary cannot be loaded (%s); "
                  "building it once more",
                  request->tag, err != NULL ? err->message : "incompatible");
    dj_artifact *artifact = NULL;
    dj_status status = dj__artifact_private(runtime, request, &artifact, err);
    if (status != DJ_OK) {
        return status;
    }
    status = dj__kernel_load(runtime, request, artifact, kernel, err);
    if (status == DJ_INCOMPATIBLE) {
        dj__error_prefix(err, "refused again after a rebuild with %s (%s)",
                         runtime->toolchain.version, runtime->toolchain.path);
    }
    dj__artifact_drop(artifact);
    return status;
}

static dj_status compile_load(dj_runtime *runtime, const dj__request *request, bool may_build,
                              bool *stable, dj_kernel **kernel, dj_error *err)
{
    dj_artifact *artifact = NULL;
    dj_status status =
        dj__artifact_obtain(runtime, request, DJ_VERIFY_BINARY, may_build, &artifact, err);
    if (status != DJ_OK) {
        return status;
    }
    *stable = !artifact->unstable;
    status = dj__kernel_load(runtime, request, artifact, kernel, err);
    if (status == DJ_INCOMPATIBLE && artifact->hit && may_build) {
        status = compile_rebuild(runtime, request, kernel, err);
    }
    dj__artifact_drop(artifact);
    return status;
}

static dj_kernel *compile_find_key(dj_runtime *runtime, const dj__request *request)
{
    dj__cached *hit = dj__memory_find_key(runtime->memory, request->key);
    if (hit != NULL) {
        atomic_fetch_add_explicit(&runtime->counters.key_hits, 1, memory_order_relaxed);
    }
    return (dj_kernel *)(void *)hit;
}

static dj_status compile_lead(dj_runtime *runtime, const dj__memory_request *raw,
                              const dj__request *request, bool may_build, dj_kernel **kernel,
                              dj_error *err)
{
    *kernel = compile_find_key(runtime, request);
    bool stable = true;
    const dj_status status =
        *kernel != NULL ? DJ_OK : compile_load(runtime, request, may_build, &stable, kernel, err);
    if (status == DJ_OK && stable) {
        atomic_store_explicit(&(*kernel)->adopted, true, memory_order_relaxed);
        dj__memory_insert(runtime->memory, raw, &(*kernel)->cached);
    }
    return status;
}

static dj_status compile_key(dj_runtime *runtime, const dj__memory_request *raw,
                             const dj__request *request, dj_kernel **kernel, dj_error *err)
{
    dj__flight *flight = NULL;
    bool lead = false;
    void *result = NULL;
    dj_status status =
        dj__flight_join(runtime->kernel_flights, request->key, request->options.common.cancel,
                        &flight, &lead, &result, err);
    if (!lead) {
        *kernel = result;
        return status;
    }
    dj_error own = DJ_ERROR_INIT;
    unsigned waiters = 0;
    status = compile_lead(runtime, raw, request, true, kernel, &own);
    dj__flight_land(runtime->kernel_flights, flight, status, *kernel, &own, &waiters);
    atomic_fetch_add_explicit(&runtime->counters.waits, waiters, memory_order_relaxed);
    if (status != DJ_OK && err != NULL) {
        *err = own;
    }
    return status;
}

/* No toolchain, or one that cannot be used: entries that exist may still be found. */
static bool compile_without_toolchain(dj_status status)
{
    return status == DJ_UNAVAILABLE || status == DJ_INCOMPATIBLE;
}

/* Calls `attempt` with the request keyed by each recorded identity until one is found. */
typedef dj_status (*compile_attempt_fn)(dj_runtime *runtime, void *user, dj__request *request,
                                        dj_error *err);

static dj_status compile_recorded(dj_runtime *runtime, dj__request *request, dj_status missing,
                                  compile_attempt_fn attempt, void *user, dj_error *err)
{
    dj__strlist identities;
    dj__strlist_init(&identities);
    dj__runtime_recorded(runtime, &identities, NULL);
    dj_status status = missing; /* `err` says what is missing; kept if nothing is found */
    for (size_t i = 0; status == missing && i < identities.count; i++) {
        const dj_status keyed =
            dj__request_key(runtime, request, identities.items[i], NULL, NULL, err);
        if (keyed != DJ_OK) {
            status = keyed;
        } else if (attempt(runtime, user, request, NULL) == DJ_OK) {
            dj__log_write(&runtime->log, DJ_LOG_INFO,
                          "%s: no toolchain here; served by the recorded identity %s", request->tag,
                          identities.items[i]);
            status = DJ_OK;
        }
    }
    dj__strlist_fini(&identities);
    return status;
}

typedef struct compile_kernel_user {
    const dj__memory_request *raw;
    dj_kernel *kernel;
} compile_kernel_user;

static dj_status compile_attempt_kernel(dj_runtime *runtime, void *user, dj__request *request,
                                        dj_error *err)
{
    compile_kernel_user *want = user;
    return compile_lead(runtime, want->raw, request, false, &want->kernel, err);
}

static dj_status compile_request(dj_runtime *runtime, const dj__memory_request *raw,
                                 dj__request *request, dj_kernel **kernel, dj_error *err)
{
    const dj__toolchain *toolchain = NULL;
    dj_status status = dj__runtime_toolchain(runtime, &toolchain, err);
    if (status == DJ_OK) {
        status = dj__request_key(runtime, request, toolchain->identity, NULL, NULL, err);
        return status != DJ_OK ? status : compile_key(runtime, raw, request, kernel, err);
    }
    if (compile_without_toolchain(status)) {
        compile_kernel_user want = {raw, NULL};
        status = compile_recorded(runtime, request, status, compile_attempt_kernel, &want, err);
        *kernel = want.kernel;
    }
    return status;
}

static dj_status compile_miss(dj_runtime *runtime, const char *tag, const dj__memory_request *raw,
                              dj_kernel **out, dj_error *err)
{
    dj__request request;
    dj_status status =
        dj__request_init(runtime, tag, raw->source, raw->size, raw->options, &request, err);
    if (status != DJ_OK) {
        return status;
    }
    dj_kernel *kernel = NULL;
    status = compile_request(runtime, raw, &request, &kernel, err);
    if (status == DJ_OK) {
        compile_give_log(&request.options.common, kernel->log, kernel->log_size);
        *out = kernel;
    }
    dj__request_fini(&request);
    return status;
}

dj_status dj_compile(dj_runtime *runtime, const char *tag, const char *source, size_t size,
                     const dj_compile_options *options, dj_kernel **out, dj_error *err)
{
    if (out == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "dj_compile: out must not be NULL");
    }
    *out = NULL;
    dj_status status = dj__check_call(runtime, tag, source, size, err);
    if (status != DJ_OK) {
        return status;
    }
    dj__compile_set imported;
    if (options == NULL) {
        options = &compile_unset;
    } else if (!dj__compile_options_known(options)) {
        status = dj__compile_set_import(options, &imported, err);
        if (status != DJ_OK) {
            return status;
        }
        options = &imported.common;
    }
    const uint64_t seed = options == &compile_unset ? 0 : dj__compile_options_hash(options);
    source = source != NULL ? source : "";
    const dj__memory_request raw = {source, size, options, dj__memory_hash(source, size, seed)};
    if (!atomic_load_explicit(&runtime->lost_device, memory_order_relaxed)) {
        dj_kernel *kernel = (dj_kernel *)(void *)dj__memory_find(runtime->memory, &raw);
        if (kernel != NULL) {
            compile_give_log(options->on_log != NULL ? options
                                                     : &runtime->config.compile_defaults->common,
                             kernel->log, kernel->log_size);
            *out = kernel;
            return DJ_OK;
        }
    }
    return compile_miss(runtime, tag, &raw, out, err);
}

/* ---- artifacts -------------------------------------------------------------------------- */

static dj_status compile_attempt_artifact(dj_runtime *runtime, void *user, dj__request *request,
                                          dj_error *err)
{
    return dj__artifact_obtain(runtime, request, DJ_VERIFY_ALL, false, user, err);
}

static dj_status compile_artifact(dj_runtime *runtime, dj__request *request, dj_artifact **out,
                                  dj_error *err)
{
    const dj__toolchain *toolchain = NULL;
    dj_status status = dj__runtime_toolchain(runtime, &toolchain, err);
    if (status == DJ_OK) {
        status = dj__request_key(runtime, request, toolchain->identity, NULL, NULL, err);
        return status != DJ_OK
                   ? status
                   : dj__artifact_obtain(runtime, request, DJ_VERIFY_ALL, true, out, err);
    }
    if (compile_without_toolchain(status)) {
        status = compile_recorded(runtime, request, status, compile_attempt_artifact, out, err);
    }
    return status;
}

/* What dj_build says of the kernels in a binary: "2: a, b". */
typedef struct compile_kernels {
    size_t count;
    dj__strbuf names;
} compile_kernels;

static void compile_list_kernels(void *user, const dj_binary_info *info)
{
    compile_kernels *kernels = user;
    kernels->count = info->num_kernels;
    for (size_t i = 0; i < info->num_kernels; i++) {
        dj__strbuf_printf(&kernels->names, "%s%s", i > 0 ? ", " : ": ", info->kernels[i].name);
    }
}

/* Gives the artifact up if its binary does not hold exactly one kernel; a published entry stays,
 * for others may want it. */
static dj_status compile_check_single(dj_runtime *runtime, dj_artifact **artifact, dj_error *err)
{
    const dj_entry *entry = &(*artifact)->entry;
    compile_kernels kernels = {0};
    dj__strbuf_init(&kernels.names, sizeof(err->message));
    dj_status status = dj_inspect(runtime->backend, entry->binary, entry->binary_size,
                                  compile_list_kernels, &kernels, err);
    if (status == DJ_OK && kernels.count != 1) {
        status = dj__fail(err, DJ_INVALID_ARGUMENT, "expected exactly one kernel, found %zu%s\n%s",
                          kernels.count, dj__strbuf_str(&kernels.names), (*artifact)->binary_path);
    }
    dj__strbuf_fini(&kernels.names);
    if (status != DJ_OK) {
        dj__artifact_drop(*artifact);
        *artifact = NULL;
    }
    return status;
}

dj_status dj_build(dj_runtime *runtime, const char *tag, const char *source, size_t size,
                   const dj_compile_options *options, dj_artifact **out, dj_error *err)
{
    if (out == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "dj_build: out must not be NULL");
    }
    *out = NULL;
    dj_status status = dj__check_call(runtime, tag, source, size, err);
    if (status != DJ_OK) {
        return status;
    }
    dj__request request;
    status = dj__request_init(runtime, tag, source, size, options, &request, err);
    if (status != DJ_OK) {
        return status;
    }
    status = compile_artifact(runtime, &request, out, err);
    if (status == DJ_OK && request.options.common.single_kernel == DJ_ON) {
        status = compile_check_single(runtime, out, err);
    }
    if (status == DJ_OK) {
        compile_give_log(&request.options.common, (*out)->entry.log, (*out)->entry.log_size);
    }
    dj__request_fini(&request);
    return status;
}
