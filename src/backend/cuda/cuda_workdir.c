/* SPDX-License-Identifier: MIT */
/*
 * Makes and removes the directory that nvcc works in.
 *
 * With line or debug information the source gets a #line in front that names where it is kept,
 * and include directories and the toolkit are named /proc/self/cwd/...: nvcc makes relative names
 * absolute, and the directory's own name, which is another one each time, would get into the
 * binary; so would the toolkit's path, which no key has.
 */
#include "backend/cuda/cuda_workdir.h"
#include "backend/tool_env.h"
#include "base/error.h"
#include "base/fs.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKDIR_PREFIX "nvcc-"
#define WORKDIR_SOURCE_LIMIT ((size_t)1 << 30)
#define WORKDIR_SELF "/proc/self/cwd"

static const char workdir_plain[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-";

bool dj__cuda_is_plain(const char *path)
{
    return path[0] == '/' && path[strspn(path, workdir_plain)] == '\0';
}

/* The same for programs, whose names may have a plus: g++. */
static bool workdir_is_plain_program(const char *path)
{
    for (const char *at = path; *at != '\0'; at++) {
        if (strchr(workdir_plain, *at) == NULL && *at != '+') {
            return false;
        }
    }
    return path[0] == '/';
}

/* ---- which directory ---- */

/* Opens a directory if its real path is plain; -1 if it cannot serve. */
static int workdir_open_plain(const char *path, char **real)
{
    *real = path != NULL && path[0] == '/' ? realpath(path, NULL) : NULL;
    if (*real == NULL) {
        return -1;
    }
    const int fd = dj__cuda_is_plain(*real) ? dj__open_dir(*real) : -1;
    if (fd < 0) {
        free(*real);
        *real = NULL;
    }
    return fd;
}

static dj_status workdir_create(const dj__env *env, const dj_compile_job *job,
                                dj__cuda_workdir *out, dj_error *err)
{
    const char *const places[] = {job->dir, dj__env_raw(env, "TMPDIR"), "/tmp"};
    char *parent = NULL;
    int error = ENOENT;
    for (size_t i = 0; i < 3 && out->parent < 0; i++) {
        out->parent = workdir_open_plain(places[i], &parent);
        if (out->parent >= 0) {
            error = dj__make_unique_dir_at(out->parent, i == 0 ? WORKDIR_PREFIX : "deepjit-nvcc-",
                                           out->name);
        }
        if (out->parent >= 0 && error != 0) {
            out->name[0] = '\0';
            dj__close(out->parent);
            out->parent = -1;
            free(parent);
            parent = NULL;
        }
    }
    if (out->parent < 0) {
        return dj__fail_errno(err, error,
                              "no directory that nvcc can work in (tried %s, TMPDIR, /tmp); set "
                              "TMPDIR to a writable directory whose path has only A-Z a-z 0-9 / . "
                              "_ -",
                              job->dir);
    }
    out->path = dj__path_join(parent, out->name);
    free(parent);
    if (out->path == NULL) {
        return dj__fail_memory(err);
    }
    out->fd = dj__open_dir(out->path);
    return out->fd >= 0 ? DJ_OK : dj__fail_errno(err, -out->fd, "%s", out->path);
}

/* ---- what lies in it ---- */

/* The line that names the source as it is kept. ptxas cannot read names with quotes or
 * backslashes, whatever escapes them. */
static char *workdir_line_directive(const dj_compile_job *job)
{
    char *line = dj__format("#line 1 \"%s/%s\"\n", job->debug_dir, job->source);
    if (line == NULL) {
        return NULL;
    }
    char *name = strchr(line, '"') + 1;
    char *end = line + strlen(line) - 2;
    for (char *at = name; at < end; at++) {
        if (*at == '"' || *at == '\\' || *at == '?' || (unsigned char)*at < ' ') {
            *at = '_';
        }
    }
    return line;
}

static dj_status workdir_put_source(const dj__cuda_workdir *workdir, const dj_compile_job *job,
                                    dj_error *err)
{
    char *data = NULL;
    size_t size = 0;
    dj__strbuf text;
    char *line = NULL;
    dj__strbuf_init(&text, WORKDIR_SOURCE_LIMIT);
    char *path = dj__path_join(job->dir, job->source);
    int error = path != NULL ? dj__read_file(path, WORKDIR_SOURCE_LIMIT / 2, &data, &size) : ENOMEM;
    if (error == 0 && job->debug_dir != NULL) {
        line = workdir_line_directive(job);
        error = line != NULL ? 0 : ENOMEM;
    }
    if (error == 0) {
        dj__strbuf_puts(&text, line != NULL ? line : "");
        dj__strbuf_append(&text, data, size);
        error = dj__strbuf_ok(&text, NULL) == DJ_OK ? 0 : ENOMEM;
    }
    if (error == 0) {
        error = dj__write_new_at(workdir->fd, job->source, dj__strbuf_str(&text), text.size, 0600,
                                 false);
    }
    free(line);
    free(data);
    free(path);
    dj__strbuf_fini(&text);
    return error == 0 ? DJ_OK : dj__fail_errno(err, error, "%s/%s", job->dir, job->source);
}

static dj_status workdir_link(const dj__cuda_workdir *workdir, const char *target, const char *name,
                              dj_error *err)
{
    if (symlinkat(target, workdir->fd, name) != 0) {
        return dj__fail_errno(err, errno, "%s/%s", workdir->path, name);
    }
    return DJ_OK;
}

static dj_status workdir_put_includes(dj__cuda_workdir *workdir, const dj_compile_job *job,
                                      dj_error *err)
{
    dj_status status = DJ_OK;
    const bool absolute = job->debug_dir != NULL && access(WORKDIR_SELF, X_OK) == 0;
    for (size_t i = 0; i < job->num_includes && status == DJ_OK; i++) {
        const char *name = job->includes[i];
        char *target = dj__path_join(job->dir, name);
        status = target != NULL ? workdir_link(workdir, target, name, err) : dj__fail_memory(err);
        free(target);
        if (absolute) {
            dj__strlist_addf(&workdir->includes, "%s/%s", WORKDIR_SELF, name);
        } else {
            dj__strlist_add(&workdir->includes, name);
        }
    }
    return status == DJ_OK ? dj__strlist_ok(&workdir->includes, err) : status;
}

/* nvcc finds its parts beside the name it is called by, so the directory above its own is linked.
 * What does not lie in a toolkit's way is a script, for which its own name will do. With line or
 * debug information the toolkit is linked wherever it lies. */
static dj_status workdir_put_nvcc(dj__cuda_workdir *workdir, const char *nvcc, bool named,
                                  dj_error *err)
{
    static const char tail[] = "/bin/nvcc";
    const size_t size = strlen(nvcc);
    const bool in_toolkit = size > sizeof tail && strcmp(nvcc + size - sizeof tail + 1, tail) == 0;
    const bool self = in_toolkit && access(WORKDIR_SELF, X_OK) == 0;
    if (workdir_is_plain_program(nvcc) && !(named && self)) {
        workdir->nvcc = strdup(nvcc);
        return workdir->nvcc != NULL ? DJ_OK : dj__fail_memory(err);
    }
    char *target = in_toolkit ? strndup(nvcc, size - sizeof tail + 1) : strdup(nvcc);
    const char *name = in_toolkit ? "toolkit" : "nvcc";
    dj_status status =
        target != NULL ? workdir_link(workdir, target, name, err) : dj__fail_memory(err);
    free(target);
    if (status == DJ_OK) {
        workdir->nvcc = dj__format("%s/%s%s", self ? WORKDIR_SELF : workdir->path, name,
                                   in_toolkit ? tail : "");
        status = workdir->nvcc != NULL ? DJ_OK : dj__fail_memory(err);
    }
    return status;
}

/* gcc follows the link to find its parts. The name is kept if it can be: some wrappers go by it. */
static dj_status workdir_put_host(dj__cuda_workdir *workdir, const char *host, dj_error *err)
{
    if (workdir_is_plain_program(host)) {
        workdir->host = strdup(host);
        return workdir->host != NULL ? DJ_OK : dj__fail_memory(err);
    }
    const char *name = strrchr(host, '/');
    char *link = dj__format("host%s", workdir_is_plain_program(name) ? name : "/gcc");
    dj_status status = DJ_OK;
    const int error = dj__make_dir_at(workdir->fd, "host", 0700);
    if (link == NULL) {
        status = dj__fail_memory(err);
    } else if (error != 0) {
        status = dj__fail_errno(err, error, "%s/host", workdir->path);
    } else {
        status = workdir_link(workdir, host, link, err);
    }
    if (status == DJ_OK) {
        workdir->host = dj__path_join(workdir->path, link);
        status = workdir->host != NULL ? DJ_OK : dj__fail_memory(err);
    }
    free(link);
    return status;
}

/* PWD: what cicc calls its working directory in debug information, if that is true. */
static dj_status workdir_set_env(dj__cuda_workdir *workdir, const dj__env *env,
                                 const char *const *keyed, dj_error *err)
{
    dj__strlist given;
    dj__strlist_init(&given);
    dj_status status = dj__tool_env(env, keyed, &given, err);
    for (size_t i = 0; status == DJ_OK && i < given.count; i++) {
        if (strncmp(given.items[i], "TMPDIR=", 7) != 0 && strncmp(given.items[i], "PWD=", 4) != 0) {
            dj__strlist_add(&workdir->env, given.items[i]);
        }
    }
    dj__strlist_fini(&given);
    if (status == DJ_OK) {
        dj__strlist_addf(&workdir->env, "TMPDIR=%s/%s", workdir->path, DJ__CUDA_TMP);
        dj__strlist_add(&workdir->env, "PWD=" WORKDIR_SELF);
        status = dj__strlist_ok(&workdir->env, err);
    }
    return status;
}

dj_status dj__cuda_workdir_open(const dj__env *env, const char *const *keyed,
                                const dj__cuda_toolkit *toolkit, const dj_compile_job *job,
                                dj__cuda_workdir *out, dj_error *err)
{
    memset(out, 0, sizeof *out);
    out->fd = -1;
    out->parent = -1;
    dj__strlist_init(&out->includes);
    dj__strlist_init(&out->env);
    dj_status status = workdir_create(env, job, out, err);
    if (status == DJ_OK) {
        const int error = dj__make_dir_at(out->fd, DJ__CUDA_TMP, 0700);
        status = error == 0 ? DJ_OK : dj__fail_errno(err, error, "%s/tmp", out->path);
    }
    if (status == DJ_OK) {
        status = workdir_put_source(out, job, err);
    }
    if (status == DJ_OK) {
        status = workdir_put_includes(out, job, err);
    }
    if (status == DJ_OK) {
        status = workdir_put_nvcc(out, toolkit->nvcc, job->debug_dir != NULL, err);
    }
    if (status == DJ_OK && !toolkit->host_in_flags) {
        status = workdir_put_host(out, toolkit->host, err);
    }
    if (status == DJ_OK) {
        status = workdir_set_env(out, env, keyed, err);
    }
    if (status != DJ_OK) {
        dj__cuda_workdir_close(out);
    }
    return status;
}

void dj__cuda_workdir_close(dj__cuda_workdir *workdir)
{
    if (workdir->fd >= 0) {
        dj__close(workdir->fd);
        workdir->fd = -1;
    }
    if (workdir->parent >= 0) {
        if (workdir->name[0] != '\0') {
            dj__remove_tree_at(workdir->parent, workdir->name);
        }
        dj__close(workdir->parent);
        workdir->parent = -1;
    }
    free(workdir->path);
    free(workdir->nvcc);
    free(workdir->host);
    workdir->path = workdir->nvcc = workdir->host = NULL;
    dj__strlist_fini(&workdir->includes);
    dj__strlist_fini(&workdir->env);
}
