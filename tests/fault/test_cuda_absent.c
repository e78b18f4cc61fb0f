/* SPDX-License-Identifier: MIT */
/* link: -ldl */
/* No driver, no device, a driver too old or a stub: a status, a reason, and a second chance. */
#include "cuda_maker.h"

static void expect_open(dj_status want, const char *text)
{
    dj_runtime *runtime = maker_runtime(NULL);
    dj_device device = DJ_DEVICE_INIT;
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    maker_expect(dj_device_info(runtime, &device, &err), want, &err, text);
    maker_expect(maker_try(runtime, "kernel k 8 4\n", &kernel, &err), want, &err, text);
    assert_null(kernel);
    assert_int_equal(atomic_load(&maker.compiles), 0);
    dj_runtime_release(runtime);
}

static void no_library(void **state)
{
    (void)state;
    setenv("DJ_JIT_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1);
    expect_open(DJ_UNAVAILABLE, "/nonexistent/libcuda.so.1");
    expect_open(DJ_UNAVAILABLE, "DJ_JIT_CUDA_LIBRARY");
    setenv("DJ_JIT_CUDA_LIBRARY", "some/libcuda.so.1", 1);
    expect_open(DJ_INVALID_ARGUMENT, "some/libcuda.so.1");
    setenv("DJ_JIT_CUDA_LIBRARY", maker.tool, 1); /* a text file */
    expect_open(DJ_UNAVAILABLE, maker.tool);
}

static void not_a_driver(void **state)
{
    (void)state;
    setenv("DJ_JIT_CUDA_LIBRARY", "libc.so.6", 1);
    expect_open(DJ_INCOMPATIBLE, "cuInit");
}

static void too_old(void **state)
{
    (void)state;
    char path[600];
    snprintf(path, sizeof(path), "%s/standin_cuda/libcuda_old.so.1", getenv("DJ_TEST_BIN_DIR"));
    setenv("DJ_JIT_CUDA_LIBRARY", path, 1);
    expect_open(DJ_INCOMPATIBLE, "cuCtxGetId needs driver 12.0 or newer");
    expect_open(DJ_INCOMPATIBLE, "11.8");
}

static void second_chance(int code, dj_status want, const char *text)
{
    dj_runtime *runtime = maker_runtime(NULL);
    dj_device device = DJ_DEVICE_INIT;
    dj_error err = DJ_ERROR_INIT;
    cu.fail_call("cuInit", 0, code);
    maker_expect(dj_device_info(runtime, &device, &err), want, &err, text);
    assert_int_equal(err.native, code);
    cu.reset();
    assert_int_equal(dj_device_info(runtime, &device, &err), DJ_OK);
    assert_string_equal(device.arch, "90a");
    dj_runtime_release(runtime);
}

static void initialisation_fails(void **state)
{
    (void)state;
    second_chance(100, DJ_UNAVAILABLE, "no CUDA device");
    second_chance(34, DJ_UNAVAILABLE, "stub library");
    second_chance(999, DJ_UNAVAILABLE, "CUDA_ERROR_UNKNOWN (999)");
    second_chance(803, DJ_UNAVAILABLE, "803"); /* has no name here */
}

static void no_device(void **state)
{
    (void)state;
    cu.set_devices(0);
    expect_open(DJ_UNAVAILABLE, "no CUDA device");
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    expect_open(DJ_UNAVAILABLE, "CUDA_VISIBLE_DEVICES=7");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void devices_are_chosen(void **state)
{
    (void)state;
    setenv("DJ_JIT_CUDA_DEVICE", "2", 1);
    expect_open(DJ_UNAVAILABLE, "DJ_JIT_CUDA_DEVICE");
    setenv("DJ_JIT_CUDA_DEVICE", "1", 1);
    cu.set_arch(1, 10, 0);
    dj_runtime *runtime = maker_runtime(NULL);
    dj_device device = DJ_DEVICE_INIT;
    assert_int_equal(dj_device_info(runtime, &device, NULL), DJ_OK);
    assert_string_equal(device.arch, "100f");
    assert_string_equal(device.name, "Stand-in GPU 1");
    assert_int_equal(device.max_block_threads, 1024);
    assert_int_equal(device.clock_hz, 1980000000);
    dj_runtime_release(runtime);
}

static void architectures(void **state)
{
    (void)state;
    static const struct {
        int major, minor;
        const char *arch;
    } known[] = {{8, 0, "80"}, {8, 9, "89"}, {9, 0, "90a"}, {10, 3, "103f"}, {12, 1, "121f"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        cu.set_arch(0, known[i].major, known[i].minor);
        dj_runtime *runtime = maker_runtime(NULL);
        dj_device device = DJ_DEVICE_INIT;
        assert_int_equal(dj_device_info(runtime, &device, NULL), DJ_OK);
        assert_string_equal(device.arch, known[i].arch);
        dj_kernel_release(maker_kernel_of(runtime, "kernel k 8 4\n"));
        dj_runtime_release(runtime);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
    const struct CMUnitTest tests[] = {
        TEST(no_library), TEST(not_a_driver),       TEST(too_old),       TEST(initialisation_fails),
        TEST(no_device),  TEST(devices_are_chosen), TEST(architectures),
    };
    return cmocka_run_group_tests_name("CUDA: absent", tests, maker_group, NULL);
}
