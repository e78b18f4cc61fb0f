/* SPDX-License-Identifier: MIT */
/* What changes a request key and what must not. */
#include "core_fixture.h"

static char include_dir[160];

static int setup(void **state)
{
    fake_setup(state);
    snprintf(include_dir, sizeof(include_dir), "%s/include", world.dir);
    char sub[200];
    snprintf(sub, sizeof(sub), "%s/lib", include_dir);
    assert_int_equal(dj__make_dirs(sub, 0755), 0);
    char header[256];
    snprintf(header, sizeof(header), "%s/a.h", sub);
    fake_write(header, "#include <lib/b.h>\n");
    snprintf(header, sizeof(header), "%s/b.h", sub);
    fake_write(header, "int b;\n");
    return 0;
}

static const char tracked_source[] = "#include <lib/a.h>\n";

static void explain(const dj_config *config, const dj_compile_options *options, const char *tag,
                    const char *source, size_t size, char key[33])
{
    dj_runtime *runtime = fake_runtime(config);
    dj_error err = DJ_ERROR_INIT;
    const dj_status status = dj_explain(runtime, tag, source, size, options, NULL, NULL, key, &err);
    if (status != DJ_OK) {
        fail_msg("dj_explain: %s", err.message);
    }
    dj_runtime_release(runtime);
}

static const char *simple_key(const dj_compile_options *options)
{
    static char keys[4][33];
    static unsigned next;
    char *key = keys[next++ % 4];
    explain(NULL, options, "t", "x", 1, key);
    return key;
}

static void options_change_the_key(void **state)
{
    (void)state;
    char base[33];
    memcpy(base, simple_key(NULL), 33);
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    assert_string_equal(simple_key(&options), base);
    options.dump_asm = DJ_ON;
    assert_string_equal(simple_key(&options), base);
    options.optimize_level = "2";
    assert_string_not_equal(simple_key(&options), base);
    options = (dj_compile_options)DJ_COMPILE_OPTIONS_INIT;
    options.fast_math = DJ_ON;
    assert_string_not_equal(simple_key(&options), base);
    options = (dj_compile_options)DJ_COMPILE_OPTIONS_INIT;
    options.debug_info = DJ_ON;
    assert_string_not_equal(simple_key(&options), base);
    options = (dj_compile_options)DJ_COMPILE_OPTIONS_INIT;
    options.arch = "fake2";
    assert_string_not_equal(simple_key(&options), base);
    /* One flag is not two, and order counts. */
    const char *const a[] = {"-DA=B C"};
    const char *const b[] = {"-DA=B", "C"};
    const char *const c[] = {"C", "-DA=B"};
    char key[33];
    options = (dj_compile_options)DJ_COMPILE_OPTIONS_INIT;
    options.extra_flags = a;
    options.num_extra_flags = 1;
    memcpy(key, simple_key(&options), 33);
    options.extra_flags = b;
    options.num_extra_flags = 2;
    assert_string_not_equal(simple_key(&options), key);
    memcpy(key, simple_key(&options), 33);
    options.extra_flags = c;
    assert_string_not_equal(simple_key(&options), key);
}

static void environment_changes_the_key(void **state)
{
    (void)state;
    char base[33];
    memcpy(base, simple_key(NULL), 33);
    setenv("FAKE_UNKEYED", "1", 1);
    assert_string_equal(simple_key(NULL), base);
    setenv("FAKE_INCLUDE", "/x", 1);
    assert_string_not_equal(simple_key(NULL), base);
    unsetenv("FAKE_INCLUDE");
    setenv("DJ_JIT_COMPILER_ENV", "FAKE_UNKEYED", 1);
    char named[33];
    memcpy(named, simple_key(NULL), 33);
    assert_string_not_equal(named, base);
    setenv("FAKE_UNKEYED", "2", 1);
    assert_string_not_equal(simple_key(NULL), named);
    unsetenv("FAKE_UNKEYED");
    unsetenv("DJ_JIT_COMPILER_ENV");
    char other[160];
    snprintf(other, sizeof(other), "%s/elsewhere", world.dir);
    setenv("DJ_JIT_CACHE_DIR", other, 1);
    assert_string_equal(simple_key(NULL), base);
}

static void tag_and_install_path_do_not(void **state)
{
    (void)state;
    const char *const prefixes[] = {"lib/"};
    const char *dirs[] = {include_dir};
    dj_config config = DJ_CONFIG_INIT;
    config.include_dirs = dirs;
    config.num_include_dirs = 1;
    config.include_prefixes = prefixes;
    config.num_include_prefixes = 1;
    char here[33];
    char there[33];
    explain(&config, NULL, "t", tracked_source, strlen(tracked_source), here);
    explain(&config, NULL, "other_tag", tracked_source, strlen(tracked_source), there);
    assert_string_equal(here, there);
    char moved[160];
    snprintf(moved, sizeof(moved), "%s/moved elsewhere", world.dir);
    assert_int_equal(rename(include_dir, moved), 0);
    dirs[0] = moved;
    explain(&config, NULL, "t", tracked_source, strlen(tracked_source), there);
    assert_string_equal(here, there);
    char header[256];
    snprintf(header, sizeof(header), "%s/lib/b.h", moved);
    fake_write(header, "int c;\n");
    explain(&config, NULL, "t", tracked_source, strlen(tracked_source), there);
    assert_string_not_equal(here, there);
    /* Untracked: its content is the compiler's business. */
    config.num_include_prefixes = 0;
    explain(&config, NULL, "t", tracked_source, strlen(tracked_source), here);
    fake_write(header, "int d;\n");
    explain(&config, NULL, "t", tracked_source, strlen(tracked_source), there);
    assert_string_equal(here, there);
}

static void signature_is_binary(void **state)
{
    (void)state;
    char keys[3][33];
    static const char *const signatures[] = {"a\0b", "a\0c", "a"};
    static const size_t sizes[] = {3, 3, 1};
    for (int i = 0; i < 3; i++) {
        dj_config config = DJ_CONFIG_INIT;
        config.extra_signature = signatures[i];
        config.extra_signature_size = sizes[i];
        explain(&config, NULL, "t", "x", 1, keys[i]);
    }
    assert_string_not_equal(keys[0], keys[1]);
    assert_string_not_equal(keys[0], keys[2]);
}

static void collect_field(void *user, const char *field, const void *value, size_t size)
{
    dj__strbuf_printf(user, "%s=%.*s;", field, size < 40 ? (int)size : 0, (const char *)value);
}

static void fields_can_be_seen(void **state)
{
    (void)state;
    dj__strbuf text;
    dj__strbuf_init(&text, 1u << 20);
    dj_runtime *runtime = fake_runtime(NULL);
    char key[33];
    assert_int_equal(dj_explain(runtime, "t", "body", 4, NULL, collect_field, &text, key, NULL),
                     DJ_OK);
    const char *seen = dj__strbuf_str(&text);
    assert_non_null(strstr(seen, "backend=fake;toolchain="));
    assert_non_null(strstr(seen, "arch=fake1;flag=-O3;flag=-arch=fake1;flag=-default;"));
    assert_non_null(strstr(seen, "source=body;"));
    dj__strbuf_fini(&text);
    assert_int_equal(world.compiles, 0);
    dj_artifact *artifact = NULL;
    assert_int_equal(dj_build(runtime, "t", "body", 4, NULL, &artifact, NULL), DJ_OK);
    assert_string_equal(dj_artifact_digest(artifact), key);
    dj_artifact_release(artifact);
    dj_runtime_release(runtime);
}

static void hooks_are_keyed_and_contained(void **state)
{
    (void)state;
    char hook[200];
    snprintf(hook, sizeof(hook), "%s/hook.py", include_dir);
    fake_write(hook, "import sys\nopen(sys.argv[1], 'ab').write(b'hooked')\n");
    dj_config config = DJ_CONFIG_INIT;
    config.library_root = include_dir;
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    char none[33];
    char first[33];
    char second[33];
    explain(&config, &options, "t", "x", 1, none);
    options.post_hook = "";
    explain(&config, &options, "t", "x", 1, first);
    assert_string_equal(none, first);
    options.post_hook = "hook.py";
    explain(&config, &options, "t", "x", 1, first);
    assert_string_not_equal(none, first);
    fake_write(hook, "import sys\nopen(sys.argv[1], 'ab').write(b'Hooked')\n");
    explain(&config, &options, "t", "x", 1, second);
    assert_string_not_equal(first, second);

    char link_path[200];
    snprintf(link_path, sizeof(link_path), "%s/out.py", include_dir);
    assert_int_equal(symlink("/etc/passwd", link_path), 0);
    static const struct {
        const char *hook;
        const char *text;
    } bad[] = {{"../x.py", "relative path"},
               {"/etc/passwd", "relative path"},
               {"missing.py", "failed to open for reading"},
               {"out.py", "outside the library root"}};
    dj_runtime *runtime = fake_runtime(&config);
    for (size_t i = 0; i < 4; i++) {
        options.post_hook = bad[i].hook;
        dj_error err;
        dj_artifact *artifact = NULL;
        assert_int_not_equal(dj_build(runtime, "t", "x", 1, &options, &artifact, &err), DJ_OK);
        assert_null(artifact);
        if (strstr(err.message, bad[i].text) == NULL) {
            fail_msg("%s: %s", bad[i].hook, err.message);
        }
    }
    dj_runtime_release(runtime);
    runtime = fake_runtime(NULL);
    options.post_hook = "hook.py";
    dj_error err;
    dj_artifact *artifact = NULL;
    assert_int_equal(dj_build(runtime, "t", "x", 1, &options, &artifact, &err),
                     DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "library_root"));
    dj_runtime_release(runtime);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        TEST(options_change_the_key),      TEST(environment_changes_the_key),
        TEST(tag_and_install_path_do_not), TEST(signature_is_binary),
        TEST(fields_can_be_seen),          TEST(hooks_are_keyed_and_contained),
    };
    return cmocka_run_group_tests_name("request key", tests, NULL, NULL);
}
