/* SPDX-License-Identifier: MIT */
/* Artifacts: finding an entry in the store or building it, once for all threads that want it. */
#include "base/error.h"
#include "base/fs.h"
#include "core/core.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the object ------------------------------------------------------------------------- */

void dj__artifact_retain(void *object)
{
    dj_artifact *artifact = object;
    atomic_fetch_add_explicit(&artifact->refs, 1, memory_order_relaxed);
}

void dj__artifact_drop(void *object)
{
    dj_artifact *artifact = object;
    if (atomic_fetch_sub_explicit(&artifact->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (artifact->entry.reason != NULL && artifact->entry.path != NULL &&
        artifact->generation == dj__fork_generation()) {
        dj__remove_tree(artifact->entry.path);
    }
    dj__entry_fini(&artifact->entry);
    free(artifact->binary_path);
    free(artifact);
}

dj_artifact *dj_artifact_retain(dj_artifact *artifact)
{
    if (artifact != NULL) {
        dj__artifact_retain(artifact);
    }
    return artifact;
}

void dj_artifact_release(dj_artifact *artifact)
{
    if (artifact != NULL) {
        dj__artifact_drop(artifact);
    }
}

const char *dj_artifact_path(const dj_artifact *artifact)
{
    return artifact != NULL ? artifact->entry.path : "";
}

const char *dj_artifact_binary(const dj_artifact *artifact)
{
    return artifact != NULL ? artifact->binary_path : "";
}

bool dj_artifact_is_private(const dj_artifact *artifact)
{
    return artifact != NULL && artifact->entry.reason != NULL;
}

const char *dj_artifact_reason(const dj_artifact *artifact)
{
    return dj_artifact_is_private(artifact) ? artifact->entry.reason : "";
}

bool dj_artifact_is_hit(const dj_artifact *artifact)
{
    return artifact != NULL && artifact->hit;
}

const char *dj_artifact_digest(const dj_artifact *artifact)
{
    return artifact != NULL ? artifact->digest : "";
}

/* Takes over `entry`, also on failure. */
static dj_status artifact_new(const dj_runtime *runtime, const dj__request *request,
                              dj_entry *entry, bool hit, dj_artifact **out, dj_error *err)
{
    dj_artifact *artifact = calloc(1, sizeof(*artifact));
    if (artifact == NULL) {
        if (entry->reason != NULL) {
            dj__remove_tree(entry->path);
        }
        dj__entry_fini(entry);
        return dj__fail_memory(err);
    }
    atomic_init(&artifact->refs, 1);
    artifact->generation = dj__fork_generation();
    artifact->entry = *entry;
    artifact->hit = hit;
    memcpy(artifact->digest, request->key, DJ__HEX_SIZE);
    artifact->binary_path = dj__path_join(entry->path, runtime->backend->compiler->binary_name);
    if (artifact->binary_path == NULL) {
        dj__artifact_drop(artifact);
        return dj__fail_memory(err);
    }
    *out = artifact;
    return DJ_OK;
}

/* ---- find or build ---------------------------------------------------------------------- */

static dj_manifest artifact_manifest(const dj_runtime *runtime, const dj__request *request)
{
    return (dj_manifest){
        .tag = request->tag,
        .digest = request->key,
        .backend = runtime->backend->name,
        .arch = request->arch,
        .binary_name = runtime->backend->compiler->binary_name,
    };
}

static dj_status artifact_find(dj_runtime *runtime, const dj__request *request, dj_verify level,
                               dj_artifact **out, dj_error *err)
{
    const dj_manifest what = artifact_manifest(runtime, request);
    dj_entry entry = {0};
    const dj_status status = dj_store_get(runtime->store, &what, level, &entry, err);
    if (status != DJ_OK) {
        return status;
    }
    atomic_fetch_add_explicit(&runtime->counters.disk_hits, 1, memory_order_relaxed);
    return artifact_new(runtime, request, &entry, true, out, err);
}

/* Tracked headers and the hook are read before the compiler reads them. If the key is another
 * one afterwards, they changed in between and the result belongs to neither. The same holds for a
 * compiler that is no longer the one that was identified. */
static bool artifact_inputs_changed(dj_runtime *runtime, const dj__request *request)
{
    if (!dj__runtime_toolchain_current(runtime)) {
        return true;
    }
    if (request->hook_path == NULL && runtime->config.include_prefixes.count == 0) {
        return false;
    }
    dj__request again = *request;
    char *path = NULL;
    dj_status status = DJ_OK;
    again.hook_data = NULL;
    if (request->hook_path != NULL) {
        status = dj__hook_read(runtime, request->options.common.post_hook, &path, &again.hook_data,
                               &again.hook_size, NULL);
    }
    if (status == DJ_OK) {
        status = dj__request_key(runtime, &again, runtime->toolchain.identity, NULL, NULL, NULL);
    }
    free(path);
    free(again.hook_data);
    return status != DJ_OK || strcmp(again.key, request->key) != 0;
}

/* One compiler run in a fresh staging directory. A root that filled up meanwhile makes compilers
 * fail as if the source were at fault; the store then stages elsewhere, where it is tried again. */
static dj_status artifact_stage(dj_runtime *runtime, const dj__request *request,
                                dj_staging *staging, dj_error *err)
{
    dj_status status = dj_store_stage(runtime->store, staging, err);
    if (status != DJ_OK) {
        return status;
    }
    status = dj__build_staged(runtime, request, staging, err);
    if (status == DJ_OK) {
        return DJ_OK;
    }
    /* Asked for while the failed one still takes its room: the store sees how full it is. */
    dj_staging other = {0};
    const bool gone = access(staging->path, F_OK) != 0; /* somebody cleaned up around us */
    const bool retry = staging->reason == NULL &&
                       (gone || status == DJ_COMPILE || status == DJ_IO) &&
                       dj_store_stage(runtime->store, &other, NULL) == DJ_OK;
    dj__staging_fini(staging);
    if (retry && (gone || other.reason != NULL)) {
        status = dj__build_staged(runtime, request, &other, err);
    }
    if (status == DJ_OK) {
        *staging = other;
    } else {
        dj__staging_fini(&other);
    }
    return status;
}

static dj_status artifact_build(dj_runtime *runtime, const dj__request *request, bool publish,
                                dj_artifact **out, dj_error *err)
{
    dj_staging staging = {0};
    dj_status status = artifact_stage(runtime, request, &staging, err);
    if (status != DJ_OK) {
        return status;
    }
    const bool unstable = artifact_inputs_changed(runtime, request);
    const char *reason = NULL;
    if (unstable) {
        reason = "a tracked header, the post hook or the compiler changed while it was compiled";
        dj__log_write(&runtime->log, DJ_LOG_WARN, "%s: not kept: %s", request->tag, reason);
    } else if (!publish) {
        reason = "the driver refused the published binary";
    }
    if (reason != NULL && staging.reason == NULL) {
        staging.reason = strdup(reason);
        if (staging.reason == NULL) {
            dj__staging_fini(&staging);
            return dj__fail_memory(err);
        }
    }
    const dj_manifest what = artifact_manifest(runtime, request);
    dj_entry entry = {0};
    status = dj_store_put(runtime->store, &staging, &what, &entry, err);
    if (status == DJ_OK) {
        status = artifact_new(runtime, request, &entry, false, out, err);
    }
    if (status == DJ_OK) {
        (*out)->unstable = unstable;
    }
    return status;
}

static dj_status artifact_lead(dj_runtime *runtime, const dj__request *request, dj_verify level,
                               dj_artifact **out, dj_error *err)
{
    const dj_status status = artifact_find(runtime, request, level, out, err);
    if (status != DJ_NOT_FOUND) {
        return status;
    }
    atomic_fetch_add_explicit(&runtime->counters.misses, 1, memory_order_relaxed);
    return artifact_build(runtime, request, true, out, err);
}

/* Entries are per tag, and who verifies less must not answer who wants more. */
static void artifact_flight_key(const dj__request *request, dj_verify level, char key[DJ__HEX_SIZE])
{
    char text[DJ__HEX_SIZE + DJ__TAG_LIMIT];
    const size_t tag_size = strlen(request->tag); /* at most DJ__TAG_LIMIT, see dj__check_call */
    memcpy(text, request->key, DJ__HEX_SIZE);
    text[DJ__HEX_SIZE - 1] = (char)level; /* instead of the NUL */
    memcpy(text + DJ__HEX_SIZE, request->tag, tag_size);
    dj__xxh128_hex(text, DJ__HEX_SIZE + tag_size, key);
}

dj_status dj__artifact_obtain(dj_runtime *runtime, const dj__request *request, dj_verify level,
                              bool may_build, dj_artifact **out, dj_error *err)
{
    *out = NULL;
    if (!may_build) {
        return artifact_find(runtime, request, level, out, err);
    }
    char key[DJ__HEX_SIZE];
    artifact_flight_key(request, level, key);
    dj__flight *flight = NULL;
    bool lead = false;
    void *result = NULL;
    dj_status status =
        dj__flight_join(runtime->artifact_flights, key, request->options.common.cancel, &flight,
                        &lead, &result, err);
    if (!lead) {
        *out = result;
        return status;
    }
    dj_error own = DJ_ERROR_INIT;
    unsigned waiters = 0;
    status = artifact_lead(runtime, request, level, out, &own);
    dj__flight_land(runtime->artifact_flights, flight, status, *out, &own, &waiters);
    atomic_fetch_add_explicit(&runtime->counters.waits, waiters, memory_order_relaxed);
    if (status != DJ_OK && err != NULL) {
        *err = own;
    }
    return status;
}

dj_status dj__artifact_private(dj_runtime *runtime, const dj__request *request, dj_artifact **out,
                               dj_error *err)
{
    *out = NULL;
    return artifact_build(runtime, request, false, out, err);
}
