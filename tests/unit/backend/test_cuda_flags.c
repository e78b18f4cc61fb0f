/* SPDX-License-Identifier: MIT */
/* nvcc's flags: their order, the values that are refused, and what may not reach a shell. */
#include "cuda_fixture.h"

static void test_cuda_flags_setup(cuda_fixture *fixture)
{
    const char *const variables[] = {"PATH=/usr/bin:/bin", NULL};
    cuda_fixture_init(fixture, "job", variables);
}

static void test_cuda_flags_expect(cuda_fixture *fixture, const char *expected)
{
    dj__strbuf text;
    dj__strbuf_init(&text, 1 << 16);
    assert_int_equal(cuda_fixture_flags(fixture), DJ_OK);
    for (size_t i = 0; i < fixture->flags.count; i++) {
        dj__strbuf_printf(&text, "%s%s", i > 0 ? " " : "", fixture->flags.items[i]);
    }
    assert_string_equal(dj__strbuf_str(&text), expected);
    dj__strbuf_fini(&text);
}

static void test_cuda_flags_defaults(void **state)
{
    (void)state;
    cuda_fixture fixture;
    test_cuda_flags_setup(&fixture);
    test_cuda_flags_expect(
        &fixture, "--gpu-architecture=sm_90a -O3 --compiler-options=-O3 "
                  "--ptxas-options=--register-usage-level=10 -std=c++20 --compiler-options=-fPIC "
                  "--compiler-options=-fconcepts --expt-relaxed-constexpr --expt-extended-lambda");
    cuda_fixture_fini(&fixture);
}

/* gcc's headers take -fconcepts as C++20. */
static void test_cuda_flags_older_standard(void **state)
{
    (void)state;
    cuda_fixture fixture;
    test_cuda_flags_setup(&fixture);
    fixture.cuda.cpp_standard = "17";
    test_cuda_flags_expect(
        &fixture, "--gpu-architecture=sm_90a -O3 --compiler-options=-O3 "
                  "--ptxas-options=--register-usage-level=10 -std=c++17 --compiler-options=-fPIC "
                  "--expt-relaxed-constexpr --expt-extended-lambda");
    static const char *const extra[] = {"-std=c++17"};
    fixture.cuda.cpp_standard = "20";
    fixture.options.extra_flags = extra;
    fixture.options.num_extra_flags = 1;
    test_cuda_flags_expect(&fixture,
                           "--gpu-architecture=sm_90a -O3 --compiler-options=-O3 "
                           "--ptxas-options=--register-usage-level=10 --compiler-options=-fPIC "
                           "--expt-relaxed-constexpr --expt-extended-lambda -std=c++17");
    cuda_fixture_fini(&fixture);
}

static void test_cuda_flags_all(void **state)
{
    (void)state;
    cuda_fixture fixture;
    static const char *const flags[] = {"-DA=1"};
    static const char *const extra[] = {"-DB=2", "-DA=3"};
    test_cuda_flags_setup(&fixture);
    fixture.options.arch = "100f";
    fixture.options.optimize_level = "s";
    fixture.options.fast_math = DJ_ON;
    fixture.options.flags = flags;
    fixture.options.num_flags = 1;
    fixture.options.extra_flags = extra;
    fixture.options.num_extra_flags = 2;
    fixture.cuda.cpp_standard = "17";
    fixture.cuda.ptxas_register_usage_level = "0";
    fixture.cuda.ptxas_verbose = DJ_ON;
    fixture.cuda.check_no_spills = DJ_ON;
    fixture.cuda.check_no_local_memory = DJ_ON;
    fixture.cuda.with_line_info = DJ_ON;
    fixture.cuda.dump_ptx = DJ_ON;
    test_cuda_flags_expect(
        &fixture, "--gpu-architecture=sm_100f -Os --compiler-options=-Os --use_fast_math "
                  "--ptxas-options=--register-usage-level=0 --ptxas-options=--verbose "
                  "--ptxas-options=--warn-on-spills --ptxas-options=--warn-on-local-memory-usage "
                  "--generate-line-info -std=c++17 -DA=1 -DB=2 -DA=3");
    assert_true(dj__cuda_compiler_ops.names_source(&fixture.options));
    fixture.cuda.ptxas_register_usage_level = "07"; /* which is 7, and has its key */
    fixture.options.debug_info = DJ_ON;
    assert_int_equal(cuda_fixture_flags(&fixture), DJ_OK);
    assert_string_equal(fixture.flags.items[4], "--ptxas-options=--register-usage-level=7");
    assert_string_equal(fixture.flags.items[8], "--device-debug");
    assert_string_equal(fixture.flags.items[9], "-std=c++17");
    fixture.cuda.with_line_info = DJ_OFF;
    assert_true(dj__cuda_compiler_ops.names_source(&fixture.options));
    fixture.options.debug_info = DJ_OFF;
    assert_false(dj__cuda_compiler_ops.names_source(&fixture.options));
    static const char *const lines[] = {"-DX", "-lineinfo"};
    static const char *const none[] = {"-Xcompiler", "-G"};
    fixture.options.flags = lines;
    fixture.options.num_flags = 2;
    assert_true(dj__cuda_compiler_ops.names_source(&fixture.options));
    fixture.options.flags = none;
    assert_false(dj__cuda_compiler_ops.names_source(&fixture.options));
    cuda_fixture_fini(&fixture);
}

static void test_cuda_flags_standard(void **state)
{
    (void)state;
    static const struct {
        const char *first;
        const char *second;
        bool given;
    } cases[] = {
        {"-std=c++14", NULL, true},      {"--std=c++14", NULL, true},
        {"-std", "c++14", true},         {"-DX", "--std=c++14", true},
        {"-DX=-std=c++14", NULL, false}, {"-Xcompiler", "-std=c++14", false},
        {"-stdlib", NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cuda_fixture fixture;
        const char *const flags[] = {cases[i].first, cases[i].second};
        test_cuda_flags_setup(&fixture);
        fixture.options.extra_flags = flags;
        fixture.options.num_extra_flags = cases[i].second != NULL ? 2 : 1;
        assert_int_equal(cuda_fixture_flags(&fixture), DJ_OK);
        assert_int_equal(strcmp(fixture.flags.items[4], "-std=c++20") != 0, cases[i].given);
        cuda_fixture_fini(&fixture);
    }
}

static void test_cuda_flags_complete(void **state)
{
    (void)state;
    cuda_fixture fixture;
    test_cuda_flags_setup(&fixture);
    fixture.options.dump_asm = DJ_ON;
    fixture.cuda.dump_sass = DJ_OFF;
    assert_int_equal(cuda_fixture_flags(&fixture), DJ_OK);
    assert_int_equal(fixture.cuda.dump_ptx, DJ_ON);
    assert_int_equal(fixture.cuda.dump_sass, DJ_OFF);
    assert_int_equal(fixture.cuda.check_no_spills, DJ_OFF);
    assert_int_equal(fixture.cuda.with_line_info, DJ_OFF);
    assert_string_equal(fixture.cuda.cpp_standard, "20");
    assert_string_equal(fixture.cuda.ptxas_register_usage_level, "10");
    fixture.options.dump_asm = DJ_OFF;
    fixture.cuda.dump_ptx = DJ_DEFAULT;
    assert_int_equal(cuda_fixture_flags(&fixture), DJ_OK);
    assert_int_equal(fixture.cuda.dump_ptx, DJ_OFF);
    cuda_fixture_fini(&fixture);
}

static void test_cuda_flags_refuse(cuda_fixture *fixture, const char *part)
{
    assert_int_equal(cuda_fixture_flags(fixture), DJ_INVALID_ARGUMENT);
    if (strstr(fixture->err.message, part) == NULL) {
        fail_msg("'%s' is not in: %s", part, fixture->err.message);
    }
}

static void test_cuda_flags_values(void **state)
{
    (void)state;
    static const char *const archs[][2] = {
        {"sm_90", "give 90, not sm_90"},        {"compute_90", "give 90, not compute_90"},
        {"90f", "exist from 100 on; give 90a"}, {"80f", "exist from 100 on; give 80"},
        {"80a", "exists from 90 on; give 80"},  {"9", "invalid arch: 9 (expected"},
        {"9.0", "invalid arch: 9.0"},           {"native", "invalid arch: native"},
        {"90;x", "invalid arch: 90;x"},         {"90aa", "invalid arch: 90aa"},
        {"1000", "invalid arch: 1000"},         {"", "CUDA architecture must be specified"},
    };
    static const char *const good[] = {"75", "80", "90", "90a", "100f", "103a", "121"};
    cuda_fixture fixture;
    test_cuda_flags_setup(&fixture);
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        fixture.options.arch = archs[i][0];
        test_cuda_flags_refuse(&fixture, archs[i][1]);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        fixture.options.arch = good[i];
        assert_int_equal(cuda_fixture_flags(&fixture), DJ_OK);
    }
    static const char *const levels[] = {"4", "fast", "33", "-1", "g"};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        fixture.options.optimize_level = levels[i];
        test_cuda_flags_refuse(&fixture, "invalid optimize_level");
    }
    fixture.options.optimize_level = "";
    test_cuda_flags_refuse(&fixture, "optimization level must be specified");
    fixture.options.optimize_level = "0";
    static const char *const usages[] = {"11", "-1", "ten", "1 ", "0x1"};
    for (size_t i = 0; i < sizeof usages / sizeof usages[0]; i++) {
        fixture.cuda.ptxas_register_usage_level = usages[i];
        test_cuda_flags_refuse(&fixture, "invalid ptxas_register_usage_level");
    }
    fixture.cuda.ptxas_register_usage_level = "";
    test_cuda_flags_refuse(&fixture, "register usage level must be specified");
    fixture.cuda.ptxas_register_usage_level = "5";
    static const char *const standards[] = {"", "2", "2a;", "20 ", "c++20"};
    for (size_t i = 0; i < sizeof standards / sizeof standards[0]; i++) {
        fixture.cuda.cpp_standard = standards[i];
        test_cuda_flags_refuse(&fixture, "invalid cpp_standard");
    }
    cuda_fixture_fini(&fixture);
}

/* ---- flags ---- */

static dj_status test_cuda_flags_check(const char *first, const char *second, dj_error *err)
{
    const char *const flags[] = {first, second};
    memset(err, 0, sizeof *err);
    return dj__cuda_check_flags("flags", flags, second != NULL ? 2 : 1, err);
}

static void test_cuda_flags_meaning(void **state)
{
    (void)state;
    static const char *const refused[][3] = {
        {"-arch=sm_80", NULL, "set by the option arch"},
        {"--gpu-architecture", "sm_80", "set by the option arch"},
        {"-gencode=arch=compute_80,code=sm_80", NULL, "set by the option arch"},
        {"-o", "x", "decided by the library"},
        {"--output-file=x", NULL, "decided by the library"},
        {"--keep", NULL, "decided by the library"},
        {"-c", NULL, "one cubin"},
        {"--ptx", NULL, "one cubin"},
        {"-rdc=true", NULL, "one cubin"},
        {"-E", NULL, "one cubin"},
        {"--options-file=x", NULL, "files of flags"},
        {"-optf", "x", "files of flags"},
        {"@x", NULL, "files of flags"},
        {"-Xcompiler=@x", NULL, "files of flags"},
        {"-Xptxas", "--options-file=x", "files of flags"},
        {"-ccbin=clang", NULL, "set NVCC_CCBIN"},
        {"-Xcompiler=-march=native", NULL, "another processor"},
        {"--compiler-options", "-march=native,-O2", "another processor"},
        {"-", "-o", "decided by the library"},
        {"", "-o=x", "decided by the library"},
        {"-dlto", NULL, "one cubin"},
        {"-M", NULL, "one cubin"},
    };
    dj_error err;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(test_cuda_flags_check(refused[i][0], refused[i][1], &err),
                         DJ_INVALID_ARGUMENT);
        if (strstr(err.message, refused[i][2]) == NULL) {
            fail_msg("'%s' is not in: %s", refused[i][2], err.message);
        }
        assert_non_null(strstr(err.message, "flags: compiler flag "));
    }
    static const char *const good[][2] = {
        {"-DX=native", NULL},
        {"-DX=@home", NULL},
        {"-Xcompiler", "-O2"},
        {"--compiler-options=-Wno-deprecated-declarations,-Wno-abi", NULL},
        {"--diag-suppress=39,161,174,177,186,940,3012", NULL},
        {"-I/some where/else", NULL},
        {"-I", "dir"},
        {"-maxrregcount=64", NULL},
        {"-Ofc=max", NULL},
        {"", "-"},
        {"-=o", "-outdir"}, /* as far as they go, they are like some that are refused */
        {"-archx", "-ar"},
        {"--opt", "--keepx=1"},
        {"--extra-device-vectorization", "-DA=\"a;b\""},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (test_cuda_flags_check(good[i][0], good[i][1], &err) != DJ_OK) {
            fail_msg("%s", err.message);
        }
    }
}

static void test_cuda_flags_shell(void **state)
{
    (void)state;
    static const char *const refused[][2] = {
        {"-DX=$(touch pwned)", NULL},
        {"-DX=`touch pwned`", NULL},
        {"-DX=$HOME", NULL},
        {"-DX=a\\", "-DY=;touch pwned"},
        {"-DX=a\\\\", "-DY=;touch pwned"},
        {"-DX=a\\nb", NULL},
        {"-DX=\"a", NULL},
        {"-D", "X=$(touch pwned)"},
        {"-U`x`", NULL},
        {"-I$(touch pwned)", NULL},
        {"-I/x\\", NULL},
        {"-I/x\"y", NULL},
        {"--include-path", "a`b`"},
        {"-include=a\\", NULL},
        {"-Xcompiler=-DX;touch pwned", NULL},
        {"-Xcompiler", "-DX=;touch pwned"},
        {"--compiler-options=-DX='a'", NULL},
        {"--ptxas-options=-v>pwned", NULL},
        {"-Xptxas", "&touch pwned&"},
        {"-Xptxas=a\nb", NULL},
        {"-Xcicc=|touch pwned", NULL},
        {"-frandom-seed=\" ;touch pwned; \"", NULL},
        {"-frandom-seed", "-DX=\" ;touch pwned; \""}, /* a value, though it looks like another */
        {"-some-option", "-DX=;touch pwned"},
        {"-Xcompiler=-I*", NULL},
        {"-Xcompiler=~/x", NULL},
        {"-Xcompiler=#x", NULL},
        {"$(touch pwned)", NULL},
    };
    dj_error err;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (test_cuda_flags_check(refused[i][0], refused[i][1], &err) != DJ_INVALID_ARGUMENT) {
            fail_msg("accepted: %s", refused[i][0]);
        }
    }
    /* What nvcc quotes well. */
    static const char *const good[][2] = {
        {"-DX=a b;c&d|e<f>g#h(i)j'k*l?m[n]o{p}q~r!s", NULL},
        {"-DX=\"a b;c\"", NULL},
        {"-DX=\\\"a b\\\"", NULL},
        {"-DX=f(a\\,b)", NULL},
        {"--define-macro", "X=a;b"},
        {"--expt-relaxed-constexpr", "-DX=a;b"},
        {"-Ia b;c", NULL},
        {"-DX=\xc3\xa4", NULL},
        {"-Xcompiler=-Wall -Wextra", NULL},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (test_cuda_flags_check(good[i][0], good[i][1], &err) != DJ_OK) {
            fail_msg("%s", err.message);
        }
    }
}

static void test_cuda_flags_env(void **state)
{
    (void)state;
    static const char *const refused[][2] = {
        {"NVCC_APPEND_FLAGS=-DX=$(touch pwned)", "NVCC_APPEND_FLAGS: compiler flag -DX="},
        {"NVCC_PREPEND_FLAGS=-DA=1 -DX=`id`", "NVCC_PREPEND_FLAGS: compiler flag -DX="},
        {"NVCC_APPEND_FLAGS=-Xptxas -v;id", "NVCC_APPEND_FLAGS: compiler flag -v;id"},
        {"NVCC_APPEND_FLAGS=-DX=\"a b\"", "knows no quotes"},
        {"NVCC_APPEND_FLAGS=-DX=1\n-DY=2", "no line breaks"},
        {"NVCC_APPEND_FLAGS=-arch=sm_80", "set by the option arch"},
        {"NVCC_APPEND_FLAGS=--options-file x", "files of flags"},
        {"NVCC_APPEND_FLAGS=-DX -lineinfo", "use with_line_info or debug_info"},
        {"NVCC_PREPEND_FLAGS=-G", "use with_line_info or debug_info"},
        {"INCLUDES=-I/x;touch pwned", "INCLUDES: "},
        {"PTXAS_FLAGS=$(touch pwned)", "PTXAS_FLAGS: "},
        {"SYSTEM_INCLUDES=\"-I/x", "SYSTEM_INCLUDES: "},
    };
    static const char *const good[] = {"NVCC_APPEND_FLAGS=-DX=1 -ccbin=gcc  -DY",
                                       "NVCC_PREPEND_FLAGS=", "INCLUDES=\"-I/x y\" -I/z",
                                       "OTHER=$(touch pwned)", "PTXAS_FLAGS=-v"};
    cuda_fixture fixture;
    test_cuda_flags_setup(&fixture);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const char *const variables[] = {"PATH=/usr/bin:/bin", refused[i][0], NULL};
        cuda_fixture_set_env(&fixture, variables);
        test_cuda_flags_refuse(&fixture, refused[i][1]);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const char *const variables[] = {"PATH=/usr/bin:/bin", good[i], NULL};
        cuda_fixture_set_env(&fixture, variables);
        assert_int_equal(cuda_fixture_flags(&fixture), DJ_OK);
    }
    /* A variable that is only passed because the user named it counts as well. */
    const char *const named[] = {"DJ_JIT_COMPILER_ENV=LIBRARIES", "LIBRARIES=;id", NULL};
    cuda_fixture_set_env(&fixture, named);
    test_cuda_flags_refuse(&fixture, "LIBRARIES: ");
    cuda_fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_flags_defaults),
        cmocka_unit_test(test_cuda_flags_older_standard),
        cmocka_unit_test(test_cuda_flags_all),
        cmocka_unit_test(test_cuda_flags_standard),
        cmocka_unit_test(test_cuda_flags_complete),
        cmocka_unit_test(test_cuda_flags_values),
        cmocka_unit_test(test_cuda_flags_meaning),
        cmocka_unit_test(test_cuda_flags_shell),
        cmocka_unit_test(test_cuda_flags_env),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
