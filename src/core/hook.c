/* SPDX-License-Identifier: MIT */
/* The post hook: a program of the library, in Python or not, that changes the binary before
 * publication. */
#include "backend/tool_env.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/process.h"
#include "core/core.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOOK_LIMIT ((size_t)16 << 20)

/* True if `path` is `dir` or lies below it. Both resolved. */
static bool hook_below(const char *path, const char *dir)
{
    const size_t length = strlen(dir);
    return strncmp(path, dir, length) == 0 && (path[length] == '/' || dir[length - 1] == '/');
}

static dj_status hook_resolve(const dj_runtime *runtime, const char *hook, char **path,
                              dj_error *err)
{
    const char *root = runtime->config.library_root;
    if (root == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "post_hook '%s' needs dj_config.library_root, which is not set", hook);
    }
    if (!dj__path_is_contained(hook)) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "post_hook '%s' must be a relative path without '.' or '..'", hook);
    }
    char *joined = dj__path_join(root, hook);
    char *real_root = realpath(root, NULL);
    char *real_hook = joined != NULL ? realpath(joined, NULL) : NULL;
    dj_status status = DJ_OK;
    if (real_root == NULL || real_hook == NULL) {
        status =
            dj__fail_errno(err, errno, "post hook: failed to open for reading: %s/%s", root, hook);
    } else if (!hook_below(real_hook, real_root)) {
        status = dj__fail(err, DJ_INVALID_ARGUMENT,
                          "post_hook '%s' leads outside the library root %s, to %s", hook, root,
                          real_hook);
    }
    free(real_root);
    free(real_hook);
    if (status != DJ_OK) {
        free(joined);
        joined = NULL;
    }
    *path = joined;
    return status;
}

dj_status dj__hook_read(const dj_runtime *runtime, const char *hook, char **path, char **data,
                        size_t *size, dj_error *err)
{
    dj_status status = hook_resolve(runtime, hook, path, err);
    if (status != DJ_OK) {
        return status;
    }
    const int error = dj__read_file(*path, HOOK_LIMIT, data, size);
    if (error != 0) {
        status = dj__fail_errno(err, error, "post hook: failed to open for reading: %s", *path);
        free(*path);
        *path = NULL;
    }
    return status;
}

/* What runs the hook: for a .py file `python`, as the original calls it, or `python3`; any other
 * runs itself. The name alone decides, since it is keyed. */
static dj_status hook_runner(const dj_runtime *runtime, const dj__request *request, char **out,
                             dj_error *err)
{
    const char *name = request->options.common.post_hook;
    const size_t length = strlen(name);
    *out = NULL;
    if (length < 3 || strcmp(name + length - 3, ".py") != 0) {
        return dj__is_executable(request->hook_path)
                   ? DJ_OK
                   : dj__fail(err, DJ_PERMISSION,
                              "post_hook '%s' is neither named .py nor executable: %s", name,
                              request->hook_path);
    }
    const char *path = dj__env_raw(runtime->env, "PATH");
    *out = dj__find_program("python", path);
    *out = *out != NULL ? *out : dj__find_program("python3", path);
    if (*out == NULL) {
        return dj__fail(err, DJ_UNAVAILABLE,
                        "post_hook '%s' needs python or python3 on PATH, and there is none", name);
    }
    return DJ_OK;
}

dj_status dj__hook_run(dj_runtime *runtime, const dj__request *request, const char *dir,
                       dj__strbuf *log, dj_error *err)
{
    char *python = NULL;
    dj_status status = hook_runner(runtime, request, &python, err);
    if (status != DJ_OK) {
        return status;
    }
    dj__strlist env;
    dj__strlist_init(&env);
    char *binary = dj__path_join(dir, runtime->backend->compiler->binary_name);
    status = binary != NULL ? DJ_OK : dj__fail_memory(err);
    if (status == DJ_OK) {
        status = dj__tool_env(runtime->env, runtime->backend->compiler->keyed_env, &env, err);
    }
    if (status == DJ_OK) {
        const char *const argv[] = {python, request->hook_path, binary, NULL};
        const dj__process process = {
            .argv = python != NULL ? argv : argv + 1,
            .envp = dj__strlist_items(&env),
            .dir = dir,
            .timeout_ms = runtime->settings.compile_timeout * 1000,
            .cancel = request->options.common.cancel,
            .output_limit = (size_t)1 << 20,
        };
        dj__process_result result;
        status = dj__process_check(&process, log, &result, err);
    }
    if (status != DJ_OK) {
        dj__error_prefix(err, "post hook %s", request->options.common.post_hook);
    }
    dj__strlist_fini(&env);
    free(binary);
    free(python);
    return status;
}
