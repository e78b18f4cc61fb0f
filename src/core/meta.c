/* SPDX-License-Identifier: MIT */
/* meta.json: how an entry came to be, for people. The library never reads it back. */
#include "base/json.h"
#include "core/core.h"
#include "core/options.h"

static void meta_config(const dj__config *config, dj__json *json)
{
    dj__json_begin_object(json);
    dj__json_key(json, "library_root");
    dj__json_string(json, config->library_root);
    dj__json_key(json, "extra_signature");
    dj__json_bytes(json, config->extra_signature, config->extra_signature_size);
    dj__json_key(json, "include_dirs");
    dj__json_strings(json, dj__strlist_items(&config->include_dirs), config->include_dirs.count);
    dj__json_key(json, "include_prefixes");
    dj__json_strings(json, dj__strlist_items(&config->include_prefixes),
                     config->include_prefixes.count);
    dj__json_end_object(json);
}

static void meta_compiler(const dj__toolchain *toolchain, dj__json *json)
{
    dj__json_begin_object(json);
    dj__json_key(json, "path");
    dj__json_string(json, toolchain->path);
    dj__json_key(json, "version");
    dj__json_string(json, toolchain->version);
    dj__json_key(json, "identity");
    dj__json_string(json, toolchain->identity);
    dj__json_end_object(json);
}

/* Beside the common ones, as the original has them. */
static void meta_vendor_options(dj_option_scope scope, const dj__compile_set *options,
                                dj__json *json)
{
    dj__compile_set copy = *options;
    const void *vendor = dj__compile_set_vendor(&copy, scope);
    if (vendor != NULL) {
        dj__options_json(scope, vendor, json);
    }
}

dj_status dj__meta_write(dj_runtime *runtime, const dj__request *request, const char *command,
                         dj__strbuf *out, dj_error *err)
{
    dj__json json;
    dj__json_init(&json, out);
    dj__json_begin_object(&json);
    dj__json_key(&json, "deepjit");
    dj__json_string(&json, dj_version());
    dj__json_key(&json, "backend");
    dj__json_string(&json, runtime->backend->name);
    dj__json_key(&json, "tag");
    dj__json_string(&json, request->tag);
    dj__json_key(&json, "key");
    dj__json_string(&json, request->key);
    dj__json_key(&json, "arch");
    dj__json_string(&json, request->arch);
    dj__json_key(&json, "command");
    dj__json_string(&json, command);
    dj__json_key(&json, "config");
    meta_config(&runtime->config, &json);
    dj__json_key(&json, "compiler_info");
    meta_compiler(&runtime->toolchain, &json);
    dj__json_key(&json, "compiler_options");
    dj__json_begin_object(&json);
    dj__options_json(DJ_SCOPE_COMPILE, &request->options.common, &json);
    meta_vendor_options(runtime->backend->compiler->vendor_scope, &request->options, &json);
    dj__json_end_object(&json);
    dj__json_end_object(&json);
    dj__strbuf_putc(out, '\n');
    return dj__strbuf_ok(out, err);
}
