/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of the environment and the settings in it: <prefix>_<suffix>, then DJ_<suffix>.
 * Plain <suffix> is never read. Immutable after creation.
 *
 * Values: booleans are true/false/yes/no in any case or an integer; integers are decimal,
 * optional leading '-', whole string. The error text is the original's, "invalid value for
 * <NAME>: <raw>", followed by the accepted forms.
 */
#ifndef DJ_BASE_ENV_H
#define DJ_BASE_ENV_H

#include "base/strbuf.h"

typedef struct dj__env dj__env;

/* `prefix` NULL: DJ_ only. `environment` is environ-like; NULL: the process's. INVALID_ARGUMENT
 * for an empty prefix ("environment variable prefix must not be empty"), for DJ ("DJ is reserved
 * for global environment variables") and for one that is not [A-Za-z_][A-Za-z0-9_]* or longer
 * than 128 bytes. No other thread may change the environment meanwhile (as with getenv). */
dj_status dj__env_create(const char *prefix, char *const *environment, dj__env **out,
                         dj_error *err);
void dj__env_destroy(dj__env *env);

/* A variable by its full name, or NULL. */
const char *dj__env_raw(const dj__env *env, const char *name);
/* A setting by suffix, or NULL. `name` (may be NULL) gets the name of the variable that has the
 * value, or, if none has, of the one to set. */
const char *dj__env_setting(const dj__env *env, const char *suffix, char name[256]);
/* The name a user should set: "<prefix>_<suffix>", or "DJ_<suffix>" without prefix. */
void dj__env_name(const dj__env *env, const char *suffix, char name[256]);

/* Unset leaves *out alone. */
dj_status dj__env_bool(const dj__env *env, const char *suffix, bool *out, dj_error *err);
dj_status dj__env_int(const dj__env *env, const char *suffix, int64_t min, int64_t max,
                      int64_t *out, dj_error *err);
/* Colon-separated, no empty elements: "<NAME> contains an empty path: <raw>". Unset: empty. */
dj_status dj__env_list(const dj__env *env, const char *suffix, dj__strlist *out, dj_error *err);

/* The parsers alone, for other sources of text. */
bool dj__parse_bool(const char *text, bool *out);
bool dj__parse_int(const char *text, int64_t *out);

#endif
