/* SPDX-License-Identifier: MIT */
/*
 * The one function that decides what a request key covers. docs/key.md explains the fields.
 *
 * Left out on purpose: tag, dumps, cache paths, include-dir paths, everything that only prints.
 * So the same inputs from another install path, user or node give the same key.
 */
#include "base/error.h"
#include "compile/include_scan.h"
#include "core/core.h"
#include "core/prelude.h"

static void key_include(void *user, const char *name, const char *path, const void *data,
                        size_t size)
{
    (void)path;
    dj__key *key = user;
    dj__key_text(key, "include", name);
    dj__key_field(key, "include content", data, size);
}

static dj_status key_includes(const dj_runtime *runtime, const dj__request *request, dj__key *key,
                              dj_error *err)
{
    const dj__config *config = &runtime->config;
    const dj__scan_config scan = {
        .dirs = dj__strlist_items(&config->include_dirs),
        .num_dirs = config->include_dirs.count,
        .prefixes = dj__strlist_items(&config->include_prefixes),
        .num_prefixes = config->include_prefixes.count,
    };
    return dj__include_scan(&scan, request->source, request->size, key_include, key, err);
}

dj_status dj__request_key(dj_runtime *runtime, dj__request *request, const char *identity,
                          dj_key_field_fn visit, void *user, dj_error *err)
{
    dj__key key;
    dj__key_init(&key, visit, user);
    dj__key_text(&key, "backend", runtime->backend->name);
    dj__key_text(&key, "toolchain", identity);
    dj__key_text(&key, "arch", request->arch);
    for (size_t i = 0; i < request->flags.count; i++) {
        dj__key_text(&key, "flag", request->flags.items[i]);
    }
    if (request->source_dir != NULL) {
        dj__key_text(&key, "source directory", request->source_dir);
    }
    if (request->hook_path != NULL) {
        dj__key_text(&key, "post hook", request->options.common.post_hook);
        dj__key_field(&key, "post hook content", request->hook_data, request->hook_size);
    }
    dj__key_field(&key, "extra signature", runtime->config.extra_signature,
                  runtime->config.extra_signature_size);
    for (size_t i = 0; i < runtime->keyed_env.count; i++) {
        dj__key_text(&key, "environment", runtime->keyed_env.items[i]);
    }
    dj__key_text(&key, "prelude", dj__prelude_digest);
    dj__key_share(&key, &runtime->key_start);
    dj__key_field(&key, "source", request->source, request->size);
    const dj_status status = key_includes(runtime, request, &key, err);
    if (status == DJ_OK) {
        dj__key_final(&key, request->key);
    }
    return status;
}

dj_status dj_explain(dj_runtime *runtime, const char *tag, const char *source, size_t size,
                     const dj_compile_options *options, dj_key_field_fn visit, void *user,
                     char key[33], dj_error *err)
{
    if (key != NULL) {
        key[0] = '\0';
    }
    dj_status status = dj__check_call(runtime, tag, source, size, err);
    if (status == DJ_OK && key == NULL) {
        status = dj__fail(err, DJ_INVALID_ARGUMENT, "dj_explain: key must not be NULL");
    }
    if (status != DJ_OK) {
        return status;
    }
    dj__request request;
    status = dj__request_init(runtime, tag, source, size, options, &request, err);
    if (status != DJ_OK) {
        return status;
    }
    const dj__toolchain *toolchain = NULL;
    status = dj__runtime_toolchain(runtime, &toolchain, err);
    if (status == DJ_OK) {
        status = dj__request_key(runtime, &request, toolchain->identity, visit, user, err);
    }
    if (status == DJ_OK) {
        for (size_t i = 0; i < DJ__HEX_SIZE; i++) {
            key[i] = request.key[i];
        }
    }
    dj__request_fini(&request);
    return status;
}
