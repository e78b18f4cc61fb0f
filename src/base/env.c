/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of the environment: one block with all texts, "NAME\0value\0" each, and an array of
 * variables sorted by name. Of a name that occurs twice the first is kept, as getenv has it.
 */
#include "base/env.h"

#include "base/error.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENV_NAME_SIZE = 256, ENV_PREFIX_MAX = 128 };

static const char env_global_prefix[] = "DJ";

typedef struct env_variable {
    const char *name;
    const char *value;
} env_variable;

struct dj__env {
    char prefix[ENV_PREFIX_MAX + 1]; /* "": only the global one */
    char *block;
    env_variable *variables;
    size_t count;
};

static dj_status env_check_prefix(const char *prefix, dj_error *err)
{
    if (prefix[0] == '\0') {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "environment variable prefix must not be empty");
    }
    if (strcmp(prefix, env_global_prefix) == 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "%s is reserved for global environment variables",
                        env_global_prefix);
    }
    const size_t size = strlen(prefix);
    if (size > ENV_PREFIX_MAX) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "environment variable prefix must not be longer than %d bytes",
                        ENV_PREFIX_MAX);
    }
    static const char letters[] = "_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    if (strspn(prefix, letters) != size || (prefix[0] >= '0' && prefix[0] <= '9')) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "environment variable prefix must be letters, digits and underscores and "
                        "not start with a digit: %s",
                        prefix);
    }
    return DJ_OK;
}

/* By name, then by place in the environment, so that the first of equal names stays first. */
static int env_compare_variables(const void *a, const void *b)
{
    const env_variable *left = a;
    const env_variable *right = b;
    const int order = strcmp(left->name, right->name);
    return order != 0 ? order : (left->name > right->name) - (left->name < right->name);
}

static int env_compare_name(const void *name, const void *variable)
{
    return strcmp(name, ((const env_variable *)variable)->name);
}

static bool env_copy_texts(dj__env *env, char *const *environment)
{
    size_t count = 0;
    size_t size = 0;
    for (; environment[count] != NULL; count++) {
        size += strlen(environment[count]) + 1;
    }
    if (count == 0) {
        return true;
    }
    env->block = malloc(size);
    env->variables = calloc(count, sizeof(*env->variables));
    if (env->block == NULL || env->variables == NULL) {
        return false;
    }
    char *text = env->block;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(environment[i]);
        memcpy(text, environment[i], length + 1);
        char *equals = strchr(text, '=');
        if (equals != NULL && equals != text) {
            *equals = '\0';
            env->variables[env->count++] = (env_variable){.name = text, .value = equals + 1};
        }
        text += length + 1;
    }
    return true;
}

static void env_sort(dj__env *env)
{
    if (env->count == 0) {
        return;
    }
    qsort(env->variables, env->count, sizeof(*env->variables), env_compare_variables);
    size_t kept = 1;
    for (size_t i = 1; i < env->count; i++) {
        if (strcmp(env->variables[i].name, env->variables[kept - 1].name) != 0) {
            env->variables[kept++] = env->variables[i];
        }
    }
    env->count = kept;
}

dj_status dj__env_create(const char *prefix, char *const *environment, dj__env **out, dj_error *err)
{
    *out = NULL;
    if (prefix != NULL) {
        const dj_status status = env_check_prefix(prefix, err);
        if (status != DJ_OK) {
            return status;
        }
    }
    if (environment == NULL) {
        environment = environ;
    }
    dj__env *env = calloc(1, sizeof(*env));
    if (env == NULL) {
        return dj__fail_memory(err);
    }
    if (environment != NULL && !env_copy_texts(env, environment)) {
        dj__env_destroy(env);
        return dj__fail_memory(err);
    }
    if (prefix != NULL) {
        memcpy(env->prefix, prefix, strlen(prefix) + 1);
    }
    env_sort(env);
    *out = env;
    return DJ_OK;
}

void dj__env_destroy(dj__env *env)
{
    if (env == NULL) {
        return;
    }
    free(env->block);
    free(env->variables);
    free(env);
}

const char *dj__env_raw(const dj__env *env, const char *name)
{
    if (env->count == 0) {
        return NULL;
    }
    const env_variable *found =
        bsearch(name, env->variables, env->count, sizeof(*env->variables), env_compare_name);
    return found != NULL ? found->value : NULL;
}

static void env_put_name(char name[ENV_NAME_SIZE], const char *prefix, const char *suffix)
{
    snprintf(name, ENV_NAME_SIZE, "%s_%s", prefix, suffix);
}

void dj__env_name(const dj__env *env, const char *suffix, char name[256])
{
    env_put_name(name, env->prefix[0] != '\0' ? env->prefix : env_global_prefix, suffix);
}

const char *dj__env_setting(const dj__env *env, const char *suffix, char name[256])
{
    char buffer[ENV_NAME_SIZE];
    char *where = name != NULL ? name : buffer;
    dj__env_name(env, suffix, where);
    const char *value = dj__env_raw(env, where);
    if (value == NULL && env->prefix[0] != '\0') {
        env_put_name(where, env_global_prefix, suffix);
        value = dj__env_raw(env, where);
        if (value == NULL) {
            dj__env_name(env, suffix, where);
        }
    }
    return value;
}

dj_status dj__env_bool(const dj__env *env, const char *suffix, bool *out, dj_error *err)
{
    char name[ENV_NAME_SIZE];
    const char *raw = dj__env_setting(env, suffix, name);
    if (raw == NULL || dj__parse_bool(raw, out)) {
        return DJ_OK;
    }
    return dj__fail(err, DJ_INVALID_ARGUMENT,
                    "invalid value for %s: %s (accepted: true, false, yes, no or an integer)", name,
                    raw);
}

dj_status dj__env_int(const dj__env *env, const char *suffix, int64_t min, int64_t max,
                      int64_t *out, dj_error *err)
{
    char name[ENV_NAME_SIZE];
    const char *raw = dj__env_setting(env, suffix, name);
    if (raw == NULL) {
        return DJ_OK;
    }
    int64_t value;
    if (!dj__parse_int(raw, &value) || value < min || value > max) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid value for %s: %s (accepted: an integer from %" PRId64
                        " to %" PRId64 ")",
                        name, raw, min, max);
    }
    *out = value;
    return DJ_OK;
}

dj_status dj__env_list(const dj__env *env, const char *suffix, dj__strlist *out, dj_error *err)
{
    char name[ENV_NAME_SIZE];
    const char *raw = dj__env_setting(env, suffix, name);
    if (raw == NULL) {
        return DJ_OK;
    }
    for (const char *item = raw;; item++) {
        const size_t size = strcspn(item, ":");
        if (size == 0) {
            return dj__fail(err, DJ_INVALID_ARGUMENT,
                            "%s contains an empty path: %s (accepted: one or more paths separated "
                            "by colons; unset it for the default)",
                            name, raw);
        }
        dj__strlist_addn(out, item, size);
        item += size;
        if (*item == '\0') {
            return dj__strlist_ok(out, err);
        }
    }
}

bool dj__parse_bool(const char *text, bool *out)
{
    if (dj__equal_nocase(text, "true") || dj__equal_nocase(text, "yes")) {
        *out = true;
        return true;
    }
    if (dj__equal_nocase(text, "false") || dj__equal_nocase(text, "no")) {
        *out = false;
        return true;
    }
    int64_t number;
    if (!dj__parse_int(text, &number)) {
        return false;
    }
    *out = number != 0;
    return true;
}

bool dj__parse_int(const char *text, int64_t *out)
{
    const bool negative = text[0] == '-';
    const char *digit = text + (negative ? 1 : 0);
    if (*digit == '\0') {
        return false;
    }
    /* Counted downwards, because INT64_MIN has no positive counterpart. */
    int64_t value = 0;
    for (; *digit != '\0'; digit++) {
        if (*digit < '0' || *digit > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *digit - '0', &value)) {
            return false;
        }
    }
    if (!negative && value == INT64_MIN) {
        return false;
    }
    *out = negative ? value : -value;
    return true;
}
