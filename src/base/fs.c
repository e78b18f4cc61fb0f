/* SPDX-License-Identifier: MIT */
/*
 * File-system operations. Invariants: no function follows a link in a name that it was given
 * relative to a descriptor; modes are set with fchmod, so the umask does not matter; whatever a
 * failing function has made is removed again.
 */
#include "base/fs.h"

#include "base/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    /* dj__remove_tree_at holds at most this many descriptors, and calls itself as deep. */
    FS_TREE_DEPTH = 32,
    FS_UNIQUE_TRIES = 16,
    FS_UNIQUE_SIZE = 33 /* 128 random bits as hexadecimal, and a NUL */
};

char *dj__path_normalize(const char *path)
{
    if (path == NULL || path[0] != '/') {
        return NULL;
    }
    char *out = malloc(strlen(path) + 1);
    if (out == NULL) {
        return NULL;
    }
    size_t size = 0; /* of out, which never ends in a slash */
    while (*path != '\0') {
        const size_t length = strcspn(path, "/");
        if (length == 2 && path[0] == '.' && path[1] == '.') {
            while (size > 0 && out[--size] != '/') {
            }
        } else if (length > 0 && !(length == 1 && path[0] == '.')) {
            out[size++] = '/';
            memcpy(out + size, path, length);
            size += length;
        }
        path += length;
        path += strspn(path, "/");
    }
    if (size == 0) {
        out[size++] = '/';
    }
    out[size] = '\0';
    return out;
}

char *dj__path_join(const char *dir, const char *name)
{
    const size_t size = strlen(dir);
    const bool has_slash = size > 0 && dir[size - 1] == '/';
    return dj__concat((const char *const[]){dir, has_slash ? "" : "/", name, NULL});
}

bool dj__path_is_contained(const char *relative)
{
    for (const char *part = relative;; part++) {
        const size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.')) {
            return false;
        }
        part += length;
        if (*part == '\0') {
            return true;
        }
    }
}

static int fs_open(int dir, const char *name, int flags, mode_t mode)
{
    int fd;
    do {
        fd = openat(dir, name, flags | O_CLOEXEC | O_NOCTTY, mode);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

/* Positions do not matter, so that one descriptor can be read again. The size is only a hint:
 * the file may grow, and files in /proc say 0. */
int dj__read_fd_stat(int fd, const struct stat *st, size_t limit, char **data, size_t *size)
{
    *data = NULL;
    *size = 0;
    if (!S_ISREG(st->st_mode)) {
        return S_ISDIR(st->st_mode) ? EISDIR : EINVAL;
    }
    if (limit > (size_t)PTRDIFF_MAX - 2) {
        limit = (size_t)PTRDIFF_MAX - 2; /* "no limit", without overflow below */
    }
    if (st->st_size < 0 || (uintmax_t)st->st_size > limit) {
        return EFBIG;
    }
    size_t capacity = (size_t)st->st_size + 2; /* a byte to notice growth, and the NUL */
    size_t used = 0;
    int error = ENOMEM;
    char *buffer = malloc(capacity);
    if (buffer == NULL) {
        goto out;
    }
    for (;;) {
        const ssize_t got = pread(fd, buffer + used, capacity - 1 - used, (off_t)used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            error = errno;
            goto out;
        }
        if (got == 0) {
            break;
        }
        const bool at_end = used + (size_t)got == (size_t)st->st_size;
        used += (size_t)got;
        if (used > limit) {
            error = EFBIG;
            goto out;
        }
        if (at_end && used < capacity - 1) {
            break; /* asked for one more byte and got none: the size was right */
        }
        if (used == capacity - 1) {
            capacity = capacity < 4096 ? 8192 : capacity > limit / 2 ? limit + 2 : capacity * 2;
            char *bigger = realloc(buffer, capacity);
            if (bigger == NULL) {
                goto out;
            }
            buffer = bigger;
        }
    }
    buffer[used] = '\0';
    *data = buffer;
    *size = used;
    return 0;
out:
    free(buffer);
    return error;
}

int dj__read_fd(int fd, size_t limit, char **data, size_t *size)
{
    struct stat st;
    *data = NULL;
    *size = 0;
    return fstat(fd, &st) != 0 ? errno : dj__read_fd_stat(fd, &st, limit, data, size);
}

/* O_NONBLOCK: a FIFO in the file's place must not stop us before dj__read_fd refuses it. */
static int fs_read_flags(int dir, const char *name, int flags, size_t limit, char **data,
                         size_t *size)
{
    *data = NULL;
    *size = 0;
    const int fd = fs_open(dir, name, O_RDONLY | O_NONBLOCK | flags, 0);
    if (fd < 0) {
        return -fd;
    }
    const int error = dj__read_fd(fd, limit, data, size);
    close(fd);
    return error;
}

int dj__read_at(int dir, const char *name, size_t limit, char **data, size_t *size)
{
    return fs_read_flags(dir, name, O_NOFOLLOW, limit, data, size);
}

int dj__read_file(const char *path, size_t limit, char **data, size_t *size)
{
    return fs_read_flags(AT_FDCWD, path, 0, limit, data, size);
}

static int fs_write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return written < 0 ? errno : EIO;
        }
        data += written;
        size -= (size_t)written;
    }
    return 0;
}

int dj__write_new_at(int dir, const char *name, const void *data, size_t size, mode_t mode,
                     bool sync)
{
    const int fd = fs_open(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return -fd;
    }
    int error = fs_write_all(fd, data, size);
    if (error == 0 && fchmod(fd, mode) != 0) {
        error = errno;
    }
    if (error == 0 && sync && fsync(fd) != 0) {
        error = errno;
    }
    const int close_error = dj__close(fd);
    error = error != 0 ? error : close_error;
    if (error != 0) {
        unlinkat(dir, name, 0);
    }
    return error;
}

static bool fs_unique(char out[FS_UNIQUE_SIZE])
{
    unsigned char bytes[16];
    if (!dj__random_bytes(bytes, sizeof(bytes))) {
        return false;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        out[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    out[2 * sizeof(bytes)] = '\0';
    return true;
}

int dj__write_replace_at(int dir, const char *name, const void *data, size_t size, mode_t mode,
                         bool sync)
{
    char unique[FS_UNIQUE_SIZE];
    char temporary[sizeof(".new-") + FS_UNIQUE_SIZE];
    if (!fs_unique(unique)) {
        return EIO;
    }
    snprintf(temporary, sizeof(temporary), ".new-%s", unique);
    int error = dj__write_new_at(dir, temporary, data, size, mode, sync);
    if (error != 0) {
        return error;
    }
    error = dj__rename_at(dir, temporary, dir, name);
    if (error != 0) {
        unlinkat(dir, temporary, 0);
        return error;
    }
    return sync ? dj__fsync_dir(dir) : 0;
}

int dj__open_dir(const char *path)
{
    return fs_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
}

int dj__open_dir_at(int dir, const char *name)
{
    return fs_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

int dj__open_dir_path(const char *path)
{
    return fs_open(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* For a directory that we have just made: a umask may have taken our own right to open it. */
static int fs_set_dir_mode(int dir, const char *name, mode_t mode)
{
    const int fd = dj__open_dir_at(dir, name);
    if (fd < 0) {
        return fchmodat(dir, name, mode, AT_SYMLINK_NOFOLLOW) != 0 ? errno : 0;
    }
    const int error = fchmod(fd, mode) != 0 ? errno : 0;
    close(fd);
    return error;
}

/* EEXIST if it exists. */
static int fs_new_dir(int dir, const char *name, mode_t mode)
{
    if (mkdirat(dir, name, mode) != 0) {
        return errno;
    }
    const int error = fs_set_dir_mode(dir, name, mode);
    if (error != 0) {
        unlinkat(dir, name, AT_REMOVEDIR);
    }
    return error;
}

int dj__make_dir_at(int dir, const char *name, mode_t mode)
{
    const int error = fs_new_dir(dir, name, mode);
    struct stat st;
    if (error != EEXIST) {
        return error;
    }
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno;
    }
    return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

int dj__make_unique_dir_at(int dir, const char *prefix, char name[128])
{
    const size_t length = strlen(prefix);
    if (length + FS_UNIQUE_SIZE > 128) {
        return ENAMETOOLONG;
    }
    memcpy(name, prefix, length);
    for (int i = 0; i < FS_UNIQUE_TRIES; i++) {
        if (!fs_unique(name + length)) {
            return EIO;
        }
        const int error = fs_new_dir(dir, name, 0700);
        if (error != EEXIST) {
            return error;
        }
    }
    return EEXIST;
}

/* Opens the longest part of `path` that exists and puts its length to *length. The text is
 * changed and restored. Only what is missing may be made: mkdir on existing parents fails in
 * other ways than EEXIST on automounted and read-only ones. O_PATH: parents need not be readable.
 */
static int fs_open_existing(char *path, size_t *length)
{
    for (;;) {
        const char saved = path[*length];
        path[*length] = '\0';
        const int fd = fs_open(AT_FDCWD, *length == 0 ? "." : path, O_PATH | O_DIRECTORY, 0);
        path[*length] = saved;
        if (fd != -ENOENT || *length == 0) {
            return fd;
        }
        while (*length > 0 && path[*length - 1] == '/') {
            --*length;
        }
        while (*length > 0 && path[*length - 1] != '/') {
            --*length;
        }
    }
}

int dj__make_dirs(const char *path, mode_t mode)
{
    if (path[0] == '\0') {
        return ENOENT;
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        return ENOMEM;
    }
    size_t at = strlen(copy);
    int dir = fs_open_existing(copy, &at);
    char *part = copy + at;
    while (dir >= 0) {
        part += strspn(part, "/");
        if (*part == '\0') {
            break;
        }
        char *end = part + strcspn(part, "/");
        const bool last = *end == '\0';
        *end = '\0';
        int error = fs_new_dir(dir, part, mode);
        error = error == EEXIST ? 0 : error; /* another creator won, or it is a link */
        const int next = error != 0 ? -error : fs_open(dir, part, O_PATH | O_DIRECTORY, 0);
        close(dir);
        dir = next;
        part = last ? end : end + 1;
    }
    free(copy);
    if (dir < 0) {
        return -dir;
    }
    close(dir);
    return 0;
}

static int fs_remove_entry(int top, int dir, const char *name, int depth);

/* Removes what `stream` lists until a pass removes nothing: file systems may skip names while
 * others are being removed. Goes on after errors and gives the first. */
static int fs_empty_dir(int top, DIR *stream, int depth)
{
    const int fd = dirfd(stream);
    bool removed;
    int first;
    do {
        removed = false;
        first = 0;
        rewinddir(stream);
        for (;;) {
            errno = 0;
            const struct dirent *entry = readdir(stream);
            if (entry == NULL) {
                first = first != 0 ? first : errno;
                break;
            }
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
                continue;
            }
            const int error = fs_remove_entry(top < 0 ? fd : top, fd, entry->d_name, depth);
            removed = removed || error == 0;
            first = first != 0 ? first : error;
        }
    } while (removed);
    return first;
}

/* Directories that lost our rights get them back; only our own can. */
static int fs_open_to_empty(int dir, const char *name, DIR **stream)
{
    int fd = dj__open_dir_at(dir, name);
    if (fd == -EACCES && fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) == 0) {
        fd = dj__open_dir_at(dir, name);
    }
    if (fd < 0) {
        return -fd;
    }
    struct stat st;
    if (fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700) {
        (void)fchmod(fd, 0700); /* without it, removing the names below says why */
    }
    *stream = fdopendir(fd);
    if (*stream == NULL) {
        const int error = errno;
        close(fd);
        return error;
    }
    return 0;
}

/* `top` is the tree's own directory, -1 at the tree itself. What lies too deep is moved up to it
 * under a fresh name and met again in its next pass. */
static int fs_remove_entry(int top, int dir, const char *name, int depth)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT) {
        return 0;
    }
    const int unlink_error = errno; /* of a directory: EISDIR, or EPERM as POSIX says */
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : errno;
    }
    if (!S_ISDIR(st.st_mode)) {
        return unlink_error;
    }
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0) {
        return 0;
    }
    if (depth == FS_TREE_DEPTH) {
        char unique[FS_UNIQUE_SIZE];
        return fs_unique(unique) ? dj__rename_at(dir, name, top, unique) : EIO;
    }
    DIR *stream;
    int error = fs_open_to_empty(dir, name, &stream);
    if (error != 0) {
        return error == ENOENT ? 0 : error;
    }
    error = fs_empty_dir(top, stream, depth + 1);
    closedir(stream);
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
        return 0;
    }
    return error != 0 ? error : errno;
}

int dj__remove_tree_at(int dir, const char *name)
{
    return fs_remove_entry(-1, dir, name, 0);
}

int dj__remove_tree(const char *path)
{
    char *copy = strdup(path);
    if (copy == NULL) {
        return ENOMEM;
    }
    for (size_t size = strlen(copy); size > 1 && copy[size - 1] == '/'; size--) {
        copy[size - 1] = '\0'; /* "link/" would follow the link */
    }
    const int error = dj__remove_tree_at(AT_FDCWD, copy);
    free(copy);
    return error;
}

int dj__fsync_dir(int dir)
{
    if (fsync(dir) == 0 || errno == EINVAL || errno == ENOTSUP) {
        return 0; /* not every file system can, and then there is nothing to wait for */
    }
    return errno;
}

int dj__rename_at(int from_dir, const char *from, int to_dir, const char *to)
{
    return renameat(from_dir, from, to_dir, to) != 0 ? errno : 0;
}

int dj__close(int fd)
{
    return close(fd) != 0 ? errno : 0;
}

static int fs_compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int dj__list_dir(int dir, dj__strlist *names)
{
    const int fd = dj__open_dir_at(dir, "."); /* an offset of our own */
    if (fd < 0) {
        return -fd;
    }
    DIR *stream = fdopendir(fd);
    if (stream == NULL) {
        const int error = errno;
        close(fd);
        return error;
    }
    const size_t first = names->count;
    int error = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == NULL) {
            error = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            dj__strlist_add(names, entry->d_name);
        }
    }
    closedir(stream);
    if (error == 0 && names->status != DJ_OK) {
        error = ENOMEM;
    }
    if (error == 0 && names->count > first) {
        qsort(names->items + first, names->count - first, sizeof(*names->items), fs_compare_names);
    }
    return error;
}

bool dj__fs_is_local(int fd)
{
    /* From linux/magic.h and the file systems themselves; numbers, since old headers lack some. */
    static const uint32_t local[] = {
        0xEF53,     /* ext2, ext3, ext4 */
        0x58465342, /* xfs */
        0x9123683E, /* btrfs */
        0x01021994, /* tmpfs */
        0x858458F6, /* ramfs */
        0x794C7630, /* overlayfs */
        0x2FC12FC1, /* zfs */
        0xF2F52010, /* f2fs */
        0xCA451A4E, /* bcachefs */
        0x3153464A, /* jfs */
        0x52654973, /* reiserfs */
        0x3434,     /* nilfs */
        0xF15F,     /* ecryptfs */
        0x73717368, /* squashfs */
        0xE0F5E1E2, /* erofs */
        0x4D44,     /* vfat */
        0x2011BAB0, /* exfat */
        0x7366746E, /* ntfs3 */
    };
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
        if ((uint32_t)fs.f_type == local[i]) {
            return true;
        }
    }
    return false;
}

bool dj__is_executable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}
