/* SPDX-License-Identifier: MIT */
/* What the CUDA compiler makes of an nvcc that misbehaves: tests/standins/standin_nvcc.c. */
#include "cuda_fixture.h"

#include "backend/cuda/cubin.h"

static const char test_fake_source[] =
    "// __global__ void not_this(int x) {}\n"
    "__global__ void __launch_bounds__(256) declared(float *p);\n"
    "extern \"C\" __global__ void __launch_bounds__(128)\n"
    "    scale(float *y, const float *x, float a, int n, char c, double d)\n"
    "{\n"
    "}\n";

/* `fault`: STANDIN_NVCC_FAULT. */
static void test_fake_setup(cuda_fixture *fixture, const char *fault)
{
    const char *bin = getenv("DJ_TEST_BIN_DIR");
    char *setting = dj__format("DJ_JIT_NVCC_COMPILER=%s/standin_nvcc", bin != NULL ? bin : ".");
    char *variable = dj__format("STANDIN_NVCC_FAULT=%s", fault);
    const char *const variables[] = {
        "PATH=/usr/bin:/bin", setting, variable,
        "DJ_JIT_COMPILER_ENV=STANDIN_NVCC_FAULT,STANDIN_NVCC_LOG,STANDIN_NVCC_VERSION", NULL};
    assert_true(setting != NULL && variable != NULL);
    cuda_fixture_init(fixture, "job", variables);
    free(setting);
    free(variable);
}

static void test_fake_fails(const char *fault, dj_status status, const char *part)
{
    cuda_fixture fixture;
    test_fake_setup(&fixture, fault);
    fixture.cuda.dump_ptx =
        strstr(fault, "noptx") != NULL || strstr(fault, "emptyptx") != NULL ? DJ_ON : DJ_OFF;
    assert_int_equal(cuda_fixture_compile(&fixture, test_fake_source), status);
    if (strstr(fixture.err.message, part) == NULL) {
        fail_msg("'%s' is not in: %s", part, fixture.err.message);
    }
    assert_false(cuda_fixture_has(&fixture, "kernel.cubin"));
    assert_false(cuda_fixture_has(&fixture, "kernel.ptx"));
    /* Only what was there before. */
    const int dir = dj__open_dir(fixture.dir);
    dj__strlist names;
    dj__strlist_init(&names);
    assert_int_equal(dj__list_dir(dir, &names), 0);
    assert_int_equal(names.count, 2);
    dj__strlist_fini(&names);
    (void)close(dir);
    cuda_fixture_fini(&fixture);
}

static void test_fake_faults(void **state)
{
    (void)state;
    static const char invalid[] = "NVCC did not produce a valid CUBIN: kernel.cubin: ";
    test_fake_fails("missing", DJ_COMPILE, invalid);
    test_fake_fails("missing", DJ_COMPILE, "it reported success, but left no file");
    test_fake_fails("empty", DJ_COMPILE, invalid);
    test_fake_fails("empty", DJ_COMPILE, "empty");
    test_fake_fails("partial", DJ_COMPILE, invalid);
    test_fake_fails("partial", DJ_COMPILE, "truncated cubin");
    test_fake_fails("ptx", DJ_COMPILE, "this is PTX text, not a cubin");
    test_fake_fails("other", DJ_COMPILE, invalid);
    test_fake_fails("relocatable", DJ_COMPILE, "relocatable");
    test_fake_fails("exit=37", DJ_COMPILE, "command failed with exit code 37");
    test_fake_fails("signal", DJ_COMPILE, "command failed with exit code 137");
    test_fake_fails("noptx", DJ_COMPILE, "NVCC did not produce a valid PTX");
    test_fake_fails("emptyptx", DJ_COMPILE, "kernel.ptx is empty");
    test_fake_fails("emptyptx", DJ_COMPILE, " --ptx --output-file kernel.ptx ");
    test_fake_fails("arch=80", DJ_COMPILE, "it is for architecture 80, but 90a was asked for");
}

static void test_fake_hang(void **state)
{
    (void)state;
    cuda_fixture fixture;
    test_fake_setup(&fixture, "hang");
    fixture.timeout_ms = 100;
    assert_int_equal(cuda_fixture_compile(&fixture, test_fake_source), DJ_TIMEOUT);
    assert_non_null(strstr(fixture.err.message, "NVCC took longer than DJ_JIT_COMPILE_TIMEOUT"));
    assert_false(cuda_fixture_has(&fixture, "kernel.cubin"));
    cuda_fixture_fini(&fixture);

    test_fake_setup(&fixture, "hang");
    assert_int_equal(dj_cancel_create(&fixture.cancel, NULL), DJ_OK);
    dj_cancel_request(fixture.cancel);
    assert_int_equal(cuda_fixture_compile(&fixture, test_fake_source), DJ_CANCELLED);
    dj_cancel_release(fixture.cancel);
    cuda_fixture_fini(&fixture);
}

typedef struct test_fake_seen {
    size_t kernels;
    size_t params;
    uint32_t sizes[8];
    int64_t max_threads;
    char name[64];
    char arch[64];
} test_fake_seen;

static void test_fake_visit(void *user, const dj_binary_info *info)
{
    test_fake_seen *seen = user;
    seen->kernels = info->num_kernels;
    (void)snprintf(seen->arch, sizeof seen->arch, "%s", info->arch);
    if (info->num_kernels > 0) {
        const dj_kernel_info *kernel = &info->kernels[0];
        (void)snprintf(seen->name, sizeof seen->name, "%s", kernel->name);
        seen->params = kernel->num_params;
        seen->max_threads = kernel->max_threads;
        for (size_t i = 0; i < kernel->num_params && i < 8; i++) {
            seen->sizes[i] = kernel->params[i].size;
        }
    }
}

static test_fake_seen test_fake_build(const char *fault, const char *source)
{
    cuda_fixture fixture;
    test_fake_seen seen = {0};
    size_t size = 0;
    test_fake_setup(&fixture, fault);
    if (cuda_fixture_compile(&fixture, source) != DJ_OK) {
        fail_msg("%s", fixture.err.message);
    }
    char *data = cuda_fixture_read(&fixture, "kernel.cubin", &size);
    const dj_binary binary = {data, size, "kernel.cubin"};
    if (dj__cuda_compiler_ops.inspect(&binary, test_fake_visit, &seen, &fixture.err) != DJ_OK) {
        fail_msg("%s", fixture.err.message);
    }
    free(data);
    cuda_fixture_fini(&fixture);
    return seen;
}

static void test_fake_good(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {8, 8, 4, 4, 1, 8};
    test_fake_seen seen = test_fake_build("", test_fake_source);
    assert_int_equal(seen.kernels, 1);
    assert_string_equal(seen.name, "scale");
    assert_string_equal(seen.arch, "90a");
    assert_int_equal(seen.params, 6);
    assert_memory_equal(seen.sizes, sizes, sizeof sizes);
    assert_int_equal(seen.max_threads, 128);

    seen = test_fake_build("", "__global__ void k(const float *x, unsigned n) { }\n");
    assert_string_equal(seen.name, "_Z1kPKfj");
    seen = test_fake_build("", "#include <deepjit/kernel.h>\n"
                               "DJ_KERNEL(twice, (float *, y), (int, n)) { y[0] *= 2; }\n");
    assert_string_equal(seen.name, "twice");
    assert_int_equal(seen.params, 2);
    seen = test_fake_build("kernels=2", test_fake_source);
    assert_int_equal(seen.kernels, 2);
    seen = test_fake_build("kernels=0", test_fake_source);
    assert_int_equal(seen.kernels, 0);
    seen = test_fake_build("flood", test_fake_source);
    assert_int_equal(seen.kernels, 1);
}

/* Each check looks at its own line of ptxas, and at nothing that the source says. */
static void test_fake_reports(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        bool spills;
        bool local;
        const char *part; /* NULL: good */
    } cases[] = {
        {"talk", true, true, NULL},
        {"spills", false, true, NULL},
        {"spills", true, false, "register spills: ptxas warning : Registers are SPILLED"},
        {"local", true, false, NULL},
        {"local", false, true, "local memory usage: ptxas warning : Local   memory used"},
        {"local,spills,talk", false, false, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cuda_fixture fixture;
        test_fake_setup(&fixture, cases[i].fault);
        fixture.cuda.check_no_spills = cases[i].spills ? DJ_ON : DJ_OFF;
        fixture.cuda.check_no_local_memory = cases[i].local ? DJ_ON : DJ_OFF;
        const dj_status status = cuda_fixture_compile(&fixture, test_fake_source);
        assert_int_equal(status, cases[i].part != NULL ? DJ_COMPILE : DJ_OK);
        assert_int_equal(cuda_fixture_has(&fixture, "kernel.cubin"), cases[i].part == NULL);
        if (cases[i].part != NULL && strstr(fixture.err.message, cases[i].part) == NULL) {
            fail_msg("'%s' is not in: %s", cases[i].part, fixture.err.message);
        }
        cuda_fixture_fini(&fixture);
    }
}

static void test_fake_source_error(void **state)
{
    (void)state;
    cuda_fixture fixture;
    test_fake_setup(&fixture, "");
    assert_int_equal(cuda_fixture_compile(&fixture, "\n#error not today\n"), DJ_COMPILE);
    assert_int_equal(
        strncmp(fixture.err.message, "kernel.cu(2): error: #error directive:  not today", 48), 0);
    cuda_fixture_fini(&fixture);
}

/* An nvcc that does not know the option that keeps names constant is called without it. */
static void test_fake_old_option(void **state)
{
    (void)state;
    cuda_fixture fixture;
    test_fake_setup(&fixture, "");
    const char *bin = getenv("DJ_TEST_BIN_DIR");
    char *text = dj__format("#!/bin/sh\necho run >>'%s/runs'\nfor a; do [ \"$a\" != -Xcicc ] || "
                            "{ echo \"nvcc fatal   : Unknown option '-Xcicc'\"; exit 1; }; done\n"
                            "exec '%s/standin_nvcc' \"$@\"\n",
                            fixture.base, bin != NULL ? bin : ".");
    char *script = cuda_fixture_script(&fixture, "oldnvcc", text);
    char *setting = dj__format("DJ_JIT_NVCC_COMPILER=%s", script);
    const char *const variables[] = {"PATH=/usr/bin:/bin", setting, NULL};
    cuda_fixture_set_env(&fixture, variables);
    assert_int_equal(cuda_fixture_compile(&fixture, test_fake_source), DJ_OK);
    assert_int_equal(fixture.log.size, 0);
    char *runs = NULL;
    size_t size = 0;
    char *path = dj__path_join(fixture.base, "runs");
    assert_int_equal(dj__read_file(path, 1 << 10, &runs, &size), 0);
    assert_string_equal(runs, "run\nrun\n");
    free(runs);
    free(path);
    free(setting);
    free(script);
    free(text);
    cuda_fixture_fini(&fixture);
}

/* A suffix that was not asked for is wrong; one that the cubin does not tell is not missed. */
static void test_fake_suffix(void **state)
{
    (void)state;
    static const struct {
        const char *wanted;
        const char *fault;
        bool good;
    } cases[] = {{"90", "", true},   {"90", "arch=90", true},     {"90a", "arch=90", true},
                 {"100f", "", true}, {"100f", "arch=103", false}, {"90", "arch=89", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cuda_fixture fixture;
        test_fake_setup(&fixture, cases[i].fault);
        fixture.options.arch = cases[i].wanted;
        assert_int_equal(cuda_fixture_compile(&fixture, test_fake_source),
                         cases[i].good ? DJ_OK : DJ_COMPILE);
        assert_int_equal(cuda_fixture_has(&fixture, "kernel.cubin"), cases[i].good);
        cuda_fixture_fini(&fixture);
    }
    /* A wrapper that asks for something else. */
    cuda_fixture fixture;
    const char *bin = getenv("DJ_TEST_BIN_DIR");
    test_fake_setup(&fixture, "");
    char *text = dj__format("#!/bin/sh\nexec '%s/standin_nvcc' --gpu-architecture=sm_90 "
                            "--gpu-architecture=sm_90a \"$1\" \"$2\" \"$3\" kernel.cu\n",
                            bin != NULL ? bin : ".");
    char *script = cuda_fixture_script(&fixture, "othernvcc", text);
    char *setting = dj__format("DJ_JIT_NVCC_COMPILER=%s", script);
    const char *const variables[] = {"PATH=/usr/bin:/bin", setting, NULL};
    cuda_fixture_set_env(&fixture, variables);
    fixture.options.arch = "90";
    assert_int_equal(cuda_fixture_compile(&fixture, test_fake_source), DJ_COMPILE);
    assert_non_null(strstr(fixture.err.message, "architecture 90a, but 90 was asked for"));
    free(setting);
    free(script);
    free(text);
    cuda_fixture_fini(&fixture);
}

/* cuobjdump, beside nvcc. */
static void test_fake_sass(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        dj_status status;
        const char *part;
    } cases[] = {
        {"echo \"$@\"", DJ_OK, ""},
        {"true", DJ_COMPILE, "cuobjdump did not produce valid SASS"},
        {"exit 5", DJ_COMPILE, "command failed with exit code 5"},
        {"sleep 600", DJ_TIMEOUT, "cuobjdump took longer than DJ_JIT_COMPILE_TIMEOUT allows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cuda_fixture fixture;
        test_fake_setup(&fixture, "");
        const char *bin = getenv("DJ_TEST_BIN_DIR");
        char *link = dj__path_join(fixture.base, "nvcc");
        char *target = dj__format("%s/standin_nvcc", bin != NULL ? bin : ".");
        assert_int_equal(symlink(target, link), 0);
        char *text = dj__format("#!/bin/sh\n%s\n", cases[i].script);
        free(cuda_fixture_script(&fixture, "cuobjdump", text));
        char *setting = dj__format("DJ_JIT_NVCC_COMPILER=%s", link);
        const char *const variables[] = {"PATH=/usr/bin:/bin", setting, NULL};
        cuda_fixture_set_env(&fixture, variables);
        fixture.cuda.dump_sass = DJ_ON;
        fixture.timeout_ms = cases[i].status == DJ_TIMEOUT ? 2000 : 0;
        assert_int_equal(cuda_fixture_compile(&fixture, test_fake_source), cases[i].status);
        if (cases[i].status == DJ_OK) {
            char *sass = cuda_fixture_read(&fixture, "kernel.sass", NULL);
            assert_string_equal(sass, "--dump-sass kernel.cubin\n");
            free(sass);
        } else {
            assert_non_null(strstr(fixture.err.message, cases[i].part));
            assert_false(cuda_fixture_has(&fixture, "kernel.cubin"));
        }
        free(setting);
        free(text);
        free(target);
        free(link);
        cuda_fixture_fini(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fake_faults),       cmocka_unit_test(test_fake_hang),
        cmocka_unit_test(test_fake_good),         cmocka_unit_test(test_fake_reports),
        cmocka_unit_test(test_fake_source_error), cmocka_unit_test(test_fake_old_option),
        cmocka_unit_test(test_fake_suffix),       cmocka_unit_test(test_fake_sass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
