/* SPDX-License-Identifier: MIT */
/*
 * What is derived from the option table: import, layering, comparison and copies.
 *
 * A set is a common option struct with the vendors' structs behind it, and its vendor pointers
 * lead to them. Options of compilations travel as sets, so that no pointer is NULL; launches take
 * the caller's struct as it is, and in their defaults NULL stands for all unset.
 */
#ifndef DJ_CORE_OPTIONS_H
#define DJ_CORE_OPTIONS_H

#include "base/env.h"
#include "base/json.h"
#include <deepjit/cuda.h>
#include <deepjit/host.h>

typedef struct dj__compile_set {
    dj_compile_options common; /* first: a set is passed as the common struct, too */
    dj_cuda_compile_options cuda;
} dj__compile_set;

typedef struct dj__launch_set {
    dj_launch_options common;
    dj_host_launch_options host;
    dj_cuda_launch_options cuda;
} dj__launch_set;

size_t dj__option_count(void);
/* The range of an INT row. */
void dj__option_range(size_t index, int64_t *min, int64_t *max);

/*
 * Brings a caller's option struct into the size known here: `in` NULL gives all unset. A size of
 * zero or below the first version's is INVALID_ARGUMENT, unknown fields that are set are
 * UNSUPPORTED. `type` names the struct in messages.
 */
dj_status dj__options_import(const void *in, void *out, size_t known, const char *type,
                             dj_error *err);

/* A caller's struct with what it points to, imported and validated. `in` NULL gives all unset. */
dj_status dj__compile_set_import(const dj_compile_options *in, dj__compile_set *out, dj_error *err);
dj_status dj__launch_set_import(const dj_launch_options *in, dj__launch_set *out, dj_error *err);
/* True if the struct, and those it points to, are of the size known here: no import is needed. */
bool dj__compile_options_known(const dj_compile_options *options);
/* The same of a launch's, which nothing validates later: so its switches must be good, too. */
static inline bool dj__launch_options_known(const dj_launch_options *options)
{
    const dj_host_launch_options *host = options->host;
    const dj_cuda_launch_options *cuda = options->cuda;
    return options->size == sizeof(*options) && (host == NULL || host->size == sizeof(*host)) &&
           (cuda == NULL ||
            (cuda->size == sizeof(*cuda) && (unsigned)cuda->cooperative <= DJ_ON &&
             (unsigned)cuda->enable_pdl <= DJ_ON && (unsigned)cuda->nonportable_cluster <= DJ_ON));
}
/* A shallow copy whose vendor pointers lead into itself. */
void dj__compile_set_assign(dj__compile_set *to, const dj__compile_set *from);
/* The vendor's struct in a set, NULL if `scope` is none of its vendors. */
void *dj__compile_set_vendor(dj__compile_set *set, dj_option_scope scope);

/* Fields that `options` leaves unset take the value of `defaults`, row by row. */
void dj__options_inherit(dj_option_scope scope, void *options, const void *defaults);
void dj__compile_set_inherit(dj__compile_set *set, const dj__compile_set *defaults);
void dj__launch_set_inherit(dj__launch_set *set, const dj__launch_set *defaults);

/* Reads the rows of `scope` from the environment into `options`; `lists` (one per table row)
 * keeps what LIST rows point to. */
dj_status dj__options_from_env(dj_option_scope scope, const dj__env *env, void *options,
                               dj__strlist *lists, dj_error *err);
dj_status dj__compile_set_from_env(const dj__env *env, dj__compile_set *out, dj__strlist *lists,
                                   dj_error *err);
dj_status dj__launch_set_from_env(const dj__env *env, dj__launch_set *out, dj__strlist *lists,
                                  dj_error *err);

/* All rows of `scope` as members of the open object; unset ones are null. */
void dj__options_json(dj_option_scope scope, const void *options, dj__json *json);

/* Keyed rows only: what makes two raw compile requests the same. Vendor pointers may be NULL. */
bool dj__compile_options_equal(const dj_compile_options *a, const dj_compile_options *b);
uint64_t dj__compile_options_hash(const dj_compile_options *options);
/* The common part of a new set: all rows, deep; callbacks and cancel are not copied. NULL without
 * memory. */
dj_compile_options *dj__compile_options_copy(const dj_compile_options *options);
void dj__compile_options_free(dj_compile_options *options);

#endif
