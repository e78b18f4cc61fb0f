/* SPDX-License-Identifier: MIT */
/*
 * The include scanner. It walks depth first with a list of files instead of recursion, so that a
 * long chain of includes costs memory and not stack: each file knows who included it first, and
 * holds its content until its own includes are done.
 */
#include "compile/include_scan.h"

#include "base/error.h"
#include "base/fs.h"
#include "base/hash.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCAN_FILE_LIMIT ((size_t)64 << 20)

enum {
    SCAN_ROOT = 0,       /* files[0]: the source itself, without name and path */
    SCAN_TEXT_MAX = 200, /* bytes of a line or name shown in a message */
    SCAN_CHAIN_MAX = 8,  /* names shown of a cycle */
};

typedef struct scan_file {
    char *name;
    char *path; /* <dir>/<name>, as configured */
    char *data; /* NULL again once visited */
    size_t size;
    size_t offset;   /* of the next line */
    size_t line;     /* of the last line read, from 1 */
    size_t includer; /* in files */
} scan_file;

typedef struct scan_state {
    const dj__scan_config *config;
    char **real_dirs; /* resolved at first need; parallel to config->dirs */
    scan_file *files;
    size_t count;
    size_t capacity;
    size_t *table; /* index in files by name; 0: free, since the root has no name */
    size_t table_mask;
    dj_error *err;
} scan_state;

/* ---- one line ---- */

static bool scan_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f' || c == '\v';
}

static void scan_trim_left(const char **at, const char *end)
{
    while (*at < end && scan_is_blank(**at)) {
        (*at)++;
    }
}

static bool scan_is_tracked(const char *name, size_t size, const dj__scan_config *config)
{
    for (size_t i = 0; i < config->num_prefixes; i++) {
        const size_t length = strlen(config->prefixes[i]);
        if (length <= size && memcmp(name, config->prefixes[i], length) == 0) {
            return true;
        }
    }
    return false;
}

int dj__include_parse(const char *line, size_t size, const dj__scan_config *config,
                      const char **name, size_t *name_size)
{
    static const char directive[] = "include";
    const size_t directive_size = sizeof(directive) - 1;

    *name = NULL;
    *name_size = 0;
    if (size == 0) {
        return 0;
    }
    const char *at = line;
    const char *end = line + size;
    scan_trim_left(&at, end);
    if (at == end || *at != '#') {
        return 0;
    }
    at++;
    scan_trim_left(&at, end);
    if ((size_t)(end - at) < directive_size || memcmp(at, directive, directive_size) != 0) {
        return 0;
    }
    at += directive_size;
    scan_trim_left(&at, end);
    if (at == end || (*at != '<' && *at != '"')) {
        return 0;
    }
    const char open = *at++;
    const char *close = at;
    while (close < end && *close != '>' && *close != '"') {
        close++;
    }
    if (close == end) {
        return 0;
    }
    if (open != '<' || *close != '>' || close == at || scan_is_blank(*at) ||
        scan_is_blank(close[-1])) {
        *name = at - 1;
        *name_size = (size_t)(close - at) + 2;
        return -1;
    }
    if (!scan_is_tracked(at, (size_t)(close - at), config)) {
        return 0;
    }
    *name = at;
    *name_size = (size_t)(close - at);
    return 1;
}

/* ---- messages ---- */

static int scan_shown(size_t size)
{
    return (int)(size < SCAN_TEXT_MAX ? size : SCAN_TEXT_MAX);
}

static const char *scan_path_of(const scan_file *file)
{
    return file->path != NULL ? file->path : "<source>";
}

/* Puts where the include stands before the message. */
static dj_status scan_fail_at(const scan_state *scan, const scan_file *file, dj_status status)
{
    dj__error_prefix(scan->err, "%s:%zu", scan_path_of(file), file->line);
    return status;
}

static dj_status scan_fail_cycle(const scan_state *scan, size_t from, size_t to)
{
    /* The chain of includers leads from `from` back to `to`; shown from `to` on. */
    size_t length = 1;
    for (size_t i = from; i != to; i = scan->files[i].includer) {
        length++;
    }
    dj__strbuf chain;
    dj__strbuf_init(&chain, sizeof(scan->err->message));
    const char *name = scan->files[to].name;
    for (size_t step = 0; step < length; step++) {
        if (length > SCAN_CHAIN_MAX && step == SCAN_CHAIN_MAX / 2) {
            dj__strbuf_puts(&chain, "... -> ");
            step = length - SCAN_CHAIN_MAX / 2;
        }
        size_t at = from;
        for (size_t back = length - 1; back > step; back--) {
            at = scan->files[at].includer;
        }
        dj__strbuf_printf(&chain, "%s -> ", scan->files[at].name);
    }
    const dj_status status =
        dj__fail(scan->err, DJ_INVALID_ARGUMENT, "circular include may occur: %s (%s%s)", name,
                 dj__strbuf_str(&chain), name);
    dj__strbuf_fini(&chain);
    return scan_fail_at(scan, &scan->files[from], status);
}

static dj_status scan_fail_missing(const scan_state *scan, const char *name)
{
    dj__strbuf dirs;
    dj__strbuf_init(&dirs, sizeof(scan->err->message));
    for (size_t i = 0; i < scan->config->num_dirs; i++) {
        dj__strbuf_printf(&dirs, "%s%s", i > 0 ? ", " : "", scan->config->dirs[i]);
    }
    const dj_status status =
        dj__fail(scan->err, DJ_INVALID_ARGUMENT, "failed to open: %s (include directories: %s)",
                 name, scan->config->num_dirs > 0 ? dj__strbuf_str(&dirs) : "none");
    dj__strbuf_fini(&dirs);
    return status;
}

/* ---- files ---- */

static size_t *scan_slot(const scan_state *scan, const char *name, size_t size)
{
    size_t i = (size_t)dj__xxh64(name, size, 0) & scan->table_mask;
    for (;; i = (i + 1) & scan->table_mask) {
        const size_t index = scan->table[i];
        if (index == 0 || (strlen(scan->files[index].name) == size &&
                           memcmp(scan->files[index].name, name, size) == 0)) {
            return &scan->table[i];
        }
    }
}

/* Room for one more file, at a load of at most one half. */
static bool scan_reserve(scan_state *scan)
{
    if (scan->count < scan->capacity) {
        return true;
    }
    const size_t capacity = scan->capacity == 0 ? 32 : scan->capacity * 2;
    scan_file *files = realloc(scan->files, capacity * sizeof(*files));
    if (files == NULL) {
        return false;
    }
    scan->files = files;
    size_t *table = calloc(capacity * 2, sizeof(*table));
    if (table == NULL) {
        return false;
    }
    free(scan->table);
    scan->table = table;
    scan->table_mask = capacity * 2 - 1;
    scan->capacity = capacity;
    for (size_t i = SCAN_ROOT + 1; i < scan->count; i++) {
        *scan_slot(scan, scan->files[i].name, strlen(scan->files[i].name)) = i;
    }
    return true;
}

static void scan_file_fini(scan_file *file)
{
    free(file->name);
    free(file->path);
    free(file->data);
}

static bool scan_has_parent(const char *name)
{
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) {
            return true;
        }
    }
    return false;
}

/* True if the resolved path lies below the resolved directory. */
static bool scan_is_inside(const char *path, const char *dir)
{
    const size_t length = strcmp(dir, "/") == 0 ? 0 : strlen(dir);
    return strncmp(path, dir, length) == 0 && path[length] == '/';
}

static bool scan_is_absence(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG || error == EISDIR;
}

/* Reads file->path in include directory `dir`. 0; ENOENT and the like: not here, try the next
 * directory; EXDEV: it resolves to outside of the directory; else what went wrong. */
static int scan_read(scan_state *scan, size_t dir, scan_file *file)
{
    if (scan->real_dirs[dir] == NULL) {
        scan->real_dirs[dir] = realpath(scan->config->dirs[dir], NULL);
        if (scan->real_dirs[dir] == NULL) {
            return errno;
        }
    }
    char *real = realpath(file->path, NULL);
    if (real == NULL) {
        return errno;
    }
    int error = EXDEV;
    if (scan_is_inside(real, scan->real_dirs[dir])) {
        error = dj__read_file(real, SCAN_FILE_LIMIT, &file->data, &file->size);
    }
    free(real);
    return error;
}

/* Finds and reads `file->name`; like the compiler, past directories of that name. */
static dj_status scan_open(scan_state *scan, scan_file *file)
{
    const char *name = file->name;
    if (name[0] == '/' || scan_has_parent(name)) {
        return dj__fail(scan->err, DJ_INVALID_ARGUMENT,
                        "tracked include must be relative and without \"..\": %s", name);
    }
    for (size_t i = 0; i < scan->config->num_dirs; i++) {
        const char *dir = scan->config->dirs[i];
        free(file->path);
        file->path = dj__path_join(dir, name);
        if (file->path == NULL) {
            return dj__fail_memory(scan->err);
        }
        const int error = scan_read(scan, i, file);
        if (error == 0) {
            return DJ_OK;
        }
        if (error == EXDEV) {
            return dj__fail(scan->err, DJ_INVALID_ARGUMENT,
                            "tracked include resolves to outside of its include directory %s: %s",
                            dir, name);
        }
        if (error == EFBIG) {
            return dj__fail(scan->err, DJ_INVALID_ARGUMENT,
                            "tracked include is larger than %zu MiB: %s", SCAN_FILE_LIMIT >> 20,
                            file->path);
        }
        if (error == ENOMEM) {
            return dj__fail_memory(scan->err);
        }
        if (!scan_is_absence(error)) {
            return dj__fail_errno(scan->err, error, "failed to open: %s", file->path);
        }
    }
    return scan_fail_missing(scan, name);
}

/* Adds the file that `includer` includes. */
static dj_status scan_push(scan_state *scan, size_t includer, const char *name, size_t size)
{
    scan_file file = {.includer = includer};
    dj_status status;

    if (memchr(name, '\0', size) != NULL) {
        status = dj__fail(scan->err, DJ_INVALID_ARGUMENT,
                          "failed to open: the name of a tracked include has a NUL byte");
        goto out;
    }
    file.name = strndup(name, size);
    if (file.name == NULL || !scan_reserve(scan)) {
        status = dj__fail_memory(scan->err);
        goto out;
    }
    status = scan_open(scan, &file);
    if (status == DJ_OK) {
        *scan_slot(scan, name, size) = scan->count;
        scan->files[scan->count++] = file;
        return DJ_OK;
    }
out:
    scan_file_fini(&file);
    return scan_fail_at(scan, &scan->files[includer], status);
}

/* ---- the walk ---- */

/* The next tracked or non-standard include of a file; 0 at its end. */
static int scan_next(const dj__scan_config *config, scan_file *file, const char *data,
                     const char **name, size_t *name_size)
{
    while (file->offset < file->size) {
        const char *line = data + file->offset;
        const size_t rest = file->size - file->offset;
        const char *newline = memchr(line, '\n', rest);
        const size_t length = newline != NULL ? (size_t)(newline - line) : rest;
        file->offset += length + (newline != NULL);
        file->line++;
        const int kind = dj__include_parse(line, length, config, name, name_size);
        if (kind != 0) {
            return kind;
        }
    }
    return 0;
}

static dj_status scan_walk(scan_state *scan, const char *source, dj__scan_fn visit, void *user)
{
    size_t current = SCAN_ROOT;
    for (;;) {
        scan_file *file = &scan->files[current];
        const char *name = NULL;
        size_t size = 0;
        const int kind =
            scan_next(scan->config, file, current == SCAN_ROOT ? source : file->data, &name, &size);
        if (kind < 0) {
            return scan_fail_at(
                scan, file,
                dj__fail(scan->err, DJ_INVALID_ARGUMENT,
                         "non-standard include: %.*s (write #include <name>, on one line, with "
                         "the name below an include directory)",
                         scan_shown(size), name));
        }
        if (kind == 0) {
            if (current == SCAN_ROOT) {
                return DJ_OK;
            }
            visit(user, file->name, file->path, file->data, file->size);
            free(file->data);
            file->data = NULL;
            current = file->includer;
            continue;
        }
        const size_t known = *scan_slot(scan, name, size);
        if (known == 0) {
            const dj_status status = scan_push(scan, current, name, size);
            if (status != DJ_OK) {
                return status;
            }
            current = scan->count - 1;
        } else if (scan->files[known].data != NULL) {
            return scan_fail_cycle(scan, current, known);
        }
    }
}

dj_status dj__include_scan(const dj__scan_config *config, const char *source, size_t size,
                           dj__scan_fn visit, void *user, dj_error *err)
{
    if (config->num_prefixes == 0) {
        return DJ_OK;
    }
    scan_state scan = {.config = config, .err = err};
    dj_status status;

    scan.real_dirs = calloc(config->num_dirs + 1, sizeof(*scan.real_dirs));
    if (scan.real_dirs == NULL || !scan_reserve(&scan)) {
        status = dj__fail_memory(err);
        goto out;
    }
    scan.files[SCAN_ROOT] = (scan_file){.size = size};
    scan.count = SCAN_ROOT + 1;
    status = scan_walk(&scan, source, visit, user);
out:
    for (size_t i = 0; i < scan.count; i++) {
        scan_file_fini(&scan.files[i]);
    }
    for (size_t i = 0; scan.real_dirs != NULL && i < config->num_dirs; i++) {
        free(scan.real_dirs[i]);
    }
    free(scan.real_dirs);
    free(scan.files);
    free(scan.table);
    return status;
}
