/* SPDX-License-Identifier: MIT */
/* link: -Wl,--wrap=dj__cubin_read,--wrap=dj__cubin_fini */
/* Loading and unloading, also while a stream is captured, and binaries that are not accepted. */
#include "cuda_fake.h"

static cuda_fixture fixture;

static int setup(void **state)
{
    (void)state;
    fake_reset();
    assert_int_equal(cuda_fixture_open(&fixture, NULL), DJ_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cuda_fixture_stop(&fixture);
    return 0;
}

static void expect_refusal(dj_status status, const char *text)
{
    const int loads = fake.loads;
    memset(&fixture.err, 0, sizeof fixture.err);
    assert_int_equal(cuda_fixture_load(&fixture), status);
    assert_int_equal(fixture.err.status, status);
    cuda_fixture_says(&fixture, text);
    assert_null(fixture.module);
    /* Nothing stays loaded, and the driver works on. */
    assert_int_equal(fake.unloads, fake.loads);
    assert_true(fake.loads >= loads);
    assert_int_equal(fake_mode, 0);
}

static void expect_load(void)
{
    if (cuda_fixture_load(&fixture) != DJ_OK) {
        fail_msg("%s", fixture.err.message);
    }
}

static void unload(void)
{
    dj__cuda_driver_ops.unload(fixture.driver, fixture.module);
    fixture.module = NULL;
}

static void loads(void **state)
{
    (void)state;
    fake_params(3, 4);
    fake.params[1].size = 12;
    fake.params[1].align = 4;
    fake.params[2].offset = 16;
    expect_load();
    assert_string_equal(fixture.info.kernel_name, "scale");
    assert_int_equal(fixture.info.num_params, 3);
    assert_int_equal(fixture.info.params[0].size, 4);
    assert_int_equal(fixture.info.params[1].size, 12);
    assert_int_equal(fixture.info.params[1].align, 4);
    assert_string_equal(fixture.info.params[0].name, "");
    assert_string_equal(fixture.info.params[0].type, "");
    assert_int_equal(fake.retains, 1);
    assert_int_equal(fake.get_functions, 1);
    unload();
    assert_int_equal(fake.unloads, 1);
    dj__cuda_driver_ops.unload(fixture.driver, NULL);
}

/* Sizes are the driver's. Alignments are the cubin's if it means the same parameter. */
static void parameters_by_the_driver(void **state)
{
    (void)state;
    dj_param_info others[2] = {{"", "", 0, 8, 8}, {"", "", 8, 64, 64}};
    fake_params(3, 8);
    fake.params[1] = (dj_param_info){"", "", 64, 128, 64};
    fake.params[2] = (dj_param_info){"", "", 196, 20, 4};
    fake.kernels[0].params = others;
    fake.kernels[0].num_params = 2;
    expect_load();
    assert_int_equal(fixture.info.num_params, 3);
    assert_int_equal(fixture.info.params[0].align, 8);
    assert_int_equal(fixture.info.params[1].size, 128);
    assert_int_equal(fixture.info.params[1].align, 16);
    assert_int_equal(fixture.info.params[2].align, 4);
}

static void parameters_by_the_cubin(void **state)
{
    (void)state;
    fake_params(2, 4);
    fake.params[1] = (dj_param_info){"", "", 64, 128, 64};
    fixture.driver->api.cuKernelGetParamInfo = NULL; /* before 12.4 */
    fixture.driver->api.cuLibraryGetKernelCount = NULL;
    fake.count = 0;
    expect_load();
    assert_int_equal(fixture.info.num_params, 2);
    assert_int_equal(fixture.info.params[1].size, 128);
    assert_int_equal(fixture.info.params[1].align, 64);
}

static void not_a_cubin(void **state)
{
    (void)state;
    fake.cubin_status = DJ_INVALID_ARGUMENT;
    expect_refusal(DJ_INCOMPATIBLE, "/cache/k.1/kernel.cubin: the bytes are PTX text, not a cubin");
    fake.cubin_status = DJ_NO_MEMORY;
    expect_refusal(DJ_NO_MEMORY, "/cache/k.1/kernel.cubin: ");
    fake.cubin_status = DJ_OK;
    assert_int_equal(fake.loads, 0);
    /* A caller who wants no words gets the same status. */
    static const char bytes[] = "cubin";
    const dj_binary binary = {bytes, sizeof bytes, NULL};
    fake.cubin_status = DJ_INVALID_ARGUMENT;
    assert_int_equal(
        dj__cuda_driver_ops.load(fixture.driver, &binary, &fixture.module, &fixture.info, NULL),
        DJ_INCOMPATIBLE);
}

static void not_one_kernel(void **state)
{
    (void)state;
    fake.num_kernels = 0;
    expect_refusal(DJ_INVALID_ARGUMENT, "expected exactly one kernel, found 0: define one with "
                                        "__global__");
    fake.num_kernels = 2;
    fake.kernels[0].name = "alpha";
    fake.kernels[1].name = "beta";
    expect_refusal(DJ_INVALID_ARGUMENT, "expected exactly one kernel, found 2: alpha, beta");
    assert_int_equal(fake.loads, 0);
}

static void wrong_architecture(void **state)
{
    (void)state;
    fake.count = 0;
    expect_refusal(DJ_INCOMPATIBLE,
                   "/cache/k.1/kernel.cubin: the driver (CUDA 13.0) does not run this binary for "
                   "architecture 80 on Fake 0 (architecture 90a): it finds no kernel for this "
                   "device in it; compile for the device's architecture (leave arch unset)");
    fake.count = 1;
    static const int results[] = {200, 209, 222};
    for (size_t i = 0; i < 3; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "(architecture 90a): CUDA_ERROR_OTHER (%d)", results[i]);
        fake.load_result = results[i];
        expect_refusal(DJ_INCOMPATIBLE, text);
        assert_int_equal(fixture.err.native, results[i]);
    }
    fake.load_result = 0;
    fake.function_result = 209; /* another device of this machine has found a kernel */
    expect_refusal(DJ_INCOMPATIBLE, "does not run this binary for architecture 80 on Fake 0");
}

static void right_architecture_too_new(void **state)
{
    (void)state;
    fake.major = 8; /* as the fake cubin */
    fake.load_result = 200;
    expect_refusal(DJ_INCOMPATIBLE, "update the driver, or compile with a CUDA toolkit that is not "
                                    "newer than it");
}

static void other_failures(void **state)
{
    (void)state;
    fake.load_result = 2;
    expect_refusal(DJ_NO_MEMORY, "/cache/k.1/kernel.cubin: cannot load the binary: ");
    fake.load_result = 700;
    expect_refusal(DJ_DEVICE, "cannot load the binary: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    fake.load_result = 0;
    fake.function_result = 2;
    expect_refusal(DJ_NO_MEMORY, "cannot load kernel 'scale' on Fake 0");
    fake.function_result = 0;
    expect_load();
}

/* ---- stream capture ---- */

static void under_capture(void **state)
{
    (void)state;
    fake.capturing = true;
    for (int mode = 0; mode < 3; mode++) {
        fake_mode = mode;
        expect_load();
        assert_int_equal(fake_mode, mode);
        unload();
        assert_int_equal(fake_mode, mode);
    }
    fake_mode = 0;
    assert_false(fake.capture_spoiled);
    assert_int_equal(fake.unloads, 3);
    fake.capturing = false;
}

static void unloading_waits_for_a_capture(void **state)
{
    (void)state;
    static const int results[] = {900, 906};
    for (size_t i = 0; i < 2; i++) {
        const int unloads = fake.unloads;
        fake.unload_result = results[i];
        for (int k = 0; k < 3; k++) {
            expect_load();
            unload();
        }
        assert_int_equal(fake.unloads, unloads);
        fake.unload_result = 0;
        expect_load(); /* unloads all three */
        assert_int_equal(fake.unloads, unloads + 3);
        unload();
        assert_int_equal(fake.unloads, unloads + 4);
    }
}

static void unloading_is_retried_by_unload_and_close(void **state)
{
    (void)state;
    expect_load();
    dj_module *first = fixture.module;
    expect_load();
    fake.unload_result = 900;
    dj__cuda_driver_ops.unload(fixture.driver, first);
    fake.unload_result = 0;
    unload();
    assert_int_equal(fake.unloads, 2);
    expect_load();
    fake.unload_result = 900;
    unload();
    fake.unload_result = 0;
    dj__cuda_driver_ops.close(fixture.driver);
    assert_int_equal(fake.unloads, 3);
    /* One that can never be unloaded is forgotten at the end. */
    dj__env_destroy(fixture.env);
    assert_int_equal(cuda_fixture_open(&fixture, NULL), DJ_OK);
    expect_load();
    fake.unload_result = 906;
    unload();
}

static void unloading_after_the_end(void **state)
{
    (void)state;
    static const int results[] = {DJ__CU_DEINITIALIZED, DJ__CU_CONTEXT_IS_DESTROYED, 700};
    for (size_t i = 0; i < 3; i++) {
        expect_load();
        fake.unload_result = results[i];
        unload();
        fake.unload_result = 0;
    }
    expect_load();
    assert_int_equal(fake.unloads, 0); /* none of them is tried again */
}

int main(void)
{
#define MODULE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        MODULE_TEST(loads),
        MODULE_TEST(parameters_by_the_driver),
        MODULE_TEST(parameters_by_the_cubin),
        MODULE_TEST(not_a_cubin),
        MODULE_TEST(not_one_kernel),
        MODULE_TEST(wrong_architecture),
        MODULE_TEST(right_architecture_too_new),
        MODULE_TEST(other_failures),
        MODULE_TEST(under_capture),
        MODULE_TEST(unloading_waits_for_a_capture),
        MODULE_TEST(unloading_is_retried_by_unload_and_close),
        MODULE_TEST(unloading_after_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
