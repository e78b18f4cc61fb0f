/* SPDX-License-Identifier: MIT */
/* Making and ending runtimes, and finding their driver, compiler and toolchain at first need. */
#include "backend/tool_env.h"
#include "base/error.h"
#include "core/core.h"
#include "core/options.h"
#include <stdlib.h>
#include <string.h>

/* ---- life ------------------------------------------------------------------------------- */

/* In a forked child, which has one thread: no other thread holds our locks or leads a build. */
static void runtime_after_fork(dj__fork_hook *hook)
{
    dj_runtime *runtime = (dj_runtime *)(void *)((char *)hook - offsetof(dj_runtime, fork_hook));
    dj__mutex_init(&runtime->lock);
    dj__flights_after_fork(runtime->kernel_flights);
    dj__flights_after_fork(runtime->artifact_flights);
    dj__memory_after_fork(runtime->memory);
    dj_driver *driver = atomic_load_explicit(&runtime->driver, memory_order_relaxed);
    if (driver == NULL) {
        return;
    }
    const dj_driver_ops *ops = runtime->backend->driver;
    if ((ops->caps & DJ_DRIVER_FORK_SAFE) == 0) {
        atomic_store_explicit(&runtime->lost_device, true, memory_order_relaxed);
    }
    if (ops->after_fork != NULL) {
        ops->after_fork(driver);
    }
}

static void runtime_destroy(dj_runtime *runtime)
{
    dj__fork_hook_remove(&runtime->fork_hook);
    dj__memory_destroy(runtime->memory);
    dj__flights_destroy(runtime->kernel_flights);
    dj__flights_destroy(runtime->artifact_flights);
    free(atomic_load_explicit(&runtime->key_start, memory_order_relaxed));
    dj_compiler *compiler = atomic_load(&runtime->compiler);
    if (compiler != NULL) {
        runtime->backend->compiler->close(compiler);
    }
    dj_driver *driver = atomic_load(&runtime->driver);
    if (driver != NULL) {
        runtime->backend->driver->close(driver);
    }
    dj__toolchain_fini(&runtime->toolchain);
    dj_store_close(runtime->store);
    dj__request_fini(&runtime->plain);
    dj__strlist_fini(&runtime->base_flags);
    dj__strlist_fini(&runtime->keyed_env);
    dj__config_fini(&runtime->config);
    dj__settings_fini(&runtime->settings);
    dj__env_destroy(runtime->env);
    pthread_mutex_destroy(&runtime->lock);
    free(runtime);
}

void dj__runtime_ref(dj_runtime *runtime)
{
    atomic_fetch_add_explicit(&runtime->refs, 1, memory_order_relaxed);
}

void dj__runtime_unref(dj_runtime *runtime)
{
    if (atomic_fetch_sub_explicit(&runtime->refs, 1, memory_order_acq_rel) == 1) {
        runtime_destroy(runtime);
    }
}

dj_runtime *dj_runtime_retain(dj_runtime *runtime)
{
    if (runtime != NULL) {
        atomic_fetch_add_explicit(&runtime->handles, 1, memory_order_relaxed);
    }
    return runtime;
}

void dj_runtime_release(dj_runtime *runtime)
{
    if (runtime == NULL ||
        atomic_fetch_sub_explicit(&runtime->handles, 1, memory_order_acq_rel) != 1) {
        return;
    }
    dj__memory_close(runtime->memory);
    dj__runtime_unref(runtime);
}

const dj_backend *dj_runtime_backend(const dj_runtime *runtime)
{
    return runtime != NULL ? runtime->backend : NULL;
}

/* ---- creation --------------------------------------------------------------------------- */

static dj_status runtime_open_store(dj_runtime *runtime, dj_error *err)
{
    const dj__settings *settings = &runtime->settings;
    const dj__store_config config = {
        .roots = settings->cache_dir,
        .num_roots = settings->num_cache_dir,
        .no_root_reason = settings->no_root_reason,
        .trust = settings->cache_trust,
        .num_trust = settings->num_cache_trust,
        .fsync = settings->fsync,
        .tmpdir = dj__env_raw(runtime->env, "TMPDIR"),
        .env = runtime->env,
        .log = &runtime->log,
        .counters = &runtime->store_counters,
    };
    return dj__tiered_open(&config, &runtime->store, err);
}

static dj_status runtime_open_parts(dj_runtime *runtime, const dj_config *config, dj_error *err)
{
    dj_status status = dj__env_create(config->env_prefix, NULL, &runtime->env, err);
    if (status == DJ_OK) {
        status = dj__settings_read(&runtime->settings, runtime->env, err);
    }
    if (status != DJ_OK) {
        return status;
    }
    runtime->log = (dj__log){config->log, config->log_user, runtime->settings.log_level};
    runtime->diagnostics = (dj__log){config->log, config->log_user, DJ_LOG_DEBUG};
    runtime->context = (dj_backend_context){
        .size = sizeof(runtime->context), .env = runtime->env, .log = &runtime->log};
    status = dj__config_copy(config, &runtime->settings, &runtime->config, err);
    if (status == DJ_OK) {
        status = runtime_open_store(runtime, err);
    }
    if (status == DJ_OK) {
        status = dj__memory_create(&dj__kernel_memory_ops, (size_t)runtime->settings.mem_cache_max,
                                   &runtime->memory, err);
    }
    if (status == DJ_OK) {
        status =
            dj__flights_create(dj__kernel_retain, dj__kernel_drop, &runtime->kernel_flights, err);
    }
    if (status == DJ_OK) {
        status = dj__flights_create(dj__artifact_retain, dj__artifact_drop,
                                    &runtime->artifact_flights, err);
    }
    return status;
}

/* The first back end whose device opens; the last one is taken untried, so that the reason of
 * its absence comes from the call that needs it. */
static void runtime_first_available(dj_runtime *runtime)
{
    for (size_t i = 0; dj_backend_at(i) != NULL; i++) {
        runtime->backend = dj_backend_at(i);
        dj_driver *driver = NULL;
        if (dj_backend_at(i + 1) == NULL || dj__runtime_driver(runtime, &driver, NULL) == DJ_OK) {
            break;
        }
    }
}

static dj_status runtime_named(const char *name, const char *source, const dj_backend **out,
                               dj_error *err)
{
    *out = dj_backend_find(name);
    if (*out != NULL) {
        return DJ_OK;
    }
    dj__strbuf known;
    dj__strbuf_init(&known, 1024);
    for (size_t i = 0; dj_backend_at(i) != NULL; i++) {
        dj__strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", dj_backend_name(dj_backend_at(i)));
    }
    const dj_status status =
        dj__fail(err, DJ_INVALID_ARGUMENT, "%s names the back end '%s', this build has: %s", source,
                 name, dj__strbuf_str(&known));
    dj__strbuf_fini(&known);
    return status;
}

static dj_status runtime_choose(dj_runtime *runtime, const dj_backend *backend,
                                const dj_config *config, dj_error *err)
{
    char variable[256];
    const char *setting = dj__env_setting(runtime->env, "JIT_BACKEND", variable);
    if (backend != NULL) {
        runtime->backend = backend;
        return DJ_OK;
    }
    if (config->backend != NULL) {
        return runtime_named(config->backend, "dj_config.backend", &runtime->backend, err);
    }
    if (setting != NULL) {
        return runtime_named(setting, variable, &runtime->backend, err);
    }
    runtime_first_available(runtime);
    return DJ_OK;
}

/* A request's flags replace the default list; append_flags extends only the default one. */
static dj_status runtime_base_flags(dj_runtime *runtime, dj_error *err)
{
    const dj__strlist *append = &runtime->config.append_flags;
    const char *const *flag = runtime->backend->compiler->default_flags;
    for (; flag != NULL && *flag != NULL; flag++) {
        dj__strlist_add(&runtime->base_flags, *flag);
    }
    dj__strlist_add_all(&runtime->base_flags, dj__strlist_items(append), append->count);
    return dj__strlist_ok(&runtime->base_flags, err);
}

dj_status dj_runtime_create(const dj_backend *backend, const dj_config *config, dj_runtime **out,
                            dj_error *err)
{
    if (out == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "dj_runtime_create: out must not be NULL");
    }
    *out = NULL;
    dj_config known;
    dj_status status = dj__options_import(config, &known, sizeof(known), "dj_config", err);
    if (status != DJ_OK) {
        return status;
    }
    dj__hash_prepare();
    dj_runtime *runtime = calloc(1, sizeof(*runtime));
    if (runtime == NULL) {
        return dj__fail_memory(err);
    }
    atomic_init(&runtime->handles, 1);
    atomic_init(&runtime->refs, 1);
    dj__mutex_init(&runtime->lock);
    dj__strlist_init(&runtime->base_flags);
    dj__strlist_init(&runtime->keyed_env);
    status = runtime_open_parts(runtime, &known, err);
    if (status == DJ_OK) {
        status = runtime_choose(runtime, backend, &known, err);
    }
    if (status == DJ_OK) {
        status = runtime_base_flags(runtime, err);
    }
    if (status == DJ_OK) {
        status = dj__tool_env_keyed(runtime->env, runtime->backend->compiler->keyed_env,
                                    &runtime->keyed_env, err);
    }
    if (status == DJ_OK) {
        runtime->fork_hook.after_fork = runtime_after_fork;
        if (!dj__fork_hook_add(&runtime->fork_hook)) {
            status = dj__fail_memory(err);
        }
    }
    if (status != DJ_OK) {
        runtime_destroy(runtime);
        return status;
    }
    *out = runtime;
    return DJ_OK;
}

/* ---- first need ------------------------------------------------------------------------- */

dj_status dj__runtime_driver(dj_runtime *runtime, dj_driver **out, dj_error *err)
{
    if (atomic_load_explicit(&runtime->lost_device, memory_order_relaxed)) {
        return dj__fail(err, DJ_DEVICE,
                        "the %s device was used before fork() and cannot be used in the child; "
                        "fork before the device's first use, or start a new program",
                        runtime->backend->name);
    }
    dj_driver *driver = atomic_load_explicit(&runtime->driver, memory_order_acquire);
    dj_status status = DJ_OK;
    if (driver == NULL) {
        pthread_mutex_lock(&runtime->lock);
        driver = atomic_load_explicit(&runtime->driver, memory_order_relaxed);
        if (driver == NULL) {
            status = runtime->backend->driver->open(&runtime->context, &driver, err);
            atomic_store_explicit(&runtime->driver, status == DJ_OK ? driver : NULL,
                                  memory_order_release);
        }
        pthread_mutex_unlock(&runtime->lock);
    }
    *out = status == DJ_OK ? driver : NULL;
    return status;
}

dj_status dj__runtime_device(dj_runtime *runtime, const dj_device **out, dj_error *err)
{
    dj_driver *driver = NULL;
    dj_status status = dj__runtime_driver(runtime, &driver, err);
    if (status == DJ_OK && !atomic_load_explicit(&runtime->have_device, memory_order_acquire)) {
        pthread_mutex_lock(&runtime->lock);
        if (!atomic_load_explicit(&runtime->have_device, memory_order_relaxed)) {
            runtime->device = (dj_device){.size = sizeof(runtime->device)};
            status = runtime->backend->driver->device_info(driver, &runtime->device, err);
            atomic_store_explicit(&runtime->have_device, status == DJ_OK, memory_order_release);
        }
        pthread_mutex_unlock(&runtime->lock);
    }
    *out = status == DJ_OK ? &runtime->device : NULL;
    return status;
}

static dj_status runtime_compiler_locked(dj_runtime *runtime, dj_compiler **out, dj_error *err)
{
    *out = atomic_load_explicit(&runtime->compiler, memory_order_relaxed);
    if (*out != NULL) {
        return DJ_OK;
    }
    const dj_status status = runtime->backend->compiler->open(&runtime->context, out, err);
    if (status == DJ_OK) {
        atomic_store_explicit(&runtime->compiler, *out, memory_order_release);
    }
    return status;
}

dj_status dj__runtime_compiler(dj_runtime *runtime, dj_compiler **out, dj_error *err)
{
    *out = atomic_load_explicit(&runtime->compiler, memory_order_acquire);
    if (*out != NULL) {
        return DJ_OK;
    }
    pthread_mutex_lock(&runtime->lock);
    const dj_status status = runtime_compiler_locked(runtime, out, err);
    pthread_mutex_unlock(&runtime->lock);
    return status;
}

/* Memo directories: roots that cannot be used are simply not among them. */
typedef struct runtime_memos {
    char *write;
    dj__strlist read;
    dj__strbuf scope;
    dj__toolchain_dirs dirs;
} runtime_memos;

/* What decides which tools and libraries a compiler driver finds: its keyed environment, PATH and
 * LD_LIBRARY_PATH. */
static void runtime_memo_scope(dj_runtime *runtime, dj__strbuf *scope)
{
    for (size_t i = 0; i < runtime->keyed_env.count; i++) {
        dj__strbuf_printf(scope, "%s\n", runtime->keyed_env.items[i]);
    }
    static const char *const searched[] = {"PATH", "LD_LIBRARY_PATH"};
    for (size_t i = 0; i < 2; i++) {
        const char *value = dj__env_raw(runtime->env, searched[i]);
        dj__strbuf_printf(scope, "%s=%s\n", searched[i], value != NULL ? value : "");
    }
}

static void runtime_memos_init(dj_runtime *runtime, runtime_memos *memos)
{
    memset(memos, 0, sizeof(*memos));
    dj__strlist_init(&memos->read);
    dj__strbuf_init(&memos->scope, (size_t)1 << 20);
    if (dj__tiered_subdir(runtime->store, "toolchains", true, 0, &memos->write, NULL) != DJ_OK) {
        memos->write = NULL;
    }
    for (size_t i = 0; i < runtime->settings.num_cache_dir; i++) {
        char *path = NULL;
        if (dj__tiered_subdir(runtime->store, "toolchains", false, i, &path, NULL) == DJ_OK) {
            dj__strlist_add(&memos->read, path);
        }
        free(path);
    }
    runtime_memo_scope(runtime, &memos->scope);
    memos->dirs = (dj__toolchain_dirs){
        .write = memos->write,
        .read = dj__strlist_items(&memos->read),
        .num_read = memos->read.count,
        .scope = dj__strbuf_str(&memos->scope),
    };
}

static void runtime_memos_fini(runtime_memos *memos)
{
    free(memos->write);
    dj__strlist_fini(&memos->read);
    dj__strbuf_fini(&memos->scope);
}

static dj_status runtime_identify(dj_runtime *runtime, dj_compiler *compiler, dj__toolchain *out,
                                  dj_error *err)
{
    runtime_memos memos;
    runtime_memos_init(runtime, &memos);
    const dj_status status =
        dj__toolchain_identify(runtime->backend->compiler, compiler, runtime->backend->name,
                               &memos.dirs, &runtime->log, out, err);
    runtime_memos_fini(&memos);
    return status;
}

static dj_status runtime_identify_locked(dj_runtime *runtime, dj_error *err)
{
    dj_compiler *compiler = NULL;
    dj_status status = runtime_compiler_locked(runtime, &compiler, err);
    if (status == DJ_OK) {
        status = runtime_identify(runtime, compiler, &runtime->toolchain, err);
    }
    if (status == DJ_OK) {
        atomic_store_explicit(&runtime->have_toolchain, true, memory_order_release);
    }
    return status;
}

bool dj__runtime_toolchain_current(dj_runtime *runtime)
{
    dj_compiler *compiler = NULL;
    if (dj__runtime_compiler(runtime, &compiler, NULL) != DJ_OK) {
        return false;
    }
    if (dj__toolchain_is_current(runtime->backend->compiler, compiler, &runtime->toolchain)) {
        return true;
    }
    dj__toolchain now = {0};
    const bool same = runtime_identify(runtime, compiler, &now, NULL) == DJ_OK &&
                      strcmp(now.identity, runtime->toolchain.identity) == 0;
    dj__toolchain_fini(&now);
    return same;
}

dj_status dj__runtime_toolchain(dj_runtime *runtime, const dj__toolchain **out, dj_error *err)
{
    dj_status status = DJ_OK;
    if (!atomic_load_explicit(&runtime->have_toolchain, memory_order_acquire)) {
        pthread_mutex_lock(&runtime->lock);
        if (!atomic_load_explicit(&runtime->have_toolchain, memory_order_relaxed)) {
            status = runtime_identify_locked(runtime, err);
        }
        pthread_mutex_unlock(&runtime->lock);
    }
    *out = status == DJ_OK ? &runtime->toolchain : NULL;
    return status;
}

dj_status dj__runtime_recorded(dj_runtime *runtime, dj__strlist *out, dj_error *err)
{
    runtime_memos memos;
    runtime_memos_init(runtime, &memos);
    const dj_status status = dj__toolchain_recorded(runtime->backend->name, &memos.dirs, out, err);
    runtime_memos_fini(&memos);
    return status;
}
