/* SPDX-License-Identifier: MIT */
/* The post hook: what it gets, what it may do, and what its failures leave behind. */
#include "conformance.h"

static const char source[] = KERNEL_HEADER "DJ_KERNEL(k, (int *, out)) { out[0] = 7; }\n";

static char hook_path[160];

static int setup(void **state)
{
    if (suite_setup(state) != 0) {
        return -1;
    }
    dj_config config = DJ_CONFIG_INIT;
    config.library_root = suite_dir;
    dj_runtime_release(suite_runtime);
    suite_runtime = suite_new_runtime(&config);
    snprintf(hook_path, sizeof(hook_path), "%s/hooks/hook one.py", suite_dir);
    char dir[128];
    snprintf(dir, sizeof(dir), "%s/hooks", suite_dir);
    return mkdir(dir, 0755);
}

static void write_hook(const char *text)
{
    FILE *file = fopen(hook_path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static dj_status build(dj_artifact **artifact, dj_error *err)
{
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.post_hook = "hooks/hook one.py";
    return dj_build(suite_runtime, "k", source, strlen(source), &options, artifact, err);
}

static bool count_entry(void *user, const dj_cache_entry *entry)
{
    (void)entry;
    ++*(int *)user;
    return true;
}

static int entries(void)
{
    int count = 0;
    assert_int_equal(dj_cache_list(suite_runtime, count_entry, &count, NULL), DJ_OK);
    return count;
}

static void changes_the_binary(void **state)
{
    (void)state;
    write_hook("import os, sys\n"
               "assert len(sys.argv) == 2 and os.path.isabs(sys.argv[1])\n"
               "assert os.path.samefile(os.getcwd(), os.path.dirname(sys.argv[1]))\n"
               "open(sys.argv[1], 'ab').write(b'HOOKED')\n");
    dj_artifact *artifact = NULL;
    dj_error err = DJ_ERROR_INIT;
    if (build(&artifact, &err) != DJ_OK) {
        fail_msg("%s", err.message);
    }
    assert_false(dj_artifact_is_private(artifact));
    FILE *file = fopen(dj_artifact_binary(artifact), "rb");
    assert_non_null(file);
    char tail[6];
    assert_int_equal(fseek(file, -6, SEEK_END), 0);
    assert_int_equal(fread(tail, 1, 6, file), 6);
    fclose(file);
    assert_memory_equal(tail, "HOOKED", 6);
    char first[33];
    memcpy(first, dj_artifact_digest(artifact), 33);
    dj_artifact_release(artifact);
    /* Another content is another entry, seen by the same runtime. */
    write_hook("import sys\nopen(sys.argv[1], 'ab').write(b'Hooked')\n");
    assert_int_equal(build(&artifact, &err), DJ_OK);
    assert_string_not_equal(first, dj_artifact_digest(artifact));
    dj_artifact_release(artifact);
    assert_int_equal(entries(), 2);
}

static void failures_publish_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } bad[] = {
        {"import sys\nprint('words of the hook')\nsys.exit(7)\n", "exit code 7"},
        {"import os, sys\nos.remove(sys.argv[1])\n", "the post hook did not leave a valid"},
        {"import sys\nopen(sys.argv[1], 'wb').close()\n", "the post hook did not leave a valid"},
        {"import os, sys\nos.remove(sys.argv[1])\nos.mkdir(sys.argv[1])\n",
         "the post hook did not leave a valid"},
        {"import os\nos.mkdir('meta.json')\n", "failed to open for writing"},
        {"import os\nos.symlink('/etc/passwd', 'link')\n", "link"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_hook(bad[i].text);
        dj_artifact *artifact = NULL;
        dj_error err = DJ_ERROR_INIT;
        assert_int_not_equal(build(&artifact, &err), DJ_OK);
        assert_null(artifact);
        if (strstr(err.message, bad[i].message) == NULL) {
            fail_msg("%s: %s", bad[i].text, err.message);
        }
        assert_int_equal(entries(), 0);
    }
    write_hook("pass\n");
    dj_artifact *artifact = NULL;
    assert_int_equal(build(&artifact, NULL), DJ_OK);
    dj_artifact_release(artifact);
    assert_int_equal(entries(), 1);
}

static void defaults_can_be_switched_off(void **state)
{
    (void)state;
    write_hook("import sys\nsys.exit(1)\n");
    dj_compile_options defaults = DJ_COMPILE_OPTIONS_INIT;
    defaults.post_hook = "hooks/hook one.py";
    dj_config config = DJ_CONFIG_INIT;
    config.library_root = suite_dir;
    config.compile_defaults = &defaults;
    dj_runtime *runtime = suite_new_runtime(&config);
    dj_kernel *kernel = NULL;
    assert_int_equal(dj_compile(runtime, "k", source, strlen(source), NULL, &kernel, NULL),
                     DJ_COMPILE);
    dj_compile_options off = DJ_COMPILE_OPTIONS_INIT;
    off.post_hook = "";
    assert_int_equal(dj_compile(runtime, "k", source, strlen(source), &off, &kernel, NULL), DJ_OK);
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

/* Any program can be a hook; what is not named .py runs itself. */
static void other_programs(void **state)
{
    (void)state;
    char path[160];
    snprintf(path, sizeof(path), "%s/hooks/shell", suite_dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("#!/bin/sh\nprintf HOOKED >>\"$1\"\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.post_hook = "hooks/shell";
    dj_artifact *artifact = NULL;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(
        dj_build(suite_runtime, "k", source, strlen(source), &options, &artifact, &err),
        DJ_PERMISSION);
    assert_non_null(strstr(err.message, "neither named .py nor executable"));
    assert_int_equal(entries(), 0);
    assert_int_equal(chmod(path, 0755), 0);
    if (dj_build(suite_runtime, "k", source, strlen(source), &options, &artifact, &err) != DJ_OK) {
        fail_msg("%s", err.message);
    }
    file = fopen(dj_artifact_binary(artifact), "rb");
    assert_non_null(file);
    char tail[6];
    assert_int_equal(fseek(file, -6, SEEK_END), 0);
    assert_int_equal(fread(tail, 1, 6, file), 6);
    fclose(file);
    assert_memory_equal(tail, "HOOKED", 6);
    dj_artifact_release(artifact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(changes_the_binary, setup, suite_teardown),
        cmocka_unit_test_setup_teardown(other_programs, setup, suite_teardown),
        cmocka_unit_test_setup_teardown(failures_publish_nothing, setup, suite_teardown),
        cmocka_unit_test_setup_teardown(defaults_can_be_switched_off, setup, suite_teardown),
    };
    return cmocka_run_group_tests_name("hook", tests, NULL, NULL);
}
