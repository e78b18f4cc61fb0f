/* SPDX-License-Identifier: MIT */
/*
 * Finding nvcc and its host compiler.
 *
 * nvcc looks for its parts beside the name it is called by, without following links. So a link
 * such as /usr/local/bin/nvcc is replaced by what it leads to, if only there the parts are.
 */
#include "backend/cuda/cuda_toolkit.h"
#include "backend/cuda/cuda_sites.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/process.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOOLKIT_DEFAULT "/usr/local/cuda/bin/nvcc"
#define TOOLKIT_SEARCHED_LIMIT ((size_t)1 << 16)

void dj__cuda_toolkit_fini(dj__cuda_toolkit *toolkit)
{
    free(toolkit->nvcc);
    free(toolkit->nvcc_source);
    free(toolkit->bin);
    free(toolkit->host);
    free(toolkit->host_source);
    memset(toolkit, 0, sizeof *toolkit);
}

static char *toolkit_dirname(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* ---- nvcc ---- */

static dj_status toolkit_not_executable(const dj__env *env, const char *path, const char *source,
                                        dj_error *err)
{
    char setting[256];
    struct stat st;
    const char *advice = "; make it an executable file (chmod +x), or";
    dj__env_name(env, "JIT_NVCC_COMPILER", setting);
    if (stat(path, &st) != 0) {
        advice = ": there is no such file;";
    } else if (S_ISDIR(st.st_mode)) {
        advice = ": it is a directory; name the program in it (of a toolkit bin/nvcc), or";
    }
    return dj__fail(err, DJ_UNAVAILABLE,
                    "NVCC compiler is not executable: %s (from %s)%s set %s to another nvcc", path,
                    source, advice, setting);
}

/* Takes the path, checks that it can be executed, and keeps it absolute and normalised. */
static dj_status toolkit_take(const dj__env *env, char *path, const char *source,
                              dj__cuda_toolkit *out, dj_error *err)
{
    dj_status status = DJ_OK;
    if (path == NULL) {
        return dj__fail_memory(err);
    }
    if (!dj__is_executable(path)) {
        status = toolkit_not_executable(env, path, source, err);
    } else {
        out->nvcc = dj__path_normalize(path);
        out->nvcc_source = strdup(source);
        status = out->nvcc != NULL && out->nvcc_source != NULL ? DJ_OK : dj__fail_memory(err);
    }
    free(path);
    return status;
}

static dj_status toolkit_from_setting(const dj__env *env, dj__cuda_toolkit *out, dj_error *err)
{
    char source[256];
    const char *value = dj__env_setting(env, "JIT_NVCC_COMPILER", source);
    if (value == NULL || value[0] == '\0') {
        return DJ_OK;
    }
    if (value[0] == '/') {
        return toolkit_take(env, strdup(value), source, out, err);
    }
    if (strchr(value, '/') != NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid value for %s: %s (expected an absolute path, or a name without "
                        "'/' that is looked up on PATH)",
                        source, value);
    }
    char *path = dj__find_program(value, dj__env_raw(env, "PATH"));
    if (path == NULL) {
        return dj__fail(err, DJ_UNAVAILABLE,
                        "NVCC compiler is not executable: %s (from %s): no such program in PATH "
                        "(%s); set %s to an absolute path",
                        value, source,
                        dj__env_raw(env, "PATH") != NULL ? dj__env_raw(env, "PATH") : "not set",
                        source);
    }
    return toolkit_take(env, path, source, out, err);
}

static dj_status toolkit_from_home(const dj__env *env, const char *variable, dj__cuda_toolkit *out,
                                   dj_error *err)
{
    struct stat st;
    const char *home = dj__env_raw(env, variable);
    if (home == NULL || home[0] == '\0') {
        return DJ_OK;
    }
    if (home[0] != '/') {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid value for %s: %s (expected the absolute path of a CUDA toolkit)",
                        variable, home);
    }
    if (stat(home, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return dj__fail(err, DJ_UNAVAILABLE,
                        "no nvcc: %s is %s, which is no directory; set it to a CUDA toolkit (the "
                        "directory that has bin/nvcc) or unset it",
                        variable, home);
    }
    char *path = dj__format("%s/bin/nvcc", home);
    if (path != NULL && access(path, F_OK) != 0) {
        free(path);
        return dj__fail(err, DJ_UNAVAILABLE,
                        "no nvcc: %s is %s, which has no bin/nvcc; set it to a CUDA toolkit or "
                        "unset it",
                        variable, home);
    }
    return toolkit_take(env, path, variable, out, err);
}

/* Appends the places that were looked at to `searched`. */
static dj_status toolkit_from_sites(const dj__env *env, dj__strbuf *searched, dj__cuda_toolkit *out,
                                    dj_error *err)
{
    dj__strlist sites;
    dj__strlist_init(&sites);
    dj_status status = dj__cuda_sites(env, &sites, err);
    for (size_t i = 0; i < sites.count && status == DJ_OK && out->nvcc == NULL; i++) {
        char *path = dj__cuda_site_nvcc(sites.items[i]);
        if (path != NULL) {
            status = toolkit_take(env, path, "pip packages", out, err);
        }
        dj__strbuf_printf(searched, ", %s/nvidia/cu*/bin", sites.items[i]);
    }
    if (status == DJ_OK && out->nvcc == NULL) {
        char *prefix = NULL;
        const char *conda = dj__env_raw(env, "CONDA_PREFIX");
        if (conda != NULL && conda[0] == '/') {
            prefix = dj__format("%s/bin/nvcc", conda);
            dj__strbuf_printf(searched, ", %s/bin", conda);
        }
        if (prefix != NULL && access(prefix, F_OK) == 0) {
            status = toolkit_take(env, strdup(prefix), "CONDA_PREFIX", out, err);
        }
        free(prefix);
    }
    dj__strlist_fini(&sites);
    return status;
}

static dj_status toolkit_nowhere(const dj__env *env, const dj__strbuf *searched, dj_error *err)
{
    char setting[256];
    const char *path = dj__env_raw(env, "PATH");
    dj__env_name(env, "JIT_NVCC_COMPILER", setting);
    return dj__fail(err, DJ_UNAVAILABLE,
                    "no nvcc: install the CUDA toolkit 12.9 or newer (pip install "
                    "nvidia-cuda-nvcc is enough), or set %s to an nvcc, or CUDA_HOME to a "
                    "toolkit; searched CUDA_HOME and CUDA_PATH (not set), PATH (%s), %s%s",
                    setting, path != NULL ? path : "not set", TOOLKIT_DEFAULT,
                    dj__strbuf_str(searched));
}

/* Replaces a link by what it leads to if only there nvcc finds its parts. */
static void toolkit_follow(char **nvcc)
{
    char *dir = toolkit_dirname(*nvcc);
    char *beside = dir != NULL ? dj__path_join(dir, "nvcc.profile") : NULL;
    char *real = realpath(*nvcc, NULL);
    char *real_dir = real != NULL ? toolkit_dirname(real) : NULL;
    char *real_beside = real_dir != NULL ? dj__path_join(real_dir, "nvcc.profile") : NULL;
    if (beside != NULL && real_beside != NULL && access(beside, F_OK) != 0 &&
        access(real_beside, F_OK) == 0) {
        char *old = *nvcc;
        *nvcc = real;
        real = old;
    }
    free(dir);
    free(beside);
    free(real);
    free(real_dir);
    free(real_beside);
}

static dj_status toolkit_find_nvcc(const dj__env *env, dj__cuda_toolkit *out, dj_error *err)
{
    dj__strbuf searched;
    dj__strbuf_init(&searched, TOOLKIT_SEARCHED_LIMIT);
    dj_status status = toolkit_from_setting(env, out, err);
    if (status == DJ_OK && out->nvcc == NULL) {
        status = toolkit_from_home(env, "CUDA_HOME", out, err);
    }
    if (status == DJ_OK && out->nvcc == NULL) {
        status = toolkit_from_home(env, "CUDA_PATH", out, err);
    }
    if (status == DJ_OK && out->nvcc == NULL) {
        char *path = dj__find_program("nvcc", dj__env_raw(env, "PATH"));
        status = path != NULL ? toolkit_take(env, path, "PATH", out, err) : DJ_OK;
    }
    if (status == DJ_OK && out->nvcc == NULL && access(TOOLKIT_DEFAULT, F_OK) == 0) {
        status = toolkit_take(env, strdup(TOOLKIT_DEFAULT), "its default place", out, err);
    }
    if (status == DJ_OK && out->nvcc == NULL) {
        status = toolkit_from_sites(env, &searched, out, err);
    }
    if (status == DJ_OK && out->nvcc == NULL) {
        status = toolkit_nowhere(env, &searched, err);
    }
    if (status == DJ_OK) {
        toolkit_follow(&out->nvcc);
    }
    dj__strbuf_fini(&searched);
    return status;
}

/* ---- the host compiler ---- */

/* The last -ccbin in a variable of flags, in fresh memory; NULL if there is none. nvcc separates
 * them by blanks and knows no quotes there. */
static char *toolkit_flagged_host(const char *flags)
{
    static const char *const names[] = {"-ccbin", "--compiler-bindir"};
    char *found = NULL;
    for (const char *at = flags; at != NULL && *at != '\0';) {
        at += strspn(at, " \t");
        size_t size = strcspn(at, " \t");
        for (size_t i = 0; i < 2; i++) {
            const size_t name = strlen(names[i]);
            if (strncmp(at, names[i], name) != 0 || size < name) {
                continue;
            }
            const char *value = NULL;
            size_t length = 0;
            if (size == name) {
                value = at + name + strspn(at + name, " \t");
                length = strcspn(value, " \t");
                size = (size_t)(value - at) + length;
            } else if (at[name] == '=') {
                value = at + name + 1;
                length = size - name - 1;
            }
            if (value != NULL && length > 0) {
                free(found);
                found = strndup(value, length);
            }
            break;
        }
        at += size;
    }
    return found;
}

/* The host compiler that a variable of flags names, in fresh memory, and that variable; NULL if
 * none does. */
static char *toolkit_find_flagged(const dj__env *env, const char **variable)
{
    static const char *const names[] = {"NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS"};
    char *flagged = NULL;
    for (size_t i = 0; i < 2 && flagged == NULL; i++) {
        *variable = names[i];
        flagged = toolkit_flagged_host(dj__env_raw(env, names[i]));
    }
    return flagged;
}

bool dj__cuda_host_is_clang(const dj__env *env)
{
    struct stat st;
    const char *variable = NULL;
    char *flagged = toolkit_find_flagged(env, &variable);
    const char *value = flagged != NULL ? flagged : dj__env_raw(env, "NVCC_CCBIN");
    const char *slash = value != NULL ? strrchr(value, '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : value;
    /* A directory means the gcc in it. */
    const bool clang = name != NULL && strncmp(name, "clang", 5) == 0 &&
                       (slash == NULL || stat(value, &st) != 0 || !S_ISDIR(st.st_mode));
    free(flagged);
    return clang;
}

/* Takes the path. */
static dj_status toolkit_take_host(char *path, const char *source, dj__cuda_toolkit *out,
                                   dj_error *err)
{
    out->host = dj__path_normalize(path);
    out->host_source = strdup(source);
    free(path);
    return out->host != NULL && out->host_source != NULL ? DJ_OK : dj__fail_memory(err);
}

/* A directory means the gcc in it, a name is looked up on PATH, as nvcc does. */
static dj_status toolkit_named_host(const dj__env *env, const char *value, const char *source,
                                    dj__cuda_toolkit *out, dj_error *err)
{
    struct stat st;
    char *path = NULL;
    if (strchr(value, '/') != NULL && value[0] != '/') {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid value for %s: %s (expected an absolute path, or a name without "
                        "'/' that is looked up on PATH)",
                        source, value);
    }
    if (value[0] == '/' && stat(value, &st) == 0 && S_ISDIR(st.st_mode)) {
        char *gcc = dj__path_join(value, "gcc");
        path = gcc != NULL ? dj__find_program(gcc, NULL) : NULL;
        free(gcc);
    } else {
        path = dj__find_program(value, dj__env_raw(env, "PATH"));
    }
    if (path == NULL) {
        return dj__fail(err, DJ_UNAVAILABLE,
                        "no host compiler for nvcc: %s (from %s) is no program, and no directory "
                        "that has gcc; set NVCC_CCBIN to a gcc or clang",
                        value, source);
    }
    return toolkit_take_host(path, source, out, err);
}

static dj_status toolkit_default_host(const dj__env *env, dj__cuda_toolkit *out, dj_error *err)
{
    static const char *const names[] = {"gcc", "g++", "c++"};
    const char *list = dj__env_raw(env, "PATH");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = dj__find_program(names[i], list);
        if (path != NULL) {
            return toolkit_take_host(path, "PATH", out, err);
        }
    }
    return dj__fail(err, DJ_UNAVAILABLE,
                    "no host compiler for nvcc: found no gcc, g++ or c++ in PATH (%s); install "
                    "g++, or set NVCC_CCBIN to a gcc or clang",
                    list != NULL ? list : "not set");
}

static dj_status toolkit_find_host(const dj__env *env, dj__cuda_toolkit *toolkit, dj_error *err)
{
    const char *variable = NULL;
    char *flagged = toolkit_find_flagged(env, &variable);
    if (flagged != NULL) {
        toolkit->host_in_flags = true;
        const dj_status status = toolkit_named_host(env, flagged, variable, toolkit, err);
        free(flagged);
        return status;
    }
    const char *value = dj__env_raw(env, "NVCC_CCBIN");
    if (value != NULL && value[0] != '\0') {
        return toolkit_named_host(env, value, "NVCC_CCBIN", toolkit, err);
    }
    return toolkit_default_host(env, toolkit, err);
}

dj_status dj__cuda_toolkit_find(const dj__env *env, dj__cuda_toolkit *out, dj_error *err)
{
    memset(out, 0, sizeof *out);
    dj_status status = toolkit_find_nvcc(env, out, err);
    if (status == DJ_OK) {
        out->bin = toolkit_dirname(out->nvcc);
        status = out->bin != NULL ? DJ_OK : dj__fail_memory(err);
    }
    if (status == DJ_OK) {
        status = toolkit_find_host(env, out, err);
    }
    if (status != DJ_OK) {
        dj__cuda_toolkit_fini(out);
    }
    return status;
}

char *dj__cuda_toolkit_program(const dj__env *env, const dj__cuda_toolkit *toolkit,
                               const char *name)
{
    char *path = dj__path_join(toolkit->bin, name);
    if (path != NULL && dj__is_executable(path)) {
        return path;
    }
    free(path);
    return dj__find_program(name, dj__env_raw(env, "PATH"));
}
