/* SPDX-License-Identifier: MIT */
/* Reading the RUNTIME rows of the option table, and what follows from them. */
#include "core/settings.h"

#include "base/error.h"
#include "base/fs.h"
#include "cache/trust.h"
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *settings_absolute(const char *path)
{
    if (path[0] == '/') {
        return dj__path_normalize(path);
    }
    char *cwd = getcwd(NULL, 0);
    if (cwd == NULL) {
        return NULL;
    }
    char *joined = dj__format("%s/%s", cwd, path);
    free(cwd);
    char *normal = joined != NULL ? dj__path_normalize(joined) : NULL;
    free(joined);
    return normal;
}

/* HOME as a person would mean it: the variable, else the account's directory. */
static char *settings_home(const dj__env *env)
{
    const char *home = dj__env_raw(env, "HOME");
    if (home != NULL && home[0] == '/') {
        return dj__path_normalize(home);
    }
    struct passwd entry;
    struct passwd *found = NULL;
    char text[4096];
    if (getpwuid_r(geteuid(), &entry, text, sizeof(text), &found) == 0 && found != NULL &&
        found->pw_dir != NULL && found->pw_dir[0] == '/') {
        return dj__path_normalize(found->pw_dir);
    }
    return NULL;
}

static dj_status settings_roots(dj__settings *settings, const dj__env *env, dj_error *err)
{
    dj__strlist *roots = &settings->roots;
    char name[256];
    dj__env_name(env, "JIT_CACHE_DIR", name);
    for (size_t i = 0; i < settings->num_cache_dir; i++) {
        char *path = settings_absolute(settings->cache_dir[i]);
        if (path == NULL) {
            return dj__fail(err, DJ_INVALID_ARGUMENT,
                            "%s: %s cannot be made absolute (is the working directory gone?)", name,
                            settings->cache_dir[i]);
        }
        dj__strlist_add(roots, path);
        free(path);
    }
    if (settings->num_cache_dir == 0) {
        char *home = settings_home(env);
        if (home != NULL) {
            dj__strlist_addf(roots, "%s/.dj", strcmp(home, "/") == 0 ? "" : home);
        } else {
            settings->no_root_reason = dj__format(
                "HOME is not set and this user has no home directory; set %s to a directory", name);
        }
        free(home);
    }
    settings->cache_dir = dj__strlist_items(roots);
    settings->num_cache_dir = roots->count;
    return dj__strlist_ok(roots, err);
}

static dj_status settings_words(dj__settings *settings, const dj__env *env, dj_error *err)
{
    char name[256];
    settings->log_level = DJ_LOG_WARN;
    if (settings->log != NULL && !dj__log_parse_level(settings->log, &settings->log_level)) {
        dj__env_setting(env, "JIT_LOG", name);
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid value for %s: %s (accepted: off, error, warn, info, debug)", name,
                        settings->log);
    }
    static const char *const modes[] = {"none", "file", "full"};
    settings->fsync = DJ__FSYNC_FULL;
    if (settings->cache_fsync == NULL) {
        return DJ_OK;
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(settings->cache_fsync, modes[i]) == 0) {
            settings->fsync = (dj__fsync_mode)i;
            return DJ_OK;
        }
    }
    dj__env_setting(env, "JIT_CACHE_FSYNC", name);
    return dj__fail(err, DJ_INVALID_ARGUMENT,
                    "invalid value for %s: %s (accepted: none, file, full)", name,
                    settings->cache_fsync);
}

static void settings_debug(dj__settings *settings)
{
    if (settings->debug != DJ_ON) {
        return;
    }
    dj_tri *const implied[] = {&settings->print_compiler_command, &settings->print_load_time,
                               &settings->compile.common.dump_asm,
                               &settings->compile.cuda.ptxas_verbose,
                               &settings->compile.cuda.with_line_info};
    for (size_t i = 0; i < sizeof(implied) / sizeof(implied[0]); i++) {
        if (*implied[i] == DJ_DEFAULT) {
            *implied[i] = DJ_ON;
        }
    }
}

dj_status dj__settings_read(dj__settings *settings, const dj__env *env, dj_error *err)
{
    memset(settings, 0, sizeof(*settings));
    settings->compile_timeout = 600;
    settings->mem_cache_max = 4096;
    dj__strlist_init(&settings->roots);
    settings->lists = calloc(dj__option_count(), sizeof(*settings->lists));
    if (settings->lists == NULL) {
        return dj__fail_memory(err);
    }
    dj_status status = dj__options_from_env(DJ_SCOPE_RUNTIME, env, settings, settings->lists, err);
    if (status == DJ_OK) {
        status = dj__compile_set_from_env(env, &settings->compile, settings->lists, err);
    }
    if (status == DJ_OK) {
        status = dj__launch_set_from_env(env, &settings->launch, settings->lists, err);
    }
    if (status == DJ_OK) {
        status = settings_words(settings, env, err);
    }
    if (status == DJ_OK) {
        status = dj__trust_validate(settings->cache_trust, settings->num_cache_trust, env, err);
    }
    if (status == DJ_OK) {
        status = settings_roots(settings, env, err);
    }
    settings_debug(settings);
    if (status != DJ_OK) {
        dj__settings_fini(settings);
    }
    return status;
}

void dj__settings_fini(dj__settings *settings)
{
    for (size_t i = 0; settings->lists != NULL && i < dj__option_count(); i++) {
        dj__strlist_fini(&settings->lists[i]);
    }
    free(settings->lists);
    dj__strlist_fini(&settings->roots);
    free(settings->no_root_reason);
    memset(settings, 0, sizeof(*settings));
}
