/* SPDX-License-Identifier: MIT */
/* nvcc's flags: their order, the values that are refused, and what may not reach a shell. */
#include "cuda_fixture.h"

#include "backend/cuda/cuda_options.h"

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
    static const char *const words[] = {"-std", "c++17"};
    fixture.cuda.cpp_standard = "20";
    fixture.options.extra_flags = words;
    fixture.options.num_extra_flags = 2;
    test_cuda_flags_expect(&fixture,
                           "--gpu-architecture=sm_90a -O3 --compiler-options=-O3 "
                           "--ptxas-options=--register-usage-level=10 --compiler-options=-fPIC "
                           "--expt-relaxed-constexpr --expt-extended-lambda -std c++17");
    static const char *const extra[] = {"-std=c++17"};
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
    fixture.options.optimize_level = "1";
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
        &fixture, "--gpu-architecture=sm_100f -O1 --compiler-options=-O1 --use_fast_math "
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
    static const char *const levels[] = {"4", "fast", "33", "-1", "g", "s"};
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
    return dj__cuda_check_flags("flags", flags, second != NULL ? 2 : 1, NULL, err);
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
        {"-g", "-o", "decided by the library"},
        {"-o=x", NULL, "decided by the library"},
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

/* The search finds each name, and nothing by a part of one. */
static void test_cuda_flags_table(void **state)
{
    (void)state;
    size_t count = 0;
    const dj__cuda_option *table = dj__cuda_options(&count);
    assert_true(count > 300);
    for (size_t i = 0; i < count; i++) {
        char flag[128];
        const char *value = "";
        assert_true(i == 0 || strcmp(table[i - 1].name, table[i].name) < 0);
        assert_ptr_equal(dj__cuda_find_option(table[i].name, &value), &table[i]);
        assert_null(value);
        (void)snprintf(flag, sizeof flag, "%s=a=b", table[i].name);
        assert_ptr_equal(dj__cuda_find_option(flag, &value), &table[i]);
        assert_string_equal(value, "a=b");
    }
    const char *value = NULL;
    assert_null(dj__cuda_find_option("--disable-w", &value));
    assert_null(dj__cuda_find_option("-disable-warnings", &value));
    assert_null(dj__cuda_find_option("--w", &value));
    assert_null(dj__cuda_find_option("-", &value));
    assert_null(dj__cuda_find_option("", &value));
    assert_string_equal(dj__cuda_find_option("-DX=1", &value)->name, "-D");
    assert_string_equal(value, "X=1");
    assert_string_equal(dj__cuda_find_option("-lfoo", &value)->name, "-l");
}

/* What other tools get, files of flags, and what nvcc would take for a source. */
static void test_cuda_flags_hidden(void **state)
{
    (void)state;
    static const char files[] = "files of flags";
    static const char parts[] = "takes the place of a part of the toolchain";
    static const char runs[] = "would run";
    static const char writes[] = "decided by the library";
    static const char product[] = "must be one cubin";
    static const char *const refused[][3] = {
        {"-Xptxas=-optf,/tmp/o", NULL, files},
        {"-Xptxas", "-optf", files},
        {"-Xptxas=-optf=F", NULL, files},
        {"--ptxas-options=-v --options-file F", NULL, files},
        {"-Xcicc=-optf", NULL, files},
        {"-Xnvlink", "--options-file=F", files},
        {"-Xfatbin=@F", NULL, files},
        {"-Xcompiler=-O2,@F", NULL, files},
        {"-Xcompiler", "-specs=F", files},
        {"-Xcompiler=--specs=F", NULL, files},
        {"-specs=F", NULL, files},
        {"-Xptxas=-arch=sm_100", NULL, "set by the option arch"},
        {"-Xptxas", "--gpu-name", "set by the option arch"},
        {"-Xptxas=-v,-arch", NULL, "set by the option arch"},
        {"-Xcicc=-arch", NULL, "set by the option arch"},
        {"-Xcompiler=-B/dir", NULL, parts},
        {"-Xcompiler", "-O2,-B", parts},
        {"-Xcompiler=--prefix=/dir", NULL, parts},
        {"-Xcompiler=-no-canonical-prefixes", NULL, parts},
        {"-Xcompiler=--gcc-toolchain=/x", NULL, parts},
        {"-noprof", NULL, parts},
        {"-ldir=/x", NULL, parts},
        {"--target-directory", "x", parts},
        {"-Xcompiler=-fplugin=/x.so", NULL, runs},
        {"--compiler-options", "-wrapper,gdb", runs},
        {"--all-prefix=time", NULL, runs},
        {"-time", "f", writes},
        {"-fdevice-time-trace=f", NULL, writes},
        {"-MF", "f", writes},
        {"-Xcompiler=-MD,-MF,f", NULL, writes},
        {"-Xcompiler=-of", NULL, writes},
        {"-forward-unknown-opts", "-fdump-tree-all", "would reach other tools unchecked"},
        {"-forward-unknown-to-host-compiler", NULL, "would reach other tools unchecked"},
        {"-Xcicc=--xref=/x", NULL, writes},
        {"-Xcudafe=--error_output=/x", NULL, writes},
        {"-Xptxas=-o,f", NULL, writes},
        {"-ewp", NULL, product},
        {"--extensible-whole-program", NULL, product},
        {"-Xptxas=-ewp", NULL, product},
        {"-Xptxas=/tmp/other.ptx", NULL, product},
        {"-r", NULL, product},
        {"-rdc", "true", product},
        {"-lto", NULL, product},
        {"-dlto", NULL, product},
        {"-astoolspatch", NULL, product},
        {"-fdevice-syntax-only", NULL, product},
        {"--dryrun", NULL, product},
        {"--help", NULL, product},
        {"--version", NULL, product},
        {"-x", "cu", product},
        {"-dc", NULL, product},
        {"-dw", NULL, product},
        {"-MMD", NULL, product},
        {"--use-cubin=code", NULL, product},
        {"-Xcompiler=-E", NULL, product},
        {"-Xcompiler=-xc", NULL, product},
        {"-Xptxas=-lineinfo", NULL, "use with_line_info or debug_info"},
        {"-Xcicc", "-g", "use with_line_info or debug_info"},
        {"", NULL, "\"\": it is empty"},
        {" -w", NULL, "begins with a blank"},
        {"other.cu", NULL, "flag other.cu: it is the value of no option"},
        {"-lineinfo", "bare", "flag bare: it is the value of no option"},
        {"-std=c++17", "x", "flag x: it is the value of no option"},
        {"-", NULL, "value of no option"},
        {"-lineinfo", "-Xptxas", "flag -Xptxas: its value is missing"},
        {"-I", NULL, "flag -I: its value is missing"},
        {"-I", "", "it names nothing"},
        {"-I/it's", NULL, "use include_dirs"},
        {"-isystem", "/it's", "use include_dirs"},
        {"-include=it's.h", NULL, "use include_dirs"},
        {"-I /x", NULL, "drops blanks"},
        {"-I", "/x ", "drops blanks"},
        {"--include-path=/x,\t/y", NULL, "drops blanks"},
    };
    dj_error err;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (test_cuda_flags_check(refused[i][0], refused[i][1], &err) != DJ_INVALID_ARGUMENT) {
            fail_msg("accepted: %s", refused[i][0]);
        }
        if (strstr(err.message, refused[i][2]) == NULL) {
            fail_msg("'%s' is not in: %s", refused[i][2], err.message);
        }
    }
    static const char *const good[][2] = {
        {"-w", NULL},
        {"-Xptxas=-w,-O1", NULL},
        {"-Xptxas", "-dlcm=ca"},
        {"-Xcompiler=-Wall,-I/x,-isystem,/y", NULL},
        {"-std", "c++17"},
        {"-diag-suppress", "177"},
        {"--frandom-seed", "-w"},
        {"-unknown-to-us", "value"},
        {"-default-of-a-newer-nvcc", NULL},
        {"-rdc=false", NULL},
        {"--relocatable-device-code=false", NULL},
        {"-DX='c'", NULL},
        {"-O", "3"},
        {"-lfoo", "-L/x"},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (test_cuda_flags_check(good[i][0], good[i][1], &err) != DJ_OK) {
            fail_msg("%s", err.message);
        }
    }
}

/* The checks work by warnings, so nothing may switch those off. */
static void test_cuda_flags_silent(void **state)
{
    (void)state;
    static const char *const flags[] = {"-w", "--disable-warnings", "-Xptxas=-w",
                                        "--ptxas-options=-v,--disable-warnings"};
    static const char *const variables[] = {"NVCC_APPEND_FLAGS=-w", "NVCC_PREPEND_FLAGS=-Xptxas -w",
                                            "PTXAS_FLAGS=-v \"-w\"",
                                            "OCG_FLAGS=--disable-warnings"};
    for (size_t i = 0; i < 8; i++) {
        cuda_fixture fixture;
        test_cuda_flags_setup(&fixture);
        const char *const env[] = {"PATH=/usr/bin:/bin", i < 4 ? NULL : variables[i - 4], NULL};
        cuda_fixture_set_env(&fixture, env);
        fixture.options.extra_flags = &flags[i % 4];
        fixture.options.num_extra_flags = i < 4;
        assert_int_equal(cuda_fixture_flags(&fixture), DJ_OK);
        fixture.cuda.check_no_spills = DJ_ON;
        test_cuda_flags_refuse(&fixture, "but check_no_spills works by ptxas's warnings");
        assert_non_null(strstr(fixture.err.message, i % 4 == 1 && i < 4 ? "--disable" : "-"));
        fixture.cuda.check_no_spills = DJ_OFF;
        assert_int_equal(cuda_fixture_flags(&fixture), DJ_OK);
        fixture.cuda.check_no_local_memory = DJ_ON;
        test_cuda_flags_refuse(&fixture, "but check_no_local_memory works by");
        cuda_fixture_fini(&fixture);
    }
    /* To the host compiler it means nothing here. */
    static const char *const host[] = {"-Xcompiler=-w"};
    cuda_fixture fixture;
    test_cuda_flags_setup(&fixture);
    fixture.cuda.check_no_spills = DJ_ON;
    fixture.options.extra_flags = host;
    fixture.options.num_extra_flags = 1;
    assert_int_equal(cuda_fixture_flags(&fixture), DJ_OK);
    cuda_fixture_fini(&fixture);
}

/* Linux takes 128 KiB for one argument of a program, and nvcc's shell gets them as one. */
static void test_cuda_flags_size(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static const char *flags[COUNT];
    cuda_fixture fixture;
    test_cuda_flags_setup(&fixture);
    for (size_t i = 0; i < COUNT; i++) {
        flags[i] = "-DSOME_LONG_NAME_OF_SOME_DEFINITION=0123456789";
    }
    fixture.options.extra_flags = flags;
    fixture.options.num_extra_flags = COUNT;
    test_cuda_flags_refuse(&fixture, "can take 114688; put definitions into the source");
    fixture.options.num_extra_flags = 2000;
    assert_int_equal(cuda_fixture_flags(&fixture), DJ_OK);
    cuda_fixture_fini(&fixture);
}

/* clang does not know -fconcepts; by its name alone, for a key asks no program. */
static void test_cuda_flags_clang(void **state)
{
    (void)state;
    static const struct {
        const char *variable;
        bool dropped;
    } cases[] = {
        {"NVCC_CCBIN=clang", true},
        {"NVCC_CCBIN=/opt/llvm/bin/clang++-18", true},
        {"NVCC_APPEND_FLAGS=-DX -ccbin=/usr/bin/clang", true},
        {"NVCC_CCBIN=/usr/bin/gcc", false},
        {"NVCC_CCBIN=/opt/clang/gcc", false},
        {"NVCC_CCBIN=", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cuda_fixture fixture;
        const char *const variables[] = {"PATH=/usr/bin:/bin", cases[i].variable, NULL};
        cuda_fixture_init(&fixture, "job", variables);
        assert_int_equal(cuda_fixture_flags(&fixture), DJ_OK);
        assert_int_equal(fixture.flags.count, cases[i].dropped ? 8 : 9);
        cuda_fixture_fini(&fixture);
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
        {"PTXAS_FLAGS=--options-file F", "PTXAS_FLAGS: compiler flag --options-file: files of"},
        {"PTXAS_FLAGS=-v -optf F", "files of flags"},
        {"PTXAS_FLAGS=-\"optf\" F", "files of flags"},
        {"OCG_FLAGS=-optf=F", "files of flags"},
        {"NVVM_FLAGS=@F", "files of flags"},
        {"INCLUDES=-I/x @F", "files of flags"},
        {"SYSTEM_INCLUDES=-specs=F", "files of flags"},
        {"PTXAS_FLAGS=-arch=sm_100", "set by the option arch"},
        {"NVCC_APPEND_FLAGS=-Xptxas -arch=sm_100", "set by the option arch"},
        {"INCLUDES=-B/x", "takes the place of"},
        {"PTXAS_FLAGS=-g", "with_line_info"},
        {"NVCC_APPEND_FLAGS=-time f", "decided by the library"},
        {"NVCC_APPEND_FLAGS=other.cu", "value of no option"},
        {"NVCC_PREPEND_FLAGS=-DX -I", "its value is missing"},
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
        cmocka_unit_test(test_cuda_flags_table),
        cmocka_unit_test(test_cuda_flags_hidden),
        cmocka_unit_test(test_cuda_flags_silent),
        cmocka_unit_test(test_cuda_flags_size),
        cmocka_unit_test(test_cuda_flags_clang),
        cmocka_unit_test(test_cuda_flags_shell),
        cmocka_unit_test(test_cuda_flags_env),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
