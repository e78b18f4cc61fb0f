/* SPDX-License-Identifier: MIT */
/* The command's reading of parameters in kernel sources. */
#include "../../../cli/cli_params.c"
#include <stdio.h>
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* "type|name, type|name", or "-" if nothing could be read. */
static const char *look(const char *kernel, const char *source)
{
    static char text[1024];
    cli_source_params params;
    text[0] = '\0';
    if (!cli_params_find(source, strlen(source), kernel, &params)) {
        assert_null(params.items);
        assert_int_equal(params.count, 0);
        return "-";
    }
    size_t used = 0;
    for (size_t i = 0; i < params.count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s|%s", i > 0 ? ", " : "",
                                 params.items[i].type, params.items[i].name);
        assert_true(used < sizeof text);
    }
    cli_params_fini(&params);
    return text;
}

#define SCALE "float *|out, const float *|in, float|a, int|n"

static void test_macros(void **state)
{
    (void)state;
    assert_string_equal(
        look("scale",
             "DJ_KERNEL(scale, (float *, out), (const float *, in), (float, a), (int, n)) {}"),
        SCALE);
    assert_string_equal(look("scale", "DJ_BLOCK_KERNEL /* , ( */ (\n scale\n,(float*,out) ,\n"
                                      "  ( const\tfloat  * , in ), // (int, x)\n"
                                      "  (float, a), (int,\\\nn))\n{}"),
                        SCALE);
    assert_string_equal(look("k", "DJ_KERNEL(k) {}"), "");
    assert_string_equal(look("k", "DJ_KERNEL(k, (unsigned long long, a)) {}"),
                        "unsigned long long|a");
    assert_string_equal(look("k", "DJ_KERNEL(j, (int, a)) {} DJ_KERNEL(k, (float, b)) {}"),
                        "float|b");
    assert_string_equal(look("k", "DJ_KERNEL(k, (struct pair, p)) {}"), "struct pair|p");
    /* Macros are not expanded: what is not a pair is not understood. */
    assert_string_equal(look("k", "DJ_KERNEL(k, ARGS) {}"), "-");
    assert_string_equal(look("k", "DJ_KERNEL(k, (int, a), MORE(x)) {}"), "-");
    assert_string_equal(look("k", "DJ_KERNEL(k, (int, a, b)) {}"), "-");
    assert_string_equal(look("k", "DJ_KERNEL(k, (int)) {}"), "-");
    assert_string_equal(look("k", "DJ_KERNEL(k, (int, a"), "-");
    assert_string_equal(look("k", "DJ_KERNEL(NAME, (int, a)) {}"), "-");
}

static void test_functions(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "extern \"C\" __global__ void scale(float *out, const float *in, float a, int n) {}",
        "extern \"C\" { __global__ void scale(float* out,const float*in,float a,int n){} }",
        "extern \"C\" __global__ void __launch_bounds__(A * (B + 1), 1)\n scale(float "
        "*__restrict__ "
        "out, const float * __restrict in, float a = 1.0f, const int *) ;\n"
        "void __global__ [[maybe_unused]] scale(float *out, const float *in, float a, int n)\n{}",
        "__global__ static void scale (float out[], const float in[16], float a, int n = 5) {}",
    };
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        assert_string_equal(look("scale", sources[i]), SCALE);
    }
    assert_string_equal(look("_Z5scalePfPKffi", sources[3]), SCALE);
    assert_string_equal(look("_ZL5scalePfPKffi", sources[3]), SCALE);
    assert_string_equal(look("_ZN2ns5scaleEPfPKffi", sources[3]), SCALE);
    assert_string_equal(look("k", "__global__ void k(void) {}"), "");
    assert_string_equal(look("k", "__global__ void k() {}"), "");
    assert_string_equal(look("k", "__global__ void k(const __grid_constant__ big b) {}"),
                        "const big|b");
    assert_string_equal(look("k", "__global__ void k(float *const p, float const *q) {}"),
                        "float * const|p, float const *|q");
    assert_string_equal(look("k", "__global__ void k(std::pair<int, ns::t> p, unsigned n) {}"),
                        "std::pair<int,ns::t>|p, unsigned|n");
}

static void test_parameters_that_have_no_readable_name(void **state)
{
    (void)state;
    assert_string_equal(look("k", "__global__ void k(int, unsigned int, const float *, T) {}"),
                        "int|, unsigned int|, const float *|, T|");
    assert_string_equal(look("k", "__global__ void k(ns::T, const T, struct s) {}"),
                        "ns::T|, const T|, struct s|");
    assert_string_equal(look("k", "__global__ void k(int a, void (*f)(int), int m[2][3]) {}"),
                        "int|a, |, |");
    assert_string_equal(look("k", "__global__ void k(int a, ...) {}"), "int|a, |");
}

static void test_what_is_not_understood(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "",
        "void k(int a) {}",
        "__global__ void k(int a);",
        "__global__ void j(int a) { k(1); }",
        "// __global__ void k(int a) {}",
        "/* __global__ void k(int a) {} */",
        "const char *s = \"__global__ void k(int a) {}\";",
        "auto s = R\"x(\" )\" __global__ void k(int a) {} )x\";",
        "#define K __global__ void k(int a) { \\\n}",
        "__global__ void k(int a, ) {}",
        "__global__ void k(int a",
        "__global__",
        "__global__ void k",
        "#if A\n__global__ void k(int a) {}\n#else\n__global__ void k(float a) {}\n#endif",
        "#if A\nDJ_KERNEL(k, (int, a)) {}\n#else\nDJ_KERNEL(k, ARGS) {}\n#endif",
    };
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        assert_string_equal(look("k", sources[i]), "-");
    }
    assert_string_equal(look("_Z1kIfEvT_", "template <class T> __global__ void k(T a) {}"), "-");
    assert_string_equal(look("_Z", "__global__ void k(int a) {}"), "-");
    assert_string_equal(look("_Z99k", "__global__ void k(int a) {}"), "-");
    assert_string_equal(look("_ZN1k", "__global__ void k(int a) {}"), "-");
    assert_string_equal(look("", "__global__ void k(int a) {}"), "-");
}

static void test_what_surrounds_definitions(void **state)
{
    (void)state;
    assert_string_equal(look("k", "#if A\n__global__ void k(int a) {}\n#else\n"
                                  "__global__ void k(int  a) { }\n#endif"),
                        "int|a");
    assert_string_equal(look("k", "int x = 1'000'000; char c = '\"', d = '\\'', e = L'x';\n"
                                  "__global__ void k(int a) {}"),
                        "int|a");
    assert_string_equal(look("k", "auto s = R\"(\")\"; __global__ void k(int a) {}"), "int|a");
    assert_string_equal(look("k", "#error it's not\n__global__ void k(int a) {}"), "int|a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_macros),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_parameters_that_have_no_readable_name),
        cmocka_unit_test(test_what_is_not_understood),
        cmocka_unit_test(test_what_surrounds_definitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
