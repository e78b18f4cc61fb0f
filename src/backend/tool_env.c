/* SPDX-License-Identifier: MIT */
/* Builds the environment of tools. Each variable appears once; a name that is both ours and the
 * user's keeps our value. */
#include "backend/tool_env.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

/* Passed on but not keyed: they say where things are, not what is generated. */
static const char *const tool_env_passed[] = {"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", NULL};

static bool tool_env_has(const dj__strlist *list, const char *name, size_t size)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strncmp(list->items[i], name, size) == 0 && list->items[i][size] == '=') {
            return true;
        }
    }
    return false;
}

static void tool_env_add(const dj__env *env, const char *name, dj__strlist *out)
{
    const char *value = dj__env_raw(env, name);
    if (value != NULL && !tool_env_has(out, name, strlen(name))) {
        dj__strlist_addf(out, "%s=%s", name, value);
    }
}

static void tool_env_add_all(const dj__env *env, const char *const *names, dj__strlist *out)
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        tool_env_add(env, names[i], out);
    }
}

static bool tool_env_is_name(const char *text, size_t size)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return size > 0 && strchr(first, text[0]) != NULL && strspn(text, rest) >= size;
}

/* The variables that the user named in JIT_COMPILER_ENV. */
static dj_status tool_env_add_user(const dj__env *env, dj__strlist *out, dj_error *err)
{
    char setting[256];
    const char *text = dj__env_setting(env, "JIT_COMPILER_ENV", setting);
    if (text == NULL || text[0] == '\0') {
        return DJ_OK;
    }
    dj__strlist names;
    dj__strlist_init(&names);
    dj_status status = DJ_OK;
    for (const char *at = text; at != NULL;) {
        const size_t size = strcspn(at, ":,");
        if (!tool_env_is_name(at, size)) {
            status = dj__fail(err, DJ_INVALID_ARGUMENT,
                              "invalid value for %s: %s (expected names of environment variables "
                              "separated by ':' or ',')",
                              setting, text);
            goto out;
        }
        dj__strlist_addn(&names, at, size);
        at = at[size] != '\0' ? at + size + 1 : NULL;
    }
    status = dj__strlist_ok(&names, err);
    if (status == DJ_OK) {
        tool_env_add_all(env, dj__strlist_items(&names), out);
    }
out:
    dj__strlist_fini(&names);
    return status;
}

static int tool_env_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static dj_status tool_env_finish(const dj__env *env, const char *const *keyed, dj__strlist *out,
                                 dj_error *err)
{
    tool_env_add_all(env, keyed, out);
    dj_status status = tool_env_add_user(env, out, err);
    if (status == DJ_OK) {
        status = dj__strlist_ok(out, err);
    }
    if (status == DJ_OK && out->count > 1) {
        qsort(out->items, out->count, sizeof out->items[0], tool_env_compare);
    }
    return status;
}

dj_status dj__tool_env(const dj__env *env, const char *const *keyed, dj__strlist *envp,
                       dj_error *err)
{
    dj__strlist_add(envp, "LC_ALL=C");
    tool_env_add_all(env, tool_env_passed, envp);
    return tool_env_finish(env, keyed, envp, err);
}

dj_status dj__tool_env_keyed(const dj__env *env, const char *const *keyed, dj__strlist *out,
                             dj_error *err)
{
    return tool_env_finish(env, keyed, out, err);
}
