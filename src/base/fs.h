/* SPDX-License-Identifier: MIT */
/*
 * File-system operations with the care a shared cache needs: descriptors instead of paths where
 * something could be swapped, O_CLOEXEC and O_NOFOLLOW, every write, fsync and close checked,
 * EINTR retried, links removed and never followed.
 *
 * Functions that return int give 0 or an errno value (positive), so that callers can decide
 * before they word a message.
 */
#ifndef DJ_BASE_FS_H
#define DJ_BASE_FS_H

#include "base/strbuf.h"
#include <sys/stat.h>
#include <sys/types.h>

/* Absolute and without ".", ".." and double slashes, decided by the text alone. NULL without
 * memory or if `path` is relative or empty. */
char *dj__path_normalize(const char *path);
char *dj__path_join(const char *dir, const char *name); /* NULL without memory */
/* True if the relative path has no "" , "." or ".." component and is not absolute. */
bool dj__path_is_contained(const char *relative);

/* Reads a whole regular file; a NUL follows the data. EFBIG above `limit`. */
int dj__read_fd(int fd, size_t limit, char **data, size_t *size);
/* The same for a caller who has looked at the file already. */
int dj__read_fd_stat(int fd, const struct stat *st, size_t limit, char **data, size_t *size);
int dj__read_at(int dir, const char *name, size_t limit, char **data,
                size_t *size); /* O_NOFOLLOW */
int dj__read_file(const char *path, size_t limit, char **data, size_t *size);

/* Creates (O_EXCL) and writes; `sync` calls fsync. Removes what it made on failure. */
int dj__write_new_at(int dir, const char *name, const void *data, size_t size, mode_t mode,
                     bool sync);
/* Writes <name> so that readers see the old or the new content: a temporary name beside it,
 * then rename. */
int dj__write_replace_at(int dir, const char *name, const void *data, size_t size, mode_t mode,
                         bool sync);

int dj__open_dir(const char *path);             /* fd, or -errno */
int dj__open_dir_at(int dir, const char *name); /* O_NOFOLLOW; fd, or -errno */
/* The same for a path, only to examine it and to open what is in it. */
int dj__open_dir_path(const char *path);
/* Creates the directory and missing parents; existing ones are left as they are. */
int dj__make_dirs(const char *path, mode_t mode);
/* Creates `name` in `dir` with exactly `mode`, whatever the umask; 0 if it exists already. */
int dj__make_dir_at(int dir, const char *name, mode_t mode);
/* Makes a new private (0700) directory `prefix`XXXX... with an unguessable name; the name part
 * goes to `name`. */
int dj__make_unique_dir_at(int dir, const char *prefix, char name[128]);

/* Removes a file, link or whole tree without following any link. Missing is fine. */
int dj__remove_tree_at(int dir, const char *name);
int dj__remove_tree(const char *path);

int dj__fsync_dir(int dir);
int dj__rename_at(int from_dir, const char *from, int to_dir, const char *to);
int dj__close(int fd); /* never retried; the error counts for written files */

/* Names in a directory without "." and "..", sorted. */
int dj__list_dir(int dir, dj__strlist *names);

/* True on file systems known to be local (ext, xfs, btrfs, tmpfs, overlay, zfs, f2fs, ...). */
bool dj__fs_is_local(int fd);
/* A regular file that this process may execute. */
bool dj__is_executable(const char *path);

#endif
