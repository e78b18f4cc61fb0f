/* SPDX-License-Identifier: MIT */
/*
 * Loading shared objects from memory. Two rules of dlopen(3) shape this file: it takes a file
 * for a library that is already loaded if the names are equal as text, and it trusts the program
 * headers, so that a truncated file ends in SIGBUS. Hence names that are never used twice, and a
 * check of the headers before.
 */
#include "base/dl.h"

#include "base/error.h"
#include "base/fs.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

#define DL_FD_DIR "/proc/thread-self/fd"
/* 64 bits are 16 digits of at most 17 characters. */
enum { DL_BASE = 16, DL_PATH_SIZE = sizeof(DL_FD_DIR) + 16 * (DL_BASE + 1) + 16 };

/* What is wrong with the bytes as a shared object of this machine's kind; NULL if nothing that
 * could make the loader read beyond their end. */
static const char *dl_check_elf(const unsigned char *data, size_t size)
{
    static const unsigned char magic[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3};
    const unsigned char order =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    ElfW(Ehdr) header;
    if (size < sizeof(header) || memcmp(data, magic, sizeof(magic)) != 0) {
        return "not an ELF file";
    }
    memcpy(&header, data, sizeof(header));
    if (header.e_ident[EI_CLASS] != class || header.e_ident[EI_DATA] != order ||
        header.e_type != ET_DYN) {
        return "not a shared object for this machine";
    }
    if (header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum == 0 || header.e_phoff > size ||
        (size - header.e_phoff) / sizeof(ElfW(Phdr)) < header.e_phnum) {
        return "damaged ELF header";
    }
    for (size_t i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        memcpy(&segment, data + header.e_phoff + i * sizeof(segment), sizeof(segment));
        if (segment.p_type != PT_NULL && segment.p_filesz > 0 &&
            (segment.p_offset > size || segment.p_filesz > size - segment.p_offset)) {
            return "truncated";
        }
    }
    return NULL;
}

/* "<directory of descriptors>/<fd>" in a spelling that nothing loaded now has: the inode number of
 * the memfd, which stays its own while it is mapped, stands in the middle. A digit d is d + 1
 * slashes and a dot: every dot is a step of the path walk, slashes cost nothing. */
static bool dl_unique_path(int fd, char path[DL_PATH_SIZE])
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return false;
    }
    memcpy(path, DL_FD_DIR, sizeof(DL_FD_DIR));
    size_t at = sizeof(DL_FD_DIR) - 1;
    for (uint64_t digits = (uint64_t)info.st_ino; digits != 0; digits /= DL_BASE) {
        const size_t slashes = digits % DL_BASE + 1;
        memset(path + at, '/', slashes);
        at += slashes;
        path[at++] = '.';
    }
    snprintf(path + at, DL_PATH_SIZE - at, "/%d", fd);
    return true;
}

/* dlopen, with `reason` naming what it disliked, without the path that it puts first. */
static void *dl_open_path(const char *path, char *reason, size_t reason_size)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *text = dlerror();
        const size_t length = strlen(path);
        if (text != NULL && strncmp(text, path, length) == 0 && text[length] == ':') {
            text += length + 1;
            text += strspn(text, " ");
        }
        snprintf(reason, reason_size, "%s", text != NULL ? text : "unknown error of dlopen");
    }
    return handle;
}

/* 0 if code may be mapped from the file at `path`, else why not. */
static int dl_probe_exec(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    int error = 0;
    void *page = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (page == MAP_FAILED) {
        error = errno;
    } else {
        munmap(page, 1);
    }
    close(fd);
    return error;
}

/* A descriptor, or -errno. Kernels before 6.3 do not know MFD_EXEC, later ones can insist on it. */
static int dl_memfd(const void *data, size_t size)
{
    int fd = memfd_create("deepjit", MFD_CLOEXEC | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) {
        fd = memfd_create("deepjit", MFD_CLOEXEC);
    }
    if (fd < 0) {
        return -errno;
    }
    const char *next = data;
    while (size > 0) {
        const ssize_t written = write(fd, next, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            const int error = written < 0 ? errno : EIO;
            close(fd);
            return -error;
        }
        next += written;
        size -= (size_t)written;
    }
    return fd;
}

/* OK; INCOMPATIBLE with `reason`; UNAVAILABLE if this process cannot load that way. */
static dj_status dl_load_memfd(const void *data, size_t size, void **handle, char *reason,
                               size_t reason_size)
{
    char path[DL_PATH_SIZE];
    dj_status status = DJ_UNAVAILABLE;
    const int fd = dl_memfd(data, size);
    if (fd < 0) {
        return status;
    }
    if (dl_unique_path(fd, path)) {
        *handle = dl_open_path(path, reason, reason_size);
        if (*handle != NULL) {
            status = DJ_OK;
        } else if (dl_probe_exec(path) == 0) {
            status = DJ_INCOMPATIBLE;
        }
    }
    close(fd);
    return status;
}

static dj_status dl_load_file_at(int dir, const char *dir_path, const void *data, size_t size,
                                 void **handle, char *reason, size_t reason_size, dj_error *err)
{
    int error = dj__write_new_at(dir, "kernel.so", data, size, 0700, false);
    if (error != 0) {
        return dj__fail_errno(err, error, "cannot write a private copy of the binary in %s",
                              dir_path);
    }
    char *path = dj__path_join(dir_path, "kernel.so");
    if (path == NULL) {
        return dj__fail_memory(err);
    }
    dj_status status = DJ_OK;
    *handle = dl_open_path(path, reason, reason_size);
    if (*handle == NULL) {
        error = dl_probe_exec(path);
        status = error == 0 ? DJ_INCOMPATIBLE
                            : dj__fail_errno(err, error,
                                             "cannot map code from memory or from files in %s; set "
                                             "TMPDIR to a directory that is not mounted noexec",
                                             dir_path);
    }
    free(path);
    return status;
}

static dj_status dl_load_file(const void *data, size_t size, const char *tmpdir, void **handle,
                              char *reason, size_t reason_size, dj_error *err)
{
    char name[128];
    char *path = NULL;
    int dir = -1;
    dj_status status;
    const int parent = dj__open_dir(tmpdir);
    int error = parent < 0 ? -parent : dj__make_unique_dir_at(parent, "deepjit-", name);
    if (error != 0) {
        status = dj__fail_errno(err, error,
                                "cannot make a private directory in %s to load a binary from; "
                                "set TMPDIR",
                                tmpdir);
        goto out;
    }
    path = dj__path_join(tmpdir, name);
    dir = dj__open_dir_at(parent, name);
    if (path == NULL || dir < 0) {
        status = path == NULL ? dj__fail_memory(err)
                              : dj__fail_errno(err, -dir, "cannot open directory %s", path);
    } else {
        status = dl_load_file_at(dir, path, data, size, handle, reason, reason_size, err);
    }
    (void)dj__remove_tree_at(parent, name); /* what is loaded is loaded, whatever stays there */
out:
    free(path);
    if (dir >= 0) {
        close(dir);
    }
    if (parent >= 0) {
        close(parent);
    }
    return status;
}

dj_status dj__dl_load(const void *data, size_t size, const char *tmpdir, void **handle,
                      dj_error *err)
{
    char reason[512] = "";
    *handle = NULL;
    const char *damage = dl_check_elf(data, size);
    if (damage != NULL) {
        return dj__fail(err, DJ_INCOMPATIBLE, "cannot load the binary: %s", damage);
    }
    dj_status status = dl_load_memfd(data, size, handle, reason, sizeof(reason));
    if (status == DJ_UNAVAILABLE) {
        status = dl_load_file(data, size, tmpdir != NULL ? tmpdir : "/tmp", handle, reason,
                              sizeof(reason), err);
    }
    if (status == DJ_INCOMPATIBLE) {
        return dj__fail(err, DJ_INCOMPATIBLE, "cannot load the binary: %s", reason);
    }
    return status;
}

void *dj__dl_symbol(void *handle, const char *name)
{
    return dlsym(handle, name);
}

void dj__dl_unload(void *handle)
{
    if (handle != NULL) {
        dlclose(handle);
    }
}

static int dl_collect_name(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    if (info->dlpi_name != NULL && info->dlpi_name[0] == '/') {
        dj__strlist_add(user, info->dlpi_name);
    }
    return 0;
}

/* RTLD_DEFAULT knows only the global scope; what Python imports, frameworks included, is local.
 * Names are collected first: dlopen may not be called while the list is being walked. */
void *dj__dl_global_symbol(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    if (symbol != NULL) {
        return symbol;
    }
    dj__strlist names;
    dj__strlist_init(&names);
    dl_iterate_phdr(dl_collect_name, &names);
    for (size_t i = 0; i < names.count && symbol == NULL; i++) {
        void *handle = dlopen(names.items[i], RTLD_LAZY | RTLD_NOLOAD);
        if (handle != NULL) {
            symbol = dlsym(handle, name);
            dlclose(handle);
        }
    }
    dj__strlist_fini(&names);
    return symbol;
}
