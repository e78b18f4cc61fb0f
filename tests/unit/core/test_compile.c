/* SPDX-License-Identifier: MIT */
/* dj_compile and dj_build over the stand-in back end: where answers come from, who shares them,
 * and what failures leave behind. */
#include "core_fixture.h"

static void cold_disk_memory(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    dj_kernel *first = fake_compile_ok(runtime, "scale", "body", NULL);
    assert_int_equal(world.compiles, 1);
    dj_kernel *again = fake_compile_ok(runtime, "scale", "body", NULL);
    assert_ptr_equal(first, again);
    assert_int_equal(world.loads, 1);
    dj_stats stats = fake_stats(runtime);
    assert_int_equal(stats.misses, 1);
    assert_int_equal(stats.memory_hits, 1);
    assert_int_equal(stats.disk_hits, 0);
    assert_true(stats.bytes_written > 0);
    dj_kernel_release(first);
    dj_kernel_release(again);
    dj_runtime_release(runtime);
    assert_int_equal(world.unloads, 1);

    runtime = fake_runtime(NULL);
    first = fake_compile_ok(runtime, "scale", "body", NULL);
    assert_int_equal(world.compiles, 1);
    stats = fake_stats(runtime);
    assert_int_equal(stats.disk_hits, 1);
    assert_int_equal(stats.misses, 0);
    assert_true(stats.bytes_read > 0);
    assert_string_equal(dj_kernel_name(first), "fake_kernel");
    assert_non_null(strstr(dj_kernel_path(first), "/cache/scale."));
    dj_kernel_release(first);
    dj_runtime_release(runtime);
    assert_int_equal(fake_count("tmp"), 0);
    assert_int_equal(fake_count("cache"), 1);
}

static void tag_is_not_in_the_key(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    dj_kernel *a = fake_compile_ok(runtime, "noop", "same", NULL);
    dj_kernel *b = fake_compile_ok(runtime, "noop_again", "same", NULL);
    assert_ptr_equal(a, b);
    assert_int_equal(world.compiles, 1);
    /* Spelled out, a default is the same request key, and so the same kernel. */
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.optimize_level = "3";
    dj_kernel *c = fake_compile_ok(runtime, "noop", "same", &options);
    assert_ptr_equal(a, c);
    options.optimize_level = "0";
    dj_kernel *d = fake_compile_ok(runtime, "noop", "same", &options);
    assert_ptr_not_equal(a, d);
    assert_int_equal(world.compiles, 2);
    dj_kernel_release(a);
    dj_kernel_release(b);
    dj_kernel_release(c);
    dj_kernel_release(d);
    dj_runtime_release(runtime);
}

static void failures_are_not_remembered(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    dj_error err = DJ_ERROR_INIT;
    dj_kernel *kernel = (dj_kernel *)1;
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(dj_compile(runtime, "bad", "#error", 6, NULL, &kernel, &err), DJ_COMPILE);
        assert_null(kernel);
        assert_int_equal(err.status, DJ_COMPILE);
        assert_int_equal(world.compiles, i);
    }
    assert_int_equal(fake_count("tmp"), 0);
    assert_int_equal(fake_count("cache"), 0);
    assert_int_equal(fake_stats(runtime).compile_failures, 2);
    dj_kernel_release(fake_compile_ok(runtime, "good", "body", NULL));
    dj_runtime_release(runtime);
}

static void bad_calls(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    dj_kernel *kernel = NULL;
    dj_error err;
    static const char *const tags[] = {"", "path/tag", "dot.tag", "invalid-tag", "b\xc3\xa4", " "};
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        dj_artifact *artifact = NULL;
        assert_int_equal(dj_compile(runtime, tags[i], "x", 1, NULL, &kernel, &err),
                         DJ_INVALID_ARGUMENT);
        assert_non_null(
            strstr(err.message, "cache tag must contain only letters, digits, or underscores"));
        assert_int_equal(dj_build(runtime, tags[i], "x", 1, NULL, &artifact, &err),
                         DJ_INVALID_ARGUMENT);
    }
    char longest[200];
    memset(longest, 'a', sizeof(longest));
    longest[128] = '\0';
    dj_kernel_release(fake_compile_ok(runtime, longest, "x", NULL));
    longest[128] = 'a';
    longest[129] = '\0';
    assert_int_equal(dj_compile(runtime, longest, "x", 1, NULL, &kernel, NULL),
                     DJ_INVALID_ARGUMENT);
    assert_int_equal(dj_compile(NULL, "t", "x", 1, NULL, &kernel, &err), DJ_INVALID_ARGUMENT);
    assert_int_equal(dj_compile(runtime, NULL, "x", 1, NULL, &kernel, &err), DJ_INVALID_ARGUMENT);
    assert_int_equal(dj_compile(runtime, "t", NULL, 1, NULL, &kernel, &err), DJ_INVALID_ARGUMENT);
    assert_int_equal(dj_compile(runtime, "t", "x", 1, NULL, NULL, &err), DJ_INVALID_ARGUMENT);
    assert_int_equal(dj_compile(runtime, "t", "x", ((size_t)64 << 20) + 1, NULL, &kernel, &err),
                     DJ_INVALID_ARGUMENT);
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.size = 0;
    assert_int_equal(dj_compile(runtime, "t", "x", 1, &options, &kernel, &err),
                     DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "dj_compile_options.size is 0"));
    options.size = sizeof(options);
    options.fast_math = (dj_tri)7;
    assert_int_equal(dj_compile(runtime, "t", "x", 1, &options, &kernel, &err),
                     DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "fast_math"));
    options.fast_math = DJ_DEFAULT;
    options.num_extra_flags = 2;
    assert_int_equal(dj_compile(runtime, "t", "x", 1, &options, &kernel, &err),
                     DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "extra_flags"));
    dj_runtime_release(runtime);
}

/* A newer caller's struct: accepted while its new fields are unset. */
static void larger_structs(void **state)
{
    (void)state;
    struct {
        dj_compile_options known;
        void *newer;
    } options = {.known = {.size = sizeof(options)}};
    dj_runtime *runtime = fake_runtime(NULL);
    dj_kernel *kernel = fake_compile_ok(runtime, "t", "x", &options.known);
    dj_kernel_release(kernel);
    options.newer = &options;
    dj_error err;
    assert_int_equal(dj_compile(runtime, "t", "x", 1, &options.known, &kernel, &err),
                     DJ_UNSUPPORTED);
    dj_runtime_release(runtime);
}

static void source_is_binary(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    static const char *const sources[] = {"a", "a\0", "\0a", "a\0b", ""};
    static const size_t sizes[] = {1, 2, 2, 3, 0};
    for (size_t i = 0; i < 5; i++) {
        dj_artifact *artifact = NULL;
        dj_error err;
        assert_int_equal(dj_build(runtime, "t", sources[i], sizes[i], NULL, &artifact, &err),
                         DJ_OK);
        char path[512];
        snprintf(path, sizeof(path), "%s/kernel.c", dj_artifact_path(artifact));
        char *data = NULL;
        size_t size = 0;
        assert_int_equal(dj__read_file(path, 100, &data, &size), 0);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(data, sources[i], size);
        free(data);
        dj_artifact_release(artifact);
    }
    assert_int_equal(world.compiles, 5);
    assert_int_equal(fake_count("cache"), 5);
    dj_runtime_release(runtime);
}

static void build_gives_a_directory(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    dj_artifact *first = NULL;
    dj_artifact *second = NULL;
    assert_int_equal(dj_build(runtime, "t", "x", 1, NULL, &first, NULL), DJ_OK);
    assert_false(dj_artifact_is_hit(first));
    assert_false(dj_artifact_is_private(first));
    assert_int_equal(dj_build(runtime, "t", "x", 1, NULL, &second, NULL), DJ_OK);
    assert_true(dj_artifact_is_hit(second));
    assert_string_equal(dj_artifact_path(first), dj_artifact_path(second));
    assert_int_equal(strlen(dj_artifact_digest(first)), 32);
    assert_int_equal(access(dj_artifact_binary(first), R_OK), 0);
    assert_int_equal(world.loads, 0);
    assert_int_equal(fake_stats(runtime).memory_hits, 0);
    /* Entries are per tag; the digest is the same. */
    dj_artifact *other = NULL;
    assert_int_equal(dj_build(runtime, "u", "x", 1, NULL, &other, NULL), DJ_OK);
    assert_string_equal(dj_artifact_digest(first), dj_artifact_digest(other));
    assert_int_equal(fake_count("cache"), 2);
    dj_artifact_release(first);
    dj_artifact_release(second);
    dj_artifact_release(other);
    dj_runtime_release(runtime);
}

static void collect(void *user, const char *text, size_t size)
{
    dj__strbuf_append(user, text, size);
}

static void log_is_given_again_on_hits(void **state)
{
    (void)state;
    dj__strbuf text;
    dj__strbuf_init(&text, 1000);
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.on_log = collect;
    options.on_log_user = &text;
    for (int i = 0; i < 2; i++) {
        dj_runtime *runtime = fake_runtime(NULL);
        for (int k = 0; k < 2; k++) {
            dj__strbuf_clear(&text);
            dj_kernel_release(fake_compile_ok(runtime, "t", "#warn", &options));
            assert_string_equal(dj__strbuf_str(&text), "kernel.c:1: warning: as asked\n");
        }
        dj__strbuf_clear(&text);
        dj_kernel *kernel = NULL;
        assert_int_equal(dj_compile(runtime, "t", "#error", 6, &options, &kernel, NULL),
                         DJ_COMPILE);
        assert_string_equal(dj__strbuf_str(&text), "kernel.c:1: error: as asked\n");
        dj_runtime_release(runtime);
    }
    dj__strbuf_fini(&text);
}

/* The runtime's own on_log as well as the call's. */
static void log_of_the_defaults_is_given_on_hits(void **state)
{
    (void)state;
    dj__strbuf text;
    dj__strbuf_init(&text, 1000);
    dj_compile_options defaults = DJ_COMPILE_OPTIONS_INIT;
    defaults.on_log = collect;
    defaults.on_log_user = &text;
    dj_config config = DJ_CONFIG_INIT;
    config.compile_defaults = &defaults;
    dj_runtime *runtime = fake_runtime(&config);
    for (int i = 0; i < 3; i++) {
        dj__strbuf_clear(&text);
        dj_kernel_release(fake_compile_ok(runtime, "t", "#warn", NULL));
        assert_string_equal(dj__strbuf_str(&text), "kernel.c:1: warning: as asked\n");
    }
    dj_runtime_release(runtime);
    dj__strbuf_fini(&text);
}

static void refused_binary_is_rebuilt_once(void **state)
{
    (void)state;
    setenv("DJ_JIT_LOG", "off", 1);
    dj_runtime *runtime = fake_runtime(NULL);
    dj_artifact *artifact = NULL;
    assert_int_equal(dj_build(runtime, "t", "x", 1, NULL, &artifact, NULL), DJ_OK);
    atomic_store(&world.refuse, 1);
    dj_kernel *kernel = fake_compile_ok(runtime, "t", "x", NULL);
    assert_int_equal(world.compiles, 2);
    assert_string_equal(dj_kernel_path(kernel), "");
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);

    runtime = fake_runtime(NULL);
    atomic_store(&world.refuse, 2);
    dj_error err;
    assert_int_equal(dj_compile(runtime, "t", "x", 1, NULL, &kernel, &err), DJ_INCOMPATIBLE);
    assert_int_equal(err.status, DJ_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "fake 1.0"));
    assert_non_null(strstr(err.message, "fake driver 1"));
    /* Bytes that verified are never removed. */
    assert_int_equal(access(dj_artifact_binary(artifact), R_OK), 0);
    assert_int_equal(fake_count("tmp"), 0);
    dj_artifact_release(artifact);
    dj_runtime_release(runtime);
}

static void warm_without_a_toolchain(void **state)
{
    (void)state;
    /* Memos are only kept of files that are not brand new. */
    snprintf(world.tool, sizeof(world.tool), "/bin/sh");
    dj_runtime *runtime = fake_runtime(NULL);
    dj_kernel_release(fake_compile_ok(runtime, "t", "x", NULL));
    dj_runtime_release(runtime);
    assert_int_equal(fake_count("toolchains"), 1);
    atomic_store(&world.no_tool, true);
    runtime = fake_runtime(NULL);
    dj_kernel_release(fake_compile_ok(runtime, "t", "x", NULL));
    dj_artifact *artifact = NULL;
    assert_int_equal(dj_build(runtime, "t", "x", 1, NULL, &artifact, NULL), DJ_OK);
    dj_artifact_release(artifact);
    dj_kernel *kernel = NULL;
    dj_error err;
    assert_int_equal(dj_compile(runtime, "t", "y", 1, NULL, &kernel, &err), DJ_UNAVAILABLE);
    assert_non_null(strstr(err.message, "no fake compiler"));
    assert_int_equal(world.compiles, 1);
    /* It works as soon as there is one. */
    atomic_store(&world.no_tool, false);
    dj_kernel_release(fake_compile_ok(runtime, "t", "y", NULL));
    dj_runtime_release(runtime);
}

static void toolchain_is_in_the_key(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    dj_kernel_release(fake_compile_ok(runtime, "t", "x", NULL));
    dj_runtime_release(runtime);
    fake_write(world.tool, "fake compiler, version 2\n");
    runtime = fake_runtime(NULL);
    dj_kernel_release(fake_compile_ok(runtime, "t", "x", NULL));
    assert_int_equal(world.compiles, 2);
    dj_runtime_release(runtime);
}

static void kernels_outlive_their_runtime(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    dj_kernel *kernel = fake_compile_ok(runtime, "t", "x", NULL);
    dj_runtime_release(runtime);
    assert_int_equal(world.unloads, 0);
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = 1;
    options.block.x = 1;
    float *out = NULL;
    int n = 0;
    assert_int_equal(dj_launch(kernel, &options, DJ_ARGS(out, n), NULL), DJ_OK);
    dj_kernel_retain(kernel);
    dj_kernel_release(kernel);
    assert_int_equal(world.unloads, 0);
    dj_kernel_release(kernel);
    assert_int_equal(world.unloads, 1);
    dj_kernel_release(NULL);
    dj_artifact_release(NULL);
    dj_runtime_release(NULL);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    setenv("DJ_JIT_MEM_CACHE_MAX", "2", 1);
    dj_runtime *runtime = fake_runtime(NULL);
    char source[16];
    for (int i = 0; i < 5; i++) {
        snprintf(source, sizeof(source), "s%d", i);
        dj_kernel_release(fake_compile_ok(runtime, "t", source, NULL));
    }
    assert_int_equal(world.loads - world.unloads, 2);
    assert_int_equal(fake_stats(runtime).evictions, 3);
    /* An evicted one comes back from disk. */
    dj_kernel_release(fake_compile_ok(runtime, "t", "s0", NULL));
    assert_int_equal(world.compiles, 5);
    dj_runtime_release(runtime);
    assert_int_equal(world.loads, world.unloads);
}

static void release_log(void *user, dj_log_level level, const char *message)
{
    if (level <= DJ_LOG_WARN) {
        atomic_fetch_add((atomic_int *)user, 1);
    }
    (void)message;
}

static void unusable_root_gives_private_artifacts(void **state)
{
    (void)state;
    fake_write(world.root, "a file, no directory\n");
    atomic_int warnings = 0;
    dj_config config = DJ_CONFIG_INIT;
    config.log = release_log;
    config.log_user = &warnings;
    dj_runtime *runtime = fake_runtime(&config);
    dj_artifact *artifact = NULL;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj_build(runtime, "t", "x", 1, NULL, &artifact, &err), DJ_OK);
    assert_true(dj_artifact_is_private(artifact));
    assert_non_null(strstr(dj_artifact_reason(artifact), world.root));
    char path[512];
    snprintf(path, sizeof(path), "%s", dj_artifact_path(artifact));
    assert_int_equal(access(dj_artifact_binary(artifact), R_OK), 0);
    dj_artifact_release(artifact);
    assert_int_equal(access(path, F_OK), -1);
    dj_kernel *kernel = fake_compile_ok(runtime, "t", "x", NULL);
    assert_string_equal(dj_kernel_path(kernel), "");
    dj_kernel_release(kernel);
    assert_int_equal(warnings, 1);
    /* It recovers as soon as the root can be used by a new runtime. */
    dj_runtime_release(runtime);
    assert_int_equal(unlink(world.root), 0);
    runtime = fake_runtime(&config);
    assert_int_equal(dj_build(runtime, "t", "x", 1, NULL, &artifact, &err), DJ_OK);
    assert_false(dj_artifact_is_private(artifact));
    dj_artifact_release(artifact);
    dj_runtime_release(runtime);
}

static char edited_header[256];

static void edit_header(void)
{
    fake_write(edited_header, "int changed;\n");
}

static void headers_edited_during_the_build(void **state)
{
    (void)state;
    char include[160];
    char lib[200];
    snprintf(include, sizeof(include), "%s/include", world.dir);
    snprintf(lib, sizeof(lib), "%s/lib", include);
    assert_int_equal(dj__make_dirs(lib, 0755), 0);
    snprintf(edited_header, sizeof(edited_header), "%s/a.h", lib);
    fake_write(edited_header, "int original;\n");
    const char *const dirs[] = {include};
    const char *const prefixes[] = {"lib/"};
    dj_config config = DJ_CONFIG_INIT;
    config.include_dirs = dirs;
    config.num_include_dirs = 1;
    config.include_prefixes = prefixes;
    config.num_include_prefixes = 1;
    dj_runtime *runtime = fake_runtime(&config);
    static const char source[] = "#include <lib/a.h>\n";
    world.during_compile = edit_header;
    dj_artifact *artifact = NULL;
    assert_int_equal(dj_build(runtime, "t", source, strlen(source), NULL, &artifact, NULL), DJ_OK);
    assert_true(dj_artifact_is_private(artifact));
    assert_non_null(strstr(dj_artifact_reason(artifact), "changed while it was compiled"));
    dj_artifact_release(artifact);
    world.during_compile = NULL;
    assert_int_equal(fake_count("cache"), 0);
    assert_int_equal(dj_build(runtime, "t", source, strlen(source), NULL, &artifact, NULL), DJ_OK);
    assert_false(dj_artifact_is_private(artifact));
    dj_artifact_release(artifact);
    dj_runtime_release(runtime);
}

static void replace_compiler(void)
{
    fake_write(world.tool, "fake compiler, another one\n");
}

static void compiler_replaced_during_a_runtime(void **state)
{
    (void)state;
    setenv("DJ_JIT_LOG", "off", 1);
    dj_runtime *runtime = fake_runtime(NULL);
    dj_kernel_release(fake_compile_ok(runtime, "t", "first", NULL));
    assert_int_equal(fake_count("cache"), 1);
    replace_compiler();
    dj_artifact *artifact = NULL;
    assert_int_equal(dj_build(runtime, "t", "second", 6, NULL, &artifact, NULL), DJ_OK);
    assert_true(dj_artifact_is_private(artifact));
    assert_non_null(strstr(dj_artifact_reason(artifact), "compiler"));
    dj_artifact_release(artifact);
    assert_int_equal(fake_count("cache"), 1); /* nothing under the old one's name */
    dj_runtime_release(runtime);
    runtime = fake_runtime(NULL);
    assert_int_equal(dj_build(runtime, "t", "second", 6, NULL, &artifact, NULL), DJ_OK);
    assert_false(dj_artifact_is_private(artifact));
    dj_artifact_release(artifact);
    dj_runtime_release(runtime);
}

static void sweep_root(void)
{
    world.during_compile = NULL; /* once */
    assert_int_equal(dj__remove_tree(world.root), 0);
}

static void staging_swept_away_during_the_build(void **state)
{
    (void)state;
    dj_runtime *runtime = fake_runtime(NULL);
    world.during_compile = sweep_root;
    dj_kernel *kernel = fake_compile_ok(runtime, "t", "x", NULL);
    assert_int_equal(world.compiles, 2);
    assert_int_equal(access(dj_kernel_path(kernel), F_OK), 0);
    dj_kernel_release(kernel);
    assert_int_equal(fake_count("tmp"), 0);
    dj_runtime_release(runtime);
}

static void private_directories_are_absolute(void **state)
{
    (void)state;
    setenv("DJ_JIT_LOG", "off", 1);
    fake_write(world.root, "a file, no directory\n");
    char *tmpdir = getenv("TMPDIR") != NULL ? strdup(getenv("TMPDIR")) : NULL;
    char *back = getcwd(NULL, 0);
    assert_non_null(back);
    assert_int_equal(chdir(world.dir), 0);
    assert_int_equal(mkdir("relative", 0700), 0);
    setenv("TMPDIR", "relative", 1);
    dj_runtime *runtime = fake_runtime(NULL);
    dj_artifact *artifact = NULL;
    assert_int_equal(dj_build(runtime, "t", "x", 1, NULL, &artifact, NULL), DJ_OK);
    assert_int_equal(dj_artifact_path(artifact)[0], '/');
    dj_artifact_release(artifact);
    dj_runtime_release(runtime);
    if (tmpdir != NULL) {
        setenv("TMPDIR", tmpdir, 1);
    } else {
        unsetenv("TMPDIR");
    }
    free(tmpdir);
    assert_int_equal(chdir(back), 0);
    free(back);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        TEST(cold_disk_memory),
        TEST(tag_is_not_in_the_key),
        TEST(failures_are_not_remembered),
        TEST(bad_calls),
        TEST(larger_structs),
        TEST(source_is_binary),
        TEST(build_gives_a_directory),
        TEST(log_of_the_defaults_is_given_on_hits),
        TEST(log_is_given_again_on_hits),
        TEST(refused_binary_is_rebuilt_once),
        TEST(warm_without_a_toolchain),
        TEST(toolchain_is_in_the_key),
        TEST(kernels_outlive_their_runtime),
        TEST(memory_is_bounded),
        TEST(unusable_root_gives_private_artifacts),
        TEST(headers_edited_during_the_build),
        TEST(compiler_replaced_during_a_runtime),
        TEST(staging_swept_away_during_the_build),
        TEST(private_directories_are_absolute),
    };
    return cmocka_run_group_tests_name("compile", tests, NULL, NULL);
}
