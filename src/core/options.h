/* SPDX-License-Identifier: MIT */
/* What is derived from the option table: import, layering, comparison and copies. */
#ifndef DJ_CORE_OPTIONS_H
#define DJ_CORE_OPTIONS_H

#include "base/env.h"
#include "base/json.h"
#include <deepjit/launch.h>

size_t dj__option_count(void);
/* The range of an INT row. */
void dj__option_range(size_t index, int64_t *min, int64_t *max);

/*
 * Brings a caller's option struct into the size known here: `in` NULL gives all unset. A size of
 * zero or below the first version's, or unknown fields that are set, is INVALID_ARGUMENT, as is
 * a tri-state that is none. `type` names the struct in messages.
 */
dj_status dj__options_import(const void *in, void *out, size_t known, const char *type,
                             dj_error *err);
dj_status dj__options_validate(dj_option_scope scope, const void *options, dj_error *err);

/* Fields that `options` leaves unset take the value of `defaults`, row by row. */
void dj__options_inherit(dj_option_scope scope, void *options, const void *defaults);

/* Reads the rows of `scope` from the environment into `options`; `lists` (one per table row)
 * keeps what LIST rows point to. */
dj_status dj__options_from_env(dj_option_scope scope, const dj__env *env, void *options,
                               dj__strlist *lists, dj_error *err);

/* All rows of `scope` as members of the open object; unset ones are null. */
void dj__options_json(dj_option_scope scope, const void *options, dj__json *json);

/* Keyed rows only: what makes two raw compile requests the same. */
bool dj__compile_options_equal(const dj_compile_options *a, const dj_compile_options *b);
uint64_t dj__compile_options_hash(const dj_compile_options *options);
/* All rows, deep; callbacks and cancel are not copied. NULL without memory. */
dj_compile_options *dj__compile_options_copy(const dj_compile_options *options);
void dj__compile_options_free(dj_compile_options *options);

#endif
