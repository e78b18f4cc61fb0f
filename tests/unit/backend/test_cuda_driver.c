/* SPDX-License-Identifier: MIT */
/* link: -Wl,--wrap=dj__cubin_read,--wrap=dj__cubin_fini */
/* Devices, contexts, memory, and what experts ask for. */
#include "cuda_fake.h"

#include <sys/wait.h>
#include <unistd.h>

static cuda_fixture fixture;

static int setup(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cuda_fixture_stop(&fixture);
    return 0;
}

static void start(const char *variable)
{
    if (cuda_fixture_open(&fixture, variable) != DJ_OK) {
        fail_msg("%s", fixture.err.message);
    }
}

/* ---- devices ---- */

static void describes_devices(void **state)
{
    (void)state;
    start(NULL);
    dj_cuda_device device = DJ_CUDA_DEVICE_INIT;
    assert_int_equal(dj__cuda_describe(fixture.driver, 1, &device, &fixture.err), DJ_OK);
    assert_int_equal(device.size, sizeof device);
    assert_int_equal(device.ordinal, 1);
    assert_string_equal(device.name, "Fake 1");
    assert_int_equal(device.major, 9);
    assert_int_equal(device.uuid[15], 41);
    assert_int_equal(device.memory_bytes, (uint64_t)41 << 30);
    assert_int_equal(device.multiprocessors, 132);
    assert_int_equal(device.clock_khz, 1980000);
    assert_int_equal(device.max_block[2], 64);
    assert_int_equal(device.max_grid[1], 65535);
    assert_int_equal(device.shared_bytes, 49152);
    assert_int_equal(device.shared_optin_bytes, FAKE_OPTIN);
    assert_int_equal(device.shared_reserved_bytes, FAKE_RESERVED);
    assert_int_equal(device.cooperative_launch, 1);
    assert_int_equal(device.driver_version, 13000);
    assert_int_equal(device.multiprocessor_registers, 0); /* which the fake does not know */
    assert_int_equal(dj__cuda_describe(fixture.driver, -1, &device, &fixture.err), DJ_OK);
    assert_int_equal(device.ordinal, 0);
    assert_int_equal(dj__cuda_describe(fixture.driver, 2, &device, &fixture.err), DJ_NOT_FOUND);
    cuda_fixture_says(&fixture,
                      "there is no CUDA device 2: the devices of this process are 0 to 1");
    assert_int_equal(dj__cuda_describe(fixture.driver, -2, &device, &fixture.err), DJ_NOT_FOUND);
    assert_int_equal(fake.retains, 0); /* no context is made for this */
}

static void architectures(void **state)
{
    (void)state;
    static const struct {
        int major, minor;
        const char *arch, *number, *exact;
    } cases[] = {{7, 5, "75", "75", "75"},
                 {8, 9, "89", "89", "89"},
                 {9, 0, "90a", "90", "90a"},
                 {10, 0, "100f", "100", "100a"},
                 {12, 1, "121f", "121", "121a"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake.major = cases[i].major;
        fake.minor = cases[i].minor;
        dj_cuda_device device = DJ_CUDA_DEVICE_INIT;
        start(NULL);
        assert_int_equal(dj__cuda_describe(fixture.driver, 0, &device, &fixture.err), DJ_OK);
        assert_string_equal(device.arch, cases[i].arch);
        assert_string_equal(device.arch_number, cases[i].number);
        assert_string_equal(device.arch_exact, cases[i].exact);
        if (i + 1 < sizeof cases / sizeof cases[0]) {
            cuda_fixture_stop(&fixture);
        }
    }
}

static void device_info(void **state)
{
    (void)state;
    start("DJ_JIT_CUDA_DEVICE=1");
    dj_device device = DJ_DEVICE_INIT;
    assert_int_equal(dj__cuda_driver_ops.device_info(fixture.driver, &device, &fixture.err), DJ_OK);
    assert_int_equal(device.size, sizeof device);
    assert_string_equal(device.name, "Fake 1");
    assert_string_equal(device.arch, "90a");
    assert_int_equal(device.compute_units, 132);
    assert_int_equal(device.max_block_threads, 1024);
    assert_int_equal(device.max_block[2], 64);
    assert_int_equal(device.max_grid[0], 2147483647);
    assert_int_equal(device.max_shared_bytes, FAKE_OPTIN);
    assert_int_equal(device.memory_bytes, (uint64_t)41 << 30);
    assert_int_equal(device.cache_bytes, 50 << 20);
    assert_int_equal(device.clock_hz, 1980000000);
}

static void device_attributes(void **state)
{
    (void)state;
    start(NULL);
    int value = -1;
    assert_int_equal(
        dj__cuda_device_attribute(fixture.driver, -1, DJ__CU_DEV_WARP_SIZE, &value, &fixture.err),
        DJ_OK);
    assert_int_equal(value, 32);
    assert_int_equal(dj__cuda_device_attribute(fixture.driver, 0, 9999, &value, &fixture.err),
                     DJ_INVALID_ARGUMENT);
    cuda_fixture_says(&fixture, "the driver (CUDA 13.0) knows no device attribute 9999");
    assert_int_equal(value, 0);
    assert_int_equal(dj__cuda_device_attribute(fixture.driver, 5, 1, &value, &fixture.err),
                     DJ_NOT_FOUND);
}

/* The setting, else the device of the opening thread's context, else the first. */
static void choice_of_the_device(void **state)
{
    (void)state;
    start(NULL);
    assert_int_equal(fixture.driver->ordinal, 0);
    cuda_fixture_stop(&fixture);
    atomic_store(&fake.contexts[1].alive, true);
    fake_current = 2;
    start(NULL);
    assert_int_equal(fixture.driver->ordinal, 1);
    cuda_fixture_stop(&fixture);
    start("DJ_JIT_CUDA_DEVICE=0");
    assert_int_equal(fixture.driver->ordinal, 0);
    cuda_fixture_stop(&fixture);
    fake_current = 0;

    static const struct {
        const char *variable;
        dj_status status;
        const char *text;
    } bad[] = {
        {"DJ_JIT_CUDA_DEVICE=2", DJ_UNAVAILABLE,
         "DJ_JIT_CUDA_DEVICE is 2, but the devices of this process are 0 to 1"},
        {"DJ_JIT_CUDA_DEVICE=-1", DJ_INVALID_ARGUMENT, "DJ_JIT_CUDA_DEVICE: -1"},
        {"DJ_JIT_CUDA_DEVICE=x", DJ_INVALID_ARGUMENT, "DJ_JIT_CUDA_DEVICE: x"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(cuda_fixture_open(&fixture, bad[i].variable), bad[i].status);
        assert_null(fixture.driver);
        cuda_fixture_says(&fixture, bad[i].text);
        dj__env_destroy(fixture.env);
    }
    fake.devices = 0;
    assert_int_equal(cuda_fixture_open(&fixture, NULL), DJ_UNAVAILABLE);
    cuda_fixture_says(&fixture, "no CUDA device");
    dj__env_destroy(fixture.env);
    fake.devices = FAKE_DEVICES;
    start(NULL);
}

/* ---- contexts and memory ---- */

static void primary_context_of_the_chosen_device(void **state)
{
    (void)state;
    start("DJ_JIT_CUDA_DEVICE=1");
    assert_int_equal(dj__cuda_driver_ops.synchronize(fixture.driver, &fixture.err), DJ_OK);
    assert_int_equal(fake_current, 2);
    assert_int_equal(fake.retains, 1);
    fake_current = 0;
    assert_int_equal(dj__cuda_driver_ops.synchronize(fixture.driver, &fixture.err), DJ_OK);
    assert_int_equal(fake.retains, 1);
    assert_int_equal(fake.set_currents, 2);
    /* A context that is there is left alone. */
    atomic_store(&fake.contexts[2].alive, true);
    fake_current = 3;
    assert_int_equal(dj__cuda_driver_ops.synchronize(fixture.driver, &fixture.err), DJ_OK);
    assert_int_equal(fake_current, 3);
    assert_int_equal(fake.set_currents, 2);
}

static void memory(void **state)
{
    (void)state;
    const dj_driver_ops *ops = &dj__cuda_driver_ops;
    char text[16] = "fifteen letters";
    char back[16] = "";
    void *first = NULL;
    void *second = NULL;
    start(NULL);
    fake.capturing = true; /* by another thread: no reason to fail */
    assert_int_equal(ops->mem_alloc(fixture.driver, sizeof text, &first, &fixture.err), DJ_OK);
    assert_int_equal(ops->mem_alloc(fixture.driver, 0, &second, &fixture.err), DJ_OK);
    assert_non_null(second);
    assert_int_equal(ops->mem_free(fixture.driver, second, &fixture.err), DJ_OK);
    assert_int_equal(ops->mem_alloc(fixture.driver, sizeof text, &second, &fixture.err), DJ_OK);
    assert_int_equal(ops->mem_copy(fixture.driver, first, text, sizeof text, &fixture.err), DJ_OK);
    assert_int_equal(ops->mem_copy(fixture.driver, second, first, sizeof text, &fixture.err),
                     DJ_OK);
    assert_int_equal(ops->mem_copy(fixture.driver, back, second, sizeof text, &fixture.err), DJ_OK);
    assert_string_equal(back, text);
    assert_int_equal(fake.syncs, 3); /* each copy is complete when the call returns */
    assert_int_equal(ops->mem_free(fixture.driver, first, &fixture.err), DJ_OK);
    assert_int_equal(ops->mem_free(fixture.driver, second, &fixture.err), DJ_OK);
    assert_int_equal(ops->mem_free(fixture.driver, NULL, &fixture.err), DJ_OK);
    assert_false(fake.capture_spoiled);
    fake.capturing = false;

    first = &fixture;
    assert_int_equal(ops->mem_alloc(fixture.driver, (size_t)1 << 41, &first, &fixture.err),
                     DJ_NO_MEMORY);
    assert_null(first);
    cuda_fixture_says(&fixture, "cannot allocate 2199023255552 bytes on CUDA device 0");
    assert_int_equal(fixture.err.native, DJ__CU_OUT_OF_MEMORY);
}

/* Ours is brought back; another's is not ours to replace. */
static void contexts_that_are_gone(void **state)
{
    (void)state;
    const dj_driver_ops *ops = &dj__cuda_driver_ops;
    void *block = NULL;
    start(NULL);
    assert_int_equal(ops->synchronize(fixture.driver, &fixture.err), DJ_OK);
    atomic_store(&fake.contexts[0].alive, false);
    assert_int_equal(ops->mem_alloc(fixture.driver, 16, &block, &fixture.err), DJ_OK);
    assert_int_equal(ops->mem_free(fixture.driver, block, &fixture.err), DJ_OK);
    assert_int_equal(fake.retains, 2);
    atomic_store(&fake.contexts[0].alive, false);
    assert_int_equal(ops->synchronize(fixture.driver, &fixture.err), DJ_OK);
    assert_int_equal(fake.retains, 3);

    fake_current = 3; /* never alive */
    assert_int_equal(ops->synchronize(fixture.driver, &fixture.err), DJ_DEVICE);
    cuda_fixture_says(&fixture, "waiting for CUDA device 0 failed");
    cuda_fixture_says(&fixture, "the context that is current in this thread was destroyed");
    assert_int_equal(fake.retains, 3);
    assert_int_equal(fake_current, 3);
}

/* ---- for experts ---- */

static void handles_and_attributes(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    dj_driver *driver = fixture.driver;
    dj_cuda_handles handles = DJ_CUDA_HANDLES_INIT;
    assert_int_equal(dj__cuda_handles(driver, fixture.module, &handles, &fixture.err), DJ_OK);
    assert_int_equal((uintptr_t)handles.library, 0x1000);
    assert_ptr_equal(handles.kernel, &fake.kernels);
    assert_ptr_equal(handles.function, &fake.functions[0]);
    /* A reset context is noticed. */
    atomic_store(&fake.functions[0].valid, false);
    assert_int_equal(dj__cuda_handles(driver, fixture.module, &handles, &fixture.err), DJ_OK);
    assert_ptr_equal(handles.function, &fake.functions[1]);

    int value = -1;
    assert_int_equal(dj__cuda_kernel_attribute(driver, fixture.module, DJ__CU_FUNC_NUM_REGS, &value,
                                               &fixture.err),
                     DJ_OK);
    assert_int_equal(value, 40);
    assert_int_equal(dj__cuda_kernel_attribute(driver, fixture.module, 99, &value, &fixture.err),
                     DJ_INVALID_ARGUMENT);
    cuda_fixture_says(&fixture, "kernel 'scale': cannot get function attribute 99");
    assert_int_equal(value, 0);
    assert_int_equal(dj__cuda_kernel_set_attribute(driver, fixture.module, 99, 1, &fixture.err),
                     DJ_INVALID_ARGUMENT);
    assert_int_equal(fixture.err.status, DJ_INVALID_ARGUMENT);
}

/* Whoever lowers what launches have raised does not break them. */
static void lowered_shared_memory(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    const cuda_call call = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared = 60000};
    assert_int_equal(cuda_fixture_launch(&fixture, &call), DJ_OK);
    assert_int_equal(dj__cuda_kernel_set_attribute(fixture.driver, fixture.module,
                                                   DJ__CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024,
                                                   &fixture.err),
                     DJ_OK);
    assert_int_equal(cuda_fixture_launch(&fixture, &call), DJ_OK);
    assert_int_equal(fake.functions[0].shared_allowed, 60000);
}

static void occupancy(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    const dj_launch_options none = DJ_LAUNCH_OPTIONS_INIT;
    dj_launch_config config = {
        .grid = {12, 1, 1}, .block = {128, 2, 1}, .call = &options, .defaults = &none};
    int blocks = -1;
    int clusters = -1;
    assert_int_equal(dj__cuda_occupancy(fixture.driver, fixture.module, &config, &blocks, &clusters,
                                        &fixture.err),
                     DJ_OK);
    assert_int_equal(blocks, 8);
    assert_int_equal(clusters, 0);
    cuda.cluster.x = 4;
    options.cuda = &cuda;
    config.shared_bytes = 120000;
    assert_int_equal(dj__cuda_occupancy(fixture.driver, fixture.module, &config, &blocks, &clusters,
                                        &fixture.err),
                     DJ_OK);
    assert_int_equal(blocks, 1);
    assert_int_equal(clusters, 33);
    assert_int_equal(fake.set_value, 120000);
    options.cuda = NULL;
    fixture.module->cluster[0] = 2; /* as compiled */
    assert_int_equal(dj__cuda_occupancy(fixture.driver, fixture.module, &config, &blocks, &clusters,
                                        &fixture.err),
                     DJ_OK);
    assert_int_equal(clusters, 7);
    config.block.x = 2000;
    assert_int_equal(dj__cuda_occupancy(fixture.driver, fixture.module, &config, &blocks, &clusters,
                                        &fixture.err),
                     DJ_INVALID_ARGUMENT);
    assert_int_equal(blocks, 0);
    assert_int_equal(fake.launches, 0);
}

static void globals(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    void *address = NULL;
    size_t size = 0;
    assert_int_equal(
        dj__cuda_global(fixture.driver, fixture.module, "table", &address, &size, &fixture.err),
        DJ_OK);
    assert_int_equal((uintptr_t)address, 0x7000);
    assert_int_equal(size, 48);
    assert_int_equal(
        dj__cuda_global(fixture.driver, fixture.module, "tables", &address, &size, &fixture.err),
        DJ_NOT_FOUND);
    cuda_fixture_says(&fixture, "kernel 'scale': its binary has no variable 'tables'");
    assert_null(address);
    assert_int_equal(size, 0);
}

static void symbols(void **state)
{
    (void)state;
    start(NULL);
    void *symbol = NULL;
    assert_int_equal(dj__cuda_symbol(fixture.driver, "cuEncode", 12000, &symbol, &fixture.err),
                     DJ_OK);
    assert_ptr_equal(symbol, &fake);
    assert_int_equal(dj__cuda_symbol(fixture.driver, "cuEncode", 11080, &symbol, &fixture.err),
                     DJ_NOT_FOUND);
    assert_null(symbol);
    cuda_fixture_says(&fixture, "'cuEncode' is newer than the CUDA version asked for (11.8)");
    assert_int_equal(dj__cuda_symbol(fixture.driver, "cuNone", 12000, &symbol, &fixture.err),
                     DJ_NOT_FOUND);
    cuda_fixture_says(&fixture, "the driver (CUDA 13.0) has no function 'cuNone' of CUDA 12.0");
    assert_int_equal(dj__cuda_symbol(fixture.driver, "cuNone", -1, &symbol, &fixture.err),
                     DJ_INVALID_ARGUMENT);
    /* Version 0 is a look into the library; the fake's handle is NULL, the program itself. */
    assert_int_equal(dj__cuda_symbol(fixture.driver, "malloc", 0, &symbol, &fixture.err), DJ_OK);
    assert_non_null(symbol);
    assert_int_equal(dj__cuda_symbol(fixture.driver, "cuNone", 0, &symbol, &fixture.err),
                     DJ_NOT_FOUND);
    cuda_fixture_says(&fixture, "fake (CUDA 13.0) exports no symbol 'cuNone'");
    fixture.driver->api.cuGetProcAddress = NULL;
    assert_int_equal(dj__cuda_symbol(fixture.driver, "cuEncode", 12000, &symbol, &fixture.err),
                     DJ_INCOMPATIBLE);
    cuda_fixture_says(&fixture, "cuGetProcAddress_v2 needs driver 12.0 or newer");
}

/* In a child nothing of the driver is touched any more; memory is freed all the same. */
static void close_after_fork(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    dj_module *first = fixture.module;
    assert_int_equal(cuda_fixture_load(&fixture), DJ_OK);
    fake.unload_result = 900;
    dj__cuda_driver_ops.unload(fixture.driver, first); /* now it waits */
    fake.unload_result = 0;
    assert_int_equal(fake.unloads, 0);
    const pid_t child = fork();
    if (child == 0) {
        dj__cuda_driver_ops.unload(fixture.driver, fixture.module);
        dj__cuda_driver_ops.close(fixture.driver);
        _exit(fake.unloads);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define DRIVER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        DRIVER_TEST(describes_devices),
        DRIVER_TEST(architectures),
        DRIVER_TEST(device_info),
        DRIVER_TEST(device_attributes),
        DRIVER_TEST(choice_of_the_device),
        DRIVER_TEST(primary_context_of_the_chosen_device),
        DRIVER_TEST(memory),
        DRIVER_TEST(contexts_that_are_gone),
        DRIVER_TEST(handles_and_attributes),
        DRIVER_TEST(lowered_shared_memory),
        DRIVER_TEST(occupancy),
        DRIVER_TEST(globals),
        DRIVER_TEST(symbols),
        DRIVER_TEST(close_after_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
