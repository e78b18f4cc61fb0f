/* SPDX-License-Identifier: MIT */
/*
 * A back end in bad company: compilers that hang, flood, die or lie, roots that cannot be
 * used, environments that lack everything. Each gives a clear status, and the same runtime works
 * afterwards.
 */
#include "conformance.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

static const char source[] = KERNEL_HEADER "DJ_KERNEL(answer, (int *, out)) { out[0] = 42; }\n";

static const char compiler_is_cc[] = "the compiler that misbehaves here is a C compiler";

static char compiler[160];
static char mode_file[160];
static char log_text[4096];

static void write_text(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void set_mode(const char *mode)
{
    write_text(mode_file, mode, 0644);
}

/* A compiler that does what the file "mode" beside it says. */
static void make_compiler(void)
{
    snprintf(compiler, sizeof(compiler), "%s/stand-in cc", suite_dir);
    snprintf(mode_file, sizeof(mode_file), "%s/mode", suite_dir);
    set_mode("ok");
    write_text(compiler,
               "#!/bin/sh\n"
               "case \"$1\" in -print-prog-name*|--version) exec cc \"$@\";; esac\n"
               "read -r mode < \"${0%/*}/mode\"\n"
               "case $mode in\n"
               "ok) exec cc \"$@\";;\n"
               "hang) trap '' TERM; while :; do sleep 1; done;;\n"
               "flood) yes 'kernel.c:1:1: warning: noise' | head -c 100000000; exit 1;;\n"
               "die) kill -SEGV $$;;\n"
               "lie) exit 0;;\n"
               "empty) : > kernel.so; exit 0;;\n"
               "garbage) echo 'not an object' > kernel.so; exit 0;;\n"
               "fail) echo 'kernel.c:9:9: error: as asked' >&2; exit 37;;\n"
               "esac\n",
               0755);
}

static void keep_log(void *user, dj_log_level level, const char *message)
{
    (void)user;
    (void)level;
    snprintf(log_text + strlen(log_text), sizeof(log_text) - strlen(log_text), "%s\n", message);
}

static dj_runtime *new_runtime(void)
{
    dj_config config = DJ_CONFIG_INIT;
    config.log = keep_log;
    log_text[0] = '\0';
    return suite_new_runtime(&config);
}

static int setup(void **state)
{
    if (suite_setup(state) != 0) {
        return -1;
    }
    make_compiler();
    setenv("DJ_JIT_HOST_COMPILER", compiler, 1);
    unsetenv("DJ_JIT_COMPILE_TIMEOUT");
    return 0;
}

/* -1 and words, or what the kernel `source` of one pointer writes. */
static int run_source(dj_runtime *runtime, const char *text, const dj_compile_options *options,
                      int want, dj_kernel **out, dj_error *err)
{
    int got = 0;
    void *memory = NULL;
    dj_launch_options launch = DJ_LAUNCH_OPTIONS_INIT;
    launch.grid.x = launch.block.x = 1;
    if (dj_compile(runtime, "answer", text, strlen(text), options, out, err) != DJ_OK) {
        return -1;
    }
    const bool ok = dj_mem_alloc(runtime, sizeof(got), &memory, err) == DJ_OK &&
                    dj_launch(*out, &launch, DJ_ARGS(memory), err) == DJ_OK &&
                    dj_synchronize(runtime, err) == DJ_OK &&
                    dj_mem_copy(runtime, &got, memory, sizeof(got), err) == DJ_OK;
    dj_mem_free(runtime, memory, NULL);
    return ok ? suite_result(got, want) : -1;
}

static int answer(dj_runtime *runtime, dj_error *err)
{
    dj_kernel *kernel = NULL;
    const int got = run_source(runtime, source, NULL, 42, &kernel, err);
    dj_kernel_release(kernel);
    return got;
}

static void expect_answer(dj_runtime *runtime)
{
    dj_error err = DJ_ERROR_INIT;
    const int got = answer(runtime, &err);
    if (got != 42) {
        fail_msg("answer: %d, %s", got, err.message);
    }
}

static void expect_failure(const char *mode, dj_status want, const char *text)
{
    dj_runtime *runtime = new_runtime();
    set_mode(mode);
    dj_error err = DJ_ERROR_INIT;
    dj_kernel *kernel = NULL;
    const dj_status got =
        dj_compile(runtime, "answer", source, strlen(source), NULL, &kernel, &err);
    if (got != want || strstr(err.message, text) == NULL) {
        fail_msg("%s: status %s, message %s", mode, dj_status_name(got), err.message);
    }
    assert_null(kernel);
    assert_int_equal(err.status, want);
    set_mode("ok");
    expect_answer(runtime);
    size_t removed = 0;
    assert_int_equal(dj_cache_clear(runtime, NULL, &removed, NULL), DJ_OK);
    assert_int_equal(removed, 1);
    dj_runtime_release(runtime);
}

static void compilers_that_misbehave(void **state)
{
    (void)state;
    suite_needs_host(compiler_is_cc);
    expect_failure("die", DJ_COMPILE, "exit code 139");
    expect_failure("lie", DJ_COMPILE, "did not produce a valid shared object");
    expect_failure("empty", DJ_COMPILE, "did not produce a valid shared object");
    expect_failure("garbage", DJ_COMPILE, "did not produce a valid shared object");
    expect_failure("fail", DJ_COMPILE, "kernel.c:9:9: error: as asked");
    expect_failure("fail", DJ_COMPILE, "exit code 37");
    expect_failure("flood", DJ_COMPILE, "exit code 1");
}

static void compiler_that_hangs(void **state)
{
    (void)state;
    suite_needs_host(compiler_is_cc);
    setenv("DJ_JIT_COMPILE_TIMEOUT", "5", 1); /* an honest compilation must fit in */
    expect_failure("hang", DJ_TIMEOUT, "JIT_COMPILE_TIMEOUT");
}

static void *request_cancel(void *arg)
{
    dj_cancel_request(arg);
    return NULL;
}

static void cancelled_compilation(void **state)
{
    (void)state;
    suite_needs_host(compiler_is_cc);
    dj_runtime *runtime = new_runtime();
    set_mode("hang");
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    assert_int_equal(dj_cancel_create(&options.cancel, NULL), DJ_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, request_cancel, options.cancel), 0);
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj_compile(runtime, "answer", source, strlen(source), &options, &kernel, &err),
                     DJ_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    dj_cancel_release(options.cancel);
    set_mode("ok");
    expect_answer(runtime);
    dj_runtime_release(runtime);
}

static void compiler_that_is_missing(void **state)
{
    (void)state;
    suite_needs_host(compiler_is_cc);
    static const char *const bad[] = {"no-such-compiler", "/nonexistent/cc", "./cc"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("DJ_JIT_HOST_COMPILER", bad[i], 1);
        dj_runtime *runtime = new_runtime();
        dj_error err = DJ_ERROR_INIT;
        assert_int_equal(answer(runtime, &err), -1);
        assert_true(err.status == DJ_UNAVAILABLE || err.status == DJ_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, bad[i]));
        assert_non_null(strstr(err.message, "JIT_HOST_COMPILER"));
        dj_runtime_release(runtime);
    }
    unsetenv("DJ_JIT_HOST_COMPILER");
    char *path = strdup(getenv("PATH"));
    assert_non_null(path);
    setenv("PATH", suite_dir, 1);
    unsetenv("CC");
    dj_runtime *runtime = new_runtime();
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(answer(runtime, &err), -1);
    assert_int_equal(err.status, DJ_UNAVAILABLE);
    assert_non_null(strstr(err.message, suite_dir));
    dj_runtime_release(runtime);
    setenv("PATH", path, 1);
    free(path);
}

static void strange_paths(void **state)
{
    (void)state;
    static const char *const names[] = {"with blank",  "quo'te\"s", "$(touch pwned) `x` $HOME",
                                        "new\nline",   "-dash",     "semi;colon&|<>",
                                        "\xc3\xa4\xff"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char root[256];
        char include[256];
        char header[300];
        snprintf(root, sizeof(root), "%s/%s", suite_dir, names[i]);
        snprintf(include, sizeof(include), "%s/%s inc", suite_dir, names[i]);
        assert_int_equal(mkdir(include, 0755), 0);
        snprintf(header, sizeof(header), "%s/number.h", include);
        write_text(header, "#define NUMBER 17\n", 0644);
        setenv("DJ_JIT_CACHE_DIR", root, 1);
        const char *const dirs[] = {include};
        const char *const prefixes[] = {"number"};
        dj_config config = DJ_CONFIG_INIT;
        config.include_dirs = dirs;
        config.num_include_dirs = 1;
        config.include_prefixes = prefixes;
        config.num_include_prefixes = 1;
        dj_runtime *runtime = suite_new_runtime(&config);
        static const char text[] =
            KERNEL_HEADER "#include <number.h>\nDJ_KERNEL(k, (int *, out)) { out[0] = NUMBER; }\n";
        dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
        options.debug_info = DJ_ON;
        dj_kernel *kernel = NULL;
        dj_error err = DJ_ERROR_INIT;
        if (run_source(runtime, text, &options, 17, &kernel, &err) != 17) {
            fail_msg("%s: %s", names[i], err.message);
        }
        assert_int_equal(strncmp(dj_kernel_path(kernel), root, strlen(root)), 0);
        dj_kernel_release(kernel);
        dj_runtime_release(runtime);
    }
    assert_int_equal(access("pwned", F_OK), -1);
}

static void home_unset(void **state)
{
    (void)state;
    char *home = getenv("HOME") != NULL ? strdup(getenv("HOME")) : NULL;
    unsetenv("DJ_JIT_CACHE_DIR");
    setenv("HOME", suite_dir, 1);
    dj_runtime *runtime = new_runtime();
    expect_answer(runtime);
    char root[128];
    snprintf(root, sizeof(root), "%s/.dj", suite_dir);
    struct stat info;
    assert_int_equal(stat(root, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    dj_runtime_release(runtime);
    /* Without HOME the account's directory stands in; here only creation is tried. */
    unsetenv("HOME");
    runtime = new_runtime();
    dj_runtime_release(runtime);
    if (home != NULL) {
        setenv("HOME", home, 1);
    }
    free(home);
}

static void root_writable_by_strangers(void **state)
{
    (void)state;
    char root[128];
    snprintf(root, sizeof(root), "%s/open", suite_dir);
    assert_int_equal(mkdir(root, 0755), 0);
    assert_int_equal(chmod(root, 0777), 0);
    setenv("DJ_JIT_CACHE_DIR", root, 1);
    dj_runtime *runtime = new_runtime();
    expect_answer(runtime);
    assert_non_null(strstr(log_text, root));
    assert_non_null(strstr(log_text, "JIT_CACHE_DIR"));
    dj_stats stats = DJ_STATS_INIT;
    assert_int_equal(dj_runtime_stats(runtime, &stats, NULL), DJ_OK);
    assert_int_equal(stats.unpublished, 1);
    dj_runtime_release(runtime);
    char sub[160];
    snprintf(sub, sizeof(sub), "%s/cache", root);
    assert_int_equal(access(sub, F_OK), -1);
}

/* In a child with a mount namespace of its own; 77 means that this is not permitted here. */
static int on_mount(const char *options, unsigned long flags)
{
    suite_needs_host("a device does not work in the child of a process that has used it");
    char where[128];
    snprintf(where, sizeof(where), "%s/mount", suite_dir);
    if (mkdir(where, 0700) != 0 && access(where, F_OK) != 0) {
        return 1;
    }
    setenv("DJ_JIT_CACHE_DIR", where, 1);
    const pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("tmpfs", where, "tmpfs", flags, options) != 0) {
            _exit(77);
        }
        dj_config config = DJ_CONFIG_INIT;
        config.log = keep_log;
        dj_runtime *runtime = NULL;
        if (dj_runtime_create(suite_backend(), &config, &runtime, NULL) != DJ_OK) {
            _exit(2);
        }
        dj_error err = DJ_ERROR_INIT;
        if (answer(runtime, &err) != 42) {
            fprintf(stderr, "%s\n", err.message);
            _exit(3);
        }
        dj_stats stats = DJ_STATS_INIT;
        dj_runtime_stats(runtime, &stats, NULL);
        dj_runtime_release(runtime);
        if (stats.unpublished != 1 || strstr(log_text, "JIT_CACHE_DIR") == NULL) {
            fprintf(stderr, "%llu unpublished, log: %s\n", (unsigned long long)stats.unpublished,
                    log_text);
            _exit(4);
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static void root_on_a_read_only_file_system(void **state)
{
    (void)state;
    const int code = on_mount("size=1m", MS_RDONLY);
    if (code == 77) {
        skip();
    }
    assert_int_equal(code, 0);
}

static void root_on_a_full_file_system(void **state)
{
    (void)state;
    const int code = on_mount("size=8k,mode=0700", 0);
    if (code == 77) {
        skip();
    }
    assert_int_equal(code, 0);
}

static void entry_with_an_empty_marker(void **state)
{
    (void)state;
    dj_runtime *runtime = new_runtime();
    dj_artifact *artifact = NULL;
    assert_int_equal(dj_build(runtime, "answer", source, strlen(source), NULL, &artifact, NULL),
                     DJ_OK);
    char marker[512];
    snprintf(marker, sizeof(marker), "%s/.committed", dj_artifact_path(artifact));
    assert_int_equal(truncate(marker, 0), 0);
    dj_artifact_release(artifact);
    dj_runtime_release(runtime);
    runtime = new_runtime();
    expect_answer(runtime);
    struct stat info;
    assert_int_equal(stat(marker, &info), 0);
    assert_int_equal(info.st_size, 0);
    dj_stats stats = DJ_STATS_INIT;
    assert_int_equal(dj_runtime_stats(runtime, &stats, NULL), DJ_OK);
    assert_int_equal(stats.healed, 0);
    dj_runtime_release(runtime);
}

static void sixteen_mebibytes_of_source(void **state)
{
    (void)state;
    const size_t size = (size_t)16 << 20;
    suite_needs_host("the size is a matter of the key, which all back ends share");
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, ' ', size);
    memcpy(text, source, strlen(source));
    text[size - 1] = '\n';
    dj_runtime *runtime = new_runtime();
    dj_error err = DJ_ERROR_INIT;
    dj_kernel *first = NULL;
    dj_kernel *second = NULL;
    if (dj_compile(runtime, "large", text, size, NULL, &first, &err) != DJ_OK) {
        fail_msg("%s", err.message);
    }
    /* One byte in the middle, which no sampled window sees, must not give the same kernel. */
    text[size / 2 + 7] = '\t';
    assert_int_equal(dj_compile(runtime, "large", text, size, NULL, &second, &err), DJ_OK);
    assert_ptr_not_equal(first, second);
    dj_kernel_release(first);
    dj_kernel_release(second);
    dj_runtime_release(runtime);
    free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, suite_teardown)
    const struct CMUnitTest tests[] = {
        TEST(compilers_that_misbehave),
        TEST(compiler_that_hangs),
        TEST(cancelled_compilation),
        TEST(compiler_that_is_missing),
        TEST(strange_paths),
        TEST(home_unset),
        TEST(root_writable_by_strangers),
        TEST(root_on_a_read_only_file_system),
        TEST(root_on_a_full_file_system),
        TEST(entry_with_an_empty_marker),
        TEST(sixteen_mebibytes_of_source),
    };
    return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
