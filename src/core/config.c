/* SPDX-License-Identifier: MIT */
/* Checking and copying dj_config. Rules and texts of the original's Config. */
#include "base/error.h"
#include "base/fs.h"
#include "core/core.h"
#include "core/options.h"
#include <stdlib.h>
#include <string.h>

static dj_status config_path(const char *path, const char *what, char **out, dj_error *err)
{
    if (path == NULL || path[0] == '\0') {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "%s must not be empty", what);
    }
    if (path[0] != '/') {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "%s must be absolute: %s", what, path);
    }
    *out = dj__path_normalize(path);
    return *out != NULL ? DJ_OK : dj__fail_memory(err);
}

static dj_status config_include_dirs(const dj_config *in, dj__config *out, dj_error *err)
{
    if (in->include_dirs == NULL && in->num_include_dirs != 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "include_dirs is NULL but its count is %zu",
                        in->num_include_dirs);
    }
    for (size_t i = 0; i < in->num_include_dirs; i++) {
        char *path = NULL;
        const dj_status status =
            config_path(in->include_dirs[i], "JIT include directory", &path, err);
        if (status != DJ_OK) {
            return status;
        }
        dj__strlist_add(&out->include_dirs, path);
        free(path);
    }
    return dj__strlist_ok(&out->include_dirs, err);
}

static dj_status config_strings(const char *what, const char *const *items, size_t count,
                                dj__strlist *out, dj_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (items == NULL || items[i] == NULL) {
            return dj__fail(err, DJ_INVALID_ARGUMENT, "%s[%zu] is NULL", what, i);
        }
    }
    dj__strlist_add_all(out, items, count);
    return dj__strlist_ok(out, err);
}

/* A vendor's struct with nothing set would make every launch look at each of its fields. */
static void config_drop_unset(dj__launch_set *set)
{
    static const dj_host_launch_options host = DJ_HOST_LAUNCH_OPTIONS_INIT;
    static const dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    if (memcmp(&set->host, &host, sizeof(host)) == 0) {
        set->common.host = NULL;
    }
    if (memcmp(&set->cuda, &cuda, sizeof(cuda)) == 0) {
        set->common.cuda = NULL;
    }
}

static dj_status config_launch(const dj_config *in, const dj__settings *settings, dj__config *out,
                               dj_error *err)
{
    dj_status status = dj__launch_set_import(in->launch_defaults, &out->launch_defaults, err);
    if (status == DJ_OK && out->launch_defaults.common.shared_bytes < 0) {
        status = dj__fail(err, DJ_INVALID_ARGUMENT, "shared-memory size must not be negative");
    }
    dj__launch_set_inherit(&out->launch_defaults, &settings->launch);
    config_drop_unset(&out->launch_defaults);
    return status;
}

/* Program's defaults above the environment's. */
static dj_status config_compile(const dj_config *in, const dj__settings *settings, dj__config *out,
                                dj_error *err)
{
    dj__compile_set options;
    const dj_status status = dj__compile_set_import(in->compile_defaults, &options, err);
    if (status != DJ_OK) {
        return status;
    }
    dj__compile_set_inherit(&options, &settings->compile);
    dj_compile_options *copy = dj__compile_options_copy(&options.common);
    if (copy == NULL) {
        return dj__fail_memory(err);
    }
    copy->on_log = options.common.on_log;
    copy->on_log_user = options.common.on_log_user;
    out->compile_defaults = (dj__compile_set *)(void *)copy;
    return DJ_OK;
}

static dj_status config_signature(const dj_config *in, dj__config *out, dj_error *err)
{
    if (in->extra_signature_size == 0) {
        return DJ_OK;
    }
    if (in->extra_signature == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "extra_signature is NULL but its size is %zu",
                        in->extra_signature_size);
    }
    out->extra_signature = malloc(in->extra_signature_size);
    if (out->extra_signature == NULL) {
        return dj__fail_memory(err);
    }
    memcpy(out->extra_signature, in->extra_signature, in->extra_signature_size);
    out->extra_signature_size = in->extra_signature_size;
    return DJ_OK;
}

dj_status dj__config_copy(const dj_config *in, const dj__settings *settings, dj__config *out,
                          dj_error *err)
{
    memset(out, 0, sizeof(*out));
    dj__strlist_init(&out->include_dirs);
    dj__strlist_init(&out->include_prefixes);
    dj__strlist_init(&out->append_flags);
    out->current_stream = in->current_stream;
    out->current_stream_user = in->current_stream_user;
    dj_status status = DJ_OK;
    if (in->library_root != NULL) {
        status = config_path(in->library_root, "Python library root", &out->library_root, err);
    }
    if (status == DJ_OK) {
        status = config_include_dirs(in, out, err);
    }
    if (status == DJ_OK) {
        status = config_strings("include_prefixes", in->include_prefixes, in->num_include_prefixes,
                                &out->include_prefixes, err);
    }
    if (status == DJ_OK) {
        status = config_strings("append_flags", in->append_flags, in->num_append_flags,
                                &out->append_flags, err);
    }
    if (status == DJ_OK) {
        status = config_signature(in, out, err);
    }
    if (status == DJ_OK) {
        status = config_compile(in, settings, out, err);
    }
    if (status == DJ_OK) {
        status = config_launch(in, settings, out, err);
    }
    if (status != DJ_OK) {
        dj__config_fini(out);
    }
    return status;
}

void dj__config_fini(dj__config *config)
{
    free(config->library_root);
    free(config->extra_signature);
    dj__strlist_fini(&config->include_dirs);
    dj__strlist_fini(&config->include_prefixes);
    dj__strlist_fini(&config->append_flags);
    dj__compile_options_free((dj_compile_options *)(void *)config->compile_defaults);
    memset(config, 0, sizeof(*config));
}
