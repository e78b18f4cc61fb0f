/* SPDX-License-Identifier: MIT */
/*
 * One compiler run in a staging directory.
 *
 * Tools run inside the directory and see relative names only: the source, include dirs as links
 * inc0, inc1, ... and our own kernel.h below prelude/. So nothing about where the cache or the
 * headers lie reaches the binary, and odd characters in paths never reach a tool.
 */
#include "base/error.h"
#include "base/fs.h"
#include "cache/entry.h"
#include "core/core.h"
#include "core/prelude.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BUILD_LOG_LIMIT ((size_t)4 << 20)
#define BUILD_PRELUDE "prelude"

typedef struct build_state {
    dj_runtime *runtime;
    const dj__request *request;
    const char *path;
    int dir;
    dj__strlist includes;
    char *debug_dir;
    dj__strbuf command;
    dj__strbuf log;
} build_state;

static dj_status build_write(build_state *build, int dir, const char *name, const void *data,
                             size_t size, dj_error *err)
{
    const int error = dj__write_new_at(dir, name, data, size, 0600, false);
    if (error == 0) {
        return DJ_OK;
    }
    return dj__fail_errno(err, error, "%s/%s: failed to open for writing", build->path, name);
}

static dj_status build_write_prelude(build_state *build, dj_error *err)
{
    dj_status status = DJ_OK;
    int outer = -1;
    int inner = -1;
    int error = dj__make_dir_at(build->dir, BUILD_PRELUDE, 0700);
    if (error == 0) {
        outer = dj__open_dir_at(build->dir, BUILD_PRELUDE);
        error = outer < 0 ? -outer : dj__make_dir_at(outer, "deepjit", 0700);
    }
    if (error == 0) {
        inner = dj__open_dir_at(outer, "deepjit");
        error = inner < 0 ? -inner : 0;
    }
    if (error != 0) {
        status = dj__fail_errno(err, error, "%s/%s", build->path, BUILD_PRELUDE);
    } else {
        status = build_write(build, inner, "kernel.h", dj__prelude_text, dj__prelude_size, err);
    }
    if (inner >= 0) {
        dj__close(inner);
    }
    if (outer >= 0) {
        dj__close(outer);
    }
    return status;
}

/* A directory that does not exist is linked all the same: compilers ignore it, as they would
 * ignore it by name. */
static dj_status build_link_includes(build_state *build, dj_error *err)
{
    const dj__strlist *dirs = &build->runtime->config.include_dirs;
    /* First: the key covers our own kernel.h, so no other one may take its place. */
    dj__strlist_add(&build->includes, BUILD_PRELUDE);
    for (size_t i = 0; i < dirs->count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "inc%zu", i);
        char *real = realpath(dirs->items[i], NULL);
        const int failed = symlinkat(real != NULL ? real : dirs->items[i], build->dir, name);
        const int error = errno;
        free(real);
        if (failed != 0) {
            return dj__fail_errno(err, error, "%s/%s", build->path, name);
        }
        dj__strlist_add(&build->includes, name);
    }
    return dj__strlist_ok(&build->includes, err);
}

static void build_unlink_inputs(build_state *build)
{
    for (size_t i = 0; i < build->includes.count; i++) {
        dj__remove_tree_at(build->dir, build->includes.items[i]);
    }
}

static void build_print_command(build_state *build)
{
    if (build->runtime->settings.print_compiler_command == DJ_ON && build->command.size > 0) {
        dj__log_write(&build->runtime->diagnostics, DJ_LOG_INFO, "Running command: %s",
                      dj__strbuf_str(&build->command));
    }
}

static dj_status build_compile(build_state *build, dj_error *err)
{
    dj_runtime *runtime = build->runtime;
    const dj__request *request = build->request;
    const dj_compiler_ops *ops = runtime->backend->compiler;
    dj_compiler *compiler = NULL;
    dj_status status = dj__runtime_compiler(runtime, &compiler, err);
    if (status != DJ_OK) {
        return status;
    }
    const dj_compile_job job = {
        .size = sizeof(job),
        .dir = build->path,
        .source = ops->source_name,
        .flags = dj__strlist_items(&request->flags),
        .num_flags = request->flags.count,
        .includes = dj__strlist_items(&build->includes),
        .num_includes = build->includes.count,
        .debug_dir = build->debug_dir,
        .options = &request->options.common,
        .timeout_ms = runtime->settings.compile_timeout * 1000,
        .cancel = request->options.common.cancel,
        .command = &build->command,
        .log = &build->log,
    };
    const int64_t start = dj__now_ns();
    status = ops->compile(compiler, &job, err);
    atomic_fetch_add_explicit(&runtime->counters.compiles, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&runtime->counters.compile_ns, (uint64_t)(dj__now_ns() - start),
                              memory_order_relaxed);
    build_print_command(build);
    return status;
}

static dj_status build_check_binary(const build_state *build, const char *after, dj_error *err)
{
    const char *name = build->runtime->backend->compiler->binary_name;
    struct stat info;
    if (fstatat(build->dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode) ||
        info.st_size == 0) {
        return dj__fail(err, DJ_COMPILE, "%s did not leave a valid %s", after, name);
    }
    return DJ_OK;
}

static void build_seen(void *user, const dj_binary_info *info)
{
    (void)user;
    (void)info;
}

/* What a hook leaves must still be a binary, where the back end can tell: an entry that no driver
 * loads would be found, refused and built again for ever. */
static dj_status build_check_hooked(const build_state *build, dj_error *err)
{
    const dj_compiler_ops *ops = build->runtime->backend->compiler;
    dj_status status = build_check_binary(build, "the post hook", err);
    if (status != DJ_OK || ops->inspect == NULL) {
        return status;
    }
    dj_binary binary = {.path = ops->binary_name};
    char *data = NULL;
    const int error =
        dj__read_at(build->dir, ops->binary_name, DJ__FILE_LIMIT, &data, &binary.size);
    if (error != 0) {
        return dj__fail_errno(err, error, "%s/%s", build->path, ops->binary_name);
    }
    binary.data = data;
    dj_error reason = DJ_ERROR_INIT;
    status = ops->inspect(&binary, build_seen, NULL, &reason);
    free(data);
    if (status == DJ_OK || status == DJ_NO_MEMORY) {
        return status == DJ_OK ? status : dj__fail_memory(err);
    }
    return dj__fail(err, DJ_COMPILE, "post hook %s did not leave a valid %s: %s",
                    build->request->options.common.post_hook, ops->binary_name, reason.message);
}

static dj_status build_hook(build_state *build, dj_error *err)
{
    if (build->request->hook_path == NULL) {
        return DJ_OK;
    }
    const dj_status status =
        dj__hook_run(build->runtime, build->request, build->path, &build->log, err);
    return status != DJ_OK ? status : build_check_hooked(build, err);
}

/* Where debuggers and profilers look for the source. A copy for people: the compiler reads only
 * the staging directory. Best effort, for a missing copy spoils nothing. */
static void build_keep_source(build_state *build)
{
    const dj__request *request = build->request;
    char *parent = NULL;
    if (build->debug_dir == NULL ||
        dj__tiered_subdir(build->runtime->store, "src", true, 0, &parent, NULL) != DJ_OK) {
        return;
    }
    struct stat info;
    const int outer = dj__open_dir(parent);
    const bool known = outer >= 0 && fstat(outer, &info) == 0;
    if (known && dj__make_dir_at(outer, request->key, info.st_mode & 07777) == 0) {
        const int inner = dj__open_dir_at(outer, request->key);
        if (inner >= 0) {
            dj__write_replace_at(inner, build->runtime->backend->compiler->source_name,
                                 request->source, request->size, info.st_mode & 0666, false);
            dj__close(inner);
        }
    }
    if (outer >= 0) {
        dj__close(outer);
    }
    free(parent);
}

static dj_status build_write_records(build_state *build, dj_error *err)
{
    dj__strbuf meta;
    dj__strbuf_init(&meta, (size_t)16 << 20);
    dj_status status =
        dj__meta_write(build->runtime, build->request, dj__strbuf_str(&build->command), &meta, err);
    if (status == DJ_OK) {
        status = build_write(build, build->dir, "meta.json", meta.data, meta.size, err);
    }
    if (status == DJ_OK && build->log.size > 0) {
        status =
            build_write(build, build->dir, "compiler.log", build->log.data, build->log.size, err);
    }
    dj__strbuf_fini(&meta);
    return status;
}

static dj_status build_steps(build_state *build, dj_error *err)
{
    const dj__request *request = build->request;
    const dj_compiler_ops *ops = build->runtime->backend->compiler;
    dj_status status =
        build_write(build, build->dir, ops->source_name, request->source, request->size, err);
    if (status == DJ_OK) {
        status = build_write_prelude(build, err);
    }
    if (status == DJ_OK) {
        status = build_link_includes(build, err);
    }
    if (status == DJ_OK) {
        status = build_compile(build, err);
    }
    if (status == DJ_OK) {
        status = build_check_binary(build, "the compiler", err);
    }
    if (status == DJ_OK) {
        status = build_hook(build, err);
    }
    build_unlink_inputs(build);
    if (status == DJ_OK) {
        status = build_write_records(build, err);
    }
    if (status == DJ_OK) {
        build_keep_source(build);
    }
    return status;
}

static void build_report_failure(build_state *build)
{
    const dj_compile_options *options = &build->request->options.common;
    atomic_fetch_add_explicit(&build->runtime->counters.compile_failures, 1, memory_order_relaxed);
    if (options->on_log != NULL && build->log.size > 0) {
        options->on_log(options->on_log_user, build->log.data, build->log.size);
    }
}

dj_status dj__build_staged(dj_runtime *runtime, const dj__request *request,
                           const dj_staging *staging, dj_error *err)
{
    build_state build = {.runtime = runtime, .request = request, .path = staging->path};
    build.dir = dj__open_dir(staging->path);
    if (build.dir < 0) {
        return dj__fail_errno(err, -build.dir, "staging directory %s", staging->path);
    }
    dj__strlist_init(&build.includes);
    dj__strbuf_init(&build.command, (size_t)4 << 20);
    dj__strbuf_init(&build.log, BUILD_LOG_LIMIT);
    dj_status status = DJ_OK;
    if (request->source_dir != NULL) {
        build.debug_dir = dj__format("%s/%s", request->source_dir, request->key);
        status = build.debug_dir != NULL ? DJ_OK : dj__fail_memory(err);
    }
    if (status == DJ_OK) {
        status = build_steps(&build, err);
    }
    if (status != DJ_OK) {
        build_report_failure(&build);
    }
    dj__strlist_fini(&build.includes);
    dj__strbuf_fini(&build.command);
    dj__strbuf_fini(&build.log);
    free(build.debug_dir);
    dj__close(build.dir);
    return status;
}
