/* SPDX-License-Identifier: MIT */
/*
 * Reading and verifying one entry.
 *
 * The directory is opened once and every file relative to it, so all come from one publication.
 * Files are read whole into memory (a mapping would follow later changes, or fault), sizes are
 * compared with the marker before memory is taken. What is wrong is sorted into content (DAMAGED)
 * and access (ERROR): only the first says anything about the entry.
 */
#include "cache/entry.h"

#include "base/error.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void view_damaged(dj__view *view, const char *format, ...) DJ_PRINTF(2, 3);

static void view_damaged(dj__view *view, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(view->problem, sizeof(view->problem), format, args);
    va_end(args);
    view->look = DJ__LOOK_DAMAGED;
}

static void view_error(dj__view *view, int error, const char *name)
{
    view->look = DJ__LOOK_ERROR;
    view->error = error;
    dj_error err = DJ_ERROR_INIT;
    (void)dj__fail_errno(&err, error, "%s cannot be read", name);
    (void)snprintf(view->problem, sizeof(view->problem), "%.300s", err.message);
}

/* True if strangers could have written it. `loose` 0: nobody asks. */
static bool view_is_loose(const dj__view *view, const struct stat *st, mode_t loose)
{
    return (st->st_mode & loose) != 0 ||
           (loose != 0 && (st->st_mode & S_IWGRP) != 0 && st->st_gid != view->group);
}

/* Opens a file of the entry; negative with the view filled, -ENOENT if there is none.
 * O_NONBLOCK: a FIFO must not stop us. */
static int view_open(dj__view *view, int dir, const char *name, mode_t loose, struct stat *st)
{
    int fd;
    do {
        fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        if (errno == ENOENT) {
            view_damaged(view, "%s is missing", name);
            return -ENOENT;
        }
        if (errno == ELOOP || errno == ENXIO) {
            view_damaged(view, "%s is not a regular file", name);
        } else {
            view_error(view, errno, name);
        }
        return -1;
    }
    if (fstat(fd, st) != 0) {
        view_error(view, errno, name);
    } else if (!S_ISREG(st->st_mode)) {
        view_damaged(view, "%s is not a regular file", name);
    } else if (view_is_loose(view, st, loose)) {
        view_damaged(view, "%s can be written by strangers (mode %04o)", name,
                     (unsigned)(st->st_mode & 07777));
    } else {
        return fd;
    }
    (void)dj__close(fd);
    return -1;
}

/* Reads a listed file and compares it; NULL with the view filled if it is not as published. */
static char *view_read(dj__view *view, int dir, const dj__marker_file *file, mode_t loose)
{
    struct stat st;
    const int fd = view_open(view, dir, file->name, loose, &st);
    if (fd < 0) {
        return NULL;
    }
    char *data = NULL;
    size_t size = 0;
    char hash[DJ__HEX_SIZE];
    if ((uint64_t)st.st_size != file->size || file->size > DJ__FILE_LIMIT) {
        view_damaged(view, "%s has %" PRIu64 " bytes instead of %" PRIu64, file->name,
                     (uint64_t)st.st_size, file->size);
    } else {
        const int error = dj__read_fd_stat(fd, &st, (size_t)file->size, &data, &size);
        if (error == EFBIG) {
            view_damaged(view, "%s grows while it is read", file->name);
        } else if (error != 0) {
            view_error(view, error, file->name);
        } else if (size != file->size) {
            view_damaged(view, "%s has %zu bytes instead of %" PRIu64, file->name, size,
                         file->size);
        } else {
            dj__xxh128_hex(data, size, hash);
            if (strcmp(hash, file->xxh) != 0) {
                view_damaged(view, "%s does not match its checksum", file->name);
            }
        }
    }
    (void)dj__close(fd);
    if (view->look != DJ__LOOK_GOOD) {
        free(data);
        return NULL;
    }
    return data;
}

static void view_judge_marker(dj__view *view, const char *name)
{
    const char *problem;
    dj_error err = DJ_ERROR_INIT;
    const dj_entry_state state =
        dj__marker_parse(view->text, view->text_size, &view->marker, &problem, &err);
    if (state == DJ_ENTRY_GOOD) {
        const size_t size = strlen(view->marker.tag);
        if (strncmp(name, view->marker.tag, size) != 0 || name[size] != '.' ||
            strcmp(name + size + 1, view->marker.digest) != 0) {
            view_damaged(view, "marker is that of another entry, %s.%s", view->marker.tag,
                         view->marker.digest);
            dj__marker_fini(&view->marker);
        }
    } else if (err.status == DJ_NO_MEMORY) {
        view_error(view, ENOMEM, DJ__MARKER_NAME);
    } else {
        view->look = state == DJ_ENTRY_FOREIGN ? DJ__LOOK_FOREIGN : DJ__LOOK_DAMAGED;
        (void)snprintf(view->problem, sizeof(view->problem), "%s", problem);
    }
}

static void view_read_marker(dj__view *view, int dir, const char *name, mode_t loose)
{
    struct stat st;
    const int fd = view_open(view, dir, DJ__MARKER_NAME, 0, &st);
    if (fd == -ENOENT) {
        view->look = DJ__LOOK_UNMARKED;
        (void)snprintf(view->problem, sizeof(view->problem), "no marker: was never published");
    }
    if (fd < 0) {
        return;
    }
    view->used = st.st_mtim.tv_sec;
    const int error = dj__read_fd_stat(fd, &st, DJ__MARKER_LIMIT, &view->text, &view->text_size);
    (void)dj__close(fd);
    if (error == EFBIG) {
        view->look = DJ__LOOK_FOREIGN; /* damage never makes a marker of ours so long */
        (void)snprintf(view->problem, sizeof(view->problem), "marker of another program");
    } else if (error != 0) {
        view_error(view, error, DJ__MARKER_NAME);
    } else {
        view_judge_marker(view, name);
    }
    if (view->look == DJ__LOOK_GOOD && view_is_loose(view, &st, loose)) {
        view_damaged(view, "%s can be written by strangers (mode %04o)", DJ__MARKER_NAME,
                     (unsigned)(st.st_mode & 07777));
    }
}

static void view_read_files(dj__view *view, int dir, mode_t loose, dj__depth depth)
{
    for (size_t i = 0; i < view->marker.num_files && view->look == DJ__LOOK_GOOD; i++) {
        const dj__marker_file *file = &view->marker.files[i];
        const bool is_binary = strcmp(file->name, view->marker.binary) == 0;
        const bool is_log = strcmp(file->name, DJ__LOG_NAME) == 0;
        if (!is_binary && !is_log && depth != DJ__DEPTH_ALL) {
            continue;
        }
        char *data = view_read(view, dir, file, loose);
        if (is_binary) {
            view->binary = data;
            view->binary_size = (size_t)file->size;
        } else if (is_log) {
            view->log = data;
            view->log_size = (size_t)file->size;
        } else {
            free(data);
        }
    }
}

void dj__entry_look(int entries, const char *name, mode_t loose, dj__depth depth, dj__view *view)
{
    memset(view, 0, sizeof(*view));
    const int dir = dj__open_dir_at(entries, name);
    if (dir == -ENOENT) {
        view->look = DJ__LOOK_ABSENT;
        return;
    }
    struct stat st = {0};
    if (dir == -ENOTDIR || dir == -ELOOP) {
        if (fstatat(entries, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            view->used = st.st_mtim.tv_sec;
        }
        view->look = DJ__LOOK_FOREIGN;
        (void)snprintf(view->problem, sizeof(view->problem), "not a directory");
        return;
    }
    /* If a group is trusted, it is the one that has the entries. */
    if (dir < 0 || ((loose & S_IWGRP) == 0 && fstat(entries, &st) != 0)) {
        view_error(view, dir < 0 ? -dir : errno, "directory");
    } else {
        dj__entry_look_open(dir, st.st_gid, name, loose, depth, view);
    }
    dj__root_close(dir, -1);
}

void dj__entry_look_open(int dir, gid_t group, const char *name, mode_t loose, dj__depth depth,
                         dj__view *view)
{
    struct stat st;
    memset(view, 0, sizeof(*view));
    if (fstat(dir, &st) != 0) {
        view_error(view, errno, "directory");
        return;
    }
    view->dev = st.st_dev;
    view->ino = st.st_ino;
    view->used = st.st_mtim.tv_sec;
    view->group = group;
    view_read_marker(view, dir, name, loose);
    if (view->look == DJ__LOOK_GOOD && view_is_loose(view, &st, loose)) {
        view_damaged(view, "can be written by strangers (mode %04o)",
                     (unsigned)(st.st_mode & 07777));
    }
    if (view->look == DJ__LOOK_GOOD && depth != DJ__DEPTH_MARKER) {
        view_read_files(view, dir, loose, depth);
    }
}

void dj__view_fini(dj__view *view)
{
    dj__marker_fini(&view->marker);
    free(view->text);
    free(view->binary);
    free(view->log);
    memset(view, 0, sizeof(*view));
}

dj_status dj__view_take(dj__view *view, char **path, dj_entry *out, dj_error *err)
{
    if (view->log == NULL) {
        view->log = calloc(1, 1);
        if (view->log == NULL) {
            return dj__fail_memory(err);
        }
    }
    *out = (dj_entry){.path = *path,
                      .binary = view->binary,
                      .binary_size = view->binary_size,
                      .log = view->log,
                      .log_size = view->log_size};
    *path = NULL;
    view->binary = NULL;
    view->log = NULL;
    return DJ_OK;
}

bool dj__view_is_current(const dj__view *view, int entries, const char *name)
{
    struct stat st;
    return fstatat(entries, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == view->dev &&
           st.st_ino == view->ino;
}

void dj__entry_fini(dj_entry *entry)
{
    free(entry->path);
    free(entry->binary);
    free(entry->log);
    free(entry->reason);
    memset(entry, 0, sizeof(*entry));
}
