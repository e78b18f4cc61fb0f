/* SPDX-License-Identifier: MIT */
/*
 * One root as a store. Looking for an entry never fails because of the root: what cannot be
 * read, trusted or verified is a miss. Only the primary root is ever changed.
 */
#include "base/error.h"
#include "base/fs.h"
#include "cache/listing.h"
#include "cache/publish.h"
#include "cache/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define DISK_TOUCH_SECONDS 3600
/* With less room than this a build would only fail halfway. */
#define DISK_LEAST_ROOM ((uint64_t)1024 * 1024)

static dj__root *disk_root(dj_store *store)
{
    return (dj__root *)store;
}

/* True where the time of last use is to be renewed, at most once an hour: the only write on the
 * path of a hit. It may fail silently, and losing it loses nothing but the order in which entries
 * age. */
static bool disk_wants_touch(const dj__root *root, const dj__view *view)
{
    return root->primary && (int64_t)time(NULL) - view->used > DISK_TOUCH_SECONDS;
}

typedef enum disk_answer { DISK_HIT, DISK_MISS, DISK_AGAIN, DISK_NO_MEMORY } disk_answer;

/* What follows from a look at an entry. */
static disk_answer disk_judge(dj__root *root, int fd, int entries, const char *name,
                              const dj__view *view)
{
    dj__log *log = root->shared->log;
    switch (view->look) {
    case DJ__LOOK_GOOD:
        if (disk_wants_touch(root, view)) {
            char path[DJ__ENTRY_NAME_SIZE + sizeof(DJ__MARKER_NAME) + 1];
            (void)snprintf(path, sizeof(path), "%s/" DJ__MARKER_NAME, name);
            (void)utimensat(entries, path, NULL, AT_SYMLINK_NOFOLLOW);
        }
        return DISK_HIT;
    case DJ__LOOK_DAMAGED:
        if (!dj__view_is_current(view, entries, name)) {
            return DISK_AGAIN;
        }
        if (root->primary) {
            return dj__trash_heal(root, fd, entries, name, view) == ESTALE ? DISK_AGAIN : DISK_MISS;
        }
        dj__log_write(log, DJ_LOG_WARN,
                      "damaged cache entry %s/" DJ__DIR_ENTRIES "/%s (%s) is skipped; only the "
                      "first root of %s is repaired",
                      root->path, name, view->problem, root->shared->setting);
        return DISK_MISS;
    case DJ__LOOK_ERROR:
        dj__log_write(log, DJ_LOG_INFO,
                      "cache entry %s/" DJ__DIR_ENTRIES
                      "/%s (roots are set by %s) is treated as missing: "
                      "%s",
                      root->path, name, root->shared->setting, view->problem);
        return view->error == ENOMEM ? DISK_NO_MEMORY : DISK_AGAIN;
    case DJ__LOOK_UNMARKED:
    case DJ__LOOK_FOREIGN:
        dj__log_write(log, DJ_LOG_DEBUG, "cache entry %s/" DJ__DIR_ENTRIES "/%s is left alone: %s",
                      root->path, name, view->problem);
        return DISK_MISS;
    case DJ__LOOK_ABSENT:
        break;
    }
    return DISK_MISS;
}

/* A root that cannot be searched. The primary is mentioned when something cannot be staged. */
static disk_answer disk_judge_root(dj__root *root, const dj_error *why)
{
    if (why->status == DJ_NOT_FOUND) {
        return DISK_MISS;
    }
    const bool first = !atomic_exchange_explicit(&root->warned, true, memory_order_relaxed);
    dj__log_write(root->shared->log, first && !root->primary ? DJ_LOG_WARN : DJ_LOG_DEBUG,
                  "cache root is skipped: %s", why->message);
    return why->status == DJ_IO ? DISK_AGAIN : DISK_MISS;
}

/* The short way to a hit: opens the entry at once instead of the root and its directory before.
 * Whatever else it finds, the long way finds too, and judges. */
static bool disk_look_short(const dj__root *root, const char *path, const char *name,
                            dj__depth depth, dj__view *view)
{
    gid_t group;
    const int dir = dj__open_dir_path(path);
    if (dir < 0) {
        return false;
    }
    bool good = dj__root_has(root, dir, &group);
    if (good) {
        dj__entry_look_open(dir, group, name, root->shared->loose, depth, view);
        good = view->look == DJ__LOOK_GOOD;
    }
    if (good && disk_wants_touch(root, view)) {
        (void)utimensat(dir, DJ__MARKER_NAME, NULL, AT_SYMLINK_NOFOLLOW);
    }
    (void)dj__close(dir);
    return good;
}

static disk_answer disk_look(dj__root *root, const char *name, dj__depth depth, dj__view *view)
{
    int fd = -1;
    int entries = dj__root_open_known(root, DJ__DIR_ENTRIES);
    dj_error why = DJ_ERROR_INIT;
    if (entries < 0 &&
        dj__root_open_both(root, DJ__DIR_ENTRIES, false, &fd, &entries, &why) != DJ_OK) {
        return disk_judge_root(root, &why);
    }
    dj__entry_look(entries, name, root->shared->loose, depth, view);
    if (view->look == DJ__LOOK_DAMAGED && fd < 0 &&
        dj__root_open(root, false, &fd, &why) != DJ_OK) {
        dj__root_close(-1, entries);
        return disk_judge_root(root, &why);
    }
    const disk_answer answer = disk_judge(root, fd, entries, name, view);
    dj__root_close(fd, entries);
    return answer;
}

static dj_status disk_get(dj_store *store, const dj_manifest *what, dj_verify level, dj_entry *out,
                          dj_error *err)
{
    dj__root *root = disk_root(store);
    char name[DJ__ENTRY_NAME_SIZE];
    dj__view view = {.look = DJ__LOOK_ABSENT};
    memset(out, 0, sizeof(*out));
    dj_status status = dj__entry_name(what, name, err);
    if (status != DJ_OK) {
        return status;
    }
    const dj__depth depth = level == DJ_VERIFY_ALL ? DJ__DEPTH_ALL : DJ__DEPTH_BINARY;
    char *path = dj__root_path(root, DJ__DIR_ENTRIES, name);
    if (path == NULL) {
        return dj__fail_memory(err);
    }
    disk_answer answer = disk_look_short(root, path, name, depth, &view) ? DISK_HIT : DISK_AGAIN;
    for (int attempt = 0; attempt < 2 && answer == DISK_AGAIN; attempt++) {
        dj__view_fini(&view);
        answer = disk_look(root, name, depth, &view);
    }
    if (answer == DISK_HIT) {
        status = dj__view_take(&view, &path, out, err);
    } else if (answer == DISK_NO_MEMORY) {
        status = dj__fail_memory(err);
    } else {
        status = dj__fail(err, DJ_NOT_FOUND, "no entry %s in %s", name, root->path);
    }
    if (status == DJ_OK) {
        atomic_fetch_add_explicit(&root->shared->counters->bytes_read, out->binary_size,
                                  memory_order_relaxed);
    }
    dj__view_fini(&view);
    free(path);
    return status;
}

/* 0 or ENOSPC. File systems that do not know their size are taken to have room. */
static int disk_check_room(int fd)
{
    struct statvfs fs;
    if (fstatvfs(fd, &fs) != 0 || fs.f_blocks == 0) {
        return 0;
    }
    return (uint64_t)fs.f_bavail * fs.f_frsize < DISK_LEAST_ROOM ? ENOSPC : 0;
}

static dj_status disk_stage(dj_store *store, dj_staging *out, dj_error *err)
{
    dj__root *root = disk_root(store);
    int fd;
    int staging;
    char prefix[32];
    char name[128];
    memset(out, 0, sizeof(*out));
    const dj_status status = dj__root_open_both(root, DJ__DIR_STAGING, true, &fd, &staging, err);
    if (status != DJ_OK) {
        return status;
    }
    dj__root_prefix(prefix);
    int error = disk_check_room(staging);
    if (error == 0) {
        error = dj__make_unique_dir_at(staging, prefix, name);
    }
    if (error == 0) {
        out->path = dj__root_path(root, DJ__DIR_STAGING, name);
        if (out->path == NULL) {
            (void)dj__remove_tree_at(staging, name);
            error = ENOMEM;
        }
    }
    dj__root_close(fd, staging);
    if (error == 0) {
        return DJ_OK;
    }
    return dj__fail_errno(err, error,
                          "cannot write to cache root %s (set %s to a directory that can be "
                          "written)",
                          root->path, root->shared->setting);
}

static dj_status disk_put(dj_store *store, dj_staging *staging, const dj_manifest *what,
                          dj_entry *out, dj_error *err)
{
    return dj__publish(disk_root(store), staging, what, out, err);
}

static dj_status disk_remove(dj_store *store, const char *tag, size_t *removed, dj_error *err)
{
    return dj__listing_remove(disk_root(store), tag, removed, err);
}

static dj_status disk_list(dj_store *store, dj_verify level, dj_cache_entry_fn visit, void *user,
                           dj_error *err)
{
    return dj__listing_visit(disk_root(store), level, visit, user, err);
}

/* Whether the primary could be written, without trying. */
static int disk_check_writable(int fd)
{
    static const char *const parts[] = {".", DJ__DIR_ENTRIES, DJ__DIR_STAGING};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (faccessat(fd, parts[i], W_OK | X_OK, AT_EACCESS) != 0 && (i == 0 || errno != ENOENT)) {
            return errno;
        }
    }
    return disk_check_room(fd);
}

/* The same for a primary that does not exist yet: of the nearest parent that does. */
static int disk_check_creatable(const dj__root *root)
{
    char *path = strdup(root->path);
    if (path == NULL) {
        return ENOMEM;
    }
    int fd = -ENOENT;
    for (size_t size = strlen(path); fd == -ENOENT && size > 0; size--) {
        if (path[size - 1] == '/') {
            path[size == 1 ? 1 : size - 1] = '\0';
            fd = dj__open_dir(path);
        }
    }
    free(path);
    if (fd < 0) {
        return -fd;
    }
    int error = faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0 ? errno : disk_check_room(fd);
    (void)dj__close(fd);
    return error;
}

static dj_status disk_roots(dj_store *store, dj_cache_root_fn visit, void *user, dj_error *err)
{
    (void)err;
    dj__root *root = disk_root(store);
    dj_error why = DJ_ERROR_INIT;
    dj_cache_root answer = {.path = root->path, .reason = why.message};
    int fd;
    int error = 0;
    const dj_status status = dj__root_open(root, false, &fd, &why);
    answer.readable = status == DJ_OK;
    if (root->primary && (status == DJ_OK || status == DJ_NOT_FOUND)) {
        why = (dj_error)DJ_ERROR_INIT;
        error = status == DJ_OK ? disk_check_writable(fd) : disk_check_creatable(root);
        answer.writable = error == 0;
    }
    if (error != 0) {
        (void)dj__fail_errno(
            &why, error, "cannot %s cache root %s (set %s to a directory that can be written)",
            status == DJ_OK ? "write" : "create", root->path, root->shared->setting);
    }
    dj__root_close(fd, -1);
    visit(user, &answer);
    return DJ_OK;
}

static void disk_close(dj_store *store)
{
    dj__root *root = disk_root(store);
    free(root->path);
    free(root);
}

static const dj_store_ops disk_ops = {
    .size = sizeof(dj_store_ops),
    .get = disk_get,
    .stage = disk_stage,
    .put = disk_put,
    .remove = disk_remove,
    .list = disk_list,
    .roots = disk_roots,
    .close = disk_close,
};

dj_status dj__disk_open(const char *path, bool primary, const dj__store_shared *shared,
                        dj_store **out, dj_error *err)
{
    *out = NULL;
    dj__root *root = calloc(1, sizeof(*root));
    if (root == NULL) {
        return dj__fail_memory(err);
    }
    root->store.ops = &disk_ops;
    root->shared = shared;
    root->primary = primary;
    root->path = strdup(path);
    if (root->path == NULL) {
        free(root);
        return dj__fail_memory(err);
    }
    *out = &root->store;
    return DJ_OK;
}
