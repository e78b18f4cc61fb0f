/* SPDX-License-Identifier: MIT */
/* Loading and launching kernels that the system's compiler made. */
#include "host_fixture.h"

#include <sys/wait.h>

static const char test_driver_axpy[] =
    "#include <deepjit/kernel.h>\n"
    "DJ_KERNEL(axpy, (float *, y), (const float *, x), (float, a), (int, n))\n"
    "{\n"
    "    int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;\n"
    "    if (i < n) { y[i] += a * expf(x[i]) / expf(x[i]); }\n"
    "}\n";

static const char *const test_driver_flags[] = {"-O2", "-fPIC", "-shared", "-std=c11"};

/* The process's variables, with `extra` (may be NULL) before them. */
static void test_driver_setup(host_fixture *fixture, dj_driver **driver, const char *extra)
{
    char path[4096];
    char tmp[4096];
    const char *variables[4] = {path, tmp, extra, NULL};
    (void)snprintf(path, sizeof path, "PATH=%s", getenv("PATH"));
    (void)snprintf(tmp, sizeof tmp, "TMPDIR=%s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    host_fixture_init(fixture, variables);
    assert_int_equal(dj__host_driver_ops.open(&fixture->context, driver, &fixture->err), DJ_OK);
}

static void test_driver_teardown(host_fixture *fixture, dj_driver *driver)
{
    dj__host_driver_ops.close(driver);
    host_fixture_fini(fixture);
}

static dj_status test_driver_load(host_fixture *fixture, dj_driver *driver, const char *source,
                                  dj_module **module, dj_module_info *info)
{
    size_t size = 0;
    const dj_compile_job job = {.timeout_ms = 60000};
    if (host_fixture_compile(fixture, source, test_driver_flags, 4, job) != DJ_OK) {
        fail_msg("%s", fixture->err.message);
    }
    char *data = host_fixture_read(fixture, "kernel.so", &size);
    const dj_binary binary = {.data = data, .size = size, .path = "/cache/entry/kernel.so"};
    memset(&fixture->err, 0, sizeof fixture->err);
    dj_status status = dj__host_driver_ops.load(driver, &binary, module, info, &fixture->err);
    free(data);
    return status;
}

static dj_status test_driver_launch(dj_driver *driver, dj_module *module, dj_dim3 grid,
                                    dj_dim3 block, uint64_t shared,
                                    const dj_host_launch_options *host, const void **args,
                                    size_t count, dj_error *err)
{
    const dj_launch_options none = DJ_LAUNCH_OPTIONS_INIT;
    dj_launch_options call = DJ_LAUNCH_OPTIONS_INIT;
    call.host = host;
    const dj_launch_config config = {
        .grid = grid, .block = block, .shared_bytes = shared, .call = &call, .defaults = &none};
    return dj__host_driver_ops.launch(driver, module, &config, args, count, err);
}

static void test_driver_run_axpy(dj_driver *driver, dj_module *module, int blocks)
{
    enum { N = 1000 };
    float x[N];
    float y[N];
    float *py = y;
    const float *px = x;
    float a = 2;
    int n = N;
    dj_error err = DJ_ERROR_INIT;
    for (int i = 0; i < N; i++) {
        x[i] = 0.5f;
        y[i] = (float)i;
    }
    const void *args[] = {&py, &px, &a, &n};
    const dj_dim3 block = {(uint32_t)((N + blocks - 1) / blocks), 1, 1};
    assert_int_equal(test_driver_launch(driver, module, (dj_dim3){(uint32_t)blocks, 1, 1}, block, 0,
                                        NULL, args, 4, &err),
                     DJ_OK);
    for (int i = 0; i < N; i++) {
        assert_float_equal(y[i], (float)i + 2.0f, 0.0f);
    }
}

static void test_driver_end_to_end(void **state)
{
    (void)state;
    host_fixture fixture;
    dj_driver *driver = NULL;
    dj_module *module = NULL;
    dj_module_info info;
    test_driver_setup(&fixture, &driver, "DJ_JIT_HOST_THREADS=3");
    assert_int_equal(test_driver_load(&fixture, driver, test_driver_axpy, &module, &info), DJ_OK);
    assert_string_equal(info.kernel_name, "axpy");
    assert_int_equal(info.num_params, 4);
    assert_string_equal(info.params[0].type, "float *");
    assert_string_equal(info.params[1].name, "x");
    assert_int_equal(info.params[2].size, 4);
    assert_int_equal(info.params[3].align, 4);
    test_driver_run_axpy(driver, module, 1);
    test_driver_run_axpy(driver, module, 10);
    test_driver_run_axpy(driver, module, 1000);

    /* The function itself, as dj_host_kernel_function gives it. */
    float value = 1;
    float *py = &value;
    const float *px = &value;
    float a = 5;
    int n = 1;
    const void *const args[] = {&py, &px, &a, &n};
    const dj_host_block block = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    dj__host_module_function(module)(&block, args);
    assert_float_equal(value, 6, 0);

    /* The same bytes again are another module. */
    dj_module *other = NULL;
    assert_int_equal(test_driver_load(&fixture, driver, test_driver_axpy, &other, &info), DJ_OK);
    assert_ptr_not_equal(dj__host_module_function(other), dj__host_module_function(module));
    dj__host_driver_ops.unload(driver, module);
    test_driver_run_axpy(driver, other, 10);
    dj__host_driver_ops.unload(driver, other);
    dj__host_driver_ops.unload(driver, NULL);
    test_driver_teardown(&fixture, driver);
}

static void test_driver_count(void **state)
{
    (void)state;
    static const struct {
        const char *source, *message;
    } cases[] = {
        {"#include <deepjit/kernel.h>\nint unused;\n", "expected exactly one kernel, found 0"},
        {"int plain(int x) { return x; }\n", "found 0: include <deepjit/kernel.h>"},
        {"#include <deepjit/kernel.h>\nDJ_KERNEL(first) {}\nDJ_BLOCK_KERNEL(second) {}\n",
         "expected exactly one kernel, found 2: first, second"},
    };
    host_fixture fixture;
    dj_driver *driver = NULL;
    test_driver_setup(&fixture, &driver, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dj_module *module = (dj_module *)&fixture;
        dj_module_info info;
        assert_int_equal(test_driver_load(&fixture, driver, cases[i].source, &module, &info),
                         DJ_INVALID_ARGUMENT);
        assert_null(module);
        if (strstr(fixture.err.message, cases[i].message) == NULL) {
            fail_msg("'%s' is not in '%s'", cases[i].message, fixture.err.message);
        }
    }
    test_driver_teardown(&fixture, driver);
}

static void test_driver_incompatible(void **state)
{
    (void)state;
    static const char other_abi[] = "#include <stddef.h>\n#include <stdint.h>\n"
                                    "const void *dj__host_kernels(uint32_t *abi, size_t *count);\n"
                                    "const void *dj__host_kernels(uint32_t *abi, size_t *count)\n"
                                    "{ *abi = 4711; *count = 1; return NULL; }\n";
    host_fixture fixture;
    dj_driver *driver = NULL;
    dj_module *module = NULL;
    dj_module_info info;
    test_driver_setup(&fixture, &driver, NULL);
    assert_int_equal(test_driver_load(&fixture, driver, other_abi, &module, &info),
                     DJ_INCOMPATIBLE);
    assert_non_null(strstr(fixture.err.message, "4711"));
    assert_non_null(strstr(fixture.err.message, "this library has 1"));
    static const dj_binary garbage[] = {{"garbage", 7, "/cache/x/kernel.so"},
                                        {"\177ELF", 4, "/cache/x/kernel.so"}};
    for (size_t i = 0; i < 2; i++) {
        module = (dj_module *)&fixture;
        assert_int_equal(
            dj__host_driver_ops.load(driver, &garbage[i], &module, &info, &fixture.err),
            DJ_INCOMPATIBLE);
        assert_null(module);
        assert_non_null(strstr(fixture.err.message, "/cache/x/kernel.so"));
    }
    test_driver_teardown(&fixture, driver);
}

static void test_driver_limits(void **state)
{
    (void)state;
    static const struct {
        dj_dim3 grid, block;
        uint64_t shared;
        const char *message;
    } cases[] = {
        {{1, 1, 1}, {1025, 1, 1}, 0, "block.x is 1025, the host back end allows at most 1024"},
        {{1, 1, 1}, {1, 1025, 1}, 0, "block.y is 1025"},
        {{1, 1, 1}, {1, 1, 65}, 0, "block.z is 65, the host back end allows at most 64"},
        {{1, 1, 1}, {64, 16, 2}, 0, "threads per block is 2048"},
        {{1, 1, 1}, {UINT32_MAX, UINT32_MAX, UINT32_MAX}, 0, "block.x is 4294967295"},
        {{2147483648u, 1, 1}, {1, 1, 1}, 0, "grid.x is 2147483648"},
        {{1, 65536, 1}, {1, 1, 1}, 0, "grid.y is 65536, the host back end allows at most 65535"},
        {{1, 1, 65536}, {1, 1, 1}, 0, "grid.z is 65536"},
        {{1u << 22, 1, 1}, {512, 1, 1}, 0, "grid.x * block.x is 2147483648"},
        {{1, 1, 1}, {1, 1, 1}, 65537, "shared_bytes is 65537, the host back end allows at most "},
    };
    host_fixture fixture;
    dj_driver *driver = NULL;
    dj_module *module = NULL;
    dj_module_info info;
    test_driver_setup(&fixture, &driver, NULL);
    assert_int_equal(test_driver_load(&fixture, driver,
                                      "#include <deepjit/kernel.h>\nDJ_KERNEL(nothing) {}\n",
                                      &module, &info),
                     DJ_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dj_error err = DJ_ERROR_INIT;
        assert_int_equal(test_driver_launch(driver, module, cases[i].grid, cases[i].block,
                                            cases[i].shared, NULL, NULL, 0, &err),
                         DJ_INVALID_ARGUMENT);
        if (strstr(err.message, cases[i].message) == NULL) {
            fail_msg("'%s' is not in '%s'", cases[i].message, err.message);
        }
        assert_int_equal(test_driver_launch(driver, module, cases[i].grid, cases[i].block,
                                            cases[i].shared, NULL, NULL, 0, NULL),
                         DJ_INVALID_ARGUMENT);
    }
    const void *args[65] = {NULL};
    dj_error err = DJ_ERROR_INIT;
    const dj_dim3 one = {1, 1, 1};
    assert_int_equal(test_driver_launch(driver, module, one, one, 0, NULL, args, 65, &err),
                     DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "number of arguments is 65"));
    /* What is allowed. */
    assert_int_equal(test_driver_launch(driver, module, (dj_dim3){2, 300, 2}, (dj_dim3){16, 1, 64},
                                        65536, NULL, NULL, 0, &err),
                     DJ_OK);
    dj__host_driver_ops.unload(driver, module);
    test_driver_teardown(&fixture, driver);
}

static void test_driver_shared(void **state)
{
    (void)state;
    static const char source[] =
        "#include <deepjit/kernel.h>\n"
        "DJ_BLOCK_KERNEL(reverse, (int *, data))\n"
        "{\n"
        "    DJ_DYNAMIC_SHARED(int, copy);\n"
        "    DJ_FOR_THREADS { copy[DJ_THREAD_IDX_X] =\n"
        "        data[DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X]; }\n"
        "    DJ_FOR_THREADS { data[DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X] =\n"
        "        copy[DJ_BLOCK_DIM_X - 1 - DJ_THREAD_IDX_X]; }\n"
        "}\n";
    host_fixture fixture;
    dj_driver *driver = NULL;
    dj_module *module = NULL;
    dj_module_info info;
    int data[320];
    int *pdata = data;
    const void *args[] = {&pdata};
    test_driver_setup(&fixture, &driver, "DJ_JIT_HOST_THREADS=4");
    assert_int_equal(test_driver_load(&fixture, driver, source, &module, &info), DJ_OK);
    static const int64_t limits[] = {0, 1, 2, 100};
    for (size_t k = 0; k < 4; k++) {
        dj_host_launch_options host = DJ_HOST_LAUNCH_OPTIONS_INIT;
        host.max_threads = limits[k];
        for (int i = 0; i < 320; i++) {
            data[i] = i;
        }
        assert_int_equal(test_driver_launch(driver, module, (dj_dim3){5, 1, 1}, (dj_dim3){64, 1, 1},
                                            64 * sizeof(int), &host, args, 1, &fixture.err),
                         DJ_OK);
        for (int i = 0; i < 320; i++) {
            assert_int_equal(data[i], i / 64 * 64 + 63 - i % 64);
        }
    }
    dj__host_driver_ops.unload(driver, module);
    test_driver_teardown(&fixture, driver);
}

static void test_driver_host_options(void **state)
{
    (void)state;
    host_fixture fixture;
    dj_driver *driver = NULL;
    dj_module *module = NULL;
    dj_module_info info;
    const dj_dim3 one = {1, 1, 1};
    test_driver_setup(&fixture, &driver, NULL);
    assert_int_equal(test_driver_load(&fixture, driver,
                                      "#include <deepjit/kernel.h>\nDJ_KERNEL(nothing) {}\n",
                                      &module, &info),
                     DJ_OK);
    dj_host_launch_options host = DJ_HOST_LAUNCH_OPTIONS_INIT;
    static const int64_t bad[] = {-1, 1025, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        host.max_threads = bad[i];
        assert_int_equal(
            test_driver_launch(driver, module, one, one, 0, &host, NULL, 0, &fixture.err),
            DJ_INVALID_ARGUMENT);
        assert_non_null(strstr(fixture.err.message, "max_threads is "));
    }
    dj__host_driver_ops.unload(driver, module);
    test_driver_teardown(&fixture, driver);
}

static void test_driver_device(void **state)
{
    (void)state;
    host_fixture fixture;
    dj_driver *driver = NULL;
    dj_device device = DJ_DEVICE_INIT;
    test_driver_setup(&fixture, &driver, "DJ_JIT_HOST_THREADS=7");
    assert_int_equal(dj__host_driver_ops.device_info(driver, &device, &fixture.err), DJ_OK);
    assert_int_equal(device.size, sizeof device);
    assert_int_equal(device.compute_units, 7);
    assert_int_equal(device.max_block_threads, 1024);
    assert_int_equal(device.max_block[2], 64);
    assert_int_equal(device.max_grid[0], 2147483647);
    assert_int_equal(device.max_shared_bytes, 65536);
    assert_true(device.memory_bytes > 1 << 20);
    assert_true(device.name[0] != '\0' && memchr(device.name, '\0', sizeof device.name) != NULL);
#if defined(__x86_64__)
    assert_string_equal(device.arch, "x86_64");
#else
    assert_true(device.arch[0] != '\0');
#endif
    test_driver_teardown(&fixture, driver);
}

static void test_driver_memory(void **state)
{
    (void)state;
    host_fixture fixture;
    dj_driver *driver = NULL;
    void *memory = NULL;
    test_driver_setup(&fixture, &driver, NULL);
    static const size_t sizes[] = {0, 1, 63, 1000000};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(dj__host_driver_ops.mem_alloc(driver, sizes[i], &memory, &fixture.err),
                         DJ_OK);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        memset(memory, 7, sizes[i]);
        assert_int_equal(dj__host_driver_ops.mem_free(driver, memory, &fixture.err), DJ_OK);
    }
    assert_int_equal(dj__host_driver_ops.mem_free(driver, NULL, &fixture.err), DJ_OK);
    char text[] = "abcdef";
    assert_int_equal(dj__host_driver_ops.mem_copy(driver, text + 1, text, 4, &fixture.err), DJ_OK);
    assert_string_equal(text, "aabcdf");
    assert_int_equal(dj__host_driver_ops.mem_copy(driver, NULL, NULL, 0, &fixture.err), DJ_OK);
    assert_int_equal(dj__host_driver_ops.synchronize(driver, &fixture.err), DJ_OK);
    test_driver_teardown(&fixture, driver);
}

static void test_driver_bad_threads(void **state)
{
    (void)state;
    static const char *const values[] = {"DJ_JIT_HOST_THREADS=0", "DJ_JIT_HOST_THREADS=1025",
                                         "DJ_JIT_HOST_THREADS=x"};
    for (size_t i = 0; i < 3; i++) {
        const char *const variables[] = {values[i], NULL};
        host_fixture fixture;
        dj_driver *driver = (dj_driver *)&fixture;
        host_fixture_init(&fixture, variables);
        assert_int_equal(dj__host_driver_ops.open(&fixture.context, &driver, &fixture.err),
                         DJ_INVALID_ARGUMENT);
        assert_null(driver);
        assert_non_null(strstr(fixture.err.message, "DJ_JIT_HOST_THREADS"));
        host_fixture_fini(&fixture);
    }
}

/* A loaded kernel works in a forked child, on threads of the child's own. */
static void test_driver_fork(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* it cannot follow threads started in the child of a threaded process */
#endif
    host_fixture fixture;
    dj_driver *driver = NULL;
    dj_module *module = NULL;
    dj_module_info info;
    test_driver_setup(&fixture, &driver, "DJ_JIT_HOST_THREADS=3");
    assert_int_equal(test_driver_load(&fixture, driver, test_driver_axpy, &module, &info), DJ_OK);
    test_driver_run_axpy(driver, module, 10);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dj__host_driver_ops.after_fork(driver);
        test_driver_run_axpy(driver, module, 1);
        test_driver_run_axpy(driver, module, 10);
        dj__host_driver_ops.unload(driver, module);
        dj__host_driver_ops.close(driver);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    test_driver_run_axpy(driver, module, 10);
    dj__host_driver_ops.unload(driver, module);
    test_driver_teardown(&fixture, driver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_driver_end_to_end),   cmocka_unit_test(test_driver_count),
        cmocka_unit_test(test_driver_incompatible), cmocka_unit_test(test_driver_limits),
        cmocka_unit_test(test_driver_shared),       cmocka_unit_test(test_driver_host_options),
        cmocka_unit_test(test_driver_device),       cmocka_unit_test(test_driver_memory),
        cmocka_unit_test(test_driver_bad_threads),  cmocka_unit_test(test_driver_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
