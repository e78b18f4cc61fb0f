/* SPDX-License-Identifier: MIT */
/* The option table: every struct field has a row, and what is derived from the rows is right. */
#include "core/options.h"
#include "core/settings.h"
#include "core_fixture.h"

typedef struct field {
    size_t offset;
    size_t size;
} field;

#define FIELD(type, name)                                                                          \
    {                                                                                              \
        offsetof(type, name), sizeof(((type *)0)->name)                                            \
    }

static size_t row_size(dj_option_type type)
{
    static const size_t sizes[] = {sizeof(dj_tri), sizeof(int64_t), sizeof(char *),
                                   sizeof(char *) + sizeof(size_t), sizeof(dj_dim3)};
    return sizes[type];
}

/* Marks rows and the named exceptions; what is left may only be padding. */
static void check_covered(dj_option_scope scope, size_t size, const field *exempt, size_t count)
{
    char *seen = calloc(1, size);
    assert_non_null(seen);
    for (size_t i = 0; dj_option_at(i) != NULL; i++) {
        const dj_option *option = dj_option_at(i);
        if (option->scope != scope) {
            continue;
        }
        for (size_t k = 0; k < row_size(option->type); k++) {
            assert_true(option->offset + k < size);
            assert_int_equal(seen[option->offset + k], 0);
            seen[option->offset + k] = 1;
        }
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < exempt[i].size; k++) {
            assert_int_equal(seen[exempt[i].offset + k], 0);
            seen[exempt[i].offset + k] = 1;
        }
    }
    size_t run = 0;
    for (size_t i = 0; i < size; i++) {
        run = seen[i] != 0 ? 0 : run + 1;
        assert_true(run < 8);
        if (run > 0 && (i + 1) % 8 == 0) {
            run = 0;
        }
    }
    free(seen);
}

static void every_field_has_a_row(void **state)
{
    (void)state;
    const field compile[] = {FIELD(dj_compile_options, size), FIELD(dj_compile_options, on_log),
                             FIELD(dj_compile_options, on_log_user),
                             FIELD(dj_compile_options, cancel), FIELD(dj_compile_options, cuda)};
    check_covered(DJ_SCOPE_COMPILE, sizeof(dj_compile_options), compile, 5);
    /* Handles and vendor pointers have no text form. */
    const field launch[] = {FIELD(dj_launch_options, size), FIELD(dj_launch_options, stream),
                            FIELD(dj_launch_options, stream_set), FIELD(dj_launch_options, host),
                            FIELD(dj_launch_options, cuda)};
    check_covered(DJ_SCOPE_LAUNCH, sizeof(dj_launch_options), launch, 5);
    const field host[] = {FIELD(dj_host_launch_options, size)};
    check_covered(DJ_SCOPE_HOST_LAUNCH, sizeof(dj_host_launch_options), host, 1);
    const field cuda_compile[] = {FIELD(dj_cuda_compile_options, size)};
    check_covered(DJ_SCOPE_CUDA_COMPILE, sizeof(dj_cuda_compile_options), cuda_compile, 1);
    const field cuda_launch[] = {FIELD(dj_cuda_launch_options, size)};
    check_covered(DJ_SCOPE_CUDA_LAUNCH, sizeof(dj_cuda_launch_options), cuda_launch, 1);
}

static void rows_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; dj_option_at(i) != NULL; i++) {
        const dj_option *option = dj_option_at(i);
        assert_non_null(option->default_text);
        assert_true(strlen(option->doc) > 10);
        assert_int_equal(option->doc[strlen(option->doc) - 1], '.');
        assert_true(option->scope != DJ_SCOPE_RUNTIME || option->env != NULL);
        if (option->env != NULL) {
            assert_memory_equal(option->env, "JIT_", 4);
        }
        for (size_t k = 0; k < i; k++) {
            assert_false(option->scope == dj_option_at(k)->scope &&
                         strcmp(option->name, dj_option_at(k)->name) == 0);
            /* Those of a scope stand together. */
            assert_false(option->scope == dj_option_at(k)->scope &&
                         option->scope != dj_option_at(i - 1)->scope);
        }
    }
    assert_int_equal(dj__option_count() > 15, 1);
}

static const dj_option *find_option(const char *name)
{
    for (size_t i = 0; dj_option_at(i) != NULL; i++) {
        if (strcmp(dj_option_at(i)->name, name) == 0) {
            return dj_option_at(i);
        }
    }
    fail_msg("no option %s", name);
    return NULL;
}

static void parse_text(void **state)
{
    (void)state;
    dj_compile_options compile = DJ_COMPILE_OPTIONS_INIT;
    dj_launch_options launch = DJ_LAUNCH_OPTIONS_INIT;
    dj_error err;
    assert_int_equal(dj_option_parse(find_option("fast_math"), "Yes", &compile, &err), DJ_OK);
    assert_int_equal(compile.fast_math, DJ_ON);
    assert_int_equal(dj_option_parse(find_option("fast_math"), "0", &compile, &err), DJ_OK);
    assert_int_equal(compile.fast_math, DJ_OFF);
    assert_int_equal(dj_option_parse(find_option("fast_math"), "maybe", &compile, &err),
                     DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "fast_math"));
    assert_non_null(strstr(err.message, "yes"));
    assert_int_equal(dj_option_parse(find_option("arch"), "x86-64-v3", &compile, &err), DJ_OK);
    assert_string_equal(compile.arch, "x86-64-v3");
    assert_int_equal(dj_option_parse(find_option("flags"), "-g", &compile, &err), DJ_UNSUPPORTED);
    assert_int_equal(dj_option_parse(find_option("cache_dir"), "/x", &compile, &err),
                     DJ_UNSUPPORTED);
    static const struct {
        const char *text;
        dj_dim3 value;
    } dims[] = {{"7", {7, 1, 1}}, {"2,3", {2, 3, 1}}, {"2x3x4", {2, 3, 4}}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(dj_option_parse(find_option("grid"), dims[i].text, &launch, &err), DJ_OK);
        assert_memory_equal(&launch.grid, &dims[i].value, sizeof(dj_dim3));
    }
    static const char *const bad[] = {"",  "0",   "-1",          "1,",         "1,2,3,4",
                                      "a", "1,0", "99999999999", "4294967296", "1 "};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(dj_option_parse(find_option("grid"), bad[i], &launch, &err),
                         DJ_INVALID_ARGUMENT);
    }
    assert_int_equal(dj_option_parse(find_option("shared_bytes"), "-1", &launch, &err),
                     DJ_INVALID_ARGUMENT);
    assert_int_equal(dj_option_parse(NULL, "1", &launch, &err), DJ_INVALID_ARGUMENT);
}

static void raw_requests(void **state)
{
    (void)state;
    const char *const one[] = {"-DA", "-DB"};
    const char *const two[] = {"-DA", "-DB"};
    const char *const three[] = {"-DA-DB"};
    const char *const none[] = {NULL};
    dj_compile_options a = DJ_COMPILE_OPTIONS_INIT;
    dj_compile_options b = DJ_COMPILE_OPTIONS_INIT;
    assert_true(dj__compile_options_equal(&a, &b));
    assert_int_equal(dj__compile_options_hash(&a), 0);
    a.extra_flags = one;
    a.num_extra_flags = 2;
    b.extra_flags = two;
    b.num_extra_flags = 2;
    assert_true(dj__compile_options_equal(&a, &b));
    assert_int_equal(dj__compile_options_hash(&a), dj__compile_options_hash(&b));
    b.extra_flags = three;
    b.num_extra_flags = 1;
    assert_false(dj__compile_options_equal(&a, &b));
    /* An empty list that is set is not an unset one. */
    a.extra_flags = NULL;
    a.num_extra_flags = 0;
    b.extra_flags = none;
    b.num_extra_flags = 0;
    assert_false(dj__compile_options_equal(&a, &b));
    /* What is not keyed does not count. */
    b = a;
    b.dump_asm = DJ_ON;
    assert_true(dj__compile_options_equal(&a, &b));
    b.debug_info = DJ_ON;
    assert_false(dj__compile_options_equal(&a, &b));

    a = (dj_compile_options)DJ_COMPILE_OPTIONS_INIT;
    a.arch = "v3";
    a.flags = one;
    a.num_flags = 2;
    a.post_hook = "";
    a.fast_math = DJ_OFF;
    dj_compile_options *copy = dj__compile_options_copy(&a);
    assert_non_null(copy);
    assert_true(dj__compile_options_equal(&a, copy));
    assert_ptr_not_equal(copy->arch, a.arch);
    assert_ptr_not_equal(copy->flags[1], a.flags[1]);
    dj__compile_options_free(copy);
    dj__compile_options_free(NULL);
}

/* What belongs to one back end hangs on a pointer and counts like the rest. */
static void vendor_requests(void **state)
{
    (void)state;
    dj_compile_options a = DJ_COMPILE_OPTIONS_INIT;
    dj_compile_options b = DJ_COMPILE_OPTIONS_INIT;
    dj_cuda_compile_options cuda = DJ_CUDA_COMPILE_OPTIONS_INIT;
    b.cuda = &cuda;
    /* A struct without a set field says nothing. */
    assert_true(dj__compile_options_equal(&a, &b));
    assert_true(dj__compile_options_equal(&b, &a));
    assert_int_equal(dj__compile_options_hash(&a), dj__compile_options_hash(&b));
    cuda.dump_ptx = DJ_ON; /* not keyed */
    assert_true(dj__compile_options_equal(&a, &b));
    cuda.check_no_spills = DJ_ON;
    assert_false(dj__compile_options_equal(&a, &b));
    assert_false(dj__compile_options_equal(&b, &a));
    assert_int_not_equal(dj__compile_options_hash(&a), dj__compile_options_hash(&b));

    cuda.cpp_standard = "17";
    dj_compile_options *copy = dj__compile_options_copy(&b);
    assert_non_null(copy);
    assert_ptr_not_equal(copy->cuda, b.cuda);
    assert_ptr_not_equal(copy->cuda->cpp_standard, cuda.cpp_standard);
    assert_string_equal(copy->cuda->cpp_standard, "17");
    assert_true(dj__compile_options_equal(&b, copy));
    cuda.cpp_standard = "20";
    assert_false(dj__compile_options_equal(&b, copy));
    dj__compile_options_free(copy);
}

static void vendor_import(void **state)
{
    (void)state;
    dj__compile_set set;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj__compile_set_import(NULL, &set, &err), DJ_OK);
    assert_ptr_equal(set.common.cuda, &set.cuda);
    assert_int_equal(set.cuda.size, sizeof(set.cuda));
    assert_ptr_equal(dj__compile_set_vendor(&set, DJ_SCOPE_CUDA_COMPILE), &set.cuda);
    assert_null(dj__compile_set_vendor(&set, DJ_SCOPE_CUDA_LAUNCH));
    assert_null(dj__compile_set_vendor(&set, DJ_SCOPE_RUNTIME));

    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    dj_cuda_compile_options cuda = DJ_CUDA_COMPILE_OPTIONS_INIT;
    options.cuda = &cuda;
    cuda.check_no_spills = (dj_tri)7;
    assert_int_equal(dj__compile_set_import(&options, &set, &err), DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "check_no_spills"));
    cuda.check_no_spills = DJ_OFF;
    assert_true(dj__compile_options_known(&options));
    cuda.size = 3;
    assert_false(dj__compile_options_known(&options));
    assert_int_equal(dj__compile_set_import(&options, &set, &err), DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "dj_cuda_compile_options.size is 3"));

    /* A caller of a later version whose new fields are unset. */
    struct {
        dj_cuda_compile_options known;
        uint64_t later;
    } newer = {.known = DJ_CUDA_COMPILE_OPTIONS_INIT};
    newer.known.size = sizeof(newer);
    newer.known.check_no_spills = DJ_OFF;
    options.cuda = &newer.known;
    assert_int_equal(dj__compile_set_import(&options, &set, &err), DJ_OK);
    assert_int_equal(set.cuda.check_no_spills, DJ_OFF);
    newer.later = 1;
    assert_int_equal(dj__compile_set_import(&options, &set, &err), DJ_UNSUPPORTED);

    dj__launch_set launch;
    dj_launch_options call = DJ_LAUNCH_OPTIONS_INIT;
    dj_cuda_launch_options fields = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    fields.cluster.x = 2;
    call.cuda = &fields;
    assert_int_equal(dj__launch_set_import(&call, &launch, &err), DJ_OK);
    assert_int_equal(launch.common.cuda->cluster.x, 2);
    assert_ptr_equal(launch.common.host, &launch.host);
}

static void vendor_layers(void **state)
{
    (void)state;
    char *environment[] = {"T_JIT_CHECK_NO_SPILLS=0", "DJ_JIT_CHECK_NO_SPILLS=1",
                           "DJ_JIT_CPP_STANDARD=23", "HOME=/x", NULL};
    dj__env *env = NULL;
    assert_int_equal(dj__env_create("T", environment, &env, NULL), DJ_OK);
    dj__settings settings;
    assert_int_equal(dj__settings_read(&settings, env, NULL), DJ_OK);
    dj__compile_set set;
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    dj_cuda_compile_options cuda = DJ_CUDA_COMPILE_OPTIONS_INIT;
    options.cuda = &cuda;
    cuda.ptxas_verbose = DJ_OFF;
    assert_int_equal(dj__compile_set_import(&options, &set, NULL), DJ_OK);
    dj__compile_set_inherit(&set, &settings.compile);
    assert_int_equal(set.cuda.check_no_spills, DJ_OFF);
    assert_string_equal(set.cuda.cpp_standard, "23");
    assert_int_equal(set.cuda.ptxas_verbose, DJ_OFF);
    assert_int_equal(set.cuda.dump_sass, DJ_DEFAULT);
    dj__settings_fini(&settings);
    dj__env_destroy(env);
}

static void environment_and_layers(void **state)
{
    (void)state;
    char *environment[] = {"DJ_JIT_DUMP_ASM=1",
                           "T_JIT_DUMP_ASM=0",
                           "DJ_JIT_KERNEL_DEBUG_INFO=yes",
                           "DJ_JIT_COMPILE_TIMEOUT=7",
                           "T_JIT_CACHE_DIR=/a:/b//c/../d",
                           "JIT_LOG=nonsense",
                           "HOME=/home/x",
                           NULL};
    dj__env *env = NULL;
    assert_int_equal(dj__env_create("T", environment, &env, NULL), DJ_OK);
    dj__settings settings;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj__settings_read(&settings, env, &err), DJ_OK);
    assert_int_equal(settings.compile.common.dump_asm, DJ_OFF);
    assert_int_equal(settings.compile.common.debug_info, DJ_ON);
    assert_int_equal(settings.compile_timeout, 7);
    assert_int_equal(settings.log_level, DJ_LOG_WARN);
    assert_int_equal(settings.num_cache_dir, 2);
    assert_string_equal(settings.cache_dir[0], "/a");
    assert_string_equal(settings.cache_dir[1], "/b/d");
    dj__settings_fini(&settings);
    dj__env_destroy(env);
}

static void bad_environment(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"T_JIT_DEBUG=sometimes", "invalid value for T_JIT_DEBUG: sometimes"},
        {"DJ_JIT_DEBUG=", "invalid value for DJ_JIT_DEBUG: "},
        {"DJ_JIT_COMPILE_TIMEOUT=12x", "invalid value for DJ_JIT_COMPILE_TIMEOUT: 12x"},
        {"DJ_JIT_COMPILE_TIMEOUT=-1", "DJ_JIT_COMPILE_TIMEOUT"},
        {"DJ_JIT_HOST_THREADS=0", "DJ_JIT_HOST_THREADS"},
        {"DJ_JIT_LOG=loud", "accepted: off, error, warn, info, debug"},
        {"DJ_JIT_CACHE_FSYNC=sync", "accepted: none, file, full"},
        {"DJ_JIT_CACHE_DIR=", "contains an empty path"},
        {"DJ_JIT_CACHE_DIR=:/a", "contains an empty path"},
        {"DJ_JIT_CACHE_DIR=/a:", "contains an empty path"},
        {"DJ_JIT_CACHE_DIR=/a::/b", "contains an empty path"},
        {"DJ_JIT_CACHE_TRUST=no such user", "no such user"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char variable[128];
        snprintf(variable, sizeof(variable), "%s", bad[i][0]);
        char *environment[] = {variable, "HOME=/x", NULL};
        dj__env *env = NULL;
        assert_int_equal(dj__env_create("T", environment, &env, NULL), DJ_OK);
        dj__settings settings;
        dj_error err = DJ_ERROR_INIT;
        assert_int_equal(dj__settings_read(&settings, env, &err), DJ_INVALID_ARGUMENT);
        if (strstr(err.message, bad[i][1]) == NULL) {
            fail_msg("%s: %s", bad[i][0], err.message);
        }
        dj__env_destroy(env);
    }
}

static void empty_lists(void **state)
{
    (void)state;
    char *environment[] = {"DJ_JIT_CACHE_TRUST=", "DJ_JIT_COMPILER_ENV=", "HOME=/x", NULL};
    dj__env *env = NULL;
    assert_int_equal(dj__env_create(NULL, environment, &env, NULL), DJ_OK);
    dj__settings settings;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj__settings_read(&settings, env, &err), DJ_OK);
    assert_int_equal(settings.num_cache_trust, 0);
    assert_int_equal(settings.num_compiler_env, 0);
    dj__settings_fini(&settings);
    dj__env_destroy(env);
}

static void debug_implies(void **state)
{
    (void)state;
    char *environment[] = {"DJ_JIT_DEBUG=1", "DJ_JIT_PRINT_LOAD_TIME=0", "HOME=/x", NULL};
    dj__env *env = NULL;
    assert_int_equal(dj__env_create(NULL, environment, &env, NULL), DJ_OK);
    dj__settings settings;
    assert_int_equal(dj__settings_read(&settings, env, NULL), DJ_OK);
    assert_int_equal(settings.print_compiler_command, DJ_ON);
    assert_int_equal(settings.print_load_time, DJ_OFF);
    assert_int_equal(settings.compile.common.dump_asm, DJ_ON);
    assert_int_equal(settings.compile.cuda.with_line_info, DJ_ON);
    assert_int_equal(settings.compile.cuda.ptxas_verbose, DJ_ON);
    assert_string_equal(settings.cache_dir[0], "/x/.dj");
    dj__settings_fini(&settings);
    dj__env_destroy(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_has_a_row),
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(parse_text),
        cmocka_unit_test(raw_requests),
        cmocka_unit_test(vendor_requests),
        cmocka_unit_test(vendor_import),
        cmocka_unit_test(vendor_layers),
        cmocka_unit_test(environment_and_layers),
        cmocka_unit_test(bad_environment),
        cmocka_unit_test(debug_implies),
        cmocka_unit_test(empty_lists),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
