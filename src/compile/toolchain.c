/* SPDX-License-Identifier: MIT */
/*
 * Toolchain identity and its memo.
 *
 * The identity covers the contents of the files, in the compiler's order, and not their names:
 * the same compiler under another path or on another node has the same identity. The version
 * text is not covered, although it is recorded: whatever it says is decided by those contents,
 * and asking for it starts a process, which a process that only hits must not do.
 *
 * A memo is a text file: format line, machine, identity, version, one line for each file, and a
 * checksum of all that. It holds as long as every file has the device, inode, size, mtime and
 * ctime it had when it was hashed; files that were younger than TOOLCHAIN_SETTLE_NS then could
 * change without that showing, and make no memo. What is damaged or outdated is written anew.
 */
#include "compile/toolchain.h"

#include "base/error.h"
#include "base/fs.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TOOLCHAIN_FORMAT "deepjit-toolchain-1"
#define TOOLCHAIN_SETTLE_NS (2 * INT64_C(1000000000))

enum {
    MEMO_LIMIT = 1 << 20,       /* bytes of a memo */
    HASH_CHUNK = 256 << 10,     /* bytes read at once */
    MACHINE_TEXT_LIMIT = 4096,  /* bytes of /etc/machine-id read */
    MEMO_SUM_SIZE = 4 + 32 + 1, /* "sum " <hex> newline */
};

void dj__toolchain_fini(dj__toolchain *toolchain)
{
    free(toolchain->path);
    free(toolchain->version);
    free(toolchain->files);
    memset(toolchain, 0, sizeof(*toolchain));
}

/* ---- names ---- */

static bool toolchain_read_id(const char *path, dj__strbuf *out)
{
    char *data;
    size_t size;
    if (dj__read_file(path, MACHINE_TEXT_LIMIT, &data, &size) != 0) {
        return false;
    }
    const size_t length = strcspn(data, " \t\r\n");
    if (length >= 32) { /* "uninitialized" and the like are no ids */
        dj__strbuf_append(out, data, length);
    }
    free(data);
    return length >= 32;
}

static void toolchain_machine(dj__strbuf *out)
{
    char host[256] = "";
    if (!toolchain_read_id("/etc/machine-id", out) &&
        !toolchain_read_id("/proc/sys/kernel/random/boot_id", out) &&
        gethostname(host, sizeof(host) - 1) == 0) {
        dj__strbuf_puts(out, host);
    }
}

/* "<backend>.<digest of machine, programs and scope>" */
static char *toolchain_memo_name(const char *backend, const char *machine,
                                 const dj__strlist *programs, const char *scope)
{
    dj__blake2b hash;
    char hex[DJ__HEX_SIZE];
    dj__blake2b_init(&hash);
    dj__blake2b_update(&hash, machine, strlen(machine) + 1);
    for (size_t i = 0; i < programs->count; i++) {
        dj__blake2b_update(&hash, programs->items[i], strlen(programs->items[i]) + 1);
    }
    dj__blake2b_update(&hash, "", 1);
    if (scope != NULL) {
        dj__blake2b_update(&hash, scope, strlen(scope));
    }
    dj__blake2b_final(&hash, hex);
    return dj__format("%s.%s", backend, hex);
}

static bool toolchain_is_memo_name(const char *name, const char *backend)
{
    const size_t length = strlen(backend);
    return strncmp(name, backend, length) == 0 && name[length] == '.' &&
           dj__is_hex32(name + length + 1, strlen(name + length + 1));
}

/* ---- reading a memo ---- */

static int64_t toolchain_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The part of a file's line that must be the same again. */
static void toolchain_put_stat(dj__strbuf *out, const struct stat *st)
{
    dj__strbuf_printf(out, "file %ju %ju %jd %" PRId64 " %" PRId64 " ", (uintmax_t)st->st_dev,
                      (uintmax_t)st->st_ino, (intmax_t)st->st_size, toolchain_ns(st->st_mtim),
                      toolchain_ns(st->st_ctim));
}

/* Cuts the next line off; NULL at the end. */
static char *memo_line(char **cursor)
{
    char *line = *cursor;
    char *end = strchr(line, '\n');
    if (end == NULL) {
        return NULL;
    }
    *end = '\0';
    *cursor = end + 1;
    return line;
}

/* The text of a line that starts with `name` and a blank; else NULL. */
static char *memo_field(char **cursor, const char *name)
{
    char *line = memo_line(cursor);
    const size_t length = strlen(name);
    if (line == NULL || strncmp(line, name, length) != 0 || line[length] != ' ') {
        return NULL;
    }
    return line + length + 1;
}

typedef struct toolchain_memo {
    char *data;
    const char *identity;
    const char *version;
    char *files; /* the file lines */
} toolchain_memo;

/* Reads and checks. False if there is none or if it is damaged. */
static bool memo_read(int dir, const char *name, toolchain_memo *memo)
{
    size_t size;
    memset(memo, 0, sizeof(*memo));
    if (dj__read_at(dir, name, MEMO_LIMIT, &memo->data, &size) != 0) {
        return false;
    }
    char hex[DJ__HEX_SIZE];
    if (size <= MEMO_SUM_SIZE || memchr(memo->data, '\0', size) != NULL) {
        goto damaged;
    }
    char *sum = memo->data + size - MEMO_SUM_SIZE;
    dj__xxh128_hex(memo->data, size - MEMO_SUM_SIZE, hex);
    if (sum[-1] != '\n' || strncmp(sum, "sum ", 4) != 0 || memcmp(sum + 4, hex, 32) != 0 ||
        sum[MEMO_SUM_SIZE - 1] != '\n') {
        goto damaged;
    }
    *sum = '\0';
    char *cursor = memo->data;
    const char *format = memo_line(&cursor);
    if (format == NULL || strcmp(format, TOOLCHAIN_FORMAT) != 0 ||
        memo_field(&cursor, "machine") == NULL ||
        (memo->identity = memo_field(&cursor, "identity")) == NULL ||
        !dj__is_hex32(memo->identity, strlen(memo->identity)) ||
        (memo->version = memo_field(&cursor, "version")) == NULL) {
        goto damaged;
    }
    memo->files = cursor;
    return true;
damaged:
    free(memo->data);
    memo->data = NULL;
    return false;
}

/* True if the program is listed, as it was found or as what that leads to now. */
static bool toolchain_lists(const dj__strlist *paths, const char *program)
{
    char *real = realpath(program, NULL);
    bool found = false;
    for (size_t i = 0; i < paths->count && !found; i++) {
        found = strcmp(paths->items[i], program) == 0 ||
                (real != NULL && strcmp(paths->items[i], real) == 0);
    }
    free(real);
    return found;
}

/* True if the line's file is as recorded; its path goes to `paths`. */
static bool memo_file_is_current(const char *line, dj__strlist *paths)
{
    /* "file" dev ino size mtime ctime digest path: the path may have blanks itself. */
    const char *path = line;
    const char *digest = NULL;
    for (int field = 0; field < 7; field++) {
        digest = path;
        path = strchr(path, ' ');
        if (path == NULL) {
            return false;
        }
        path++;
    }
    struct stat st;
    if (stat(path, &st) != 0) {
        return false;
    }
    dj__strbuf now;
    dj__strbuf_init(&now, MEMO_LIMIT);
    toolchain_put_stat(&now, &st);
    const bool current =
        now.size == (size_t)(digest - line) && memcmp(dj__strbuf_str(&now), line, now.size) == 0;
    dj__strbuf_fini(&now);
    dj__strlist_add(paths, path);
    return current;
}

/* Cuts `files` up. */
static bool memo_is_current(char *files, const dj__strlist *programs)
{
    dj__strlist paths;
    dj__strlist_init(&paths);
    bool current = true;
    char *cursor = files;
    for (const char *line; current && (line = memo_line(&cursor)) != NULL;) {
        current = memo_file_is_current(line, &paths);
    }
    current = current && dj__strlist_ok(&paths, NULL) == DJ_OK;
    for (size_t i = 0; current && i < programs->count; i++) {
        current = toolchain_lists(&paths, programs->items[i]);
    }
    dj__strlist_fini(&paths);
    return current;
}

/* True if a directory has a memo that holds; identity and version go to `out`. */
static bool toolchain_recall(const dj__toolchain_dirs *dirs, const char *name,
                             const dj__strlist *programs, dj__toolchain *out)
{
    bool found = false;
    for (size_t i = 0; i < dirs->num_read && !found; i++) {
        const int dir = dj__open_dir(dirs->read[i]);
        if (dir < 0) {
            continue;
        }
        toolchain_memo memo;
        if (memo_read(dir, name, &memo)) {
            char *version = strdup(memo.version);
            char *files = strdup(memo.files);
            found = version != NULL && files != NULL && memo_is_current(memo.files, programs);
            if (found) {
                memcpy(out->identity, memo.identity, sizeof(out->identity));
                out->version = version;
                out->files = files;
            } else {
                free(version);
                free(files);
            }
            free(memo.data);
        }
        close(dir);
    }
    return found;
}

/* ---- making one ---- */

typedef struct toolchain_hasher {
    char *chunk;
    dj__blake2b identity;
    dj__strbuf lines;
    bool settled; /* no file was too young, changed meanwhile, or cannot be written down */
} toolchain_hasher;

static int toolchain_hash_fd(int fd, char *chunk, char hex[DJ__HEX_SIZE])
{
    dj__blake2b hash;
    dj__blake2b_init(&hash);
    for (;;) {
        const ssize_t got = read(fd, chunk, HASH_CHUNK);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return errno;
        }
        if (got == 0) {
            break;
        }
        dj__blake2b_update(&hash, chunk, (size_t)got);
    }
    dj__blake2b_final(&hash, hex);
    return 0;
}

static bool toolchain_is_settled(const struct stat *before, const struct stat *after, int64_t now)
{
    const int64_t mtime = toolchain_ns(before->st_mtim);
    const int64_t ctime = toolchain_ns(before->st_ctim);
    return mtime <= now - TOOLCHAIN_SETTLE_NS && ctime <= now - TOOLCHAIN_SETTLE_NS &&
           before->st_size == after->st_size && mtime == toolchain_ns(after->st_mtim) &&
           ctime == toolchain_ns(after->st_ctim);
}

static int toolchain_hash_file(toolchain_hasher *hasher, const char *path)
{
    struct timespec clock;
    struct stat before;
    struct stat after;
    char hex[DJ__HEX_SIZE];

    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return errno;
    }
    int error = 0;
    (void)clock_gettime(CLOCK_REALTIME, &clock);
    if (fstat(fd, &before) != 0) {
        error = errno;
    } else if (!S_ISREG(before.st_mode)) {
        error = S_ISDIR(before.st_mode) ? EISDIR : EINVAL;
    } else {
        error = toolchain_hash_fd(fd, hasher->chunk, hex);
    }
    if (error == 0 && fstat(fd, &after) != 0) {
        error = errno;
    }
    close(fd);
    if (error != 0) {
        return error;
    }
    dj__blake2b_update(&hasher->identity, hex, DJ__HEX_SIZE);
    toolchain_put_stat(&hasher->lines, &before);
    dj__strbuf_printf(&hasher->lines, "%s %s\n", hex, path);
    hasher->settled = hasher->settled && strchr(path, '\n') == NULL &&
                      toolchain_is_settled(&before, &after, toolchain_ns(clock));
    return 0;
}

/* Hashes all files in their order into the identity. UNAVAILABLE: without one of its files the
 * toolchain does not work. */
static dj_status toolchain_hash_all(toolchain_hasher *hasher, const dj__strlist *files,
                                    char identity[DJ__HEX_SIZE], dj_error *err)
{
    dj_status status = DJ_OK;
    hasher->settled = true;
    hasher->chunk = malloc(HASH_CHUNK);
    if (hasher->chunk == NULL) {
        return dj__fail_memory(err);
    }
    dj__blake2b_init(&hasher->identity);
    dj__blake2b_update(&hasher->identity, TOOLCHAIN_FORMAT, sizeof(TOOLCHAIN_FORMAT));
    for (size_t i = 0; i < files->count && status == DJ_OK; i++) {
        const int error = toolchain_hash_file(hasher, files->items[i]);
        if (error != 0) {
            char reason[256];
            status = dj__fail_native(err, DJ_UNAVAILABLE, "errno", error,
                                     "cannot read %s, which is part of the compiler: %s",
                                     files->items[i], strerror_r(error, reason, sizeof(reason)));
        }
    }
    dj__blake2b_final(&hasher->identity, identity);
    free(hasher->chunk);
    return status;
}

/* Readable by whom the directory is readable. Not having a memo only costs time. */
static void toolchain_write_memo(const char *path, const char *name, const dj__strbuf *memo,
                                 dj__log *log)
{
    struct stat st;
    const int dir = dj__open_dir(path);
    int error = dir < 0 ? -dir : 0;
    if (error == 0 && fstat(dir, &st) != 0) {
        error = errno;
    }
    if (error == 0) {
        error = dj__write_replace_at(dir, name, memo->data, memo->size, st.st_mode & 0666, false);
    }
    if (dir >= 0) {
        close(dir);
    }
    if (error != 0) {
        char reason[256];
        dj__log_write(log, DJ_LOG_DEBUG, "the compiler's identity is not recorded in %s: %s", path,
                      strerror_r(error, reason, sizeof(reason)));
    }
}

static void toolchain_memorise(const char *dir, const char *name, const char *machine,
                               const toolchain_hasher *hasher, const dj__toolchain *toolchain,
                               dj__log *log)
{
    if (dir == NULL) {
        return;
    }
    if (!hasher->settled) {
        dj__log_write(log, DJ_LOG_DEBUG,
                      "the compiler's identity is not recorded: its files are too new");
        return;
    }
    dj__strbuf memo;
    char hex[DJ__HEX_SIZE];
    dj__strbuf_init(&memo, MEMO_LIMIT);
    dj__strbuf_printf(&memo, "%s\nmachine %s\nidentity %s\nversion %s\n", TOOLCHAIN_FORMAT, machine,
                      toolchain->identity, toolchain->version);
    dj__strbuf_append(&memo, dj__strbuf_str(&hasher->lines), hasher->lines.size);
    dj__xxh128_hex(dj__strbuf_str(&memo), memo.size, hex);
    dj__strbuf_printf(&memo, "sum %s\n", hex);
    if (dj__strbuf_ok(&hasher->lines, NULL) == DJ_OK && dj__strbuf_ok(&memo, NULL) == DJ_OK) {
        toolchain_write_memo(dir, name, &memo, log);
    }
    dj__strbuf_fini(&memo);
}

/* Asks the compiler what it consists of and hashes that. */
static dj_status toolchain_examine(const dj_compiler_ops *ops, dj_compiler *compiler,
                                   const dj__strlist *programs, toolchain_hasher *hasher,
                                   dj__toolchain *out, dj_error *err)
{
    dj__strlist files;
    dj__strbuf version;
    dj__strlist_init(&files);
    dj__strbuf_init(&version, MEMO_LIMIT);

    dj_status status = ops->describe(compiler, &files, &version, err);
    if (status != DJ_OK) {
        goto out;
    }
    for (size_t i = 0; i < programs->count; i++) {
        if (!toolchain_lists(&files, programs->items[i])) {
            dj__strlist_add(&files, programs->items[i]);
        }
    }
    status = dj__strlist_ok(&files, err);
    if (status == DJ_OK) {
        status = dj__strbuf_ok(&version, err);
    }
    if (status != DJ_OK) {
        goto out;
    }
    const char *text = dj__strbuf_str(&version);
    out->version = strndup(text, strcspn(text, "\r\n"));
    status = out->version == NULL ? dj__fail_memory(err)
                                  : toolchain_hash_all(hasher, &files, out->identity, err);
out:
    dj__strlist_fini(&files);
    dj__strbuf_fini(&version);
    return status;
}

dj_status dj__toolchain_identify(const dj_compiler_ops *ops, dj_compiler *compiler,
                                 const char *backend, const dj__toolchain_dirs *dirs, dj__log *log,
                                 dj__toolchain *out, dj_error *err)
{
    dj__strlist programs;
    dj__strbuf machine;
    toolchain_hasher hasher = {0};
    char *name = NULL;
    memset(out, 0, sizeof(*out));
    dj__strlist_init(&programs);
    dj__strbuf_init(&machine, MACHINE_TEXT_LIMIT);
    dj__strbuf_init(&hasher.lines, MEMO_LIMIT);

    dj_status status = ops->locate(compiler, &programs, err);
    if (status == DJ_OK) {
        status = dj__strlist_ok(&programs, err);
    }
    if (status != DJ_OK) {
        goto out;
    }
    if (programs.count == 0) {
        status = dj__fail(err, DJ_INTERNAL, "the %s compiler names no program", backend);
        goto out;
    }
    toolchain_machine(&machine);
    name = toolchain_memo_name(backend, dj__strbuf_str(&machine), &programs, dirs->scope);
    out->path = strdup(programs.items[0]);
    if (name == NULL || out->path == NULL) {
        status = dj__fail_memory(err);
        goto out;
    }
    if (toolchain_recall(dirs, name, &programs, out)) {
        goto out;
    }
    status = toolchain_examine(ops, compiler, &programs, &hasher, out, err);
    if (status == DJ_OK) {
        toolchain_memorise(dirs->write, name, dj__strbuf_str(&machine), &hasher, out, log);
        out->files = hasher.settled ? dj__strbuf_steal(&hasher.lines) : NULL;
    }
out:
    if (status != DJ_OK) {
        dj__toolchain_fini(out);
    }
    free(name);
    dj__strbuf_fini(&hasher.lines);
    dj__strbuf_fini(&machine);
    dj__strlist_fini(&programs);
    return status;
}

bool dj__toolchain_is_current(const dj_compiler_ops *ops, dj_compiler *compiler,
                              const dj__toolchain *toolchain)
{
    if (toolchain->files == NULL) {
        return false;
    }
    dj__strlist programs;
    dj__strlist_init(&programs);
    char *files = strdup(toolchain->files);
    const bool current = files != NULL && ops->locate(compiler, &programs, NULL) == DJ_OK &&
                         dj__strlist_ok(&programs, NULL) == DJ_OK &&
                         memo_is_current(files, &programs);
    free(files);
    dj__strlist_fini(&programs);
    return current;
}

/* ---- what is recorded ---- */

typedef struct toolchain_record {
    int64_t mtime_ns;
    char identity[DJ__HEX_SIZE];
} toolchain_record;

typedef struct toolchain_records {
    toolchain_record *items;
    size_t count;
} toolchain_records;

/* Newest first; the identity decides between equals, so that the order is always the same. */
static int toolchain_newer_first(const void *a, const void *b)
{
    const toolchain_record *left = a;
    const toolchain_record *right = b;
    if (left->mtime_ns != right->mtime_ns) {
        return left->mtime_ns > right->mtime_ns ? -1 : 1;
    }
    return strcmp(left->identity, right->identity);
}

/* False without memory; what cannot be read is skipped. */
static bool toolchain_collect(const char *path, const char *backend, toolchain_records *records)
{
    bool ok = true;
    dj__strlist names;
    const int dir = dj__open_dir(path);
    if (dir < 0) {
        return true;
    }
    dj__strlist_init(&names);
    if (dj__list_dir(dir, &names) != 0) {
        goto out;
    }
    for (size_t i = 0; i < names.count && ok; i++) {
        toolchain_memo memo;
        struct stat st;
        if (!toolchain_is_memo_name(names.items[i], backend) ||
            fstatat(dir, names.items[i], &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !memo_read(dir, names.items[i], &memo)) {
            continue;
        }
        toolchain_record *items =
            realloc(records->items, (records->count + 1) * sizeof(*records->items));
        ok = items != NULL;
        if (ok) {
            records->items = items;
            toolchain_record *record = &items[records->count++];
            record->mtime_ns = toolchain_ns(st.st_mtim);
            memcpy(record->identity, memo.identity, sizeof(record->identity));
        }
        free(memo.data);
    }
out:
    dj__strlist_fini(&names);
    close(dir);
    return ok;
}

static bool toolchain_has(const dj__strlist *identities, const char *identity)
{
    for (size_t i = 0; i < identities->count; i++) {
        if (strcmp(identities->items[i], identity) == 0) {
            return true;
        }
    }
    return false;
}

dj_status dj__toolchain_recorded(const char *backend, const dj__toolchain_dirs *dirs,
                                 dj__strlist *identities, dj_error *err)
{
    toolchain_records records = {0};
    dj_status status = DJ_OK;
    for (size_t i = 0; i < dirs->num_read && status == DJ_OK; i++) {
        if (!toolchain_collect(dirs->read[i], backend, &records)) {
            status = dj__fail_memory(err);
        }
    }
    if (status == DJ_OK && records.count > 0) {
        qsort(records.items, records.count, sizeof(*records.items), toolchain_newer_first);
        for (size_t i = 0; i < records.count; i++) {
            if (!toolchain_has(identities, records.items[i].identity)) {
                dj__strlist_add(identities, records.items[i].identity);
            }
        }
        status = dj__strlist_ok(identities, err);
    }
    free(records.items);
    return status;
}
