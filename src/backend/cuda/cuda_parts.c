/* SPDX-License-Identifier: MIT */
/*
 * What a CUDA toolchain consists of, and its version.
 *
 * In a toolkit the parts lie beside nvcc. Where they do not (conda's layout, a script that calls
 * another nvcc), nvcc --dryrun names their directories. A program that cannot say is taken alone.
 */
#include "backend/cc_parts.h"
#include "backend/cuda/cuda_toolkit.h"
#include "base/error.h"
#include "base/fs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARTS_OUTPUT_LIMIT ((size_t)1 << 20)

enum { PARTS_MAJOR = 12, PARTS_MINOR = 9 }; /* the oldest nvcc that knows family architectures */

typedef struct parts_dirs {
    char *bin;       /* of nvcc.profile and ptxas */
    char *cicc;      /* of cicc */
    char *libdevice; /* of the bitcode libraries */
} parts_dirs;

static void parts_dirs_fini(parts_dirs *dirs)
{
    free(dirs->bin);
    free(dirs->cicc);
    free(dirs->libdevice);
}

static bool parts_has(const char *dir, const char *name)
{
    char *path = dir != NULL ? dj__path_join(dir, name) : NULL;
    const bool found = path != NULL && access(path, F_OK) == 0;
    free(path);
    return found;
}

/* ---- where ---- */

/* The value of a line "#$ NAME=value" of nvcc --dryrun, normalised; NULL if there is none. */
static char *parts_dryrun_value(const char *text, const char *name)
{
    const size_t size = strlen(name);
    for (const char *line = text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        if (length > size + 4 && strncmp(line, "#$ ", 3) == 0 &&
            strncmp(line + 3, name, size) == 0 && line[3 + size] == '=') {
            char *value = strndup(line + size + 4, length - size - 4);
            char *path = value != NULL ? dj__path_normalize(value) : NULL;
            free(value);
            return path;
        }
        line += length + (line[length] == '\n');
    }
    return NULL;
}

static dj_status parts_ask(const dj__cc *nvcc, parts_dirs *dirs, dj_error *err)
{
    dj__strbuf output;
    dj__strbuf_init(&output, PARTS_OUTPUT_LIMIT);
    /* For an object file nvcc starts no other program, not even to look at the host compiler. */
    dj_status status = dj__tool_query(nvcc, "--dryrun", "none.o", NULL, &output, err);
    if (status == DJ_OK) {
        const char *text = dj__strbuf_str(&output);
        dirs->bin = parts_dryrun_value(text, "_HERE_");
        dirs->cicc = parts_dryrun_value(text, "CICC_PATH");
        dirs->libdevice = parts_dryrun_value(text, "NVVMIR_LIBRARY_DIR");
    }
    dj__strbuf_fini(&output);
    return status;
}

static dj_status parts_find(const dj__cc *nvcc, const dj__cuda_toolkit *toolkit, parts_dirs *dirs,
                            dj_error *err)
{
    char *home = dj__format("%s/..", toolkit->bin);
    char *root = home != NULL ? dj__path_normalize(home) : NULL;
    char *cicc = root != NULL ? dj__format("%s/nvvm/bin", root) : NULL;
    dj_status status = cicc != NULL ? DJ_OK : dj__fail_memory(err);
    if (status == DJ_OK && (!parts_has(toolkit->bin, "nvcc.profile") || !parts_has(cicc, "cicc"))) {
        status = parts_ask(nvcc, dirs, err);
    }
    if (status == DJ_OK && dirs->cicc == NULL && parts_has(toolkit->bin, "nvcc.profile")) {
        dirs->bin = strdup(toolkit->bin);
        dirs->cicc = strdup(cicc);
        dirs->libdevice = dj__format("%s/nvvm/libdevice", root);
        if (dirs->bin == NULL || dirs->cicc == NULL || dirs->libdevice == NULL) {
            status = dj__fail_memory(err);
        }
    }
    free(home);
    free(root);
    free(cicc);
    return status;
}

/* ---- which ---- */

static dj_status parts_add_program(const char *dir, const char *name, const char *package,
                                   dj__strlist *files, dj_error *err)
{
    char *path = dj__path_join(dir, name);
    if (path == NULL) {
        return dj__fail_memory(err);
    }
    dj_status status = DJ_OK;
    struct stat st;
    const bool there = stat(path, &st) == 0;
    if (dj__is_executable(path)) {
        status = dj__add_tool_file(path, files, err);
    } else {
        status = dj__fail(err, DJ_UNAVAILABLE,
                          "the CUDA toolkit is not complete: %s is %s (with pip it is part of %s); "
                          "repair it, or set CUDA_HOME to another toolkit",
                          path,
                          !there                ? "missing"
                          : S_ISDIR(st.st_mode) ? "a directory"
                                                : "not executable",
                          package);
    }
    free(path);
    return status;
}

static dj_status parts_add_libdevice(const char *path, dj__strlist *files, dj_error *err)
{
    dj__strlist names;
    dj__strlist_init(&names);
    dj_status status = DJ_OK;
    const int dir = dj__open_dir(path);
    if (dir >= 0) {
        (void)dj__list_dir(dir, &names);
        dj__close(dir);
    }
    for (size_t i = 0; i < names.count && status == DJ_OK; i++) {
        const char *name = names.items[i];
        const size_t size = strlen(name);
        if (strncmp(name, "libdevice", 9) == 0 && size > 3 && strcmp(name + size - 3, ".bc") == 0) {
            char *file = dj__path_join(path, name);
            status = file != NULL ? dj__add_tool_file(file, files, err) : dj__fail_memory(err);
            free(file);
        }
    }
    dj__strlist_fini(&names);
    return status;
}

static dj_status parts_add_toolkit(const dj__cc *nvcc, const dj__cuda_toolkit *toolkit,
                                   dj__strlist *files, dj_error *err)
{
    parts_dirs dirs = {0};
    dj_status status = dj__add_tool_file(toolkit->nvcc, files, err);
    if (status == DJ_OK) {
        status = parts_find(nvcc, toolkit, &dirs, err);
    }
    if (status == DJ_OK && dirs.bin != NULL && dirs.cicc != NULL) {
        char *profile = dj__path_join(dirs.bin, "nvcc.profile");
        char *real = dj__path_join(dirs.bin, "nvcc");
        if (profile == NULL || real == NULL) {
            status = dj__fail_memory(err);
        }
        if (status == DJ_OK && access(real, F_OK) == 0) {
            status = dj__add_tool_file(real, files, err);
        }
        if (status == DJ_OK && access(profile, F_OK) == 0) {
            status = dj__add_tool_file(profile, files, err);
        }
        if (status == DJ_OK) {
            status = parts_add_program(dirs.cicc, "cicc", "nvidia-nvvm", files, err);
        }
        if (status == DJ_OK) {
            status = parts_add_program(dirs.bin, "ptxas", "nvidia-cuda-nvcc", files, err);
        }
        if (status == DJ_OK && dirs.libdevice != NULL) {
            status = parts_add_libdevice(dirs.libdevice, files, err);
        }
        free(profile);
        free(real);
    }
    parts_dirs_fini(&dirs);
    return status;
}

/* ---- version ---- */

bool dj__cuda_parse_version(const char *text, int *major, int *minor, const char **line)
{
    static const char mark[] = "release ";
    for (const char *at = strstr(text, mark); at != NULL; at = strstr(at + 1, mark)) {
        const char *digits = at + sizeof mark - 1;
        const size_t before = strspn(digits, "0123456789");
        if (before == 0 || before > 4 || digits[before] != '.') {
            continue;
        }
        const char *after = digits + before + 1;
        const size_t count = strspn(after, "0123456789");
        if (count == 0 || count > 4) {
            continue;
        }
        *major = (int)strtol(digits, NULL, 10);
        *minor = (int)strtol(after, NULL, 10);
        for (*line = at; *line > text && (*line)[-1] != '\n';) {
            (*line)--;
        }
        return true;
    }
    return false;
}

/* The variable that may be why nvcc does not answer; NULL if none is set. */
static const char *parts_suspect(const dj__env *env, const char **value)
{
    static const char *const names[] = {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        *value = dj__env_raw(env, names[i]);
        if (*value != NULL && (*value)[0] != '\0') {
            return names[i];
        }
    }
    return NULL;
}

static dj_status parts_no_version(const dj__cc *nvcc, const char *text,
                                  const dj__process_result *result, dj_error *err)
{
    const char *value = NULL;
    const char *name = parts_suspect(nvcc->env, &value);
    char how[64] = "";
    if (result->signal != 0) {
        (void)snprintf(how, sizeof how, "it was ended by signal %d, ", result->signal);
    } else if (result->exit_code != 0) {
        (void)snprintf(how, sizeof how, "it failed with exit code %d, ", result->exit_code);
    }
    text += strspn(text, "\r\n");
    const size_t size = strcspn(text, "\r\n");
    return dj__fail(err, DJ_INCOMPATIBLE,
                    "failed to parse NVCC version (expected \"release X.Y\") of %s --version: %s%s"
                    "%.*s%s%s%s%.200s",
                    nvcc->program, how, size > 0 ? "it printed " : "it printed nothing",
                    size > 200 ? 200 : (int)size, text, name != NULL ? "; it reads " : "",
                    name != NULL ? name : "", name != NULL ? ", which is " : "",
                    name != NULL ? value : "");
}

static dj_status parts_version(const dj__cc *nvcc, dj__strbuf *version, dj_error *err)
{
    int major = 0;
    int minor = 0;
    const char *line = NULL;
    dj__process_result result = {0};
    dj__strbuf output;
    dj__strbuf_init(&output, PARTS_OUTPUT_LIMIT * 2);
    dj_status status = dj__tool_run(nvcc, "--version", NULL, NULL, &output, &result, err);
    if (status != DJ_OK) {
        goto out;
    }
    const char *text = dj__strbuf_str(&output);
    if (result.exit_code != 0 || !dj__cuda_parse_version(text, &major, &minor, &line)) {
        status = parts_no_version(nvcc, text, &result, err);
    } else if (major < PARTS_MAJOR || (major == PARTS_MAJOR && minor < PARTS_MINOR)) {
        status = dj__fail(err, DJ_INCOMPATIBLE,
                          "NVCC version must be at least %d.%d: %s is %d.%d; install a newer CUDA "
                          "toolkit, or set CUDA_HOME to one",
                          PARTS_MAJOR, PARTS_MINOR, nvcc->program, major, minor);
    } else {
        dj__strbuf_append(version, line, strcspn(line, "\r\n"));
        status = dj__strbuf_ok(version, err);
    }
out:
    dj__strbuf_fini(&output);
    return status;
}

dj_status dj__cuda_toolkit_describe(const dj__env *env, const char *const *keyed,
                                    const dj__cuda_toolkit *toolkit, dj__strlist *files,
                                    dj__strbuf *version, dj_error *err)
{
    const dj__cc nvcc = {env, keyed, toolkit->nvcc};
    const dj__cc host = {env, keyed, toolkit->host};
    dj_status status = parts_version(&nvcc, version, err); /* first: it explains most failures */
    if (status == DJ_OK) {
        status = parts_add_toolkit(&nvcc, toolkit, files, err);
    }
    if (status == DJ_OK) {
        status = dj__add_tool_file(toolkit->host, files, err);
    }
    if (status == DJ_OK) {
        status = dj__cc_add_generator(&host, "cc1plus", files, err);
    }
    return status;
}
