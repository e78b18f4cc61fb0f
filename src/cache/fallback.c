/* SPDX-License-Identifier: MIT */
/* Private staging and the memory of why; see fallback.h. */
#include "cache/fallback.h"

#include "base/error.h"
#include "base/fs.h"
#include "base/thread.h"
#include "cache/staged.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FALLBACK_RETRY_NS ((int64_t)60 * 1000 * 1000 * 1000)
#define FALLBACK_TMP "/tmp"

dj_status dj__fallback_init(dj__fallback *fallback, const dj__store_shared *shared,
                            const char *tmpdir, int64_t (*now_ns)(void), dj_error *err)
{
    memset(fallback, 0, sizeof(*fallback));
    fallback->shared = shared;
    fallback->now_ns = now_ns != NULL ? now_ns : dj__now_ns;
    atomic_init(&fallback->retry_at, INT64_MIN);
    fallback->tmpdir = strdup(tmpdir != NULL && tmpdir[0] == '/' ? tmpdir : FALLBACK_TMP);
    return fallback->tmpdir != NULL ? DJ_OK : dj__fail_memory(err);
}

void dj__fallback_fini(dj__fallback *fallback)
{
    dj__fallback_reason *reason = atomic_load(&fallback->reasons);
    while (reason != NULL) {
        dj__fallback_reason *next = reason->next;
        free(reason);
        reason = next;
    }
    free(fallback->tmpdir);
    memset(fallback, 0, sizeof(*fallback));
}

/* The lasting copy of a text. Few texts occur, so the list stays short. */
static const char *fallback_intern(dj__fallback *fallback, const char *text)
{
    dj__fallback_reason *first = atomic_load(&fallback->reasons);
    for (dj__fallback_reason *at = first; at != NULL; at = at->next) {
        if (strcmp(at->text, text) == 0) {
            return at->text;
        }
    }
    const size_t size = strlen(text) + 1;
    dj__fallback_reason *fresh = malloc(sizeof(*fresh) + size);
    if (fresh == NULL) {
        return "the first cache root cannot be written";
    }
    memcpy(fresh->text, text, size);
    do {
        fresh->next = first;
    } while (!atomic_compare_exchange_weak(&fallback->reasons, &first, fresh));
    return fresh->text;
}

const char *dj__fallback_enter(dj__fallback *fallback, const char *reason)
{
    const char *text = fallback_intern(fallback, reason);
    atomic_store(&fallback->reason, text);
    atomic_store(&fallback->retry_at, fallback->now_ns() + FALLBACK_RETRY_NS);
    return text;
}

const char *dj__fallback_active(dj__fallback *fallback)
{
    const int64_t retry_at = atomic_load(&fallback->retry_at);
    return retry_at != INT64_MIN && fallback->now_ns() < retry_at ? atomic_load(&fallback->reason)
                                                                  : NULL;
}

void dj__fallback_warn(dj__fallback *fallback, const char *reason)
{
    const bool first = !atomic_exchange(&fallback->warned, true);
    dj__log_write(fallback->shared->log, first ? DJ_LOG_WARN : DJ_LOG_DEBUG,
                  "compiled kernels are not kept: %s", reason);
}

static int fallback_make(const char *tmpdir, char **out)
{
    char prefix[32];
    char name[128];
    const int dir = dj__open_dir(tmpdir);
    if (dir < 0) {
        return -dir;
    }
    dj__root_prefix(prefix);
    int error = dj__make_unique_dir_at(dir, prefix, name);
    if (error == 0) {
        *out = dj__path_join(tmpdir, name);
        if (*out == NULL) {
            (void)dj__remove_tree_at(dir, name);
            error = ENOMEM;
        }
    }
    (void)dj__close(dir);
    return error;
}

dj_status dj__fallback_stage(dj__fallback *fallback, const char *reason, dj_staging *out,
                             dj_error *err)
{
    memset(out, 0, sizeof(*out));
    dj__fallback_warn(fallback, reason);
    out->reason = strdup(reason);
    if (out->reason == NULL) {
        return dj__fail_memory(err);
    }
    int error = fallback_make(fallback->tmpdir, &out->path);
    if (error != 0 && fallback_make(FALLBACK_TMP, &out->path) == 0) {
        error = 0;
    }
    if (error == 0) {
        return DJ_OK;
    }
    const dj_status status = dj__fail_errno(
        err, error, "nowhere to build: %s; nor can a directory be made in %s (set TMPDIR)", reason,
        fallback->tmpdir);
    free(out->reason);
    memset(out, 0, sizeof(*out));
    return status;
}

dj_status dj__fallback_put(dj__fallback *fallback, dj_staging *staging, const dj_manifest *what,
                           dj_entry *out, dj_error *err)
{
    int dir = -1;
    dj__view view = {.look = DJ__LOOK_GOOD};
    char name[DJ__ENTRY_NAME_SIZE];
    memset(out, 0, sizeof(*out));
    dj_status status = dj__entry_name(what, name, err);
    if (status == DJ_OK) {
        status = dj__staged_look(staging->path, what, &dir, &view, err);
    }
    if (status == DJ_OK) {
        status = dj__staged_keep(fallback->shared, staging, staging->reason, &view, out, err);
    }
    dj__root_close(dir, -1);
    dj__view_fini(&view);
    dj__staging_fini(staging);
    return status;
}
