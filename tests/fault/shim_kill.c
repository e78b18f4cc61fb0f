/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a child of a fault test: counts the file-system calls that the store makes, and
 * at the N-th one kills the process, makes the call fail, or makes it work and report failure, as
 * a network file system does that loses a reply.
 *
 * The program arms it by shim_arm, found with dlsym. A write that is killed is half done.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#include "shim_kill.h"

void shim_arm(long nth, int error, int flags);
long shim_disarm(void);

static _Atomic bool shim_armed;
static _Atomic long shim_calls;
static long shim_nth;
static int shim_error; /* 0: kill */
static int shim_flags;

void shim_arm(long nth, int error, int flags)
{
    shim_nth = nth;
    shim_error = error;
    shim_flags = flags;
    atomic_store(&shim_calls, 0);
    atomic_store(&shim_armed, true);
}

long shim_disarm(void)
{
    atomic_store(&shim_armed, false);
    return atomic_load(&shim_calls);
}

/* True if this call is the one. */
static bool shim_hit(void)
{
    if (!atomic_load(&shim_armed)) {
        return false;
    }
    const long call = atomic_fetch_add(&shim_calls, 1) + 1;
    return call == shim_nth || (call > shim_nth && (shim_flags & SHIM_PERSISTENT) != 0);
}

static void shim_kill(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;) {
        (void)pause();
    }
}

/* True if this call must fail; errno is set. */
static bool shim_fails(void)
{
    if (!shim_hit()) {
        return false;
    }
    if (shim_error == 0) {
        shim_kill();
    }
    if ((shim_flags & SHIM_LOST_REPLY) != 0) {
        return false; /* only renames lose replies */
    }
    errno = shim_error;
    return true;
}

#define SHIM_NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define SHIM_CALL(result, failure, name, params, args)                                             \
    result name params                                                                             \
    {                                                                                              \
        return shim_fails() ? (failure) : SHIM_NEXT(name) args;                                    \
    }

SHIM_CALL(int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
SHIM_CALL(int, -1, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode))
SHIM_CALL(int, -1, fsync, (int fd), (fd))
SHIM_CALL(int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
SHIM_CALL(int, -1, fchmodat, (int dir, const char *path, mode_t mode, int flags),
          (dir, path, mode, flags))
SHIM_CALL(int, -1, fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))
SHIM_CALL(int, -1, unlink, (const char *path), (path))
SHIM_CALL(int, -1, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
SHIM_CALL(int, -1, rmdir, (const char *path), (path))
SHIM_CALL(int, -1, fstat, (int fd, struct stat *st), (fd, st))
SHIM_CALL(int, -1, fstatat, (int dir, const char *path, struct stat *st, int flags),
          (dir, path, st, flags))
SHIM_CALL(int, -1, fstatvfs, (int fd, struct statvfs *fs), (fd, fs))
SHIM_CALL(int, -1, utimensat,
          (int dir, const char *path, const struct timespec times[2], int flags),
          (dir, path, times, flags))
SHIM_CALL(ssize_t, -1, read, (int fd, void *data, size_t size), (fd, data, size))
SHIM_CALL(ssize_t, -1, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
SHIM_CALL(DIR *, NULL, fdopendir, (int fd), (fd))
SHIM_CALL(struct dirent *, NULL, readdir, (DIR * dir), (dir))

ssize_t write(int fd, const void *data, size_t size)
{
    const bool kills =
        atomic_load(&shim_armed) && shim_error == 0 && atomic_load(&shim_calls) + 1 == shim_nth;
    if (kills) {
        (void)SHIM_NEXT(write)(fd, data, size / 2);
    }
    return shim_fails() ? -1 : SHIM_NEXT(write)(fd, data, size);
}

/* The descriptor is gone in any case, as on Linux. */
int close(int fd)
{
    const bool fails = shim_fails();
    const int result = SHIM_NEXT(close)(fd);
    if (fails) {
        errno = shim_error;
        return -1;
    }
    return result;
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    if (!shim_hit()) {
        return SHIM_NEXT(renameat)(from_dir, from, to_dir, to);
    }
    if (shim_error == 0) {
        shim_kill();
    }
    if ((shim_flags & SHIM_LOST_REPLY) != 0) {
        (void)SHIM_NEXT(renameat)(from_dir, from, to_dir, to);
    }
    errno = shim_error;
    return -1;
}

static mode_t shim_mode(int flags, va_list args)
{
    return (flags & O_CREAT) != 0 ? (mode_t)va_arg(args, int) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = shim_mode(flags, args);
    va_end(args);
    return shim_fails() ? -1 : SHIM_NEXT(open)(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = shim_mode(flags, args);
    va_end(args);
    return shim_fails() ? -1 : SHIM_NEXT(openat)(dir, path, flags, mode);
}
