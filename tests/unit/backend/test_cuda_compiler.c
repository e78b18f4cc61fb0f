/* SPDX-License-Identifier: MIT */
/* Compiling with the machine's nvcc: what comes out, what is refused, and that nothing which
 * paths, flags or the environment contain is ever executed. Skipped where there is no nvcc. */
#include "cuda_fixture.h"

#include <sys/stat.h>

static const char test_nvcc_source[] =
    "#include <deepjit/kernel.h>\n"
    "static __device__ int calls;\n"
    "namespace { __device__ int hidden; }\n"
    "extern \"C\" __global__ void scale(float *y, const float *x, float a, int n)\n"
    "{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) { y[i] = a * x[i] + hidden; hidden = atomicAdd(&calls, 1); }\n"
    "}\n";

/* All registers are wanted at once, and there are 32. */
static const char test_nvcc_spills[] =
    "extern \"C\" __global__ void __launch_bounds__(1024, 2) spill(float *p)\n"
    "{\n"
    "    float r[96];\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < 96; i++) { r[i] = p[i * 33 + threadIdx.x]; }\n"
    "#pragma unroll 1\n"
    "    for (int k = 0; k < 10; k++) {\n"
    "#pragma unroll\n"
    "        for (int i = 0; i < 96; i++) { r[i] = r[i] * r[(i + 7) % 96] + k; }\n"
    "    }\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < 96; i++) { p[i * 33 + threadIdx.x] = r[i]; }\n"
    "}\n";

/* An array that is indexed at run time, and a source that says what ptxas would of spills. */
static const char test_nvcc_local[] =
    "#warning ptxas warning : Registers are spilled to local memory in function 'x'\n"
    "extern \"C\" __global__ void local(float *p, int n)\n"
    "{\n"
    "    float r[96];\n"
    "    for (int i = 0; i < 96; i++) { r[i] = p[i]; }\n"
    "    for (int i = 0; i < n; i++) { p[i] = r[(int)p[i] % 96]; }\n"
    "}\n";

static void test_nvcc_setup(cuda_fixture *fixture, const char *dir_name, const char *extra)
{
    char nvcc[512];
    char setting[600];
    (void)snprintf(setting, sizeof setting, "DJ_JIT_NVCC_COMPILER=%s",
                   cuda_fixture_real_nvcc(nvcc));
    const char *const variables[] = {"PATH=/usr/bin:/bin", setting, extra, NULL};
    cuda_fixture_init(fixture, dir_name, variables);
}

static void test_nvcc_good(cuda_fixture *fixture, const char *source)
{
    const dj_status status = cuda_fixture_compile(fixture, source);
    if (status != DJ_OK) {
        fail_msg("%s\n%s", fixture->err.message, dj__strbuf_str(&fixture->log));
    }
    size_t size = 0;
    char *cubin = cuda_fixture_read(fixture, "kernel.cubin", &size);
    assert_true(size > 1000);
    assert_memory_equal(cubin, "\177ELF", 4);
    free(cubin);
}

static void test_nvcc_fails(cuda_fixture *fixture, const char *source, dj_status status,
                            const char *part)
{
    assert_int_equal(cuda_fixture_compile(fixture, source), status);
    if (strstr(fixture->err.message, part) == NULL) {
        fail_msg("'%s' is not in: %s", part, fixture->err.message);
    }
    assert_false(cuda_fixture_has(fixture, "kernel.cubin"));
}

/* Names in a directory, sorted, separated by blanks. */
static void test_nvcc_lists(const char *dir, const char *expected)
{
    dj__strlist names;
    dj__strbuf text;
    dj__strlist_init(&names);
    dj__strbuf_init(&text, 1 << 16);
    const int fd = dj__open_dir(dir);
    assert_true(fd >= 0);
    assert_int_equal(dj__list_dir(fd, &names), 0);
    (void)close(fd);
    for (size_t i = 0; i < names.count; i++) {
        dj__strbuf_printf(&text, "%s%s", i > 0 ? " " : "", names.items[i]);
    }
    assert_string_equal(dj__strbuf_str(&text), expected);
    dj__strbuf_fini(&text);
    dj__strlist_fini(&names);
}

/* ---- results ---- */

static size_t test_nvcc_count(const char *text, const char *word)
{
    size_t count = 0;
    const size_t size = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        const bool starts = at == text || at[-1] == ' ';
        count += starts && (at[size] == ' ' || at[size] == '\0');
    }
    return count;
}

static void test_nvcc_plain(void **state)
{
    (void)state;
    cuda_fixture fixture;
    char nvcc[512];
    test_nvcc_setup(&fixture, "job", NULL);
    test_nvcc_good(&fixture, test_nvcc_source);
    const char *command = dj__strbuf_str(&fixture.command);
    cuda_fixture_real_nvcc(nvcc);
    assert_int_equal(strncmp(command, nvcc, strlen(nvcc)), 0);
    assert_non_null(strstr(command, " --cubin --output-file kernel.cubin "
                                    "--gpu-architecture=sm_90a -O3 "));
    assert_non_null(strstr(command, " --include-path prelude "));
    assert_non_null(strstr(command, " -ccbin /usr/bin/gcc "));
    assert_int_equal(test_nvcc_count(command, "kernel.cu"), 1);
    assert_int_equal(test_nvcc_count(command, "kernel.cubin"), 1);
    assert_null(strstr(command, fixture.base));
    test_nvcc_lists(fixture.dir, "kernel.cu kernel.cubin prelude");
    assert_int_equal(fixture.log.size, 0);
    cuda_fixture_fini(&fixture);
}

static void test_nvcc_error(void **state)
{
    (void)state;
    cuda_fixture fixture;
    test_nvcc_setup(&fixture, "job", NULL);
    test_nvcc_fails(&fixture, "__global__ void k(int *p) { *p = missing; }\n", DJ_COMPILE,
                    "command failed with exit code ");
    assert_int_equal(
        strncmp(fixture.err.message, "kernel.cu(1): error: identifier \"missing\"", 40), 0);
    assert_non_null(strstr(dj__strbuf_str(&fixture.log), "1 error detected"));
    test_nvcc_lists(fixture.dir, "kernel.cu prelude");
    test_nvcc_good(&fixture, test_nvcc_source);
    fixture.options.arch = "50";
    (void)unlink(fixture.dir);
    assert_int_equal(cuda_fixture_compile(&fixture, test_nvcc_source), DJ_COMPILE);
    assert_non_null(strstr(fixture.err.message, "Unsupported gpu architecture"));
    cuda_fixture_fini(&fixture);
}

static void test_nvcc_reports(void **state)
{
    (void)state;
    cuda_fixture fixture;
    test_nvcc_setup(&fixture, "job", NULL);
    fixture.cuda.check_no_spills = DJ_ON;
    test_nvcc_fails(&fixture, test_nvcc_spills, DJ_COMPILE,
                    "register spills: ptxas warning : Registers are spilled to local memory in "
                    "function 'spill'");
    test_nvcc_good(&fixture, test_nvcc_local);
    assert_non_null(strstr(dj__strbuf_str(&fixture.log), "spilled to local memory"));
    cuda_fixture_fini(&fixture);

    test_nvcc_setup(&fixture, "job", NULL);
    fixture.cuda.check_no_local_memory = DJ_ON;
    test_nvcc_fails(&fixture, test_nvcc_local, DJ_COMPILE,
                    "local memory usage: ptxas warning : Local memory used for function 'local'");
    test_nvcc_fails(&fixture, test_nvcc_spills, DJ_COMPILE, "local memory usage: ");
    test_nvcc_good(&fixture, test_nvcc_source);
    cuda_fixture_fini(&fixture);

    test_nvcc_setup(&fixture, "job", NULL);
    fixture.cuda.ptxas_verbose = DJ_ON;
    test_nvcc_good(&fixture, test_nvcc_spills);
    assert_non_null(strstr(dj__strbuf_str(&fixture.log), "ptxas info"));
    assert_non_null(strstr(dj__strbuf_str(&fixture.log), "bytes spill stores"));
    cuda_fixture_fini(&fixture);
}

static void test_nvcc_dumps(void **state)
{
    (void)state;
    cuda_fixture fixture;
    char nvcc[512];
    struct stat st;
    test_nvcc_setup(&fixture, "job", NULL);
    fixture.options.dump_asm = DJ_ON;
    test_nvcc_good(&fixture, test_nvcc_source);
    char *ptx = cuda_fixture_read(&fixture, "kernel.ptx", NULL);
    assert_non_null(strstr(ptx, ".target sm_90a"));
    assert_non_null(strstr(ptx, ".entry scale("));
    free(ptx);
    char *cuobjdump = dj__format("%.*s/cuobjdump",
                                 (int)(strrchr(cuda_fixture_real_nvcc(nvcc), '/') - nvcc), nvcc);
    assert_non_null(cuobjdump);
    const bool present = stat(cuobjdump, &st) == 0;
    free(cuobjdump);
    assert_int_equal(cuda_fixture_has(&fixture, "kernel.sass"), present);
    if (present) {
        char *sass = cuda_fixture_read(&fixture, "kernel.sass", NULL);
        assert_non_null(strstr(sass, "Function : scale"));
        free(sass);
    } else {
        assert_non_null(strstr(dj__strbuf_str(&fixture.log), "cuobjdump is not in "));
        cuda_fixture_fini(&fixture);
        test_nvcc_setup(&fixture, "job", NULL);
        fixture.cuda.dump_sass = DJ_ON;
        test_nvcc_fails(&fixture, test_nvcc_source, DJ_UNAVAILABLE, "dump_sass needs cuobjdump");
    }
    cuda_fixture_fini(&fixture);
}

/* ---- the same bytes everywhere ---- */

static char *test_nvcc_build(const char *dir_name, const char *debug_dir, bool debug,
                             const char *flag, size_t *size)
{
    cuda_fixture fixture;
    test_nvcc_setup(&fixture, dir_name, NULL);
    fixture.debug_dir = debug_dir;
    fixture.options.debug_info = debug ? DJ_ON : DJ_OFF;
    fixture.cuda.with_line_info = debug_dir != NULL ? DJ_ON : DJ_OFF;
    fixture.options.extra_flags = &flag;
    fixture.options.num_extra_flags = flag != NULL ? 1 : 0;
    test_nvcc_good(&fixture, test_nvcc_source);
    char *cubin = cuda_fixture_read(&fixture, "kernel.cubin", size);
    cuda_fixture_fini(&fixture);
    return cubin;
}

static bool test_nvcc_contains(const char *data, size_t size, const char *text)
{
    return memmem(data, size, text, strlen(text)) != NULL;
}

static void test_nvcc_same(void **state)
{
    (void)state;
    static const char kept[] = "/no such dir/src $(id) 'x'/0123";
    for (int mode = 0; mode < 3; mode++) {
        size_t first_size = 0;
        size_t second_size = 0;
        const char *debug_dir = mode > 0 ? kept : NULL;
        char *first = test_nvcc_build("a", debug_dir, mode == 2, NULL, &first_size);
        char *second =
            test_nvcc_build("some where/else entirely", debug_dir, mode == 2, NULL, &second_size);
        assert_int_equal(first_size, second_size);
        assert_memory_equal(first, second, first_size);
        assert_int_equal(test_nvcc_contains(first, first_size, kept), mode > 0);
        assert_false(test_nvcc_contains(first, first_size, "dj_cuda_"));
        assert_false(test_nvcc_contains(first, first_size, "tmpxft"));
        free(first);
        free(second);
    }
}

/* ptxas cannot read a file name with a quote. */
static void test_nvcc_odd_debug_dir(void **state)
{
    (void)state;
    size_t size = 0;
    char *cubin = test_nvcc_build("a", "/src/q\"b\\s\nn", false, NULL, &size);
    assert_true(test_nvcc_contains(cubin, size, "/src/q_b_s_n"));
    free(cubin);
}

static void test_nvcc_line_numbers(void **state)
{
    (void)state;
    cuda_fixture fixture;
    test_nvcc_setup(&fixture, "job", NULL);
    fixture.debug_dir = "/kept/0123";
    fixture.cuda.with_line_info = DJ_ON;
    test_nvcc_fails(&fixture, "\n\n__global__ void k(int *p) { *p = missing; }\n", DJ_COMPILE,
                    "/kept/0123/kernel.cu(3): error: ");
    char *source = cuda_fixture_read(&fixture, "kernel.cu", NULL);
    assert_int_equal(strncmp(source, "\n\n__global__", 12), 0);
    free(source);
    cuda_fixture_fini(&fixture);
}

/* ---- the shell ---- */

#define TEST_NVCC_EVIL                                                                             \
    "e $(touch pwned) `touch pwned` \";touch pwned;\" 'q' & | < > \\ * # \xc3\xa4"

static void test_nvcc_not_pwned(const cuda_fixture *fixture)
{
    assert_int_not_equal(access("pwned", F_OK), 0);
    assert_int_not_equal(access("/pwned", F_OK), 0);
    assert_int_not_equal(access("/tmp/pwned", F_OK), 0);
    assert_false(cuda_fixture_has(fixture, "pwned"));
}

static void test_nvcc_odd_dir(void **state)
{
    (void)state;
    cuda_fixture fixture;
    test_nvcc_setup(&fixture, TEST_NVCC_EVIL, NULL);
    test_nvcc_good(&fixture, test_nvcc_source);
    test_nvcc_not_pwned(&fixture);
    test_nvcc_lists(fixture.dir, "kernel.cu kernel.cubin prelude");

    /* A plain name that leads to such a place. */
    char *link = dj__path_join(fixture.base, "plain");
    assert_non_null(link);
    assert_int_equal(symlink(fixture.dir, link), 0);
    char *old = fixture.dir;
    fixture.dir = link;
    assert_int_equal(unlinkat(AT_FDCWD, link, 0), 0);
    assert_int_equal(symlink(old, link), 0);
    char *cubin = cuda_fixture_path(&fixture, "kernel.cubin");
    assert_int_equal(unlink(cubin), 0);
    free(cubin);
    fixture.debug_dir = old;
    fixture.cuda.dump_ptx = DJ_ON;
    test_nvcc_good(&fixture, test_nvcc_source);
    assert_true(cuda_fixture_has(&fixture, "kernel.ptx"));
    test_nvcc_not_pwned(&fixture);
    fixture.dir = old;
    free(link);
    cuda_fixture_fini(&fixture);
}

/* Where the job's directory is odd, TMPDIR decides; an odd one is not used, and a directory there
 * is always removed. */
static void test_nvcc_odd_tmpdir(void **state)
{
    (void)state;
    for (int odd = 0; odd < 2; odd++) {
        cuda_fixture fixture;
        char nvcc[512];
        char setting[600];
        (void)snprintf(setting, sizeof setting, "DJ_JIT_NVCC_COMPILER=%s",
                       cuda_fixture_real_nvcc(nvcc));
        const char *const none[] = {NULL};
        cuda_fixture_init(&fixture, TEST_NVCC_EVIL, none);
        char *tmp = dj__path_join(fixture.base, odd ? "t " TEST_NVCC_EVIL : "tmpdir");
        char *variable = dj__format("TMPDIR=%s", tmp);
        assert_true(tmp != NULL && variable != NULL);
        assert_int_equal(dj__make_dirs(tmp, 0700), 0);
        const char *const variables[] = {"PATH=/usr/bin:/bin", setting, variable, NULL};
        cuda_fixture_set_env(&fixture, variables);
        test_nvcc_good(&fixture, test_nvcc_source);
        test_nvcc_not_pwned(&fixture);
        test_nvcc_lists(tmp, "");
        char *cubin = cuda_fixture_path(&fixture, "kernel.cubin");
        assert_int_equal(unlink(cubin), 0);
        free(cubin);
        test_nvcc_fails(&fixture, "error\n", DJ_COMPILE, "command failed");
        test_nvcc_lists(tmp, "");
        free(tmp);
        free(variable);
        cuda_fixture_fini(&fixture);
    }
}

static void test_nvcc_odd_toolkit(void **state)
{
    (void)state;
    cuda_fixture fixture;
    char nvcc[512];
    const char *const none[] = {NULL};
    cuda_fixture_real_nvcc(nvcc);
    cuda_fixture_init(&fixture, "job", none);
    char *odd = dj__path_join(fixture.base, TEST_NVCC_EVIL);
    assert_non_null(odd);
    assert_int_equal(dj__make_dirs(odd, 0700), 0);
    char *home = dj__path_join(odd, "toolkit");
    char *host = dj__path_join(odd, "g++ $(touch pwned)");
    assert_true(home != NULL && host != NULL);
    *strrchr(nvcc, '/') = '\0';
    *strrchr(nvcc, '/') = '\0';
    assert_int_equal(symlink(nvcc, home), 0);
    assert_int_equal(symlink("/usr/bin/g++", host), 0);
    char *cuda_home = dj__format("CUDA_HOME=%s", home);
    char *ccbin = dj__format("NVCC_CCBIN=%s", host);
    const char *const variables[] = {"PATH=/usr/bin:/bin", cuda_home, ccbin, NULL};
    cuda_fixture_set_env(&fixture, variables);
    test_nvcc_good(&fixture, test_nvcc_source);
    test_nvcc_not_pwned(&fixture);
    /* People see what they named. */
    char *shown = dj__format("%s/bin/nvcc", home);
    dj__strbuf quoted;
    dj__strbuf_init(&quoted, 1 << 12);
    dj__strbuf_put_quoted(&quoted, shown);
    assert_int_equal(
        strncmp(dj__strbuf_str(&fixture.command), dj__strbuf_str(&quoted), quoted.size), 0);
    dj__strbuf_fini(&quoted);
    free(shown);
    free(cuda_home);
    free(ccbin);
    free(home);
    free(host);
    free(odd);
    cuda_fixture_fini(&fixture);
}

/* The bytes of a build with a toolkit, and line information, that lies at `home`. */
static char *test_nvcc_build_at(const char *name, size_t *size)
{
    cuda_fixture fixture;
    char nvcc[512];
    const char *const none[] = {NULL};
    cuda_fixture_real_nvcc(nvcc);
    *strrchr(nvcc, '/') = '\0';
    *strrchr(nvcc, '/') = '\0';
    cuda_fixture_init(&fixture, "job", none);
    char *home = dj__path_join(fixture.base, name);
    assert_non_null(home);
    assert_int_equal(symlink(nvcc, home), 0);
    char *variable = dj__format("CUDA_HOME=%s", home);
    const char *const variables[] = {"PATH=/usr/bin:/bin", variable, NULL};
    cuda_fixture_set_env(&fixture, variables);
    fixture.debug_dir = "/kept/0123";
    fixture.cuda.with_line_info = DJ_ON;
    /* A header of the toolkit's, with code of its own. */
    test_nvcc_good(&fixture, "#include <cuda_fp8.h>\n"
                             "extern \"C\" __global__ void k(__nv_fp8_e4m3 *p, float x)\n"
                             "{ *p = __nv_fp8_e4m3(x + float(*p)); }\n");
    char *cubin = cuda_fixture_read(&fixture, "kernel.cubin", size);
    assert_false(test_nvcc_contains(cubin, *size, fixture.base));
    assert_false(test_nvcc_contains(cubin, *size, "/usr/local/cuda"));
    assert_true(test_nvcc_contains(cubin, *size, "cuda_fp8.hpp"));
    free(variable);
    free(home);
    cuda_fixture_fini(&fixture);
    return cubin;
}

/* Its path is not in the key, so it is not in the binary. */
static void test_nvcc_same_toolkit(void **state)
{
    (void)state;
    size_t first_size = 0;
    size_t second_size = 0;
    char *first = test_nvcc_build_at("plain", &first_size);
    char *second = test_nvcc_build_at("some where else, it's odd", &second_size);
    assert_int_equal(first_size, second_size);
    assert_memory_equal(first, second, first_size);
    free(first);
    free(second);
}

/* What ptxas makes is what was asked for, with each kind of suffix. */
static void test_nvcc_archs(void **state)
{
    (void)state;
    static const char *const archs[] = {"80", "90", "90a", "100", "100a", "100f", "103f", "120f"};
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        cuda_fixture fixture;
        test_nvcc_setup(&fixture, "job", NULL);
        fixture.options.arch = archs[i];
        test_nvcc_good(&fixture, "extern \"C\" __global__ void k(int *p) { *p = 1; }\n");
        cuda_fixture_fini(&fixture);
    }
}

/* Definitions arrive as they were given. */
static void test_nvcc_definitions(void **state)
{
    (void)state;
    static const char *const flags[] = {
        "-DA=a b;touch pwned;c&d|e>pwned#f'g'",
        "-DB=\"x y;touch pwned\"",
        "-DC=\\\"x\\, y\\\"",
        "-DD=2",
        "-D",
        "E=\xc3\xa4",
        "-I/no where;touch pwned;",
    };
    static const char source[] =
        "#define TEXT_(...) #__VA_ARGS__\n"
        "#define TEXT(...) TEXT_(__VA_ARGS__)\n"
        "constexpr bool same(const char *a, const char *b)\n"
        "{ while (*a && *a == *b) { a++; b++; } return *a == *b; }\n"
        "static_assert(same(TEXT(A), \"a b;touch pwned;c&d|e>pwned#f'g'\"), \"A\");\n"
        "static_assert(same(B, \"x y;touch pwned\"), \"B\");\n"
        "static_assert(same(C, \"x, y\"), \"C\");\n"
        "static_assert(D == 2, \"D\");\n"
        "static_assert(same(TEXT(E), \"\xc3\xa4\"), \"E\");\n"
        "extern \"C\" __global__ void k(int *p) { *p = D; }\n";
    cuda_fixture fixture;
    test_nvcc_setup(&fixture, "job", NULL);
    fixture.options.extra_flags = flags;
    fixture.options.num_extra_flags = sizeof flags / sizeof flags[0];
    test_nvcc_good(&fixture, source);
    test_nvcc_not_pwned(&fixture);
    cuda_fixture_fini(&fixture);
}

static void test_nvcc_environment(void **state)
{
    (void)state;
    cuda_fixture fixture;
    test_nvcc_setup(&fixture, "job", "NVCC_APPEND_FLAGS=-DD=7 -ccbin g++");
    test_nvcc_good(&fixture, "static_assert(D == 7, \"\");\n"
                             "extern \"C\" __global__ void k(int *p) { *p = D; }\n");
    assert_null(strstr(dj__strbuf_str(&fixture.command), "-ccbin"));
    assert_int_equal(fixture.log.size, 0);
    cuda_fixture_fini(&fixture);

    test_nvcc_setup(&fixture, "job", "SECRET=1");
    test_nvcc_fails(&fixture, "#include \"nothing.h\"\n", DJ_COMPILE, "nothing.h");
    cuda_fixture_fini(&fixture);

    test_nvcc_setup(&fixture, "job", "INCLUDES=\"-DD=8\"");
    test_nvcc_good(&fixture, "static_assert(D == 8, \"\");\n"
                             "extern \"C\" __global__ void k(int *p) { *p = D; }\n");
    cuda_fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nvcc_plain),        cmocka_unit_test(test_nvcc_error),
        cmocka_unit_test(test_nvcc_reports),      cmocka_unit_test(test_nvcc_dumps),
        cmocka_unit_test(test_nvcc_same),         cmocka_unit_test(test_nvcc_odd_debug_dir),
        cmocka_unit_test(test_nvcc_line_numbers), cmocka_unit_test(test_nvcc_odd_dir),
        cmocka_unit_test(test_nvcc_odd_tmpdir),   cmocka_unit_test(test_nvcc_odd_toolkit),
        cmocka_unit_test(test_nvcc_same_toolkit), cmocka_unit_test(test_nvcc_archs),
        cmocka_unit_test(test_nvcc_definitions),  cmocka_unit_test(test_nvcc_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
