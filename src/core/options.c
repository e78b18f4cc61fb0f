/* SPDX-License-Identifier: MIT */
/*
 * The option table and everything that is derived from it. A field of an option struct is
 * touched only through its row, so a new option is one row and one struct field.
 */
#include "core/options.h"

#include "base/error.h"
#include "base/hash.h"
#include "core/settings.h"
#include <stdlib.h>
#include <string.h>

typedef struct option_row {
    dj_option pub;
    int64_t min;
    int64_t max;
} option_row;

#define ROW_STRUCT_RUNTIME dj__settings
#define ROW_STRUCT_COMPILE dj_compile_options
#define ROW_STRUCT_LAUNCH dj_launch_options
#define ROW_STRUCT_HOST_LAUNCH dj_host_launch_options
#define ROW_STRUCT_CUDA_COMPILE dj_cuda_compile_options
#define ROW_STRUCT_CUDA_LAUNCH dj_cuda_launch_options

static const option_row option_table[] = {
#define OPTION(scope_, type_, field_, env_, default_, keyed_, min_, max_, doc_)                    \
    {{.name = #field_,                                                                             \
      .scope = DJ_SCOPE_##scope_,                                                                  \
      .type = DJ_TYPE_##type_,                                                                     \
      .env = env_,                                                                                 \
      .default_text = default_,                                                                    \
      .keyed = keyed_,                                                                             \
      .doc = doc_,                                                                                 \
      .offset = offsetof(ROW_STRUCT_##scope_, field_)},                                            \
     min_,                                                                                         \
     max_},
#include "core/options.def"
#undef OPTION
};

enum { OPTION_COUNT = sizeof(option_table) / sizeof(option_table[0]) };

/* The rows of a scope stand together, and each compilation goes through some of them many times. */
static const unsigned char option_scopes[] = {
#define OPTION(scope_, type_, field_, env_, default_, keyed_, min_, max_, doc_) DJ_SCOPE_##scope_,
#include "core/options.def"
#undef OPTION
};

static inline size_t option_first(dj_option_scope scope)
{
    const unsigned char *first = memchr(option_scopes, (int)scope, OPTION_COUNT);
    return first != NULL ? (size_t)(first - option_scopes) : OPTION_COUNT;
}

static inline bool option_is_of(size_t index, dj_option_scope scope)
{
    return index < OPTION_COUNT && option_scopes[index] == (unsigned char)scope;
}

/* Which structs hang on which: `pointer` in the common struct leads to `member` of the set. */
typedef struct option_vendor {
    dj_option_scope common;
    dj_option_scope scope;
    size_t pointer;
    size_t member;
    size_t size;
    const char *type;
} option_vendor;

#define VENDOR(common_, scope_, set_, type_, field_)                                               \
    {                                                                                              \
        .common = DJ_SCOPE_##common_, .scope = DJ_SCOPE_##scope_,                                  \
        .pointer = offsetof(set_, common.field_), .member = offsetof(set_, field_),                \
        .size = sizeof(type_), .type = #type_                                                      \
    }
static const option_vendor option_vendors[] = {
    VENDOR(COMPILE, CUDA_COMPILE, dj__compile_set, dj_cuda_compile_options, cuda),
    VENDOR(LAUNCH, HOST_LAUNCH, dj__launch_set, dj_host_launch_options, host),
    VENDOR(LAUNCH, CUDA_LAUNCH, dj__launch_set, dj_cuda_launch_options, cuda),
};
#undef VENDOR

enum { VENDOR_COUNT = sizeof(option_vendors) / sizeof(option_vendors[0]) };

/* What hangs on a common struct, NULL if nothing does. */
static inline const void *vendor_given(const option_vendor *vendor, const void *common)
{
    const void *given;
    memcpy(&given, (const char *)common + vendor->pointer, sizeof(given));
    return given;
}

/* A list field is a pointer with its count right behind it, in every struct. */
typedef struct option_list {
    const char *const *items;
    size_t count;
} option_list;

static inline void *option_field(const option_row *row, void *options)
{
    return (char *)options + row->pub.offset;
}

static inline const void *option_const_field(const option_row *row, const void *options)
{
    return (const char *)options + row->pub.offset;
}

static inline dj_tri option_tri(const option_row *row, const void *options)
{
    return *(const dj_tri *)option_const_field(row, options);
}

static inline const char *option_string(const option_row *row, const void *options)
{
    return *(const char *const *)option_const_field(row, options);
}

static inline const option_list *option_as_list(const option_row *row, const void *options)
{
    return option_const_field(row, options);
}

static size_t option_size(dj_option_type type)
{
    switch (type) {
    case DJ_TYPE_TRI:
        return sizeof(dj_tri);
    case DJ_TYPE_INT:
        return sizeof(int64_t);
    case DJ_TYPE_STRING:
        return sizeof(const char *);
    case DJ_TYPE_LIST:
        return sizeof(option_list);
    case DJ_TYPE_DIM3:
        return sizeof(dj_dim3);
    }
    return 0;
}

size_t dj__option_count(void)
{
    return OPTION_COUNT;
}

void dj__option_range(size_t index, int64_t *min, int64_t *max)
{
    *min = option_table[index].min;
    *max = option_table[index].max;
}

const dj_option *dj_option_at(size_t index)
{
    return index < OPTION_COUNT ? &option_table[index].pub : NULL;
}

/* ---- callers' structs ------------------------------------------------------------------- */

dj_status dj__options_import(const void *in, void *out, size_t known, const char *type,
                             dj_error *err)
{
    memset(out, 0, known);
    memcpy(out, &known, sizeof(known));
    if (in == NULL) {
        return DJ_OK;
    }
    size_t size;
    memcpy(&size, in, sizeof(size));
    /* This is the first version of every struct, so nothing smaller than `known` exists yet. */
    if (size < known || size > 65536) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "%s.size is %zu, expected %zu or more; start from the struct's INIT macro",
                        type, size, known);
    }
    const char *bytes = in;
    for (size_t i = known; i < size; i++) {
        if (bytes[i] != 0) {
            return dj__fail(err, DJ_UNSUPPORTED,
                            "%s has a field set that this version (%s) does not know", type,
                            dj_version());
        }
    }
    memcpy(out, in, known);
    memcpy(out, &known, sizeof(known));
    return DJ_OK;
}

static dj_status option_check(const option_row *row, const void *options, dj_error *err)
{
    if (row->pub.type == DJ_TYPE_TRI) {
        const dj_tri value = option_tri(row, options);
        if (value != DJ_DEFAULT && value != DJ_OFF && value != DJ_ON) {
            return dj__fail(err, DJ_INVALID_ARGUMENT,
                            "option %s is %d, expected DJ_DEFAULT, DJ_OFF or DJ_ON", row->pub.name,
                            (int)value);
        }
    }
    if (row->pub.type == DJ_TYPE_LIST) {
        const option_list *list = option_as_list(row, options);
        if (list->items == NULL && list->count != 0) {
            return dj__fail(err, DJ_INVALID_ARGUMENT, "option %s is NULL but its count is %zu",
                            row->pub.name, list->count);
        }
        for (size_t i = 0; i < list->count; i++) {
            if (list->items[i] == NULL) {
                return dj__fail(err, DJ_INVALID_ARGUMENT, "option %s: element %zu is NULL",
                                row->pub.name, i);
            }
        }
    }
    return DJ_OK;
}

static dj_status options_validate(dj_option_scope scope, const void *options, dj_error *err)
{
    for (size_t i = option_first(scope); option_is_of(i, scope); i++) {
        const dj_status status = option_check(&option_table[i], options, err);
        if (status != DJ_OK) {
            return status;
        }
    }
    return DJ_OK;
}

static bool option_is_set(const option_row *row, const void *options)
{
    switch (row->pub.type) {
    case DJ_TYPE_TRI:
        return option_tri(row, options) != DJ_DEFAULT;
    case DJ_TYPE_INT:
        return *(const int64_t *)option_const_field(row, options) != 0;
    case DJ_TYPE_STRING:
        return option_string(row, options) != NULL;
    case DJ_TYPE_LIST:
        return option_as_list(row, options)->items != NULL;
    case DJ_TYPE_DIM3: {
        const dj_dim3 *dim = option_const_field(row, options);
        return dim->x != 0 || dim->y != 0 || dim->z != 0;
    }
    }
    return false;
}

void dj__options_inherit(dj_option_scope scope, void *options, const void *defaults)
{
    for (size_t i = option_first(scope); option_is_of(i, scope); i++) {
        const option_row *row = &option_table[i];
        if (!option_is_set(row, options)) {
            memcpy(option_field(row, options), option_const_field(row, defaults),
                   option_size(row->pub.type));
        }
    }
}

/* ---- sets ------------------------------------------------------------------------------- */

static dj_status set_import(dj_option_scope scope, const void *in, void *set, size_t known,
                            const char *type, dj_error *err)
{
    dj_status status = dj__options_import(in, set, known, type, err);
    if (status == DJ_OK) {
        status = options_validate(scope, set, err);
    }
    for (size_t i = 0; i < VENDOR_COUNT && status == DJ_OK; i++) {
        const option_vendor *vendor = &option_vendors[i];
        if (vendor->common != scope) {
            continue;
        }
        void *const member = (char *)set + vendor->member;
        status =
            dj__options_import(vendor_given(vendor, set), member, vendor->size, vendor->type, err);
        if (status == DJ_OK) {
            status = options_validate(vendor->scope, member, err);
        }
        memcpy((char *)set + vendor->pointer, &member, sizeof(member));
    }
    return status;
}

static void set_inherit(dj_option_scope scope, void *set, const void *defaults)
{
    dj__options_inherit(scope, set, defaults);
    for (size_t i = 0; i < VENDOR_COUNT; i++) {
        const option_vendor *vendor = &option_vendors[i];
        if (vendor->common == scope) {
            dj__options_inherit(vendor->scope, (char *)set + vendor->member,
                                (const char *)defaults + vendor->member);
        }
    }
}

static dj_status set_from_env(dj_option_scope scope, const dj__env *env, void *set,
                              dj__strlist *lists, dj_error *err)
{
    dj_status status = dj__options_from_env(scope, env, set, lists, err);
    for (size_t i = 0; i < VENDOR_COUNT && status == DJ_OK; i++) {
        const option_vendor *vendor = &option_vendors[i];
        if (vendor->common == scope) {
            status =
                dj__options_from_env(vendor->scope, env, (char *)set + vendor->member, lists, err);
        }
    }
    return status;
}

dj_status dj__compile_set_import(const dj_compile_options *in, dj__compile_set *out, dj_error *err)
{
    return set_import(DJ_SCOPE_COMPILE, in, out, sizeof(out->common), "dj_compile_options", err);
}

dj_status dj__launch_set_import(const dj_launch_options *in, dj__launch_set *out, dj_error *err)
{
    return set_import(DJ_SCOPE_LAUNCH, in, out, sizeof(out->common), "dj_launch_options", err);
}

bool dj__compile_options_known(const dj_compile_options *options)
{
    return options->size == sizeof(*options) &&
           (options->cuda == NULL || options->cuda->size == sizeof(*options->cuda));
}

void dj__compile_set_assign(dj__compile_set *to, const dj__compile_set *from)
{
    *to = *from;
    for (size_t i = 0; i < VENDOR_COUNT; i++) {
        if (option_vendors[i].common == DJ_SCOPE_COMPILE) {
            void *const member = (char *)to + option_vendors[i].member;
            memcpy((char *)to + option_vendors[i].pointer, &member, sizeof(member));
        }
    }
}

void *dj__compile_set_vendor(dj__compile_set *set, dj_option_scope scope)
{
    for (size_t i = 0; i < VENDOR_COUNT; i++) {
        const option_vendor *vendor = &option_vendors[i];
        if (vendor->common == DJ_SCOPE_COMPILE && vendor->scope == scope) {
            return (char *)set + vendor->member;
        }
    }
    return NULL;
}

void dj__compile_set_inherit(dj__compile_set *set, const dj__compile_set *defaults)
{
    set_inherit(DJ_SCOPE_COMPILE, set, defaults);
}

void dj__launch_set_inherit(dj__launch_set *set, const dj__launch_set *defaults)
{
    set_inherit(DJ_SCOPE_LAUNCH, set, defaults);
}

dj_status dj__compile_set_from_env(const dj__env *env, dj__compile_set *out, dj__strlist *lists,
                                   dj_error *err)
{
    const dj_status status = dj__compile_set_import(NULL, out, err);
    return status != DJ_OK ? status : set_from_env(DJ_SCOPE_COMPILE, env, out, lists, err);
}

dj_status dj__launch_set_from_env(const dj__env *env, dj__launch_set *out, dj__strlist *lists,
                                  dj_error *err)
{
    const dj_status status = dj__launch_set_import(NULL, out, err);
    return status != DJ_OK ? status : set_from_env(DJ_SCOPE_LAUNCH, env, out, lists, err);
}

/* ---- text ------------------------------------------------------------------------------- */

static bool option_parse_dim3(const char *text, dj_dim3 *out)
{
    uint32_t values[3] = {0, 1, 1};
    const char *at = text;
    for (size_t i = 0; i < 3; i++) {
        uint64_t value = 0;
        size_t digits = 0;
        for (; *at >= '0' && *at <= '9' && digits < 10; at++, digits++) {
            value = value * 10 + (uint64_t)(*at - '0');
        }
        if (digits == 0 || value == 0 || value > UINT32_MAX) {
            return false;
        }
        values[i] = (uint32_t)value;
        if (*at == '\0') {
            *out = (dj_dim3){values[0], values[1], values[2]};
            return true;
        }
        if (*at != ',' && *at != 'x') {
            return false;
        }
        at++;
    }
    return false;
}

dj_status dj_option_parse(const dj_option *option, const char *text, void *options, dj_error *err)
{
    if (option == NULL || text == NULL || options == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "dj_option_parse: option, text and options are "
                        "needed");
    }
    if (option->scope == DJ_SCOPE_RUNTIME) {
        return dj__fail(err, DJ_UNSUPPORTED, "option %s can only be set by the environment (%s)",
                        option->name, option->env);
    }
    const option_row *row = (const option_row *)option; /* the first member of its row */
    void *field = option_field(row, options);
    switch (option->type) {
    case DJ_TYPE_TRI: {
        bool value;
        if (!dj__parse_bool(text, &value)) {
            return dj__fail(err, DJ_INVALID_ARGUMENT,
                            "invalid value for option %s: %s (accepted: true, false, yes, no or "
                            "an integer)",
                            option->name, text);
        }
        *(dj_tri *)field = value ? DJ_ON : DJ_OFF;
        return DJ_OK;
    }
    case DJ_TYPE_INT: {
        int64_t value;
        if (!dj__parse_int(text, &value) || value < row->min || value > row->max) {
            return dj__fail(err, DJ_INVALID_ARGUMENT,
                            "invalid value for option %s: %s (accepted: an integer from %lld to "
                            "%lld)",
                            option->name, text, (long long)row->min, (long long)row->max);
        }
        *(int64_t *)field = value;
        return DJ_OK;
    }
    case DJ_TYPE_STRING:
        *(const char **)field = text;
        return DJ_OK;
    case DJ_TYPE_DIM3:
        if (!option_parse_dim3(text, field)) {
            return dj__fail(err, DJ_INVALID_ARGUMENT,
                            "invalid value for option %s: %s (accepted: X, X,Y or X,Y,Z, each a "
                            "positive integer)",
                            option->name, text);
        }
        return DJ_OK;
    case DJ_TYPE_LIST:
        break;
    }
    return dj__fail(err, DJ_UNSUPPORTED, "option %s is a list; set the field itself", option->name);
}

static dj_status option_from_env(const option_row *row, const dj__env *env, void *options,
                                 dj__strlist *list, dj_error *err)
{
    void *field = option_field(row, options);
    dj_status status = DJ_OK;
    switch (row->pub.type) {
    case DJ_TYPE_TRI: {
        bool value = false;
        status = dj__env_bool(env, row->pub.env, &value, err);
        if (status == DJ_OK) {
            *(dj_tri *)field = value ? DJ_ON : DJ_OFF;
        }
        return status;
    }
    case DJ_TYPE_INT:
        return dj__env_int(env, row->pub.env, row->min, row->max, field, err);
    case DJ_TYPE_STRING:
        *(const char **)field = dj__env_setting(env, row->pub.env, NULL);
        return DJ_OK;
    case DJ_TYPE_LIST:
        status = dj__env_list(env, row->pub.env, list, err);
        if (status == DJ_OK) {
            *(option_list *)field = (option_list){dj__strlist_items(list), list->count};
        }
        return status;
    case DJ_TYPE_DIM3:
        break;
    }
    return dj__fail(err, DJ_INTERNAL, "option %s cannot come from the environment", row->pub.name);
}

dj_status dj__options_from_env(dj_option_scope scope, const dj__env *env, void *options,
                               dj__strlist *lists, dj_error *err)
{
    for (size_t i = option_first(scope); option_is_of(i, scope); i++) {
        const option_row *row = &option_table[i];
        if (row->pub.env == NULL || dj__env_setting(env, row->pub.env, NULL) == NULL) {
            continue;
        }
        /* A list that is empty by default may be set to that. */
        if (row->pub.type == DJ_TYPE_LIST && row->pub.default_text[0] == '\0' &&
            dj__env_setting(env, row->pub.env, NULL)[0] == '\0') {
            continue;
        }
        const dj_status status = option_from_env(row, env, options, &lists[i], err);
        if (status != DJ_OK) {
            return status;
        }
    }
    return DJ_OK;
}

void dj__options_json(dj_option_scope scope, const void *options, dj__json *json)
{
    for (size_t i = option_first(scope); option_is_of(i, scope); i++) {
        const option_row *row = &option_table[i];
        dj__json_key(json, row->pub.name);
        if (!option_is_set(row, options)) {
            dj__json_null(json);
            continue;
        }
        const void *field = option_const_field(row, options);
        switch (row->pub.type) {
        case DJ_TYPE_TRI:
            dj__json_bool(json, option_tri(row, options) == DJ_ON);
            break;
        case DJ_TYPE_INT:
            dj__json_int(json, *(const int64_t *)field);
            break;
        case DJ_TYPE_STRING:
            dj__json_string(json, option_string(row, options));
            break;
        case DJ_TYPE_LIST: {
            const option_list *list = field;
            dj__json_strings(json, list->items, list->count);
            break;
        }
        case DJ_TYPE_DIM3: {
            const dj_dim3 *dim = field;
            dj__json_begin_array(json);
            dj__json_uint(json, dim->x);
            dj__json_uint(json, dim->y);
            dj__json_uint(json, dim->z);
            dj__json_end_array(json);
            break;
        }
        }
    }
}

/* ---- raw requests ----------------------------------------------------------------------- */

static bool option_string_equal(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool option_list_equal(const option_list *a, const option_list *b)
{
    if (a->count != b->count || (a->items == NULL) != (b->items == NULL)) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (!option_string_equal(a->items[i], b->items[i])) {
            return false;
        }
    }
    return true;
}

static bool option_rows_equal(dj_option_scope scope, const void *a, const void *b)
{
    for (size_t i = option_first(scope); option_is_of(i, scope); i++) {
        const option_row *row = &option_table[i];
        if (!row->pub.keyed) {
            continue;
        }
        bool equal;
        if (row->pub.type == DJ_TYPE_STRING) {
            equal = option_string_equal(option_string(row, a), option_string(row, b));
        } else if (row->pub.type == DJ_TYPE_LIST) {
            equal = option_list_equal(option_as_list(row, a), option_as_list(row, b));
        } else {
            equal = memcmp(option_const_field(row, a), option_const_field(row, b),
                           option_size(row->pub.type)) == 0;
        }
        if (!equal) {
            return false;
        }
    }
    return true;
}

/* Every vendor's struct, unset. */
static const dj__compile_set option_unset;

bool dj__compile_options_equal(const dj_compile_options *a, const dj_compile_options *b)
{
    if (!option_rows_equal(DJ_SCOPE_COMPILE, a, b)) {
        return false;
    }
    for (size_t i = 0; i < VENDOR_COUNT; i++) {
        const option_vendor *vendor = &option_vendors[i];
        if (vendor->common != DJ_SCOPE_COMPILE) {
            continue;
        }
        const void *const unset = (const char *)&option_unset + vendor->member;
        const void *const of_a = vendor_given(vendor, a);
        const void *const of_b = vendor_given(vendor, b);
        if (of_a != of_b && !option_rows_equal(vendor->scope, of_a != NULL ? of_a : unset,
                                               of_b != NULL ? of_b : unset)) {
            return false;
        }
    }
    return true;
}

static uint64_t option_mix_string(uint64_t hash, const char *text)
{
    return text == NULL ? hash * 31 + 1 : dj__xxh64(text, strlen(text), hash);
}

static uint64_t option_mix_rows(uint64_t hash, dj_option_scope scope, const void *options)
{
    for (size_t i = option_first(scope); option_is_of(i, scope); i++) {
        const option_row *row = &option_table[i];
        if (!row->pub.keyed || !option_is_set(row, options)) {
            continue;
        }
        hash = hash * 31 + i + 1;
        if (row->pub.type == DJ_TYPE_STRING) {
            hash = option_mix_string(hash, option_string(row, options));
        } else if (row->pub.type == DJ_TYPE_LIST) {
            const option_list *list = option_as_list(row, options);
            for (size_t k = 0; k < list->count; k++) {
                hash = option_mix_string(hash, list->items[k]);
            }
        } else {
            hash = dj__xxh64(option_const_field(row, options), option_size(row->pub.type), hash);
        }
    }
    return hash;
}

uint64_t dj__compile_options_hash(const dj_compile_options *options)
{
    uint64_t hash = option_mix_rows(0, DJ_SCOPE_COMPILE, options);
    for (size_t i = 0; i < VENDOR_COUNT; i++) {
        const option_vendor *vendor = &option_vendors[i];
        const void *given =
            vendor->common == DJ_SCOPE_COMPILE ? vendor_given(vendor, options) : NULL;
        hash = given != NULL ? option_mix_rows(hash, vendor->scope, given) : hash;
    }
    return hash;
}

static bool option_copy_list(option_list *list)
{
    if (list->items == NULL) {
        return true;
    }
    char **items = calloc(list->count + 1, sizeof(*items));
    if (items == NULL) {
        *list = (option_list){NULL, 0};
        return false;
    }
    const option_list from = *list;
    *list = (option_list){(const char *const *)items, from.count};
    for (size_t i = 0; i < from.count; i++) {
        items[i] = strdup(from.items[i]);
        if (items[i] == NULL) {
            return false;
        }
    }
    return true;
}

/* Makes `copy`, whose fields are unset, a deep copy. After a failure the remaining fields are left
 * unset, for nothing in `copy` may belong to the caller. */
static bool option_copy_rows(dj_option_scope scope, void *copy, const void *options)
{
    dj__options_inherit(scope, copy, options);
    bool ok = true;
    for (size_t i = option_first(scope); option_is_of(i, scope); i++) {
        const option_row *row = &option_table[i];
        if (row->pub.type == DJ_TYPE_STRING) {
            const char **field = option_field(row, copy);
            *field = (ok && *field != NULL) ? strdup(*field) : NULL;
            ok = ok && (*field != NULL || option_string(row, options) == NULL);
        } else if (row->pub.type == DJ_TYPE_LIST) {
            option_list *list = option_field(row, copy);
            if (!ok) {
                *list = (option_list){NULL, 0};
            }
            ok = option_copy_list(list) && ok;
        }
    }
    return ok;
}

dj_compile_options *dj__compile_options_copy(const dj_compile_options *options)
{
    dj__compile_set *set = calloc(1, sizeof(*set));
    if (set == NULL || dj__compile_set_import(NULL, set, NULL) != DJ_OK) {
        free(set);
        return NULL;
    }
    bool ok = option_copy_rows(DJ_SCOPE_COMPILE, set, options);
    for (size_t i = 0; i < VENDOR_COUNT && ok; i++) {
        const option_vendor *vendor = &option_vendors[i];
        const void *given =
            vendor->common == DJ_SCOPE_COMPILE ? vendor_given(vendor, options) : NULL;
        ok = given == NULL || option_copy_rows(vendor->scope, (char *)set + vendor->member, given);
    }
    if (!ok) {
        dj__compile_options_free(&set->common);
        return NULL;
    }
    return &set->common;
}

static void option_free_rows(dj_option_scope scope, const void *options)
{
    for (size_t i = option_first(scope); option_is_of(i, scope); i++) {
        const option_row *row = &option_table[i];
        if (row->pub.type == DJ_TYPE_STRING) {
            free((void *)(uintptr_t)option_string(row, options));
        } else if (row->pub.type == DJ_TYPE_LIST) {
            const option_list *list = option_as_list(row, options);
            for (size_t k = 0; list->items != NULL && k < list->count; k++) {
                free((void *)(uintptr_t)list->items[k]);
            }
            free((void *)(uintptr_t)list->items);
        }
    }
}

void dj__compile_options_free(dj_compile_options *options)
{
    if (options == NULL) {
        return;
    }
    option_free_rows(DJ_SCOPE_COMPILE, options);
    for (size_t i = 0; i < VENDOR_COUNT; i++) {
        const option_vendor *vendor = &option_vendors[i];
        if (vendor->common == DJ_SCOPE_COMPILE) {
            option_free_rows(vendor->scope, vendor_given(vendor, options));
        }
    }
    free(options);
}
