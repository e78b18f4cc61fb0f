/* SPDX-License-Identifier: MIT */
/* What kernel sources see: kernels of every form, defined here and called block by block, and
 * the prelude compiled by the compilers that are at hand. */
#include "backend/host/host_backend.h"

#include <deepjit/kernel.h>

#include "base/fs.h"
#include "base/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The prelude and the back end have each their own definition of the same layouts. */
#define SAME(a, own, b, member)                                                                    \
    _Static_assert(offsetof(a, own) == offsetof(b, member) &&                                      \
                       sizeof(((a *)NULL)->own) == sizeof(((b *)NULL)->member),                    \
                   #member)
SAME(struct dj__k_block, dj__grid, dj_host_block, grid);
SAME(struct dj__k_block, dj__dim, dj_host_block, block);
SAME(struct dj__k_block, dj__index, dj_host_block, index);
SAME(struct dj__k_block, dj__shared_bytes, dj_host_block, shared_bytes);
SAME(struct dj__k_block, dj__shared, dj_host_block, shared);
SAME(struct dj__k_param, dj__name, dj_param, name);
SAME(struct dj__k_param, dj__type, dj_param, type);
SAME(struct dj__k_param, dj__size, dj_param, size);
SAME(struct dj__k_param, dj__align, dj_param, align);
SAME(struct dj__k_kernel, dj__name, dj__host_kernel, name);
SAME(struct dj__k_kernel, dj__run, dj__host_kernel, run);
SAME(struct dj__k_kernel, dj__params, dj__host_kernel, params);
SAME(struct dj__k_kernel, dj__num_params, dj__host_kernel, num_params);
_Static_assert(sizeof(struct dj__k_block) == sizeof(dj_host_block), "block");
_Static_assert(sizeof(struct dj__k_param) == sizeof(dj_param), "param");
_Static_assert(sizeof(struct dj__k_kernel) == sizeof(dj__host_kernel), "kernel");
_Static_assert(DJ__K_ABI == DJ__HOST_ABI, "abi");

/* ---- kernels ---- */

DJ_FUNCTION float test_macro_twice(float x)
{
    return 2 * x;
}

DJ_KERNEL(axpy, (float *, y), (const float *, x), (float, a), (int, n))
{
    int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;
    if (i < n) {
        y[i] += a * x[i];
    }
}

static int test_macro_calls;

DJ_KERNEL(no_params)
{
    test_macro_calls++;
}

DJ_BLOCK_KERNEL(no_params_block)
{
    DJ_FOR_THREADS
    {
        test_macro_calls += 100;
    }
}

/* Each thread writes where it is, and changes its own copy of a parameter. */
DJ_KERNEL(where, (void *, unused), (int *, out), (int, step))
{
    (void)unused;
    int thread =
        (DJ_THREAD_IDX_Z * DJ_BLOCK_DIM_Y + DJ_THREAD_IDX_Y) * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;
    int *mine = out + 12 * (size_t)thread;
    if (DJ_THREAD_IDX_X == 1) {
        return;
    }
    step += 1;
    const int all[12] = {DJ_BLOCK_IDX_X,  DJ_BLOCK_IDX_Y, DJ_BLOCK_IDX_Z, DJ_THREAD_IDX_X,
                         DJ_THREAD_IDX_Y, step,           DJ_BLOCK_DIM_X, DJ_BLOCK_DIM_Y,
                         DJ_BLOCK_DIM_Z,  DJ_GRID_DIM_X,  DJ_GRID_DIM_Y,  DJ_GRID_DIM_Z};
    memcpy(mine, all, sizeof all);
}

typedef struct test_macro_box {
    double a;
    char b;
    int64_t c[3];
} test_macro_box;

DJ_KERNEL(types, (double *, out), (test_macro_box, box), (bool, flag), (char, letter), (double, d),
          (int64_t, l), (const test_macro_box *, pointer), (const int, constant),
          (const float *DJ_RESTRICT, single), (int16_t, s), (uint8_t, u))
{
    out[0] = box.a + box.b + (double)box.c[2] + (flag ? 1000 : 0) + letter + d + (double)l +
             pointer->a + constant + (double)test_macro_twice(*single) + s + u;
}

#define P4(p) (int, p##0), (int, p##1), (int, p##2), (int, p##3)
#define P16(p) P4(p##0), P4(p##1), P4(p##2), P4(p##3)
DJ_KERNEL(most_params, (int64_t *, out), P16(a), P16(b), P4(c0), P4(c1), P4(c2), (int, x), (int, y),
          (int, z))
{
    int64_t a = a00 + a01 + a02 + a03 + a10 + a11 + a12 + a13 + a20 + a21 + a22 + a23 + a30 + a31 +
                a32 + a33;
    int64_t b = b00 + b01 + b02 + b03 + b10 + b11 + b12 + b13 + b20 + b21 + b22 + b23 + b30 + b31 +
                b32 + b33;
    int64_t c = c00 + c01 + c02 + c03 + c10 + c11 + c12 + c13 + c20 + c21 + c22 + c23;
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = x * 10000 + y * 100 + z;
}

DJ_BLOCK_KERNEL(block_sum, (float *, out), (const float *, in), (int, n))
{
    DJ_SHARED(float, part[256]);
    DJ_SHARED(float, total);
    DJ_FOR_THREADS
    {
        int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;
        part[DJ_THREAD_IDX_X] = i < n ? in[i] : 0.0f;
    }
    for (int half = DJ_BLOCK_DIM_X / 2; half > 0; half /= 2) {
        DJ_FOR_THREADS
        {
            if (DJ_THREAD_IDX_X >= half) {
                continue;
            }
            part[DJ_THREAD_IDX_X] += part[DJ_THREAD_IDX_X + half];
        }
    }
    DJ_FOR_THREADS
    {
        if (DJ_THREAD_IDX_X == 0) {
            total = part[0];
        }
    }
    DJ_FOR_THREADS
    {
        if (DJ_THREAD_IDX_X == DJ_BLOCK_DIM_X - 1) {
            out[DJ_BLOCK_IDX_X] = total;
        }
    }
}

/* Transposes through both kinds of shared memory. */
DJ_BLOCK_KERNEL(transpose, (int *, out), (const int *, in), (int *, aligned))
{
    DJ_SHARED(int, tile[8][9]);
    DJ_DYNAMIC_SHARED(int, copy);
    DJ_FOR_THREADS
    {
        tile[DJ_THREAD_IDX_Y][DJ_THREAD_IDX_X] = in[DJ_THREAD_IDX_Y * 8 + DJ_THREAD_IDX_X];
    }
    DJ_FOR_THREADS
    {
        copy[DJ_THREAD_IDX_Y * 8 + DJ_THREAD_IDX_X] = tile[DJ_THREAD_IDX_X][DJ_THREAD_IDX_Y];
    }
    DJ_FOR_THREADS
    {
        int i = DJ_THREAD_IDX_Y * 8 + DJ_THREAD_IDX_X;
        out[i] = copy[i];
        aligned[0] = (uintptr_t)tile % 64 == 0 && DJ_THREAD_IDX_Z == 0;
    }
}

/* ---- calling them ---- */

static const dj__host_kernel *test_macro_find(const char *name)
{
    uint32_t abi = 0;
    size_t count = 0;
    const struct dj__k_kernel *const *list = dj__host_kernels(&abi, &count);
    assert_int_equal(abi, DJ__HOST_ABI);
    assert_int_equal(count, 8);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i]->dj__name, name) == 0) {
            return (const dj__host_kernel *)(const void *)list[i];
        }
    }
    fail_msg("no kernel %s", name);
    return NULL;
}

static void test_macro_run(const dj__host_kernel *kernel, dj_host_block block,
                           const void *const *args)
{
    for (block.index[2] = 0; block.index[2] < block.grid[2]; block.index[2]++) {
        for (block.index[1] = 0; block.index[1] < block.grid[1]; block.index[1]++) {
            for (block.index[0] = 0; block.index[0] < block.grid[0]; block.index[0]++) {
                kernel->run(&block, args);
            }
        }
    }
}

static void test_macro_threads(void **state)
{
    (void)state;
    float x[1000];
    float y[1000];
    float *py = y;
    const float *px = x;
    float a = 3;
    int n = 997;
    for (int i = 0; i < 1000; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    const void *const args[] = {&py, &px, &a, &n};
    test_macro_run(test_macro_find("axpy"),
                   (dj_host_block){.grid = {8, 1, 1}, .block = {128, 1, 1}}, args);
    for (int i = 0; i < 1000; i++) {
        assert_float_equal(y[i], i < n ? 1.0f + 3.0f * (float)i : 1.0f, 0.0f);
    }
}

static void test_macro_no_params(void **state)
{
    (void)state;
    test_macro_calls = 0;
    const dj_host_block block = {.grid = {2, 1, 1}, .block = {3, 2, 1}};
    test_macro_run(test_macro_find("no_params"), block, NULL);
    assert_int_equal(test_macro_calls, 12);
    test_macro_run(test_macro_find("no_params_block"), block, NULL);
    assert_int_equal(test_macro_calls, 1212);
    assert_int_equal(test_macro_find("no_params")->num_params, 0);
}

static void test_macro_indices(void **state)
{
    (void)state;
    int out[24][12];
    int *pout = out[0];
    void *unused = NULL;
    int step = 41;
    const void *const args[] = {&unused, &pout, &step};
    const dj_host_block block = {.grid = {5, 6, 7}, .block = {4, 3, 2}, .index = {4, 2, 3}};
    memset(out, -1, sizeof out);
    test_macro_find("where")->run(&block, args);
    for (int t = 0; t < 24; t++) {
        const int expected[12] = {4, 2, 3, t % 4, t / 4 % 3, 42, 4, 3, 2, 5, 6, 7};
        for (int i = 0; i < 12; i++) {
            assert_int_equal(out[t][i], t % 4 == 1 ? -1 : expected[i]);
        }
    }
}

static void test_macro_types(void **state)
{
    (void)state;
    double result = 0;
    double *out = &result;
    const test_macro_box box = {.a = 0.5, .b = 3, .c = {0, 0, 40}};
    const test_macro_box *pointer = &box;
    const bool flag = true;
    const char letter = 5;
    const double d = 0.25;
    const int64_t l = INT64_C(1) << 40;
    const int constant = 7;
    const float single = 1.5f;
    const float *psingle = &single;
    const int16_t s = -9;
    const uint8_t u = 200;
    /* An argument may lie at any address. */
    char odd[sizeof box + 1];
    memcpy(odd + 1, &box, sizeof box);
    const void *const args[] = {&out,     odd + 1,   &flag,    &letter, &d, &l,
                                &pointer, &constant, &psingle, &s,      &u};
    const dj_host_block block = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    const dj__host_kernel *kernel = test_macro_find("types");
    kernel->run(&block, args);
    assert_true(result == 0.5 + 3 + 40 + 1000 + 5 + 0.25 + (double)l + 0.5 + 7 + 3 - 9 + 200);

    static const struct {
        const char *name, *type;
        size_t size, align;
    } params[] = {
        {"out", "double *", sizeof(double *), _Alignof(double *)},
        {"box", "test_macro_box", sizeof(test_macro_box), _Alignof(test_macro_box)},
        {"flag", "_Bool", sizeof(bool), _Alignof(bool)},
        {"letter", "char", 1, 1},
        {"d", "double", sizeof(double), _Alignof(double)},
        {"l", "int64_t", 8, _Alignof(int64_t)},
        {"pointer", "const test_macro_box *", sizeof(void *), _Alignof(void *)},
        {"constant", "const int", sizeof(int), _Alignof(int)},
        {"single", "const float *__restrict__", sizeof(void *), _Alignof(void *)},
        {"s", "int16_t", 2, 2},
        {"u", "uint8_t", 1, 1},
    };
    assert_int_equal(kernel->num_params, 11);
    for (size_t i = 0; i < kernel->num_params; i++) {
        assert_string_equal(kernel->params[i].name, params[i].name);
        assert_string_equal(kernel->params[i].type, params[i].type);
        assert_int_equal(kernel->params[i].size, params[i].size);
        assert_int_equal(kernel->params[i].align, params[i].align);
    }
}

static void test_macro_most_params(void **state)
{
    (void)state;
    int64_t out[4] = {0};
    int64_t *pout = out;
    int values[48];
    const void *args[48] = {&pout};
    for (int i = 1; i < 48; i++) {
        values[i] = i;
        args[i] = &values[i];
    }
    const dj_host_block block = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    const dj__host_kernel *kernel = test_macro_find("most_params");
    assert_int_equal(kernel->num_params, 48);
    assert_string_equal(kernel->params[47].name, "z");
    kernel->run(&block, args);
    assert_int_equal(out[0], 16 * 17 / 2);
    assert_int_equal(out[1], 32 * 33 / 2 - 16 * 17 / 2);
    assert_int_equal(out[2], 44 * 45 / 2 - 32 * 33 / 2);
    assert_int_equal(out[3], 454647);
}

static void test_macro_phases(void **state)
{
    (void)state;
    float in[1000];
    float out[4] = {-1, -1, -1, -1};
    const float *pin = in;
    float *pout = out;
    int n = 1000;
    for (int i = 0; i < n; i++) {
        in[i] = (float)(i % 10);
    }
    const void *const args[] = {&pout, &pin, &n};
    test_macro_run(test_macro_find("block_sum"),
                   (dj_host_block){.grid = {4, 1, 1}, .block = {256, 1, 1}}, args);
    for (int b = 0; b < 4; b++) {
        float expected = 0;
        for (int i = b * 256; i < (b + 1) * 256 && i < n; i++) {
            expected += in[i];
        }
        assert_float_equal(out[b], expected, 0); /* small integers: exact in any order */
    }
}

static void test_macro_shared(void **state)
{
    (void)state;
    int in[64];
    int out[64];
    int aligned = 0;
    int *paligned = &aligned;
    const int *pin = in;
    int *pout = out;
    _Alignas(64) int shared[64];
    for (int i = 0; i < 64; i++) {
        in[i] = i;
    }
    const void *const args[] = {&pout, &pin, &paligned};
    const dj_host_block block = {
        .grid = {1, 1, 1}, .block = {8, 8, 1}, .shared_bytes = sizeof shared, .shared = shared};
    test_macro_find("transpose")->run(&block, args);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(out[i], i % 8 * 8 + i / 8);
    }
    assert_int_equal(aligned, 1);
}

/* ---- compiling the prelude ---- */

static const char test_macro_source[] =
    "#include <deepjit/kernel.h>\n"
    "typedef struct { double a; char b; } box;\n"
    "DJ_FUNCTION float half_of(float x) { return x / 2; }\n"
    "#if defined(THREADS)\n"
    "DJ_KERNEL(k, (float *, out), (const float *DJ_RESTRICT, in), (box, b), (bool, f), (int, n))\n"
    "{\n"
    "    int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;\n"
    "    if (i >= n || f) { return; }\n"
    "    out[i] = half_of(in[i]) + (float)b.a + sqrtf(in[i]);\n"
    "}\n"
    "#elif defined(BLOCKS)\n"
    "DJ_BLOCK_KERNEL(k, (float *, out), (int64_t, n))\n"
    "{\n"
    "    DJ_SHARED(float, part[256]);\n"
    "    DJ_SHARED(float, total);\n"
    "    DJ_DYNAMIC_SHARED(float, more);\n"
    "    DJ_FOR_THREADS {\n"
    "        if (DJ_THREAD_IDX_X >= n) { continue; }\n"
    "        part[DJ_THREAD_IDX_X] = (float)DJ_GRID_DIM_Z;\n"
    "    }\n"
    "    for (int h = DJ_BLOCK_DIM_X / 2; h > 0; h /= 2) {\n"
    "        DJ_FOR_THREADS {\n"
    "            if (DJ_THREAD_IDX_X < h) { part[DJ_THREAD_IDX_X] += part[DJ_THREAD_IDX_X + h]; }\n"
    "        }\n"
    "    }\n"
    "    DJ_FOR_THREADS { if (DJ_THREAD_IDX_X == 0) { total = part[0]; more[0] = 1; } }\n"
    "    DJ_FOR_THREADS { if (DJ_THREAD_IDX_X == 1) { out[0] = total + more[0]; } }\n"
    "}\n"
    "#elif defined(EMPTY)\n"
    "DJ_KERNEL(k) {}\n"
    "#elif defined(MISPLACED)\n"
    "DJ_KERNEL(k, (int *, out)) { DJ_SHARED(int, s[2]); s[0] = 1; out[0] = s[0]; }\n"
    "#endif\n";

/* Runs a compiler that is on PATH; -1 if there is none, else its exit code. */
static int test_macro_compile(const char *compiler, const char *const *options, size_t count,
                              dj__strbuf *output)
{
    char *program = dj__find_program(compiler, getenv("PATH"));
    if (program == NULL) {
        return -1;
    }
    char dir[] = "/tmp/dj_macro_XXXXXX";
    assert_non_null(mkdtemp(dir));
    const int fd = dj__open_dir(dir);
    assert_true(fd >= 0);
    assert_int_equal(
        dj__write_new_at(fd, "k.c", test_macro_source, sizeof test_macro_source - 1, 0600, false),
        0);
    (void)close(fd);
    const char *root = getenv("DJ_TEST_SOURCE_DIR");
    dj__strlist argv;
    dj__strlist env;
    dj__strlist_init(&argv);
    dj__strlist_init(&env);
    dj__strlist_add(&argv, program);
    dj__strlist_add_all(&argv, options, count);
    dj__strlist_addf(&argv, "-I%s/include", root != NULL ? root : ".");
    dj__strlist_add(&argv, "-o");
    dj__strlist_addf(&argv, "%s/k.out", dir);
    dj__strlist_addf(&argv, "%s/k.c", dir);
    dj__strlist_addf(&env, "PATH=%s", getenv("PATH"));
    const dj__process process = {
        .argv = dj__strlist_items(&argv), .envp = dj__strlist_items(&env), .output_limit = 1 << 20};
    dj__process_result result;
    dj_error err = DJ_ERROR_INIT;
    dj__strbuf_clear(output);
    if (dj__process_run(&process, output, &result, &err) != DJ_OK) {
        fail_msg("%s: %s", program, err.message);
    }
    dj__strlist_fini(&env);
    dj__strlist_fini(&argv);
    assert_int_equal(dj__remove_tree(dir), 0);
    free(program);
    return result.exit_code;
}

/* No warnings in any standard, at any level. */
static void test_macro_compile_c(void **state)
{
    (void)state;
    static const char *const compilers[] = {"gcc", "clang", "cc"};
    static const char *const standards[] = {"-std=c11", "-std=gnu11", "-std=c17", "-std=c2x"};
    static const char *const forms[] = {"-DTHREADS", "-DBLOCKS", "-DEMPTY", "-DNONE"};
    static const char *const levels[] = {"-O0", "-O3"};
    unsigned ran = 0;
    dj__strbuf output;
    dj__strbuf_init(&output, 1 << 20);
    for (size_t i = 0; i < 3 * 4 * 4 * 2; i++) {
        const char *const options[] = {"-Wall",       "-Wextra",        "-Wpedantic",
                                       "-Werror",     "-fPIC",          "-shared",
                                       levels[i % 2], forms[i / 2 % 4], standards[i / 8 % 4]};
        const int code = test_macro_compile(compilers[i / 32], options, 9, &output);
        if (code > 0) {
            fail_msg("%s %s %s %s: %s", compilers[i / 32], standards[i / 8 % 4], forms[i / 2 % 4],
                     levels[i % 2], dj__strbuf_str(&output));
        }
        ran += code == 0;
    }
    dj__strbuf_fini(&output);
    if (ran == 0) {
        skip(); /* no C compiler on PATH */
    }
}

/* Shared memory outside a block kernel is an error that says what to write instead. */
static void test_macro_misplaced(void **state)
{
    (void)state;
    static const char *const options[] = {"-std=c11", "-fPIC", "-shared", "-DMISPLACED"};
    dj__strbuf output;
    dj__strbuf_init(&output, 1 << 20);
    const int code = test_macro_compile("cc", options, 4, &output);
    const bool named = strstr(dj__strbuf_str(&output), "needs_DJ_BLOCK_KERNEL") != NULL;
    dj__strbuf_fini(&output);
    if (code < 0) {
        skip(); /* no C compiler on PATH */
    }
    assert_true(code > 0);
    assert_true(named);
}

static void test_macro_compile_cuda(void **state)
{
    (void)state;
    static const char *const forms[] = {"-DTHREADS", "-DBLOCKS", "-DEMPTY"};
    dj__strbuf output;
    dj__strbuf_init(&output, 1 << 20);
    for (size_t i = 0; i < 3; i++) {
        const char *const options[] = {"--cubin", "-arch=sm_90",          "-x",
                                       "cu",      "-Werror=all-warnings", forms[i]};
        const int code = test_macro_compile("nvcc", options, 6, &output);
        if (code < 0) {
            dj__strbuf_fini(&output);
            skip(); /* no CUDA compiler on PATH */
        }
        if (code > 0) {
            fail_msg("%s: %s", forms[i], dj__strbuf_str(&output));
        }
    }
    dj__strbuf_fini(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_macro_threads),     cmocka_unit_test(test_macro_no_params),
        cmocka_unit_test(test_macro_indices),     cmocka_unit_test(test_macro_types),
        cmocka_unit_test(test_macro_most_params), cmocka_unit_test(test_macro_phases),
        cmocka_unit_test(test_macro_shared),      cmocka_unit_test(test_macro_compile_c),
        cmocka_unit_test(test_macro_misplaced),   cmocka_unit_test(test_macro_compile_cuda),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
