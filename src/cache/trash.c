/* SPDX-License-Identifier: MIT */
/*
 * The trash of a root.
 *
 * Between looking at an entry and moving it, another process can have replaced it by a good one.
 * So the directory is compared by (device, inode) before the rename and again after it, where it
 * can no longer change, and a wrong one goes back. The target name is a fresh empty directory,
 * which rename(2) replaces: nothing needs to be guessed absent.
 */
#include "cache/trash.h"

#include "base/error.h"
#include "base/fs.h"

#include <errno.h>
#include <string.h>

int dj__trash_move(dj__root *root, int fd, int entries, const char *name, const dj__view *view,
                   char trash_name[128])
{
    char prefix[32];
    int trash = -1;
    dj_error err = DJ_ERROR_INIT;
    if (!dj__view_is_current(view, entries, name)) {
        return ESTALE;
    }
    if (dj__root_open_sub(root, fd, DJ__DIR_TRASH, true, &trash, &err) != DJ_OK) {
        return err.native != 0 ? err.native : EPERM;
    }
    dj__root_prefix(prefix);
    int error = dj__make_unique_dir_at(trash, prefix, trash_name);
    if (error == 0) {
        error = dj__rename_at(entries, name, trash, trash_name);
        if (error != 0) {
            (void)dj__remove_tree_at(trash, trash_name);
            error = error == ENOENT ? ESTALE : error;
        } else if (!dj__view_is_current(view, trash, trash_name)) {
            (void)dj__rename_at(trash, trash_name, entries, name);
            error = ESTALE;
        }
    }
    (void)dj__close(trash);
    return error;
}

int dj__trash_heal(dj__root *root, int fd, int entries, const char *name, const dj__view *view)
{
    char trash_name[128];
    dj__log *log = root->shared->log;
    const int error = dj__trash_move(root, fd, entries, name, view, trash_name);
    if (error == 0) {
        atomic_fetch_add_explicit(&root->shared->counters->healed, 1, memory_order_relaxed);
        dj__log_write(log, DJ_LOG_WARN,
                      "damaged cache entry %s/" DJ__DIR_ENTRIES "/%s (%s) was moved to "
                      "%s/" DJ__DIR_TRASH "/%s and is built again",
                      root->path, name, view->problem, root->path, trash_name);
    } else if (error != ESTALE) {
        dj_error err = DJ_ERROR_INIT;
        (void)dj__fail_errno(&err, error,
                             "damaged cache entry %s/" DJ__DIR_ENTRIES "/%s (%s) cannot be moved "
                             "aside (remove it, or set %s to another directory)",
                             root->path, name, view->problem, root->shared->setting);
        dj__log_write(log, DJ_LOG_WARN, "%s", err.message);
    }
    return error;
}

void dj__trash_empty(dj__root *root, int fd)
{
    int trash = -1;
    dj__strlist names;
    dj__strlist_init(&names);
    if (dj__root_open_sub(root, fd, DJ__DIR_TRASH, false, &trash, NULL) != DJ_OK) {
        return;
    }
    if (dj__list_dir(trash, &names) == 0) {
        for (size_t i = 0; i < names.count; i++) {
            if (strncmp(names.items[i], "dj-", 3) == 0) {
                (void)dj__remove_tree_at(trash, names.items[i]); /* what stays is tried again */
            }
        }
    }
    dj__strlist_fini(&names);
    (void)dj__close(trash);
}
