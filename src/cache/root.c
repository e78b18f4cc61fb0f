/* SPDX-License-Identifier: MIT */
/* Opening cache roots and their sub-directories; see root.h. */
#include "cache/root.h"

#include "base/error.h"
#include "base/fs.h"
#include "cache/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What the trust check depends on. Never 0. */
static uint64_t root_fingerprint(const struct stat *st)
{
    const uint64_t facts[] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino, (uint64_t)st->st_uid,
                              (uint64_t)st->st_gid, (uint64_t)st->st_mode};
    return dj__xxh64(facts, sizeof(facts), 0) | 1;
}

static dj_status root_check(dj__root *root, int fd, dj_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return dj__fail_errno(err, errno,
                              "cannot examine cache root %s (set %s to another directory)",
                              root->path, root->shared->setting);
    }
    const uint64_t fingerprint = root_fingerprint(&st);
    if (atomic_load_explicit(&root->trusted, memory_order_relaxed) == fingerprint) {
        return DJ_OK;
    }
    const dj__strlist *trust = &root->shared->trust;
    const dj_status status = dj__trust_check(fd, root->path, dj__strlist_items(trust), trust->count,
                                             root->shared->env, err);
    if (status == DJ_OK) {
        atomic_store_explicit(&root->trusted, fingerprint, memory_order_relaxed);
    }
    return status;
}

static int root_create(const dj__root *root)
{
    const int error = dj__make_dirs(root->path, 0700);
    if (error != 0) {
        return -error;
    }
    const int fd = dj__open_dir(root->path);
    if (fd >= 0 && root->shared->fsync == DJ__FSYNC_FULL) {
        const int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (parent >= 0) {
            (void)dj__fsync_dir(parent);
            (void)dj__close(parent);
        }
    }
    return fd;
}

dj_status dj__root_open(dj__root *root, bool create, int *out, dj_error *err)
{
    *out = -1;
    int fd = dj__open_dir(root->path);
    if (fd == -ENOENT && create) {
        fd = root_create(root);
        if (fd < 0) {
            return dj__fail_errno(err, -fd,
                                  "cannot create cache root %s (set %s to a directory that can be "
                                  "written)",
                                  root->path, root->shared->setting);
        }
    }
    if (fd < 0) {
        return dj__fail_errno(err, -fd, "cannot open cache root %s (set %s to another directory)",
                              root->path, root->shared->setting);
    }
    const dj_status status = root_check(root, fd, err);
    if (status != DJ_OK) {
        (void)dj__close(fd);
        return status;
    }
    *out = fd;
    return DJ_OK;
}

int dj__root_share(int fd, const struct stat *root, mode_t mode)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return errno;
    }
    if (st.st_gid != root->st_gid && fchown(fd, (uid_t)-1, root->st_gid) != 0) {
        mode &= ~(mode_t)(S_IWGRP | S_ISGID);
    }
    return fchmod(fd, mode) != 0 ? errno : 0;
}

/* Somebody else may have been faster: what is theirs is theirs to share. */
static int root_share_new(int sub, const struct stat *root)
{
    struct stat st;
    if (fstat(sub, &st) != 0) {
        return errno;
    }
    return st.st_uid == geteuid() ? dj__root_share(sub, root, root->st_mode & 07777) : 0;
}

static int root_create_sub(const dj__root *root, int fd, const char *name)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return -errno;
    }
    /* Without group-write until the group is the root's. */
    int error = dj__make_dir_at(fd, name, (st.st_mode & 07777) & ~(mode_t)S_IWGRP);
    if (error == 0 && root->shared->fsync == DJ__FSYNC_FULL) {
        error = dj__fsync_dir(fd);
    }
    const int sub = error != 0 ? -error : dj__open_dir_at(fd, name);
    if (sub >= 0) {
        error = root_share_new(sub, &st);
    }
    if (sub >= 0 && error != 0) {
        (void)dj__close(sub);
        return -error;
    }
    return sub;
}

/* A sub-directory's owner can write it whatever its mode says. Where the group is trusted, any
 * member may have made it. */
static bool root_sub_is_trusted(const dj__root *root, const struct stat *above,
                                const struct stat *sub)
{
    if ((sub->st_mode & root->shared->loose) != 0) {
        return false;
    }
    const dj__strlist *trust = &root->shared->trust;
    const char *const *words = dj__strlist_items(trust);
    if ((sub->st_mode & S_IWGRP) != 0 && sub->st_gid != above->st_gid) {
        return false; /* the trusted group is the root's and no other */
    }
    return sub->st_uid == 0 || sub->st_uid == geteuid() ||
           dj__trust_has_group(words, trust->count) ||
           dj__trust_allows(sub->st_uid, above->st_uid, words, trust->count);
}

/* For dj__root_has, once a sub-directory has passed its check. */
static void root_remember(dj__root *root, const char *name, const struct stat *sub)
{
    if (strcmp(name, DJ__DIR_ENTRIES) == 0) {
        atomic_store_explicit(&root->entries, root_fingerprint(sub), memory_order_relaxed);
    }
}

int dj__root_open_known(dj__root *root, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof(path), "%s/%s", root->path, name);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        return -1;
    }
    const int sub = dj__open_dir_at(AT_FDCWD, path);
    struct stat st;
    struct stat above;
    if (sub >= 0 && fstat(sub, &st) == 0 && fstatat(sub, "..", &above, 0) == 0 &&
        atomic_load_explicit(&root->trusted, memory_order_relaxed) == root_fingerprint(&above) &&
        root_sub_is_trusted(root, &above, &st)) {
        root_remember(root, name, &st);
        return sub;
    }
    dj__root_close(sub, -1);
    return -1;
}

bool dj__root_has(const dj__root *root, int entry, gid_t *group)
{
    struct stat sub;
    struct stat above;
    if (fstatat(entry, "..", &sub, 0) != 0 ||
        atomic_load_explicit(&root->entries, memory_order_relaxed) != root_fingerprint(&sub) ||
        fstatat(entry, "../..", &above, 0) != 0 ||
        atomic_load_explicit(&root->trusted, memory_order_relaxed) != root_fingerprint(&above)) {
        return false;
    }
    *group = sub.st_gid;
    return root_sub_is_trusted(root, &above, &sub); /* this user may be another one by now */
}

dj_status dj__root_open_sub(dj__root *root, int fd, const char *name, bool create, int *out,
                            dj_error *err)
{
    *out = -1;
    int sub = dj__open_dir_at(fd, name);
    if (sub == -ENOENT && create) {
        sub = root_create_sub(root, fd, name);
    }
    if (sub < 0) {
        return dj__fail_errno(err, -sub, "cannot %s %s/%s (set %s to another directory)",
                              create ? "create" : "open", root->path, name, root->shared->setting);
    }
    struct stat st;
    struct stat above;
    dj_status status = DJ_OK;
    if (fstat(sub, &st) != 0 || fstat(fd, &above) != 0) {
        status = dj__fail_errno(err, errno, "cannot examine %s/%s", root->path, name);
    } else if (!root_sub_is_trusted(root, &above, &st)) {
        status = dj__fail(err, DJ_PERMISSION,
                          "%s/%s (uid %lu, mode %04o) can be written by strangers: remove that "
                          "permission or change its owner, or set %s to another directory",
                          root->path, name, (unsigned long)st.st_uid,
                          (unsigned)(st.st_mode & 07777), root->shared->setting);
    }
    if (status != DJ_OK) {
        (void)dj__close(sub);
        return status;
    }
    root_remember(root, name, &st);
    *out = sub;
    return DJ_OK;
}

dj_status dj__root_open_both(dj__root *root, const char *name, bool create, int *fd, int *sub,
                             dj_error *err)
{
    *sub = -1;
    dj_status status = dj__root_open(root, create, fd, err);
    if (status == DJ_OK) {
        status = dj__root_open_sub(root, *fd, name, create, sub, err);
    }
    if (status != DJ_OK) {
        dj__root_close(*fd, -1);
        *fd = -1;
    }
    return status;
}

void dj__root_close(int fd, int sub)
{
    if (sub >= 0) {
        (void)dj__close(sub);
    }
    if (fd >= 0) {
        (void)dj__close(fd);
    }
}

char *dj__root_path(const dj__root *root, const char *dir, const char *name)
{
    const size_t size = strlen(root->path);
    const bool has_slash = size > 0 && root->path[size - 1] == '/';
    const char *const slash = has_slash ? "" : "/";
    return dj__concat((const char *const[]){root->path, slash, dir, "/", name, NULL});
}

void dj__root_prefix(char prefix[32])
{
    (void)snprintf(prefix, 32, "dj-%ld-", (long)getpid());
}

static size_t entry_tag_size(const char *text)
{
    size_t size = 0;
    while ((text[size] >= 'a' && text[size] <= 'z') || (text[size] >= 'A' && text[size] <= 'Z') ||
           (text[size] >= '0' && text[size] <= '9') || text[size] == '_') {
        size++;
    }
    return size;
}

dj_status dj__entry_name(const dj_manifest *what, char name[DJ__ENTRY_NAME_SIZE], dj_error *err)
{
    const size_t size = entry_tag_size(what->tag);
    if (size == 0 || what->tag[size] != '\0') {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "cache tag must contain only letters, digits, or underscores: %s",
                        what->tag);
    }
    if (size > 128) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "cache tag is longer than 128 bytes: %s",
                        what->tag);
    }
    const size_t digest_size = strlen(what->digest);
    if (!dj__is_hex32(what->digest, digest_size)) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "cache digest must be 32 lowercase hexadecimal characters: %s",
                        what->digest);
    }
    memcpy(name, what->tag, size);
    name[size] = '.';
    memcpy(name + size + 1, what->digest, digest_size + 1);
    return DJ_OK;
}

bool dj__entry_name_parse(const char *name, size_t *tag_size)
{
    const size_t size = entry_tag_size(name);
    if (size == 0 || size > 128 || name[size] != '.' ||
        !dj__is_hex32(name + size + 1, strlen(name + size + 1))) {
        return false;
    }
    if (tag_size != NULL) {
        *tag_size = size;
    }
    return true;
}
