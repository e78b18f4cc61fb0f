/* SPDX-License-Identifier: MIT */
/* dj_config: the original's rules and texts, snapshots, and who wins among defaults. */
#include "core_fixture.h"

static void expect_refused(const dj_config *config, const char *text)
{
    dj_runtime *runtime = (dj_runtime *)1;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj_runtime_create(&fake_backend, config, &runtime, &err), DJ_INVALID_ARGUMENT);
    assert_null(runtime);
    if (strstr(err.message, text) == NULL) {
        fail_msg("expected '%s' in '%s'", text, err.message);
    }
}

static void refused_configurations(void **state)
{
    (void)state;
    dj_config config = DJ_CONFIG_INIT;
    config.library_root = "";
    expect_refused(&config, "Python library root must not be empty");
    config.library_root = "relative";
    expect_refused(&config, "Python library root must be absolute");
    config.library_root = NULL;
    config.env_prefix = "";
    expect_refused(&config, "environment variable prefix must not be empty");
    config.env_prefix = "DJ";
    expect_refused(&config, "DJ is reserved for global environment variables");
    config.env_prefix = "A=B";
    expect_refused(&config, "A=B");
    config.env_prefix = NULL;
    const char *dirs[] = {"/ok", ""};
    config.include_dirs = dirs;
    config.num_include_dirs = 2;
    expect_refused(&config, "JIT include directory must not be empty");
    dirs[1] = "relative";
    expect_refused(&config, "JIT include directory must be absolute");
    dirs[1] = NULL;
    expect_refused(&config, "JIT include directory must not be empty");
    config.include_dirs = NULL;
    expect_refused(&config, "include_dirs is NULL but its count is 2");
    config.num_include_dirs = 0;
    config.num_include_prefixes = 1;
    expect_refused(&config, "include_prefixes[0] is NULL");
    config.num_include_prefixes = 0;
    config.extra_signature_size = 3;
    expect_refused(&config, "extra_signature is NULL");
    config.extra_signature_size = 0;
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.debug_info = (dj_tri)-1;
    config.compile_defaults = &options;
    expect_refused(&config, "debug_info");
    config.compile_defaults = NULL;
    dj_launch_options launch = DJ_LAUNCH_OPTIONS_INIT;
    launch.shared_bytes = -1;
    config.launch_defaults = &launch;
    expect_refused(&config, "shared-memory size must not be negative");
    config.launch_defaults = NULL;
    config.size = 3;
    expect_refused(&config, "dj_config.size is 3");
    config.size = sizeof(config);
    setenv("DJ_JIT_COMPILER_ENV", "not-a-name", 1);
    expect_refused(&config, "invalid value for DJ_JIT_COMPILER_ENV: not-a-name");
    unsetenv("DJ_JIT_COMPILER_ENV");
    setenv("DJ_JIT_DEBUG", "sometimes", 1);
    expect_refused(&config, "invalid value for DJ_JIT_DEBUG: sometimes");
    dj_error err;
    assert_int_equal(dj_runtime_create(&fake_backend, NULL, NULL, &err), DJ_INVALID_ARGUMENT);
}

static void expect_backend(const dj_backend *given, const char *named, const char *name)
{
    dj_config config = DJ_CONFIG_INIT;
    config.backend = named;
    dj_runtime *runtime = NULL;
    assert_int_equal(dj_runtime_create(given, &config, &runtime, NULL), DJ_OK);
    assert_string_equal(dj_backend_name(dj_runtime_backend(runtime)), name);
    dj_runtime_release(runtime);
}

/* A misspelt name must not silently give another back end. */
static void back_ends_by_name(void **state)
{
    (void)state;
    expect_backend(NULL, "host", "host");
    expect_backend(&fake_backend, "host", "fake");
    setenv("DJ_JIT_BACKEND", "host", 1);
    expect_backend(NULL, NULL, "host");
    dj_config config = DJ_CONFIG_INIT;
    config.backend = "hosst";
    dj_runtime *runtime = NULL;
    dj_error err;
    assert_int_equal(dj_runtime_create(NULL, &config, &runtime, &err), DJ_INVALID_ARGUMENT);
    assert_null(runtime);
    assert_non_null(strstr(err.message, "dj_config.backend names the back end 'hosst'"));
    assert_non_null(strstr(err.message, "host"));
    setenv("DJ_JIT_BACKEND", "", 1);
    assert_int_equal(dj_runtime_create(NULL, NULL, &runtime, &err), DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "DJ_JIT_BACKEND"));
    unsetenv("DJ_JIT_BACKEND");
}

static void environment_is_a_snapshot(void **state)
{
    (void)state;
    dj_config config = DJ_CONFIG_INIT;
    config.env_prefix = "T";
    char other[160];
    snprintf(other, sizeof(other), "%s/other", world.dir);
    setenv("T_JIT_CACHE_DIR", other, 1);
    dj_runtime *runtime = fake_runtime(&config);
    setenv("T_JIT_CACHE_DIR", "/nonexistent", 1);
    dj_kernel *kernel = fake_compile_ok(runtime, "t", "x", NULL);
    assert_memory_equal(dj_kernel_path(kernel), other, strlen(other));
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    assert_int_equal(fake_count("cache"), 0);
}

static void nothing_happens_before_first_use(void **state)
{
    (void)state;
    atomic_store(&world.no_tool, true);
    dj_runtime *runtime = fake_runtime(NULL);
    assert_int_equal(access(world.root, F_OK), -1);
    assert_int_equal(world.describes, 0);
    dj_runtime_release(runtime);
    assert_int_equal(access(world.root, F_OK), -1);
}

static bool has_flag(const char *path, const char *flag)
{
    char *data = NULL;
    size_t size = 0;
    char name[512];
    snprintf(name, sizeof(name), "%s/meta.json", path);
    assert_int_equal(dj__read_file(name, 1u << 20, &data, &size), 0);
    const bool found = strstr(data, flag) != NULL;
    free(data);
    return found;
}

static void defaults_in_the_configuration(void **state)
{
    (void)state;
    setenv("DJ_JIT_DUMP_ASM", "1", 1);
    const char *const extra[] = {"-DFROM_DEFAULT"};
    const char *const appended[] = {"-appended"};
    dj_compile_options defaults = DJ_COMPILE_OPTIONS_INIT;
    defaults.optimize_level = "1";
    defaults.fast_math = DJ_ON;
    defaults.dump_asm = DJ_OFF;
    defaults.extra_flags = extra;
    defaults.num_extra_flags = 1;
    dj_config config = DJ_CONFIG_INIT;
    config.compile_defaults = &defaults;
    config.append_flags = appended;
    config.num_append_flags = 1;
    dj_runtime *runtime = fake_runtime(&config);
    memset(&defaults, 0, sizeof(defaults)); /* was copied */

    dj_artifact *artifact = NULL;
    assert_int_equal(dj_build(runtime, "t", "x", 1, NULL, &artifact, NULL), DJ_OK);
    const char *path = dj_artifact_path(artifact);
    assert_true(has_flag(path, "\"optimize_level\":\"1\""));
    assert_true(has_flag(path, "\"fast_math\":true"));
    assert_true(has_flag(path, "\"dump_asm\":false"));
    assert_true(has_flag(path, "\"flags\":[\"-default\",\"-appended\"]"));
    assert_true(has_flag(path, "\"extra_flags\":[\"-DFROM_DEFAULT\"]"));
    dj_artifact_release(artifact);

    const char *const replaced[] = {"-only"};
    dj_compile_options call = DJ_COMPILE_OPTIONS_INIT;
    call.fast_math = DJ_OFF;
    call.flags = replaced;
    call.num_flags = 1;
    call.extra_flags = replaced;
    call.num_extra_flags = 0;
    assert_int_equal(dj_build(runtime, "t", "x", 1, &call, &artifact, NULL), DJ_OK);
    path = dj_artifact_path(artifact);
    assert_true(has_flag(path, "\"fast_math\":false"));
    assert_true(has_flag(path, "\"optimize_level\":\"1\""));
    assert_true(has_flag(path, "\"flags\":[\"-only\"]"));
    assert_true(has_flag(path, "\"extra_flags\":[]"));
    dj_artifact_release(artifact);
    dj_runtime_release(runtime);
}

static void launch_defaults(void **state)
{
    (void)state;
    dj_host_launch_options host = DJ_HOST_LAUNCH_OPTIONS_INIT;
    host.max_threads = 3;
    dj_launch_options defaults = DJ_LAUNCH_OPTIONS_INIT;
    defaults.grid = (dj_dim3){5, 0, 0};
    defaults.block = (dj_dim3){6, 2, 0};
    defaults.shared_bytes = 32;
    defaults.stream = &world;
    defaults.host = &host;
    dj_config config = DJ_CONFIG_INIT;
    config.launch_defaults = &defaults;
    dj_runtime *runtime = fake_runtime(&config);
    memset(&host, 0, sizeof(host));
    dj_kernel *kernel = fake_compile_ok(runtime, "t", "x", NULL);
    float *out = NULL;
    int n = 1;
    assert_int_equal(dj_launch(kernel, NULL, DJ_ARGS(out, n), NULL), DJ_OK);
    assert_int_equal(fake_last_config.grid.x, 5);
    assert_int_equal(fake_last_config.grid.y, 1);
    assert_int_equal(fake_last_config.block.y, 2);
    assert_int_equal(fake_last_config.block.z, 1);
    assert_int_equal(fake_last_config.shared_bytes, 32);
    assert_ptr_equal(fake_last_config.stream, &world);
    assert_int_equal(fake_last_config.defaults->host->max_threads, 3);
    dj_launch_options call = DJ_LAUNCH_OPTIONS_INIT;
    call.grid = (dj_dim3){9, 9, 9};
    call.stream_set = true;
    assert_int_equal(dj_launch(kernel, &call, DJ_ARGS(out, n), NULL), DJ_OK);
    assert_int_equal(fake_last_config.grid.z, 9);
    assert_int_equal(fake_last_config.block.x, 6);
    assert_null(fake_last_config.stream);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

static void *stream_of_the_framework(void *user)
{
    return user;
}

static void current_stream_callback(void **state)
{
    (void)state;
    dj_config config = DJ_CONFIG_INIT;
    config.current_stream = stream_of_the_framework;
    config.current_stream_user = &world;
    dj_runtime *runtime = fake_runtime(&config);
    dj_kernel *kernel = fake_compile_ok(runtime, "t", "x", NULL);
    dj_launch_options call = DJ_LAUNCH_OPTIONS_INIT;
    call.grid.x = call.block.x = 1;
    float *out = NULL;
    int n = 1;
    assert_int_equal(dj_launch(kernel, &call, DJ_ARGS(out, n), NULL), DJ_OK);
    assert_ptr_equal(fake_last_config.stream, &world);
    call.stream = &n;
    assert_int_equal(dj_launch(kernel, &call, DJ_ARGS(out, n), NULL), DJ_OK);
    assert_ptr_equal(fake_last_config.stream, &n);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        TEST(refused_configurations),        TEST(back_ends_by_name),
        TEST(environment_is_a_snapshot),     TEST(nothing_happens_before_first_use),
        TEST(defaults_in_the_configuration), TEST(launch_defaults),
        TEST(current_stream_callback),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
