/* SPDX-License-Identifier: MIT */
/*
 * Listing and removing entries. Names are taken once; each entry is then opened on its own, and
 * one that has vanished by then is simply not there. Names that no entry can have are skipped.
 */
#include "cache/listing.h"

#include "base/error.h"
#include "base/fs.h"
#include "cache/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Opens the entries of a root and takes their names, sorted. No entries: none open, OK. */
static dj_status listing_open(dj__root *root, int *fd, int *entries, dj__strlist *names,
                              dj_error *err)
{
    dj_error why = DJ_ERROR_INIT;
    const dj_status status = dj__root_open_both(root, DJ__DIR_ENTRIES, false, fd, entries, &why);
    if (status == DJ_NOT_FOUND) {
        return DJ_OK;
    }
    if (status != DJ_OK) {
        return dj__fail_native(err, status, why.origin, why.native, "%s", why.message);
    }
    const int error = dj__list_dir(*entries, names);
    if (error != 0) {
        dj__root_close(*fd, *entries);
        *fd = -1;
        *entries = -1;
        return dj__fail_errno(err, error,
                              "cannot list %s/" DJ__DIR_ENTRIES " (cache roots are set by %s)",
                              root->path, root->shared->setting);
    }
    return DJ_OK;
}

/* Sizes of an entry without a good marker: of the plain files directly in it. */
static void listing_measure(int entries, const char *name, dj_cache_entry *out)
{
    dj__strlist names;
    dj__strlist_init(&names);
    const int dir = dj__open_dir_at(entries, name);
    if (dir >= 0 && dj__list_dir(dir, &names) == 0) {
        for (size_t i = 0; i < names.count; i++) {
            struct stat st;
            if (fstatat(dir, names.items[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISREG(st.st_mode) && strcmp(names.items[i], DJ__MARKER_NAME) != 0) {
                out->bytes += (uint64_t)st.st_size;
                out->files++;
            }
        }
    }
    dj__strlist_fini(&names);
    dj__root_close(dir, -1);
}

static dj_entry_state listing_state(const dj__view *view)
{
    switch (view->look) {
    case DJ__LOOK_GOOD:
        return DJ_ENTRY_GOOD;
    case DJ__LOOK_DAMAGED:
    case DJ__LOOK_UNMARKED:
        return DJ_ENTRY_DAMAGED;
    case DJ__LOOK_ERROR: /* a good marker says that it is ours, else nobody knows */
        return view->marker.num_files > 0 ? DJ_ENTRY_DAMAGED : DJ_ENTRY_FOREIGN;
    case DJ__LOOK_ABSENT:
    case DJ__LOOK_FOREIGN:
        break;
    }
    return DJ_ENTRY_FOREIGN;
}

static dj_status listing_visit_one(dj__root *root, int entries, const char *name,
                                   const dj__view *view, dj_cache_entry_fn visit, void *user,
                                   bool *more, dj_error *err)
{
    size_t tag_size = 0;
    (void)dj__entry_name_parse(name, &tag_size);
    char *tag = strndup(name, tag_size);
    char *path = dj__root_path(root, DJ__DIR_ENTRIES, name);
    if (tag == NULL || path == NULL) {
        free(tag);
        free(path);
        return dj__fail_memory(err);
    }
    dj_cache_entry entry = {.root = root->path,
                            .path = path,
                            .tag = tag,
                            .digest = name + tag_size + 1,
                            .backend = "",
                            .arch = "",
                            .state = listing_state(view),
                            .problem = view->problem,
                            .used = view->used};
    if (entry.state == DJ_ENTRY_GOOD) {
        entry.backend = view->marker.backend;
        entry.arch = view->marker.arch;
        entry.files = view->marker.num_files;
        for (size_t i = 0; i < view->marker.num_files; i++) {
            entry.bytes += view->marker.files[i].size;
        }
    } else {
        listing_measure(entries, name, &entry);
    }
    *more = visit(user, &entry);
    free(tag);
    free(path);
    return DJ_OK;
}

dj_status dj__listing_visit(dj__root *root, dj_verify level, dj_cache_entry_fn visit, void *user,
                            dj_error *err)
{
    int fd;
    int entries;
    dj__strlist names;
    dj__strlist_init(&names);
    const dj__depth depth = level == DJ_VERIFY_ALL ? DJ__DEPTH_ALL : DJ__DEPTH_MARKER;
    dj_status status = listing_open(root, &fd, &entries, &names, err);
    bool more = true;
    for (size_t i = 0; i < names.count && status == DJ_OK && more; i++) {
        if (!dj__entry_name_parse(names.items[i], NULL)) {
            continue;
        }
        dj__view view;
        dj__entry_look(entries, names.items[i], root->shared->loose, depth, &view);
        if (view.look != DJ__LOOK_ABSENT) {
            status =
                listing_visit_one(root, entries, names.items[i], &view, visit, user, &more, err);
        }
        dj__view_fini(&view);
    }
    dj__strlist_fini(&names);
    dj__root_close(fd, entries);
    return status;
}

/* ---- kept sources ---- */

/* Builds keep the source before they publish: a copy without an entry may still get one. */
#define LISTING_SOURCE_AGE 3600

static int listing_compare(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The digests of those names that are entries', sorted. */
static void listing_digests(const dj__strlist *names, dj__strlist *digests)
{
    for (size_t i = 0; i < names->count; i++) {
        size_t tag_size;
        if (dj__entry_name_parse(names->items[i], &tag_size)) {
            dj__strlist_add(digests, names->items[i] + tag_size + 1);
        }
    }
    if (digests->count > 1) {
        qsort(digests->items, digests->count, sizeof(digests->items[0]), listing_compare);
    }
}

static bool listing_has_digest(const dj__strlist *digests, const char *digest)
{
    return digests->count > 0 && bsearch(&digest, digests->items, digests->count,
                                         sizeof(digests->items[0]), listing_compare) != NULL;
}

/* Removes the source copies whose entries are gone: of those in `removed`, and of any that has been
 * without one for long. Best effort, as keeping them is. */
static void listing_remove_sources(dj__root *root, int fd, int entries, const dj__strlist *removed)
{
    int sources = -1;
    dj__strlist names;
    dj__strlist left_names;
    dj__strlist left; /* digests, as `gone` */
    dj__strlist gone;
    dj__strlist_init(&names);
    dj__strlist_init(&left_names);
    dj__strlist_init(&left);
    dj__strlist_init(&gone);
    if (dj__root_open_sub(root, fd, DJ__DIR_SOURCES, false, &sources, NULL) != DJ_OK ||
        dj__list_dir(sources, &names) != 0 || dj__list_dir(entries, &left_names) != 0 ||
        dj__strlist_ok(&left_names, NULL) != DJ_OK) {
        goto out;
    }
    listing_digests(&left_names, &left);
    listing_digests(removed, &gone);
    if (dj__strlist_ok(&left, NULL) != DJ_OK) {
        goto out;
    }
    const int64_t now = (int64_t)time(NULL);
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.items[i];
        struct stat st;
        if (!dj__is_hex32(name, strlen(name)) || listing_has_digest(&left, name) ||
            fstatat(sources, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (listing_has_digest(&gone, name) || now - (int64_t)st.st_mtime > LISTING_SOURCE_AGE) {
            (void)dj__remove_tree_at(sources, name);
        }
    }
out:
    dj__strlist_fini(&names);
    dj__strlist_fini(&left_names);
    dj__strlist_fini(&left);
    dj__strlist_fini(&gone);
    dj__root_close(-1, sources);
}

dj_status dj__listing_remove(dj__root *root, const char *tag, size_t *removed, dj_error *err)
{
    int fd;
    int entries;
    dj__strlist names;
    dj__strlist gone;
    dj__strlist_init(&names);
    dj__strlist_init(&gone);
    dj_status status = listing_open(root, &fd, &entries, &names, err);
    int first_error = 0;
    for (size_t i = 0; i < names.count && status == DJ_OK; i++) {
        const char *name = names.items[i];
        size_t tag_size;
        if (!dj__entry_name_parse(name, &tag_size) ||
            (tag != NULL && (strlen(tag) != tag_size || memcmp(tag, name, tag_size) != 0))) {
            continue;
        }
        dj__view view;
        char trash_name[128];
        dj__entry_look(entries, name, root->shared->loose, DJ__DEPTH_MARKER, &view);
        if (view.look != DJ__LOOK_ABSENT && listing_state(&view) != DJ_ENTRY_FOREIGN) {
            const int error = dj__trash_move(root, fd, entries, name, &view, trash_name);
            if (error == 0) {
                ++*removed;
                dj__strlist_add(&gone, name);
            } else if (error != ESTALE && first_error == 0) {
                first_error = error;
            }
        }
        dj__view_fini(&view);
    }
    if (fd >= 0) {
        listing_remove_sources(root, fd, entries, &gone);
        dj__trash_empty(root, fd);
    }
    if (first_error != 0) {
        status = dj__fail_errno(err, first_error,
                                "cannot remove entries of cache root %s (roots are set by %s)",
                                root->path, root->shared->setting);
    }
    dj__strlist_fini(&names);
    dj__strlist_fini(&gone);
    dj__root_close(fd, entries);
    return status;
}
