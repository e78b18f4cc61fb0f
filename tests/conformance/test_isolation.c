/* SPDX-License-Identifier: MIT */
/* link: -lm -rdynamic */
/* What a kernel and its process must not do to each other. */
#include "conformance.h"
#include <fenv.h>

static const dj_dim3 one = {1, 1, 1};

/* The process has its own idea of these names, and exports it (-rdynamic). */
__attribute__((visibility("default"))) int scale_it(int x);
__attribute__((visibility("default"))) int scale_it(int x)
{
    return 1000 * x;
}

static void kernels_bind_their_own_symbols(void **state)
{
    (void)state;
    suite_needs_host("kernels for a device share no symbols with the process");
    dj_kernel *kernel =
        suite_compile("symbols",
                      KERNEL_HEADER "int rand(void) { return 4; }\n"
                                    "double gamma(double x) { return 2 * x; }\n"
                                    "int scale_it(int x) { return 3 * x; }\n"
                                    "int table[2] = {10, 20};\n"
                                    "DJ_KERNEL(symbols, (double *, out)) {\n"
                                    "  out[0] = rand(); out[1] = gamma(5.0);\n"
                                    "  out[2] = scale_it(7); out[3] = table[1];\n}\n",
                      NULL);
    const double before[4] = {0};
    double *out = suite_upload(before, sizeof(before));
    suite_launch(kernel, one, one, 0, DJ_ARGS(out));
    const double want[4] = {4, 10, 21, 20};
    suite_expect(out, want, sizeof(want));
    dj_mem_free(suite_runtime, out, NULL);
    dj_kernel_release(kernel);
}

static void loading_keeps_the_floating_point_state(void **state)
{
    (void)state;
    volatile float tiny = 1e-40f;
    volatile float half = 0.5f; /* a factor of 1 would be folded away */
    const float before = tiny * half;
    assert_true(before != 0.0f);
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.fast_math = DJ_ON;
    dj_kernel *kernel = suite_compile(
        "fast", KERNEL_HEADER "DJ_KERNEL(fast, (float *, out)) { out[0] = 1.0f; }\n", &options);
    /* By its bits: where denormals count as zero, they also compare as zero. */
    const float after = tiny * half;
    assert_memory_equal(&after, &before, sizeof(after));
    dj_kernel_release(kernel);
}

static void blocks_have_the_launching_threads_rounding(void **state)
{
    (void)state;
    enum { BLOCKS = 64 };
    suite_needs_host("a device does not round as the launching thread does");
    dj_kernel *kernel = suite_compile(
        "third",
        KERNEL_HEADER "DJ_KERNEL(third, (float *, out), (float, a), (float, b)) {\n"
                      "  float sum = 0;\n"
                      "  for (int i = 0; i < 2000; i++) { sum += a / (b + (float)i); }\n"
                      "  out[DJ_BLOCK_IDX_X] = sum;\n}\n",
        NULL);
    float got[BLOCKS];
    float *out = suite_upload(got, sizeof(got));
    float a = 1.0f;
    float b = 3.0f;
    const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD};
    float first[3];
    for (int mode = 0; mode < 3; mode++) {
        assert_int_equal(fesetround(modes[mode]), 0);
        suite_launch(kernel, (dj_dim3){BLOCKS, 1, 1}, one, 0, DJ_ARGS(out, a, b));
        assert_int_equal(fesetround(FE_TONEAREST), 0);
        suite_download(got, out, sizeof(got));
        first[mode] = got[0];
        for (int i = 0; i < BLOCKS; i++) {
            assert_memory_equal(&got[i], &got[0], sizeof(float));
        }
    }
    assert_true(first[2] < first[1]); /* the mode did arrive */
    dj_mem_free(suite_runtime, out, NULL);
    dj_kernel_release(kernel);
}

static bool count_entry(void *user, const dj_cache_entry *entry)
{
    *(int *)user += strcmp(entry->tag, "undefined") == 0;
    return true;
}

static void undefined_functions_do_not_compile(void **state)
{
    (void)state;
    static const char source[] =
        KERNEL_HEADER "int typo_fn(int);\nDJ_KERNEL(k, (int *, out)) { out[0] = typo_fn(1); }\n";
    dj_artifact *artifact = NULL;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(
        dj_build(suite_runtime, "undefined", source, strlen(source), NULL, &artifact, &err),
        DJ_COMPILE);
    assert_non_null(strstr(err.message, "typo_fn"));
    int entries = 0;
    assert_int_equal(dj_cache_list(suite_runtime, count_entry, &entries, NULL), DJ_OK);
    assert_int_equal(entries, 0);
}

static void definitions_do_not_reach_into_the_prelude(void **state)
{
    (void)state;
    static const char *const names[] = {"block",   "grid",    "index",  "size",   "count", "type",
                                        "shared",  "params",  "value",  "run",    "align", "abi",
                                        "used",    "section", "packed", "unused", "weak",  "retain",
                                        "aligned", "name",    "dim",    "args"};
    suite_needs_host("the toolkit's own headers do not stand such definitions");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char flag[64];
        char source[512];
        snprintf(flag, sizeof(flag), "-D%s=16", names[i]);
        const char *const flags[] = {flag};
        dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
        options.extra_flags = flags;
        options.num_extra_flags = 1;
        snprintf(source, sizeof(source),
                 KERNEL_HEADER "DJ_KERNEL(k, (int *, out)) { out[0] = %s; }\n"
                               "DJ_FUNCTION int unneeded(int x) { return x; }\n",
                 names[i]);
        dj_kernel *kernel = suite_compile("names", source, &options);
        const int before = 0;
        const int want = 16;
        int *out = suite_upload(&before, sizeof(before));
        suite_launch(kernel, one, one, 0, DJ_ARGS(out));
        suite_expect(out, &want, sizeof(want));
        dj_mem_free(suite_runtime, out, NULL);
        dj_kernel_release(kernel);
    }
}

static void no_other_prelude_takes_its_place(void **state)
{
    (void)state;
    char dir[128];
    char header[192];
    snprintf(dir, sizeof(dir), "%s/inc", suite_dir);
    assert_int_equal(mkdir(dir, 0755), 0);
    snprintf(header, sizeof(header), "%s/deepjit", dir);
    assert_int_equal(mkdir(header, 0755), 0);
    snprintf(header, sizeof(header), "%s/deepjit/kernel.h", dir);
    FILE *file = fopen(header, "w");
    assert_non_null(file);
    assert_true(fputs("#error the wrong kernel.h\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    const char *const dirs[] = {dir};
    dj_config config = DJ_CONFIG_INIT;
    config.include_dirs = dirs;
    config.num_include_dirs = 1;
    dj_runtime *runtime = suite_new_runtime(&config);
    static const char source[] = KERNEL_HEADER "DJ_KERNEL(prelude, (int *, out)) { out[0] = 1; }\n";
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    if (dj_compile(runtime, "prelude", source, strlen(source), NULL, &kernel, &err) != DJ_OK) {
        fail_msg("%s", err.message);
    }
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
}

static int isolation_setup(void **state)
{
    setenv("DJ_JIT_HOST_THREADS", "4", 1); /* before the runtime is created */
    return suite_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_bind_their_own_symbols),
        cmocka_unit_test(loading_keeps_the_floating_point_state),
        cmocka_unit_test(blocks_have_the_launching_threads_rounding),
        cmocka_unit_test(undefined_functions_do_not_compile),
        cmocka_unit_test(definitions_do_not_reach_into_the_prelude),
        cmocka_unit_test(no_other_prelude_takes_its_place),
    };
    return cmocka_run_group_tests_name("isolation", tests, isolation_setup, suite_teardown);
}
