/* SPDX-License-Identifier: MIT */
/* The host compiler: finding it, its parts, its flags, and programs that misbehave in its
 * place. */
#include "host_fixture.h"

#include <sys/utsname.h>

static const char test_compiler_source[] = "#include <deepjit/kernel.h>\n"
                                           "DJ_KERNEL(set, (float *, y), (float, a), (int, n))\n"
                                           "{\n"
                                           "    int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X +\n"
                                           "            DJ_THREAD_IDX_X;\n"
                                           "    if (i < n) { y[i] = y[i] * a; }\n"
                                           "}\n";
static const char *const test_compiler_flags[] = {"-O3", "-fPIC", "-shared", "-std=c11"};

/* The process's PATH and `extra` (may be NULL). */
static void test_compiler_setup(host_fixture *fixture, const char *extra)
{
    char path[4096];
    const char *variables[] = {path, extra, NULL};
    (void)snprintf(path, sizeof path, "PATH=%s", getenv("PATH"));
    host_fixture_init(fixture, variables);
}

/* A compiler in the fixture's directory, which is all that is on PATH besides the system. */
static void test_compiler_script(host_fixture *fixture, const char *script)
{
    char setting[512];
    const char *const variables[] = {setting, "PATH=/usr/bin:/bin", "SECRET=1", "CPATH=/cpath",
                                     NULL};
    const char *const first[] = {NULL};
    host_fixture_init(fixture, first);
    host_fixture_write(fixture, "mycc", script, 0700);
    (void)snprintf(setting, sizeof setting, "DJ_JIT_HOST_COMPILER=%s/mycc", fixture->dir);
    dj__host_compiler_ops.close(fixture->compiler);
    dj__env_destroy(fixture->env);
    assert_int_equal(dj__env_create(NULL, (char *const *)variables, &fixture->env, NULL), DJ_OK);
    fixture->context.env = fixture->env;
    assert_int_equal(
        dj__host_compiler_ops.open(&fixture->context, &fixture->compiler, &fixture->err), DJ_OK);
}

static dj_status test_compiler_run(host_fixture *fixture, dj_compile_job job)
{
    return host_fixture_compile(fixture, test_compiler_source, test_compiler_flags, 4, job);
}

/* ---- which ---- */

static dj_status test_compiler_locate(const char *const *variables, char path[512], dj_error *err)
{
    host_fixture fixture;
    dj__strlist programs;
    dj__strlist_init(&programs);
    memset(err, 0, sizeof *err);
    host_fixture_init(&fixture, variables);
    dj_status status = dj__host_compiler_ops.locate(fixture.compiler, &programs, err);
    assert_int_equal(programs.count, status == DJ_OK ? 1 : 0);
    (void)snprintf(path, 512, "%s", status == DJ_OK ? programs.items[0] : "");
    dj__strlist_fini(&programs);
    host_fixture_fini(&fixture);
    return status;
}

static void test_compiler_choice(void **state)
{
    (void)state;
    host_fixture fixture;
    char path[512];
    char variable[512];
    char setting[512];
    char found[512];
    char expected[512];
    dj_error err;
    const char *const none[] = {NULL};
    host_fixture_init(&fixture, none);
    host_fixture_write(&fixture, "cc", "#!/bin/sh\n", 0700);
    host_fixture_write(&fixture, "other", "#!/bin/sh\n", 0700);
    host_fixture_write(&fixture, "third", "#!/bin/sh\n", 0700);
    host_fixture_write(&fixture, "plain", "", 0600);
    (void)snprintf(path, sizeof path, "PATH=/nonexistent:%s", fixture.dir);

    const char *const by_default[] = {path, NULL};
    assert_int_equal(test_compiler_locate(by_default, found, &err), DJ_OK);
    (void)snprintf(expected, sizeof expected, "%s/cc", fixture.dir);
    assert_string_equal(found, expected);

    const char *const by_cc[] = {path, "CC=other", "DJ_CC=third", NULL};
    assert_int_equal(test_compiler_locate(by_cc, found, &err), DJ_OK);
    (void)snprintf(expected, sizeof expected, "%s/other", fixture.dir);
    assert_string_equal(found, expected);

    (void)snprintf(setting, sizeof setting, "DJ_JIT_HOST_COMPILER=%s/third", fixture.dir);
    const char *const by_setting[] = {path, "CC=other", setting, NULL};
    assert_int_equal(test_compiler_locate(by_setting, found, &err), DJ_OK);
    (void)snprintf(expected, sizeof expected, "%s/third", fixture.dir);
    assert_string_equal(found, expected);

    const char *const empty[] = {path, "CC=", "DJ_JIT_HOST_COMPILER=", NULL};
    assert_int_equal(test_compiler_locate(empty, found, &err), DJ_OK);
    (void)snprintf(expected, sizeof expected, "%s/cc", fixture.dir);
    assert_string_equal(found, expected);

    (void)snprintf(variable, sizeof variable, "CC=%s/plain", fixture.dir);
    const char *const no_program[] = {path, variable, NULL};
    assert_int_equal(test_compiler_locate(no_program, found, &err), DJ_UNAVAILABLE);
    assert_non_null(strstr(err.message, "/plain (from CC) is not an executable file"));
    assert_non_null(strstr(err.message, "set DJ_JIT_HOST_COMPILER"));
    host_fixture_fini(&fixture);
}

static void test_compiler_missing(void **state)
{
    (void)state;
    char found[512];
    dj_error err;
    const char *const nowhere[] = {"PATH=/nonexistent:/dev", NULL};
    assert_int_equal(test_compiler_locate(nowhere, found, &err), DJ_UNAVAILABLE);
    assert_non_null(strstr(err.message, "'cc' (from default) in PATH (/nonexistent:/dev)"));
    assert_non_null(strstr(err.message, "set DJ_JIT_HOST_COMPILER"));
    const char *const no_path[] = {NULL};
    assert_int_equal(test_compiler_locate(no_path, found, &err), DJ_UNAVAILABLE);
    assert_non_null(strstr(err.message, "PATH (not set)"));
    const char *const words[] = {"PATH=/usr/bin:/bin", "CC=cc -m64", NULL};
    assert_int_equal(test_compiler_locate(words, found, &err), DJ_UNAVAILABLE);
    assert_non_null(strstr(err.message, "'cc -m64' (from CC)"));
    assert_non_null(strstr(err.message, "without arguments"));
    static const char *const relative[] = {"DJ_JIT_HOST_COMPILER=./cc", "CC=bin/cc"};
    for (size_t i = 0; i < 2; i++) {
        const char *const variables[] = {"PATH=/usr/bin:/bin", relative[i], NULL};
        assert_int_equal(test_compiler_locate(variables, found, &err), DJ_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "expected an absolute path"));
        assert_non_null(strstr(err.message, strchr(relative[i], '=') + 1));
    }
}

static bool test_compiler_lists(const dj__strlist *files, const char *base)
{
    for (size_t i = 0; i < files->count; i++) {
        assert_int_equal(files->items[i][0], '/');
        const char *name = strrchr(files->items[i], '/') + 1;
        if (strncmp(name, base, strlen(base)) == 0) {
            return true;
        }
    }
    return false;
}

/* Describes the compiler of this name; false if there is none. */
static bool test_compiler_parts(const char *compiler, dj__strlist *files, dj__strbuf *version)
{
    host_fixture fixture;
    char setting[128];
    dj__strlist programs;
    (void)snprintf(setting, sizeof setting, "DJ_JIT_HOST_COMPILER=%s", compiler);
    test_compiler_setup(&fixture, setting);
    dj__strlist_init(&programs);
    const bool found = dj__host_compiler_ops.locate(fixture.compiler, &programs, NULL) == DJ_OK;
    if (found &&
        dj__host_compiler_ops.describe(fixture.compiler, files, version, &fixture.err) != DJ_OK) {
        fail_msg("%s: %s", compiler, fixture.err.message);
    }
    dj__strlist_fini(&programs);
    host_fixture_fini(&fixture);
    return found;
}

static void test_compiler_describe(void **state)
{
    (void)state;
    unsigned found = 0;
    static const char *const compilers[] = {"gcc", "clang"};
    for (size_t i = 0; i < 2; i++) {
        dj__strlist files;
        dj__strbuf version;
        dj__strlist_init(&files);
        dj__strbuf_init(&version, 4096);
        if (test_compiler_parts(compilers[i], &files, &version)) {
            found++;
            assert_true(version.size > 0);
            assert_null(strchr(version.data, '\n'));
            if (strstr(version.data, "clang") != NULL) {
                assert_true(test_compiler_lists(&files, "clang"));
                assert_false(test_compiler_lists(&files, "libc.so"));
            } else {
                assert_true(test_compiler_lists(&files, "cc1"));
            }
            for (size_t a = 0; a < files.count; a++) {
                assert_int_equal(files.items[a][0], '/');
                assert_int_equal(access(files.items[a], R_OK), 0);
                for (size_t b = 0; b < a; b++) {
                    assert_string_not_equal(files.items[a], files.items[b]);
                }
            }
        }
        dj__strbuf_fini(&version);
        dj__strlist_fini(&files);
    }
    if (found == 0) {
        skip(); /* neither gcc nor clang on PATH */
    }
}

/* What a compiler answers decides, not what it is called. */
static void test_compiler_describe_script(void **state)
{
    (void)state;
    host_fixture fixture;
    char script[1024];
    dj__strlist files;
    dj__strbuf version;
    dj__strlist_init(&files);
    dj__strbuf_init(&version, 4096);
    test_compiler_script(&fixture, "#!/bin/sh\n"
                                   "case $1 in\n"
                                   "--version) echo 'my compiler 1.0'; echo more;;\n"
                                   "-print-prog-name=cc1) echo \"${0%/*}/cc1\";;\n"
                                   "*) echo nonsense;;\n"
                                   "esac\n");
    host_fixture_write(&fixture, "cc1", "#!/bin/sh\n", 0700);
    assert_int_equal(
        dj__host_compiler_ops.describe(fixture.compiler, &files, &version, &fixture.err), DJ_OK);
    assert_string_equal(dj__strbuf_str(&version), "my compiler 1.0");
    assert_int_equal(files.count, 2);
    (void)snprintf(script, sizeof script, "%s/mycc", fixture.dir);
    assert_string_equal(files.items[0], script);
    (void)snprintf(script, sizeof script, "%s/cc1", fixture.dir);
    assert_string_equal(files.items[1], script);
    dj__strbuf_fini(&version);
    dj__strlist_fini(&files);
    host_fixture_fini(&fixture);
}

/* ---- flags ---- */

static dj_status test_compiler_join(const dj_compile_options *options, const char *arch,
                                    char text[512], dj_error *err)
{
    host_fixture fixture;
    dj__strlist flags;
    const char *const none[] = {NULL};
    host_fixture_init(&fixture, none);
    dj__strlist_init(&flags);
    dj_status status = dj__host_compiler_ops.flags(fixture.compiler, options, arch, &flags, err);
    text[0] = '\0';
    for (size_t i = 0; status == DJ_OK && i < flags.count; i++) {
        strncat(text, i > 0 ? " " : "", 511 - strlen(text));
        strncat(text, flags.items[i], 511 - strlen(text));
    }
    dj__strlist_fini(&flags);
    host_fixture_fini(&fixture);
    return status;
}

static void test_compiler_flag_order(void **state)
{
    (void)state;
    static const char *const extra[] = {"-O0", "-DN=1"};
    struct utsname machine;
    char text[512];
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    assert_int_equal(uname(&machine), 0);
    options.optimize_level = "3";
    options.flags = test_compiler_flags + 1;
    options.num_flags = 3;
    assert_int_equal(test_compiler_join(&options, machine.machine, text, NULL), DJ_OK);
    assert_string_equal(text, "-O3 -fPIC -shared -std=c11");
    options.optimize_level = "fast";
    options.debug_info = DJ_ON;
    options.fast_math = DJ_ON;
    options.extra_flags = extra;
    options.num_extra_flags = 2;
    assert_int_equal(test_compiler_join(&options, "some-arch.v3_x+y", text, NULL), DJ_OK);
    assert_string_equal(text, "-Ofast -g -ffast-math -march=some-arch.v3_x+y -fPIC -shared "
                              "-std=c11 -O0 -DN=1");
    options.debug_info = DJ_OFF;
    options.fast_math = DJ_OFF;
    options.num_flags = 0;
    options.num_extra_flags = 0;
    assert_int_equal(test_compiler_join(&options, machine.machine, text, NULL), DJ_OK);
    assert_string_equal(text, "-Ofast");
}

static void test_compiler_flag_refused(void **state)
{
    (void)state;
    static const char *const levels[] = {"", "3 -fplugin=x", "-O3", "S", "123456789"};
    static const char *const arches[] = {"", "native", "x86 64", "a/b", "native+crc"};
    static const char *const flags[] = {"-march=native", "-mtune=native", "-mcpu=native",
                                        "-mcpu=native+nocrypto", "@flags"};
    static const char *const accepted[] = {"-march=nativelike", "-DX=-march=native", "-DY=@f"};
    struct utsname machine;
    char text[512];
    assert_int_equal(uname(&machine), 0);
    for (size_t i = 0; i < 5; i++) {
        dj_error err = DJ_ERROR_INIT;
        dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
        options.optimize_level = levels[i];
        assert_int_equal(test_compiler_join(&options, machine.machine, text, &err),
                         DJ_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "invalid optimize_level: "));
        options.optimize_level = "2";
        assert_int_equal(test_compiler_join(&options, arches[i], text, &err), DJ_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, arches[i]));
        options.extra_flags = &flags[i];
        options.num_extra_flags = 1;
        assert_int_equal(test_compiler_join(&options, machine.machine, text, &err),
                         DJ_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, flags[i]));
        options.flags = &flags[i];
        options.num_flags = 1;
        options.num_extra_flags = 0;
        assert_int_equal(test_compiler_join(&options, machine.machine, text, NULL),
                         DJ_INVALID_ARGUMENT);
    }
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.optimize_level = "2";
    options.flags = accepted;
    options.num_flags = 3;
    assert_int_equal(test_compiler_join(&options, machine.machine, text, NULL), DJ_OK);
}

/* ---- running the system's ---- */

static bool test_compiler_contains(const char *data, size_t size, const char *text)
{
    return memmem(data, size, text, strlen(text)) != NULL;
}

static void test_compiler_compiles(void **state)
{
    (void)state;
    host_fixture fixture;
    size_t size = 0;
    test_compiler_setup(&fixture, NULL);
    const dj_compile_job job = {.timeout_ms = 60000};
    if (test_compiler_run(&fixture, job) != DJ_OK) {
        fail_msg("%s", fixture.err.message);
    }
    assert_non_null(strstr(dj__strbuf_str(&fixture.command),
                           " -O3 -fPIC -shared -std=c11 -I prelude -o kernel.so kernel.c "));
    assert_int_equal(fixture.log.size, 0);
    assert_false(host_fixture_has(&fixture, "kernel.s"));
    char *first = host_fixture_read(&fixture, "kernel.so", &size);
    assert_memory_equal(first, "\177ELF", 4);

    /* The same source gives the same bytes in another directory. */
    host_fixture other;
    size_t other_size = 0;
    test_compiler_setup(&other, NULL);
    assert_int_equal(test_compiler_run(&other, job), DJ_OK);
    char *second = host_fixture_read(&other, "kernel.so", &other_size);
    assert_int_equal(other_size, size);
    assert_memory_equal(first, second, size);
    free(second);
    free(first);
    host_fixture_fini(&other);
    host_fixture_fini(&fixture);
}

static void test_compiler_debug(void **state)
{
    (void)state;
    static const char *const flags[] = {"-O1", "-g", "-fPIC", "-shared", "-std=c11"};
    host_fixture fixture;
    size_t size = 0;
    test_compiler_setup(&fixture, NULL);
    const dj_compile_job job = {.timeout_ms = 60000, .debug_dir = "/root/of/sources"};
    if (host_fixture_compile(&fixture, test_compiler_source, flags, 5, job) != DJ_OK) {
        fail_msg("%s", fixture.err.message);
    }
    char *data = host_fixture_read(&fixture, "kernel.so", &size);
    assert_true(test_compiler_contains(data, size, "/root/of/sources"));
    assert_false(test_compiler_contains(data, size, fixture.dir));
    free(data);
    host_fixture_fini(&fixture);
}

/* The assembly text, and in it the vector code that the shape of DJ_KERNEL is for. */
static void test_compiler_assembly(void **state)
{
    (void)state;
    host_fixture fixture;
    size_t size = 0;
    test_compiler_setup(&fixture, "CC=gcc");
    dj__strlist programs;
    dj__strlist_init(&programs);
    const bool found = dj__host_compiler_ops.locate(fixture.compiler, &programs, NULL) == DJ_OK;
    dj__strlist_fini(&programs);
    if (!found) {
        host_fixture_fini(&fixture);
        skip(); /* no gcc */
    }
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.dump_asm = DJ_ON;
    const dj_compile_job job = {.timeout_ms = 60000, .options = &options};
    if (test_compiler_run(&fixture, job) != DJ_OK) {
        fail_msg("%s", fixture.err.message);
    }
    assert_true(host_fixture_has(&fixture, "kernel.so"));
    char *text = host_fixture_read(&fixture, "kernel.s", &size);
    assert_true(test_compiler_contains(text, size, "dj__run_set"));
#if defined(__x86_64__)
    assert_true(test_compiler_contains(text, size, "mulps"));
#endif
    free(text);
    host_fixture_fini(&fixture);
}

static void test_compiler_source_error(void **state)
{
    (void)state;
    host_fixture fixture;
    test_compiler_setup(&fixture, NULL);
    const dj_compile_job job = {.timeout_ms = 60000};
    assert_int_equal(host_fixture_compile(&fixture, "int x = ;\n", test_compiler_flags, 4, job),
                     DJ_COMPILE);
    assert_ptr_equal(strstr(fixture.err.message, "kernel.c:1:"), fixture.err.message);
    assert_non_null(strstr(fixture.err.message, "command failed with exit code 1"));
    assert_non_null(strstr(dj__strbuf_str(&fixture.log), "kernel.c:1:"));
    assert_false(host_fixture_has(&fixture, "kernel.so"));
    host_fixture_fini(&fixture);
}

/* ---- programs in its place ---- */

static void test_compiler_no_output(void **state)
{
    (void)state;
    static const struct {
        const char *script, *fault;
    } cases[] = {
        {"#!/bin/sh\necho hello from mycc\n", "kernel.so is missing"},
        {"#!/bin/sh\n: > kernel.so\necho hello from mycc\n", "kernel.so is empty"},
        {"#!/bin/sh\necho ELF > kernel.so\necho hello from mycc\n", "kernel.so is not an ELF file"},
        {"#!/bin/sh\nprintf '\\177EL' > kernel.so\necho hello from mycc\n",
         "kernel.so is not an ELF file"},
        {"#!/bin/sh\nln -s /bin/sh kernel.so\necho hello from mycc\n", "kernel.so is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        host_fixture fixture;
        test_compiler_script(&fixture, cases[i].script);
        const dj_compile_job job = {.timeout_ms = 60000};
        assert_int_equal(test_compiler_run(&fixture, job), DJ_COMPILE);
        assert_non_null(
            strstr(fixture.err.message, "host compiler did not produce a valid shared object: "));
        assert_non_null(strstr(fixture.err.message, cases[i].fault));
        assert_non_null(strstr(fixture.err.message, "mycc"));
        assert_non_null(strstr(fixture.err.message, "hello from mycc"));
        assert_string_equal(dj__strbuf_str(&fixture.log), "hello from mycc\n");
        host_fixture_fini(&fixture);
    }
}

static void test_compiler_environment(void **state)
{
    (void)state;
    host_fixture fixture;
    size_t size = 0;
    test_compiler_script(&fixture,
                         "#!/bin/sh\n/usr/bin/env > env.txt\nprintf '\\177ELF' > kernel.so\n");
    const dj_compile_job job = {.timeout_ms = 60000};
    if (test_compiler_run(&fixture, job) != DJ_OK) {
        fail_msg("%s", fixture.err.message);
    }
    char *text = host_fixture_read(&fixture, "env.txt", &size);
    assert_non_null(strstr(text, "CPATH=/cpath\n"));
    assert_non_null(strstr(text, "LC_ALL=C\n"));
    assert_non_null(strstr(text, "PATH=/usr/bin:/bin\n"));
    assert_null(strstr(text, "SECRET"));
    assert_null(strstr(text, "DJ_"));
    free(text);
    host_fixture_fini(&fixture);
}

static void test_compiler_failures(void **state)
{
    (void)state;
    host_fixture fixture;
    test_compiler_script(&fixture, "#!/bin/sh\necho 'kernel.c:3: error: bad' >&2\nexit 37\n");
    dj_compile_job job = {.timeout_ms = 60000};
    assert_int_equal(test_compiler_run(&fixture, job), DJ_COMPILE);
    assert_int_equal(fixture.err.native, 37);
    assert_non_null(strstr(fixture.err.message, "command failed with exit code 37"));
    host_fixture_fini(&fixture);

    test_compiler_script(&fixture, "#!/bin/sh\nkill -9 $$\n");
    assert_int_equal(test_compiler_run(&fixture, job), DJ_COMPILE);
    assert_non_null(strstr(fixture.err.message, "137"));
    host_fixture_fini(&fixture);

    /* Endless: ended at the deadline, however long that takes. */
    test_compiler_script(&fixture, "#!/bin/sh\nexec sleep 100000\n");
    job.timeout_ms = 100;
    assert_int_equal(test_compiler_run(&fixture, job), DJ_TIMEOUT);
    assert_non_null(strstr(fixture.err.message, "DJ_JIT_COMPILE_TIMEOUT"));
    job.timeout_ms = 60000;
    assert_int_equal(dj_cancel_create(&job.cancel, NULL), DJ_OK);
    dj_cancel_request(job.cancel);
    assert_int_equal(test_compiler_run(&fixture, job), DJ_CANCELLED);
    dj_cancel_release(job.cancel);
    host_fixture_fini(&fixture);
}

/* A flood of output is cut, not kept and not waited for. */
static void test_compiler_flood(void **state)
{
    (void)state;
    host_fixture fixture;
    test_compiler_script(&fixture, "#!/bin/sh\n"
                                   "echo first line\n"
                                   "head -c 20000000 /dev/zero | tr '\\0' x\n"
                                   "printf '\\177ELF' > kernel.so\n"
                                   "echo; echo last line\n");
    const dj_compile_job job = {.timeout_ms = 60000};
    if (test_compiler_run(&fixture, job) != DJ_OK) {
        fail_msg("%s", fixture.err.message);
    }
    assert_true(fixture.log.size < (1 << 20) + 4096);
    assert_int_equal(strncmp(fixture.log.data, "first line\n", 11), 0);
    assert_non_null(strstr(fixture.log.data, "\nlast line\n"));
    host_fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compiler_choice),     cmocka_unit_test(test_compiler_missing),
        cmocka_unit_test(test_compiler_describe),   cmocka_unit_test(test_compiler_describe_script),
        cmocka_unit_test(test_compiler_flag_order), cmocka_unit_test(test_compiler_flag_refused),
        cmocka_unit_test(test_compiler_compiles),   cmocka_unit_test(test_compiler_debug),
        cmocka_unit_test(test_compiler_assembly),   cmocka_unit_test(test_compiler_source_error),
        cmocka_unit_test(test_compiler_no_output),  cmocka_unit_test(test_compiler_environment),
        cmocka_unit_test(test_compiler_failures),   cmocka_unit_test(test_compiler_flood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
