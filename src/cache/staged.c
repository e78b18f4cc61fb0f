/* SPDX-License-Identifier: MIT */
/*
 * Staging directories. They are private to their maker (0700, unguessable name), so what is
 * hashed here is what gets published.
 */
#include "cache/staged.h"

#include "base/error.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dj_status staged_fill_names(const dj_manifest *what, dj__marker *marker, dj_error *err)
{
    marker->tag = strdup(what->tag);
    marker->backend = strdup(what->backend);
    marker->arch = strdup(what->arch);
    marker->binary = strdup(what->binary_name);
    if (marker->tag == NULL || marker->backend == NULL || marker->arch == NULL ||
        marker->binary == NULL) {
        return dj__fail_memory(err);
    }
    memcpy(marker->digest, what->digest, DJ__HEX_SIZE);
    return DJ_OK;
}

static dj_status staged_read_file(int dir, const char *path, const char *name, dj__view *view,
                                  dj_error *err)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return dj__fail_errno(err, errno, "cannot examine %s/%s", path, name);
    }
    if (!S_ISREG(st.st_mode) || strcmp(name, DJ__MARKER_NAME) == 0) {
        return dj__fail(
            err, DJ_INVALID_ARGUMENT,
            "%s/%s cannot be part of a cache entry: only plain files not named " DJ__MARKER_NAME
            " can",
            path, name);
    }
    char *data;
    size_t size;
    const int error = dj__read_at(dir, name, DJ__FILE_LIMIT, &data, &size);
    if (error != 0) {
        return dj__fail_errno(err, error, "cannot read %s/%s", path, name);
    }
    dj__marker_file *file = &view->marker.files[view->marker.num_files];
    file->name = strdup(name);
    if (file->name == NULL) {
        free(data);
        return dj__fail_memory(err);
    }
    view->marker.num_files++;
    file->size = size;
    dj__xxh128_hex(data, size, file->xxh);
    if (strcmp(name, view->marker.binary) == 0) {
        view->binary = data;
        view->binary_size = size;
    } else if (strcmp(name, DJ__LOG_NAME) == 0) {
        view->log = data;
        view->log_size = size;
    } else {
        free(data);
    }
    return DJ_OK;
}

static dj_status staged_read_files(int dir, const char *path, dj__view *view, dj_error *err)
{
    dj__strlist names;
    dj__strlist_init(&names);
    dj_status status = DJ_OK;
    const int error = dj__list_dir(dir, &names);
    if (error != 0) {
        status = dj__fail_errno(err, error, "cannot list %s", path);
        goto out;
    }
    view->marker.files = calloc(names.count + 1, sizeof(*view->marker.files));
    if (view->marker.files == NULL) {
        status = dj__fail_memory(err);
        goto out;
    }
    for (size_t i = 0; i < names.count && status == DJ_OK; i++) {
        status = staged_read_file(dir, path, names.items[i], view, err);
    }
    if (status == DJ_OK && view->binary_size == 0) {
        status = dj__fail(err, DJ_INVALID_ARGUMENT, "%s/%s is %s", path, view->marker.binary,
                          view->binary == NULL ? "missing" : "empty");
    }
out:
    dj__strlist_fini(&names);
    return status;
}

dj_status dj__staged_look(const char *path, const dj_manifest *what, int *dir, dj__view *view,
                          dj_error *err)
{
    memset(view, 0, sizeof(*view));
    view->look = DJ__LOOK_GOOD;
    *dir = dj__open_dir_at(AT_FDCWD, path);
    if (*dir < 0) {
        return dj__fail_errno(err, -*dir, "cannot open staging directory %s", path);
    }
    dj_status status = staged_fill_names(what, &view->marker, err);
    if (status == DJ_OK) {
        status = staged_read_files(*dir, path, view, err);
    }
    if (status == DJ_OK) {
        dj__strbuf text;
        dj__strbuf_init(&text, DJ__MARKER_LIMIT);
        status = dj__marker_write(&view->marker, &text, err);
        view->text_size = text.size;
        view->text = dj__strbuf_steal(&text);
        dj__strbuf_fini(&text);
    }
    if (status != DJ_OK) {
        (void)dj__close(*dir);
        *dir = -1;
        dj__view_fini(view);
    }
    return status;
}

dj_status dj__staged_keep(const dj__store_shared *shared, dj_staging *staging, const char *reason,
                          dj__view *view, dj_entry *out, dj_error *err)
{
    char *copy = strdup(reason);
    if (copy == NULL) {
        return dj__fail_memory(err);
    }
    const dj_status status = dj__view_take(view, &staging->path, out, err);
    if (status != DJ_OK) {
        free(copy);
        return status;
    }
    out->reason = copy;
    atomic_fetch_add_explicit(&shared->counters->unpublished, 1, memory_order_relaxed);
    return DJ_OK;
}

void dj__staging_fini(dj_staging *staging)
{
    if (staging->path != NULL) {
        (void)dj__remove_tree(staging->path);
    }
    free(staging->path);
    free(staging->reason);
    memset(staging, 0, sizeof(*staging));
}
