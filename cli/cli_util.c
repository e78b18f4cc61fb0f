/* SPDX-License-Identifier: MIT */
/*
 * Messages, memory, files and times for the commands. In a program, unlike in the library, being
 * out of memory may end everything: there is nobody to hand the error to.
 */
#include "cli.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void cli_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fputs("deepjit: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static int exit_status_of(dj_status status)
{
    switch (status) {
    case DJ_OK:
        return CLI_DONE;
    case DJ_UNAVAILABLE:
        return CLI_UNAVAILABLE;
    case DJ_COMPILE:
        return CLI_COMPILE;
    default:
        return CLI_FAILURE;
    }
}

int cli_fail(const dj_error *err)
{
    const char *const text =
        err->message[0] != '\0' ? err->message : dj_status_text((dj_status)err->status);
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n') {
        length--;
    }
    cli_error("%.*s", (int)length, text);
    return exit_status_of((dj_status)err->status);
}

static void close_stdout(void)
{
    const bool failed = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) != 0 || failed) {
        const char *const why = errno != 0 ? strerror(errno) : "write failed";
        /* exit() must not be called from an exit handler. */
        fprintf(stderr, "deepjit: cannot write to standard output: %s\n", why);
        _exit(CLI_FAILURE);
    }
}

void cli_watch_stdout(void)
{
    if (atexit(close_stdout) != 0) {
        cli_error("cannot register an exit handler");
        _exit(CLI_FAILURE);
    }
}

static _Noreturn void die_no_memory(void)
{
    cli_error("out of memory");
    exit(CLI_FAILURE);
}

void *cli_alloc(size_t count, size_t size)
{
    void *const memory = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
    if (memory == NULL) {
        die_no_memory();
    }
    return memory;
}

char *cli_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    const int size = vasprintf(&text, format, args);
    va_end(args);
    if (size < 0) {
        die_no_memory();
    }
    return text;
}

static void buffer_reserve(cli_buffer *buffer, size_t more)
{
    if (more >= SIZE_MAX / 4 - buffer->size) {
        die_no_memory();
    }
    const size_t needed = buffer->size + more + 1;
    if (needed <= buffer->capacity) {
        return;
    }
    const size_t capacity = needed > 2 * buffer->capacity ? needed : 2 * buffer->capacity;
    char *const data = realloc(buffer->data, capacity);
    if (data == NULL) {
        die_no_memory();
    }
    buffer->data = data;
    buffer->capacity = capacity;
}

void cli_buffer_append(cli_buffer *buffer, const void *data, size_t size)
{
    buffer_reserve(buffer, size);
    if (size > 0) {
        memcpy(buffer->data + buffer->size, data, size);
        buffer->size += size;
    }
    buffer->data[buffer->size] = '\0';
}

void cli_buffer_printf(cli_buffer *buffer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    const int size = vasprintf(&text, format, args);
    va_end(args);
    if (size < 0) {
        die_no_memory();
    }
    cli_buffer_append(buffer, text, (size_t)size);
    free(text);
}

void cli_buffer_fini(cli_buffer *buffer)
{
    free(buffer->data);
    *buffer = (cli_buffer){0};
}

void cli_strings_add(cli_strings *strings, const char *text)
{
    const char **const items =
        reallocarray(strings->items, strings->count + 1, sizeof *strings->items);
    if (items == NULL) {
        die_no_memory();
    }
    items[strings->count++] = text;
    strings->items = items;
}

void cli_strings_fini(cli_strings *strings)
{
    free(strings->items);
    *strings = (cli_strings){0};
}

static bool read_all(int fd, const char *name, size_t limit, cli_buffer *out)
{
    for (;;) {
        buffer_reserve(out, (size_t)64 << 10);
        const ssize_t got = read(fd, out->data + out->size, (size_t)64 << 10);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            cli_error("cannot read %s: %s", name, strerror(errno));
            return false;
        }
        if (got == 0) {
            out->data[out->size] = '\0';
            return true;
        }
        out->size += (size_t)got;
        if (out->size > limit) {
            cli_error("%s is larger than %zu MiB", name, limit >> 20);
            return false;
        }
    }
}

bool cli_read_file(const char *path, size_t limit, cli_buffer *out)
{
    if (strcmp(path, "-") == 0) {
        return read_all(STDIN_FILENO, "standard input", limit, out);
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        cli_error("cannot open %s: %s", path, strerror(errno));
        return false;
    }
    const bool ok = read_all(fd, path, limit, out);
    close(fd);
    return ok;
}

bool cli_write_file(const char *path, const void *data, size_t size)
{
    FILE *const file = fopen(path, "we");
    if (file == NULL) {
        cli_error("cannot create %s: %s", path, strerror(errno));
        return false;
    }
    const bool written = fwrite(data, 1, size, file) == size;
    const int write_error = errno;
    if (fclose(file) != 0 || !written) {
        cli_error("cannot write %s: %s", path, strerror(written ? errno : write_error));
        return false;
    }
    return true;
}

char *cli_absolute(const char *path)
{
    if (path[0] == '/') {
        return cli_format("%s", path);
    }
    char *const cwd = getcwd(NULL, 0);
    if (cwd == NULL) {
        cli_error("cannot find the working directory, which %s is relative to: %s", path,
                  strerror(errno));
        return NULL;
    }
    char *const absolute = cli_format("%s/%s", cwd, path);
    free(cwd);
    return absolute;
}

char *cli_make_temp_dir(const char *name)
{
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] != '/') {
        base = "/tmp";
    }
    char *const path = cli_format("%s/deepjit-%s-XXXXXX", base, name);
    if (mkdtemp(path) == NULL) {
        cli_error("cannot create a directory under %s: %s\nset TMPDIR to a directory that can be "
                  "written",
                  base, strerror(errno));
        free(path);
        return NULL;
    }
    return path;
}

static int remove_visit(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    (void)remove(path);
    return 0;
}

void cli_remove_tree(const char *path)
{
    nftw(path, remove_visit, 16, FTW_DEPTH | FTW_PHYS);
    if (access(path, F_OK) == 0) {
        cli_error("warning: cannot remove %s completely", path);
    }
}

static int compare_files(const void *left, const void *right)
{
    return strcmp(((const cli_file *)left)->name, ((const cli_file *)right)->name);
}

bool cli_list_files(const char *path, cli_file **files, size_t *count)
{
    *files = NULL;
    *count = 0;
    DIR *const dir = opendir(path);
    if (dir == NULL) {
        cli_error("cannot open %s: %s", path, strerror(errno));
        return false;
    }
    for (const struct dirent *item; (item = readdir(dir)) != NULL;) {
        struct stat info;
        if (fstatat(dirfd(dir), item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode)) {
            continue;
        }
        cli_file *const grown = reallocarray(*files, *count + 1, sizeof **files);
        if (grown == NULL) {
            die_no_memory();
        }
        *files = grown;
        grown[(*count)++] = (cli_file){cli_format("%s", item->d_name), (uint64_t)info.st_size};
    }
    closedir(dir);
    if (*count > 0) {
        qsort(*files, *count, sizeof **files, compare_files);
    }
    return true;
}

void cli_files_free(cli_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(files[i].name);
    }
    free(files);
}

int cli_run_self(const char *const *arguments, int64_t *wall_ns)
{
    char *argv[16] = {(char[]){"deepjit"}};
    for (size_t i = 0; i < 14 && arguments[i] != NULL; i++) {
        argv[i + 1] = (char *)(uintptr_t)arguments[i];
    }
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    const int64_t begin = cli_now_ns();
    const int error = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        cli_error("cannot start this program again: %s", strerror(error));
        return -1;
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            cli_error("cannot wait for a process: %s", strerror(errno));
            return -1;
        }
    }
    *wall_ns = cli_now_ns() - begin;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int64_t cli_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

const char *cli_duration(double ns, char out[32])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    double value = ns;
    while (unit < 3 && (value >= 999.95 || value <= -999.95)) {
        value /= 1000;
        unit++;
    }
    const double magnitude = value < 0 ? -value : value;
    const int digits = magnitude < 10 ? 2 : magnitude < 100 ? 1 : 0;
    snprintf(out, 32, "%.*f %s", digits, value, units[unit]);
    return out;
}

const char *cli_bytes(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) {
        snprintf(out, 32, "%u B", (unsigned)bytes);
        return out;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (unit < 3 && value >= 1023.95) {
        value /= 1024;
        unit++;
    }
    snprintf(out, 32, "%.1f %s", value, units[unit]);
    return out;
}
