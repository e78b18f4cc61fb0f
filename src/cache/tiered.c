/* SPDX-License-Identifier: MIT */
/*
 * Several roots in order as one store. Searching goes through all of them; writing goes to the
 * first one, or to private directories while that cannot be written.
 */
#include "base/error.h"
#include "base/fs.h"
#include "cache/fallback.h"
#include "cache/trust.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct tiered {
    dj_store store;
    dj__store_shared shared;
    dj__fallback fallback;
    char *no_root_reason;
    dj_store **roots; /* each is a dj__root */
    size_t num_roots;
} tiered;

static tiered *tiered_of(dj_store *store)
{
    return (tiered *)store;
}

static dj_status tiered_get(dj_store *store, const dj_manifest *what, dj_verify level,
                            dj_entry *out, dj_error *err)
{
    tiered *all = tiered_of(store);
    memset(out, 0, sizeof(*out));
    dj_status status = DJ_NOT_FOUND;
    for (size_t i = 0; i < all->num_roots && status == DJ_NOT_FOUND; i++) {
        status = dj_store_get(all->roots[i], what, level, out, err);
    }
    if (all->num_roots == 0) {
        return dj__fail(err, DJ_NOT_FOUND, "no entry %s.%s: %s", what->tag, what->digest,
                        all->no_root_reason);
    }
    return status;
}

static dj_status tiered_stage(dj_store *store, dj_staging *out, dj_error *err)
{
    tiered *all = tiered_of(store);
    const char *reason =
        all->num_roots == 0 ? all->no_root_reason : dj__fallback_active(&all->fallback);
    if (reason == NULL) {
        dj_error why = DJ_ERROR_INIT;
        const dj_status status = dj_store_stage(all->roots[0], out, &why);
        if (status == DJ_OK) {
            return DJ_OK;
        }
        if (status == DJ_NO_MEMORY) {
            return dj__fail_memory(err);
        }
        reason = dj__fallback_enter(&all->fallback, why.message);
    }
    return dj__fallback_stage(&all->fallback, reason, out, err);
}

static dj_status tiered_put(dj_store *store, dj_staging *staging, const dj_manifest *what,
                            dj_entry *out, dj_error *err)
{
    tiered *all = tiered_of(store);
    if (staging->reason != NULL) {
        return dj__fallback_put(&all->fallback, staging, what, out, err);
    }
    const dj_status status = dj_store_put(all->roots[0], staging, what, out, err);
    if (status == DJ_OK && out->reason != NULL) {
        dj__fallback_warn(&all->fallback, out->reason);
    }
    return status;
}

static dj_status tiered_remove(dj_store *store, const char *tag, size_t *removed, dj_error *err)
{
    tiered *all = tiered_of(store);
    size_t count = 0;
    const dj_status status =
        all->num_roots == 0
            ? dj__fail(err, DJ_UNAVAILABLE, "nothing to remove: %s", all->no_root_reason)
            : dj_store_remove(all->roots[0], tag, &count, err);
    if (removed != NULL) {
        *removed = count;
    }
    return status;
}

/* Notices that the visitor wants no more, so that the next root is not opened either. */
typedef struct tiered_visit {
    dj_cache_entry_fn visit;
    void *user;
    bool more;
} tiered_visit;

static bool tiered_visit_entry(void *user, const dj_cache_entry *entry)
{
    tiered_visit *visit = user;
    visit->more = visit->visit(visit->user, entry);
    return visit->more;
}

static dj_status tiered_list(dj_store *store, dj_verify level, dj_cache_entry_fn visit, void *user,
                             dj_error *err)
{
    tiered *all = tiered_of(store);
    tiered_visit wrapped = {.visit = visit, .user = user, .more = true};
    for (size_t i = 0; i < all->num_roots && wrapped.more; i++) {
        dj_error why = DJ_ERROR_INIT;
        const dj_status status =
            dj_store_list(all->roots[i], level, tiered_visit_entry, &wrapped, &why);
        if (status == DJ_NO_MEMORY) {
            return dj__fail_memory(err);
        }
        if (status != DJ_OK) {
            dj__log_write(all->shared.log, DJ_LOG_WARN, "cache root is skipped: %s", why.message);
        }
    }
    return DJ_OK;
}

static dj_status tiered_roots(dj_store *store, dj_cache_root_fn visit, void *user, dj_error *err)
{
    tiered *all = tiered_of(store);
    dj_status status = DJ_OK;
    for (size_t i = 0; i < all->num_roots && status == DJ_OK; i++) {
        status = dj_store_roots(all->roots[i], visit, user, err);
    }
    if (all->num_roots == 0) {
        const dj_cache_root none = {.path = "", .reason = all->no_root_reason};
        visit(user, &none);
    }
    return status;
}

static void tiered_close(dj_store *store)
{
    tiered *all = tiered_of(store);
    for (size_t i = 0; i < all->num_roots; i++) {
        dj_store_close(all->roots[i]);
    }
    free(all->roots);
    free(all->no_root_reason);
    dj__fallback_fini(&all->fallback);
    dj__strlist_fini(&all->shared.trust);
    free(all);
}

static const dj_store_ops tiered_ops = {
    .size = sizeof(dj_store_ops),
    .get = tiered_get,
    .stage = tiered_stage,
    .put = tiered_put,
    .remove = tiered_remove,
    .list = tiered_list,
    .roots = tiered_roots,
    .close = tiered_close,
};

static dj_status tiered_fill(tiered *all, const dj__store_config *config, dj_error *err)
{
    dj__store_shared *shared = &all->shared;
    dj__strlist_add_all(&shared->trust, config->trust, config->num_trust);
    dj_status status = dj__strlist_ok(&shared->trust, err);
    if (status != DJ_OK) {
        return status;
    }
    shared->loose = S_IWOTH;
    if (!dj__trust_has_group(config->trust, config->num_trust)) {
        shared->loose |= S_IWGRP;
    }
    shared->fsync = config->fsync;
    shared->env = config->env;
    shared->log = config->log;
    shared->counters = config->counters;
    dj__env_name(config->env, "JIT_CACHE_DIR", shared->setting);
    all->no_root_reason = config->no_root_reason != NULL
                              ? strdup(config->no_root_reason)
                              : dj__format("no cache root is known; set %s", shared->setting);
    all->roots = calloc(config->num_roots + 1, sizeof(*all->roots));
    if (all->no_root_reason == NULL || all->roots == NULL) {
        return dj__fail_memory(err);
    }
    for (size_t i = 0; i < config->num_roots && status == DJ_OK; i++) {
        status = dj__disk_open(config->roots[i], i == 0, shared, &all->roots[i], err);
        all->num_roots += status == DJ_OK;
    }
    return status;
}

dj_status dj__tiered_open(const dj__store_config *config, dj_store **out, dj_error *err)
{
    *out = NULL;
    tiered *all = calloc(1, sizeof(*all));
    if (all == NULL) {
        return dj__fail_memory(err);
    }
    all->store.ops = &tiered_ops;
    dj__strlist_init(&all->shared.trust);
    dj_status status =
        dj__fallback_init(&all->fallback, &all->shared, config->tmpdir, config->now_ns, err);
    if (status == DJ_OK) {
        status = tiered_fill(all, config, err);
    }
    if (status != DJ_OK) {
        tiered_close(&all->store);
        return status;
    }
    *out = &all->store;
    return DJ_OK;
}

dj_status dj__tiered_subdir(dj_store *store, const char *name, bool writable, size_t index,
                            char **path, dj_error *err)
{
    tiered *all = tiered_of(store);
    *path = NULL;
    if (index >= all->num_roots && !(writable && all->num_roots > 0)) {
        return dj__fail(err, writable ? DJ_UNAVAILABLE : DJ_NOT_FOUND, "%s",
                        all->num_roots == 0 ? all->no_root_reason : "no further cache root");
    }
    dj__root *root = (dj__root *)all->roots[writable ? 0 : index];
    int fd;
    int sub;
    dj_error why = DJ_ERROR_INIT;
    dj_status status = dj__root_open_both(root, name, writable, &fd, &sub, &why);
    dj__root_close(fd, sub);
    if (status != DJ_OK) {
        return dj__fail(err, DJ_UNAVAILABLE, "%s", why.message);
    }
    *path = dj__path_join(root->path, name);
    return *path != NULL ? DJ_OK : dj__fail_memory(err);
}
