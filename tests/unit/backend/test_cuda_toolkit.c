/* SPDX-License-Identifier: MIT */
/* Which nvcc and host compiler are found, what they consist of, and versions. */
#include "cuda_fixture.h"

#include "backend/cuda/cuda_sites.h"

#define TEST_TOOLKIT_VERSION                                                                       \
    "#!/bin/sh\ncase \"$1\" in --version) echo 'nvcc: NVIDIA';"                                    \
    " echo 'Cuda compilation tools, release 13.1, V13.1.7'; exit 0;; esac\nexit 1\n"

/* <base>/<name>/bin/nvcc, a script; the toolkit's path. */
static char *test_toolkit_make(const cuda_fixture *fixture, const char *name, const char *script)
{
    char *home = dj__path_join(fixture->base, name);
    char *bin = home != NULL ? dj__path_join(home, "bin") : NULL;
    assert_non_null(bin);
    cuda_fixture_write_to(bin, "nvcc", script, 0700);
    free(bin);
    return home;
}

static void test_toolkit_add(const char *home, const char *dir, const char *name, mode_t mode)
{
    char *path = dj__path_join(home, dir);
    assert_non_null(path);
    cuda_fixture_write_to(path, name, name, mode);
    free(path);
}

/* What is found in this environment; "" after an error. */
static dj_status test_toolkit_locate(cuda_fixture *fixture, const char *const *variables,
                                     char nvcc[512], char host[512])
{
    dj__strlist programs;
    dj__strlist_init(&programs);
    nvcc[0] = host[0] = '\0';
    memset(&fixture->err, 0, sizeof fixture->err);
    cuda_fixture_set_env(fixture, variables);
    const dj_status status =
        dj__cuda_compiler_ops.locate(fixture->compiler, &programs, &fixture->err);
    assert_int_equal(programs.count, status == DJ_OK ? 2 : 0);
    if (status == DJ_OK) {
        (void)snprintf(nvcc, 512, "%s", programs.items[0]);
        (void)snprintf(host, 512, "%s", programs.items[1]);
    }
    dj__strlist_fini(&programs);
    return status;
}

static void test_toolkit_says(const cuda_fixture *fixture, const char *part)
{
    if (strstr(fixture->err.message, part) == NULL) {
        fail_msg("'%s' is not in: %s", part, fixture->err.message);
    }
}

static void test_toolkit_init(cuda_fixture *fixture)
{
    const char *const none[] = {NULL};
    cuda_fixture_init(fixture, "job", none);
}

/* ---- nvcc ---- */

static void test_toolkit_order(void **state)
{
    (void)state;
    cuda_fixture fixture;
    char nvcc[512];
    char host[512];
    test_toolkit_init(&fixture);
    char *first = test_toolkit_make(&fixture, "first", "#!/bin/sh\n");
    char *second = test_toolkit_make(&fixture, "second", "#!/bin/sh\n");
    char *third = test_toolkit_make(&fixture, "third", "#!/bin/sh\n");
    char *setting = dj__format("DJ_JIT_NVCC_COMPILER=%s/../first//bin/./nvcc", second);
    char *home = dj__format("CUDA_HOME=%s", second);
    char *cuda_path = dj__format("CUDA_PATH=%s", third);
    char *path = dj__format("PATH=/nonexistent:%s/bin:/usr/bin:/bin", first);
    char *in_first = dj__format("%s/bin/nvcc", first);
    char *in_second = dj__format("%s/bin/nvcc", second);
    char *in_third = dj__format("%s/bin/nvcc", third);
    const char *const cases[][5] = {
        {in_first, setting, home, cuda_path, "NVCC_COMPILER=/x"},
        {in_second, home, cuda_path, "DJ_JIT_NVCC_COMPILER=", "JIT_NVCC_COMPILER=/x"},
        {in_third, "CUDA_HOME=", cuda_path, "A=1", "B=1"},
        {in_first, "CUDA_HOME=", "CUDA_PATH=", "A=1", "B=1"},
        {in_first, "DJ_JIT_NVCC_COMPILER=nvcc", home, "A=1", "B=1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const variables[] = {path,        cases[i][1], cases[i][2],
                                         cases[i][3], cases[i][4], NULL};
        if (test_toolkit_locate(&fixture, variables, nvcc, host) != DJ_OK) {
            fail_msg("%s", fixture.err.message);
        }
        assert_string_equal(nvcc, cases[i][0]);
    }
    free(in_first);
    free(in_second);
    free(in_third);
    free(path);
    free(cuda_path);
    free(home);
    free(setting);
    free(third);
    free(second);
    free(first);
    cuda_fixture_fini(&fixture);
}

static void test_toolkit_errors(void **state)
{
    (void)state;
    cuda_fixture fixture;
    char nvcc[512];
    char host[512];
    test_toolkit_init(&fixture);
    char *empty = dj__path_join(fixture.base, "empty");
    assert_int_equal(dj__make_dirs(empty, 0700), 0);
    char *plain = test_toolkit_make(&fixture, "plain", "#!/bin/sh\n");
    char *program = dj__format("%s/bin/nvcc", plain);
    assert_int_equal(chmod(program, 0600), 0);
    char *no_nvcc = dj__format("CUDA_HOME=%s", empty);
    char *no_x = dj__format("CUDA_PATH=%s", plain);
    char *setting_no_x = dj__format("DJ_JIT_NVCC_COMPILER=%s", program);
    const struct {
        const char *variable;
        dj_status status;
        const char *parts[2];
    } cases[] = {
        {"CUDA_HOME=/nonexistent/cuda",
         DJ_UNAVAILABLE,
         {"CUDA_HOME is /nonexistent/cuda", "set it to a CUDA toolkit"}},
        {"CUDA_PATH=/nonexistent/cuda",
         DJ_UNAVAILABLE,
         {"CUDA_PATH is /nonexistent/cuda", "no directory"}},
        {no_nvcc, DJ_UNAVAILABLE, {"CUDA_HOME is ", "has no bin/nvcc"}},
        {"CUDA_HOME=cuda", DJ_INVALID_ARGUMENT, {"CUDA_HOME: cuda", "absolute path"}},
        {no_x, DJ_UNAVAILABLE, {"NVCC compiler is not executable: ", "(from CUDA_PATH)"}},
        {setting_no_x,
         DJ_UNAVAILABLE,
         {"NVCC compiler is not executable: ", "(from DJ_JIT_NVCC_COMPILER); make it an exec"}},
        {"DJ_JIT_NVCC_COMPILER=/usr",
         DJ_UNAVAILABLE,
         {"NVCC compiler is not executable: /usr", "it is a directory; name the program in it"}},
        {"DJ_JIT_NVCC_COMPILER=/nonexistent/nvcc",
         DJ_UNAVAILABLE,
         {"NVCC compiler is not executable: /nonexistent/nvcc", "there is no such file"}},
        {"DJ_JIT_NVCC_COMPILER=mynvcc",
         DJ_UNAVAILABLE,
         {"NVCC compiler is not executable: mynvcc", "no such program in PATH (/usr/bin:/bin)"}},
        {"DJ_JIT_NVCC_COMPILER=./nvcc",
         DJ_INVALID_ARGUMENT,
         {"invalid value for DJ_JIT_NVCC_COMPILER: ./nvcc", "absolute path"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const variables[] = {"PATH=/usr/bin:/bin", cases[i].variable, NULL};
        assert_int_equal(test_toolkit_locate(&fixture, variables, nvcc, host), cases[i].status);
        test_toolkit_says(&fixture, cases[i].parts[0]);
        test_toolkit_says(&fixture, cases[i].parts[1]);
    }
    free(setting_no_x);
    free(no_x);
    free(no_nvcc);
    free(program);
    free(plain);
    free(empty);
    cuda_fixture_fini(&fixture);
}

static void test_toolkit_nowhere(void **state)
{
    (void)state;
    cuda_fixture fixture;
    char nvcc[512];
    char host[512];
    if (access("/usr/local/cuda/bin/nvcc", F_OK) == 0) {
        print_message("skipped: this machine has /usr/local/cuda\n");
        skip();
    }
    test_toolkit_init(&fixture);
    const char *const variables[] = {"PATH=/dev:/nonexistent", "PYTHONPATH=/sites/one", NULL};
    assert_int_equal(test_toolkit_locate(&fixture, variables, nvcc, host), DJ_UNAVAILABLE);
    test_toolkit_says(&fixture, "set DJ_JIT_NVCC_COMPILER to an nvcc, or CUDA_HOME");
    test_toolkit_says(&fixture, "PATH (/dev:/nonexistent), /usr/local/cuda/bin/nvcc");
    test_toolkit_says(&fixture, "/sites/one/nvidia/cu*/bin");
    cuda_fixture_fini(&fixture);
}

/* A link into a toolkit is followed where only there the parts are. */
static void test_toolkit_links(void **state)
{
    (void)state;
    cuda_fixture fixture;
    char nvcc[512];
    char host[512];
    test_toolkit_init(&fixture);
    char *home = test_toolkit_make(&fixture, "home", "#!/bin/sh\n");
    char *bin = dj__path_join(fixture.base, "bin");
    char *link = dj__path_join(fixture.base, "bin/nvcc");
    char *target = dj__path_join(home, "bin/nvcc");
    char *path = dj__format("PATH=%s:/usr/bin:/bin", bin);
    assert_int_equal(dj__make_dirs(bin, 0700), 0);
    assert_int_equal(symlink(target, link), 0);
    const char *const variables[] = {path, NULL};
    assert_int_equal(test_toolkit_locate(&fixture, variables, nvcc, host), DJ_OK);
    assert_string_equal(nvcc, link);
    test_toolkit_add(home, "bin", "nvcc.profile", 0600);
    assert_int_equal(test_toolkit_locate(&fixture, variables, nvcc, host), DJ_OK);
    assert_string_equal(nvcc, target);
    cuda_fixture_write_to(bin, "nvcc.profile", "", 0600);
    assert_int_equal(test_toolkit_locate(&fixture, variables, nvcc, host), DJ_OK);
    assert_string_equal(nvcc, link);
    free(path);
    free(target);
    free(link);
    free(bin);
    free(home);
    cuda_fixture_fini(&fixture);
}

/* ---- pip ---- */

static void test_toolkit_sites(void **state)
{
    (void)state;
    cuda_fixture fixture;
    dj__strlist sites;
    test_toolkit_init(&fixture);
    char *venv = dj__path_join(fixture.base, "venv");
    char *conda = dj__path_join(fixture.base, "conda");
    char *one = dj__path_join(venv, "lib/python3.11/site-packages");
    char *two = dj__path_join(venv, "lib/python3.9/site-packages");
    char *three = dj__path_join(conda, "lib/python3.12/site-packages");
    assert_int_equal(dj__make_dirs(one, 0700), 0);
    assert_int_equal(dj__make_dirs(two, 0700), 0);
    assert_int_equal(dj__make_dirs(three, 0700), 0);
    char *virtual_env = dj__format("VIRTUAL_ENV=%s", venv);
    char *conda_prefix = dj__format("CONDA_PREFIX=%s", conda);
    char *python_path = dj__format("PYTHONPATH=relative::/extra/../more:%s", one);
    const char *const variables[] = {virtual_env, conda_prefix, python_path, NULL};
    cuda_fixture_set_env(&fixture, variables);
    dj__strlist_init(&sites);
    assert_int_equal(dj__cuda_sites(fixture.env, &sites, &fixture.err), DJ_OK);
    assert_true(sites.count >= 4);
    assert_string_equal(sites.items[0], one);
    assert_string_equal(sites.items[1], two);
    assert_string_equal(sites.items[2], three);
    assert_string_equal(sites.items[3], "/more");
    dj__strlist_fini(&sites);

    assert_null(dj__cuda_site_nvcc(one));
    test_toolkit_add(one, "nvidia/cuda_runtime/include", "cuda_runtime.h", 0600);
    test_toolkit_add(one, "nvidia/cu14/lib", "libcudart.so.14", 0600);
    test_toolkit_add(one, "nvidia/cudnn/bin", "nvcc", 0700);
    assert_null(dj__cuda_site_nvcc(one));
    const char *const layouts[] = {"cuda_nvcc", "cu9", "cu13"};
    for (size_t i = 0; i < 3; i++) {
        char *dir = dj__format("nvidia/%s/bin", layouts[i]);
        char *expected = dj__format("%s/%s/nvcc", one, dir);
        test_toolkit_add(one, dir, "nvcc", 0700);
        char *found = dj__cuda_site_nvcc(one);
        assert_string_equal(found, expected);
        free(found);
        free(expected);
        free(dir);
    }
    free(python_path);
    free(conda_prefix);
    free(virtual_env);
    free(three);
    free(two);
    free(one);
    free(conda);
    free(venv);
    cuda_fixture_fini(&fixture);
}

/* ---- the host compiler ---- */

static void test_toolkit_host(void **state)
{
    (void)state;
    cuda_fixture fixture;
    char nvcc[512];
    char host[512];
    test_toolkit_init(&fixture);
    char *home = test_toolkit_make(&fixture, "home", "#!/bin/sh\n");
    char *dir = dj__path_join(fixture.base, "hosts");
    static const char *const names[] = {"gcc", "g++", "mycc", "c++"};
    for (size_t i = 0; i < 4; i++) {
        cuda_fixture_write_to(dir, names[i], "#!/bin/sh\n", 0700);
    }
    char *cuda_home = dj__format("CUDA_HOME=%s", home);
    char *path = dj__format("PATH=%s", dir);
    char *ccbin_dir = dj__format("NVCC_CCBIN=%s", dir);
    char *ccbin_path = dj__format("NVCC_CCBIN=%s/mycc", dir);
    char *flags_path = dj__format("NVCC_PREPEND_FLAGS=-g -ccbin=%s/g++ -DX", dir);
    const struct {
        const char *variables[2];
        const char *expected; /* NULL: none */
    } cases[] = {
        {{"A=1", "CC=mycc"}, "gcc"},
        {{ccbin_dir, "A=1"}, "gcc"},
        {{ccbin_path, "A=1"}, "mycc"},
        {{"NVCC_CCBIN=g++", "A=1"}, "g++"},
        {{"NVCC_CCBIN=", "A=1"}, "gcc"},
        {{ccbin_path, flags_path}, "g++"},
        {{flags_path, "NVCC_APPEND_FLAGS=--compiler-bindir  mycc -ccbin c++"}, "c++"},
        {{"NVCC_CCBIN=absent", "A=1"}, NULL},
        {{"NVCC_CCBIN=/nonexistent/gcc", "A=1"}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const variables[] = {path, cuda_home, cases[i].variables[0],
                                         cases[i].variables[1], NULL};
        const dj_status status = test_toolkit_locate(&fixture, variables, nvcc, host);
        if (cases[i].expected == NULL) {
            assert_int_equal(status, DJ_UNAVAILABLE);
            test_toolkit_says(&fixture, "no host compiler for nvcc: ");
            test_toolkit_says(&fixture, "(from NVCC_CCBIN)");
            continue;
        }
        char *expected = dj__path_join(dir, cases[i].expected);
        assert_int_equal(status, DJ_OK);
        assert_string_equal(host, expected);
        free(expected);
    }
    const char *const nothing[] = {"PATH=/nonexistent", cuda_home, NULL};
    assert_int_equal(test_toolkit_locate(&fixture, nothing, nvcc, host), DJ_UNAVAILABLE);
    test_toolkit_says(&fixture, "found no gcc, g++ or c++ in PATH (/nonexistent)");
    const char *const relative[] = {path, cuda_home, "NVCC_CCBIN=./gcc", NULL};
    assert_int_equal(test_toolkit_locate(&fixture, relative, nvcc, host), DJ_INVALID_ARGUMENT);
    free(flags_path);
    free(ccbin_path);
    free(ccbin_dir);
    free(path);
    free(cuda_home);
    free(dir);
    free(home);
    cuda_fixture_fini(&fixture);
}

/* ---- parts and version ---- */

static dj_status test_toolkit_describe(cuda_fixture *fixture, const char *home, dj__strlist *files,
                                       dj__strbuf *version)
{
    char *cuda_home = dj__format("CUDA_HOME=%s", home);
    const char *const variables[] = {"PATH=/usr/bin:/bin", cuda_home, "DJ_JIT_COMPILE_TIMEOUT=1",
                                     NULL};
    memset(&fixture->err, 0, sizeof fixture->err);
    cuda_fixture_set_env(fixture, variables);
    dj__strlist_fini(files);
    dj__strlist_init(files);
    dj__strbuf_clear(version);
    const dj_status status =
        dj__cuda_compiler_ops.describe(fixture->compiler, files, version, &fixture->err);
    free(cuda_home);
    return status;
}

static bool test_toolkit_lists(const dj__strlist *files, const char *tail)
{
    size_t found = 0;
    for (size_t i = 0; i < files->count; i++) {
        const size_t size = strlen(files->items[i]);
        found += size >= strlen(tail) && strcmp(files->items[i] + size - strlen(tail), tail) == 0;
    }
    assert_true(found <= 1);
    return found == 1;
}

static void test_toolkit_parts(void **state)
{
    (void)state;
    cuda_fixture fixture;
    dj__strlist files;
    dj__strbuf version;
    dj__strlist_init(&files);
    dj__strbuf_init(&version, 1 << 16);
    test_toolkit_init(&fixture);
    char *home = test_toolkit_make(&fixture, "home", TEST_TOOLKIT_VERSION);

    /* A program that cannot say where its parts are is taken alone. */
    assert_int_equal(test_toolkit_describe(&fixture, home, &files, &version), DJ_OK);
    assert_string_equal(dj__strbuf_str(&version), "Cuda compilation tools, release 13.1, V13.1.7");
    assert_true(test_toolkit_lists(&files, "/home/bin/nvcc"));
    assert_true(test_toolkit_lists(&files, "/usr/bin/gcc"));

    test_toolkit_add(home, "bin", "nvcc.profile", 0600);
    assert_int_equal(test_toolkit_describe(&fixture, home, &files, &version), DJ_UNAVAILABLE);
    test_toolkit_says(&fixture, "/home/nvvm/bin/cicc is missing (with pip it is part of "
                                "nvidia-nvvm)");
    test_toolkit_add(home, "nvvm/bin", "cicc", 0600);
    assert_int_equal(test_toolkit_describe(&fixture, home, &files, &version), DJ_UNAVAILABLE);
    test_toolkit_says(&fixture, "/home/nvvm/bin/cicc is not executable");
    test_toolkit_add(home, "nvvm/bin", "cicc", 0700);
    test_toolkit_add(home, "bin", "ptxas", 0700);
    test_toolkit_add(home, "nvvm/libdevice", "libdevice.10.bc", 0600);
    test_toolkit_add(home, "nvvm/libdevice", "README", 0600);
    assert_int_equal(test_toolkit_describe(&fixture, home, &files, &version), DJ_OK);
    static const char *const parts[] = {"/home/bin/nvcc",
                                        "/home/bin/nvcc.profile",
                                        "/home/nvvm/bin/cicc",
                                        "/home/bin/ptxas",
                                        "/home/nvvm/libdevice/libdevice.10.bc",
                                        "/usr/bin/gcc",
                                        "/cc1plus"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!test_toolkit_lists(&files, parts[i])) {
            fail_msg("%s is not listed", parts[i]);
        }
    }
    assert_int_equal(files.count, sizeof parts / sizeof parts[0]);
    free(home);
    dj__strlist_fini(&files);
    dj__strbuf_fini(&version);
    cuda_fixture_fini(&fixture);
}

/* A script that calls another nvcc, as distributions install it, and parts that are elsewhere. */
static void test_toolkit_wrapper(void **state)
{
    (void)state;
    cuda_fixture fixture;
    dj__strlist files;
    dj__strbuf version;
    dj__strlist_init(&files);
    dj__strbuf_init(&version, 1 << 16);
    test_toolkit_init(&fixture);
    static const char real_script[] = "#!/bin/sh\ncase \"$1\" in\n--version) echo 'release 12.9, "
                                      "V12.9.1';;\n--dryrun) here=$(dirname \"$0\")\n"
                                      "echo \"#\\$ _HERE_=$here\"\n"
                                      "echo \"#\\$ CICC_PATH=$here/../elsewhere\"\n"
                                      "echo \"#\\$ NVVMIR_LIBRARY_DIR=$here/../device\";;\nesac\n";
    char *real = test_toolkit_make(&fixture, "real", real_script);
    test_toolkit_add(real, "bin", "nvcc.profile", 0600);
    test_toolkit_add(real, "bin", "ptxas", 0700);
    test_toolkit_add(real, "elsewhere", "cicc", 0700);
    test_toolkit_add(real, "device", "libdevice.10.bc", 0600);
    char *script = dj__format("#!/bin/sh\nexec '%s/bin/nvcc' \"$@\"\n", real);
    char *wrapper = test_toolkit_make(&fixture, "wrapper", script);
    const char *const homes[] = {real, wrapper};
    for (size_t i = 0; i < 2; i++) {
        if (test_toolkit_describe(&fixture, homes[i], &files, &version) != DJ_OK) {
            fail_msg("%s", fixture.err.message);
        }
        assert_string_equal(dj__strbuf_str(&version), "release 12.9, V12.9.1");
        assert_int_equal(test_toolkit_lists(&files, "/wrapper/bin/nvcc"), i == 1);
        assert_true(test_toolkit_lists(&files, "/real/bin/nvcc"));
        assert_true(test_toolkit_lists(&files, "/real/elsewhere/cicc"));
        assert_true(test_toolkit_lists(&files, "/real/bin/ptxas"));
        assert_true(test_toolkit_lists(&files, "/real/device/libdevice.10.bc"));
    }
    free(wrapper);
    free(script);
    free(real);
    dj__strlist_fini(&files);
    dj__strbuf_fini(&version);
    cuda_fixture_fini(&fixture);
}

static void test_toolkit_versions(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        dj_status status;
        const char *part;
    } cases[] = {
        {"echo 'Cuda compilation tools, release 12.8, V12.8.93'", DJ_INCOMPATIBLE,
         "NVCC version must be at least 12.9: "},
        {"echo 'release 11.8, V11.8.89'", DJ_INCOMPATIBLE, "bin/nvcc is 11.8"},
        {"echo 'release 12.10, V12.10.1'", DJ_OK, ""},
        {"echo 'release 12.9, V12.9.86'", DJ_OK, ""},
        {"echo hello", DJ_INCOMPATIBLE, "failed to parse NVCC version"},
        {"echo 'release x.y'", DJ_INCOMPATIBLE, "it printed release x.y"},
        {"exit 3", DJ_INCOMPATIBLE, "failed to parse NVCC version"},
        {"kill -9 $$", DJ_INCOMPATIBLE, "it was ended by signal 9, it printed nothing"},
        {"echo; echo 'nvcc fatal: no'; echo more; exit 3", DJ_INCOMPATIBLE,
         "it failed with exit code 3, it printed nvcc fatal: no"},
        {"sleep 600", DJ_TIMEOUT, "bin/nvcc what it is"},
        {"yes 'a line of no use' | head -c 4000000; echo 'release 13.1, V13.1.7'", DJ_OK, ""},
    };
    cuda_fixture fixture;
    dj__strlist files;
    dj__strbuf version;
    dj__strlist_init(&files);
    dj__strbuf_init(&version, 1 << 16);
    test_toolkit_init(&fixture);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *script =
            dj__format("#!/bin/sh\n[ \"$1\" = --version ] || exit 1\n%s\n", cases[i].script);
        char *home = test_toolkit_make(&fixture, "home", script);
        assert_int_equal(test_toolkit_describe(&fixture, home, &files, &version), cases[i].status);
        test_toolkit_says(&fixture, cases[i].part);
        assert_int_equal(version.size > 0, cases[i].status == DJ_OK);
        free(home);
        free(script);
    }
    dj__strlist_fini(&files);
    dj__strbuf_fini(&version);
    cuda_fixture_fini(&fixture);
}

/* What the machine's toolkit consists of. */
static void test_toolkit_real(void **state)
{
    (void)state;
    cuda_fixture fixture;
    char nvcc[512];
    dj__strlist files;
    dj__strbuf version;
    cuda_fixture_real_nvcc(nvcc);
    dj__strlist_init(&files);
    dj__strbuf_init(&version, 1 << 16);
    test_toolkit_init(&fixture);
    *strrchr(nvcc, '/') = '\0';
    *strrchr(nvcc, '/') = '\0';
    if (test_toolkit_describe(&fixture, nvcc, &files, &version) != DJ_OK) {
        fail_msg("%s", fixture.err.message);
    }
    static const char *const parts[] = {"/bin/nvcc", "/bin/nvcc.profile", "/cicc",
                                        "/ptxas",    "/libdevice.10.bc",  "/usr/bin/gcc"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        assert_true(test_toolkit_lists(&files, parts[i]));
    }
    assert_non_null(strstr(dj__strbuf_str(&version), "release "));
    dj__strlist_fini(&files);
    dj__strbuf_fini(&version);
    cuda_fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_toolkit_order),    cmocka_unit_test(test_toolkit_errors),
        cmocka_unit_test(test_toolkit_nowhere),  cmocka_unit_test(test_toolkit_links),
        cmocka_unit_test(test_toolkit_sites),    cmocka_unit_test(test_toolkit_host),
        cmocka_unit_test(test_toolkit_parts),    cmocka_unit_test(test_toolkit_wrapper),
        cmocka_unit_test(test_toolkit_versions), cmocka_unit_test(test_toolkit_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
