/* SPDX-License-Identifier: MIT */
/* From a call's arguments to a request with every default filled in. */
#include "base/error.h"
#include "cache/root.h"
#include "core/core.h"
#include "core/options.h"
#include <stdlib.h>
#include <string.h>

#define SOURCE_LIMIT ((size_t)64 << 20)

/* Runs on every call, hits included: no library call per character. */
static bool request_tag_ok(const char *tag)
{
    size_t i = 0;
    for (; tag[i] != '\0'; i++) {
        const char c = tag[i];
        const bool word =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!word || i >= DJ__TAG_LIMIT) {
            return false;
        }
    }
    return i > 0;
}

dj_status dj__check_call(const dj_runtime *runtime, const char *tag, const char *source,
                         size_t size, dj_error *err)
{
    if (runtime == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "runtime must not be NULL");
    }
    if (tag == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "cache tag must not be NULL");
    }
    if (!request_tag_ok(tag)) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "cache tag must contain only letters, digits, or underscores (1 to %d): "
                        "'%.200s'",
                        DJ__TAG_LIMIT, tag);
    }
    if (source == NULL && size != 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "source is NULL but its size is %zu", size);
    }
    if (size > SOURCE_LIMIT) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "source has %zu bytes, at most %zu are allowed",
                        size, SOURCE_LIMIT);
    }
    return DJ_OK;
}

static void request_base_flags(const dj_runtime *runtime, dj_compile_options *options)
{
    if (options->flags == NULL) {
        options->flags = dj__strlist_items(&runtime->base_flags);
        options->num_flags = runtime->base_flags.count;
    }
}

static void request_builtin_defaults(const dj_runtime *runtime, dj_compile_options *options)
{
    const dj_compile_options builtin = {
        .size = sizeof(builtin),
        .optimize_level = runtime->backend->compiler->default_optimize_level,
        .debug_info = DJ_OFF,
        .fast_math = DJ_OFF,
        .dump_asm = DJ_OFF,
        .single_kernel = DJ_OFF,
        .post_hook = "",
    };
    dj__options_inherit(DJ_SCOPE_COMPILE, options, &builtin);
}

/* Every option the compiler knows has a value afterwards. */
static void request_defaults(const dj_runtime *runtime, dj__request *request)
{
    const dj_compiler_ops *ops = runtime->backend->compiler;
    const dj__compile_set *defaults = runtime->config.compile_defaults;
    dj__compile_set *options = &request->options;
    dj__compile_set_inherit(options, defaults);
    if (options->common.on_log == NULL) {
        options->common.on_log = defaults->common.on_log;
        options->common.on_log_user = defaults->common.on_log_user;
    }
    request_builtin_defaults(runtime, &options->common);
    if (ops->complete != NULL) {
        ops->complete(&options->common, dj__compile_set_vendor(options, ops->vendor_scope));
    }
}

static bool request_names_source(const dj_runtime *runtime, const dj__request *request)
{
    const dj_compiler_ops *ops = runtime->backend->compiler;
    const dj_compile_options *options = &request->options.common;
    return ops->names_source != NULL ? ops->names_source(options) : options->debug_info == DJ_ON;
}

static dj_status request_arch(dj_runtime *runtime, dj__request *request, dj_error *err)
{
    if (request->options.common.arch != NULL) {
        request->arch = request->options.common.arch;
        return DJ_OK;
    }
    const dj_device *device = NULL;
    const dj_status status = dj__runtime_device(runtime, &device, err);
    request->arch = device != NULL ? device->arch : NULL;
    return status;
}

static dj_status request_fill(dj_runtime *runtime, dj__request *request, dj_error *err)
{
    request_defaults(runtime, request);
    request_base_flags(runtime, &request->options.common);
    dj_status status = request_arch(runtime, request, err);
    dj_compiler *compiler = NULL;
    if (status == DJ_OK) {
        status = dj__runtime_compiler(runtime, &compiler, err);
    }
    if (status == DJ_OK) {
        status = runtime->backend->compiler->flags(compiler, &request->options.common,
                                                   request->arch, &request->flags, err);
    }
    if (status == DJ_OK) {
        status = dj__strlist_ok(&request->flags, err);
    }
    if (status == DJ_OK && request->options.common.post_hook[0] != '\0') {
        status = dj__hook_read(runtime, request->options.common.post_hook, &request->hook_path,
                               &request->hook_data, &request->hook_size, err);
    }
    if (status == DJ_OK && request_names_source(runtime, request) &&
        runtime->settings.num_cache_dir > 0) {
        request->source_dir = dj__format("%s/" DJ__DIR_SOURCES, runtime->settings.cache_dir[0]);
        status = request->source_dir != NULL ? DJ_OK : dj__fail_memory(err);
    }
    return status;
}

/* ---- calls without options ---- */

/* Their options, flags and architecture are the same for the runtime's life, and most calls are
 * such: the first one's are kept, and lent to the others. */
static bool request_is_plain(const dj_compile_options *options)
{
    static const dj_compile_options unset = {.size = sizeof(unset)};
    return options == NULL ||
           (options->size == sizeof(unset) && memcmp(options, &unset, sizeof(unset)) == 0);
}

static void request_lend(const dj__request *from, dj__request *to)
{
    dj__compile_set_assign(&to->options, &from->options);
    to->arch = from->arch;
    to->flags = from->flags;
    to->source_dir = from->source_dir;
    to->borrows = true;
}

/* The runtime takes over what `request` has, unless another thread was first. A hook is read for
 * each request anew. */
static void request_keep_plain(dj_runtime *runtime, dj__request *request)
{
    if (request->hook_path != NULL) {
        return;
    }
    pthread_mutex_lock(&runtime->lock);
    if (!atomic_load_explicit(&runtime->have_plain, memory_order_relaxed)) {
        request_lend(request, &runtime->plain);
        runtime->plain.borrows = false;
        request->borrows = true;
        atomic_store_explicit(&runtime->have_plain, true, memory_order_release);
    }
    pthread_mutex_unlock(&runtime->lock);
}

dj_status dj__request_init(dj_runtime *runtime, const char *tag, const char *source, size_t size,
                           const dj_compile_options *options, dj__request *out, dj_error *err)
{
    memset(out, 0, sizeof(*out));
    dj__strlist_init(&out->flags);
    out->tag = tag;
    out->source = source != NULL ? source : "";
    out->size = size;
    const bool plain = request_is_plain(options) &&
                       !atomic_load_explicit(&runtime->lost_device, memory_order_relaxed);
    if (plain && atomic_load_explicit(&runtime->have_plain, memory_order_acquire)) {
        request_lend(&runtime->plain, out);
        return DJ_OK;
    }
    dj_status status = dj__compile_set_import(options, &out->options, err);
    if (status == DJ_OK) {
        status = request_fill(runtime, out, err);
    }
    if (status == DJ_OK && plain) {
        request_keep_plain(runtime, out);
    }
    if (status != DJ_OK) {
        dj__request_fini(out);
    }
    return status;
}

void dj__request_fini(dj__request *request)
{
    if (!request->borrows) {
        dj__strlist_fini(&request->flags);
        free(request->source_dir);
    }
    free(request->hook_path);
    free(request->hook_data);
    memset(request, 0, sizeof(*request));
}
