/* SPDX-License-Identifier: MIT */
/* link: -ldl */
/*
 * The driver fails at each of its calls in turn, has no memory, loses the device, refuses what is
 * good; compilers and hooks deliver what is not. Each time: a status, words, nothing left in the
 * driver, the entry as it was, and the same runtime works afterwards.
 */
#include "cuda_maker.h"

static const char good[] = "kernel scale 8:8 8:8 4:4\n";

static dj_status launch_scale(dj_kernel *kernel, dj_error *err)
{
    const dj_launch_options options = maker_one_thread();
    void *out = NULL;
    void *in = NULL;
    int n = 17;
    return dj_launch(kernel, &options, DJ_ARGS(out, in, n), err);
}

static void expect_working(dj_runtime *runtime)
{
    dj_error err = DJ_ERROR_INIT;
    dj_kernel *kernel = maker_kernel_of(runtime, good);
    if (launch_scale(kernel, &err) != DJ_OK) {
        fail_msg("%s", err.message);
    }
    dj_kernel_release(kernel);
}

/* ---- every call in turn ---- */

/* `*left`: memory that could not be freed, which is the caller's to try again. */
static dj_status all_steps(dj_runtime *runtime, void **left, dj_error *err)
{
    dj_device device = DJ_DEVICE_INIT;
    dj_kernel *kernel = NULL;
    void *memory = NULL;
    char text[16] = "fifteen letters";
    dj_status status = dj_device_info(runtime, &device, err);
    if (status == DJ_OK) {
        status = maker_try(runtime, good, &kernel, err);
    }
    if (status == DJ_OK) {
        status = dj_mem_alloc(runtime, sizeof(text), &memory, err);
    }
    if (status == DJ_OK) {
        status = dj_mem_copy(runtime, memory, text, sizeof(text), err);
    }
    if (status == DJ_OK) {
        status = launch_scale(kernel, err);
    }
    if (status == DJ_OK) {
        dj_launch_options options = maker_one_thread();
        void *none = NULL;
        int n = 0;
        options.shared_bytes = 100000;
        status = dj_launch(kernel, &options, DJ_ARGS(none, none, n), err);
    }
    if (status == DJ_OK) {
        status = dj_synchronize(runtime, err);
    }
    const dj_status freed = dj_mem_free(runtime, memory, status == DJ_OK ? err : NULL);
    *left = freed != DJ_OK ? memory : NULL;
    dj_kernel_release(kernel);
    return status == DJ_OK ? freed : status;
}

/* What must not fail for the driver to be clean afterwards. */
static bool cannot_be_clean(const char *call)
{
    return strcmp(call, "cuLibraryUnload") == 0 ||
           strcmp(call, "cuThreadExchangeStreamCaptureMode") == 0;
}

/* Calls whose failure the library can do without; those of a context that went are tried again. */
static bool may_be_overlooked(const char *call, int code)
{
    static const char *const calls[] = {"cuDriverGetVersion", "cuThreadExchangeStreamCaptureMode",
                                        "cuCtxGetCurrent",    "cuCtxGetDevice",
                                        "cuCtxGetId",         "cuKernelGetParamInfo",
                                        "cuLibraryUnload"};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(call, calls[i]) == 0) {
            return true;
        }
    }
    return code == 201 || code == 400;
}

static void restore_capture_mode(void)
{
    int mode = 0;
    assert_int_equal(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
}

/* False once fewer than `nth` calls are made. A sane result is OK or an error that gives the
 * number; a wrong argument of the caller it is not. */
static bool fail_nth(unsigned nth, int code)
{
    standin_cuda_live before;
    standin_cuda_live after;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_error err = DJ_ERROR_INIT;
    char name[64];
    cu.live_now(&before);
    cu.fail_call("*", nth, code);
    void *left = NULL;
    const dj_status status = all_steps(runtime, &left, &err);
    const bool fired = cu.fired(name) > 0;
    cu.reset();
    restore_capture_mode();
    (void)dj_mem_free(runtime, left, NULL); /* fails if it went with the device */
    if (fired && status != DJ_OK &&
        (err.native != code || status == DJ_INVALID_ARGUMENT || status == DJ_INTERNAL)) {
        fail_msg("call %u (%s), code %d: %s, native %d: %s", nth, name, code,
                 dj_status_name(status), err.native, err.message);
    }
    if (fired && status == DJ_OK && !may_be_overlooked(name, code)) {
        fail_msg("call %u (%s), code %d was overlooked", nth, name, code);
    }
    if (!fired && status != DJ_OK) {
        fail_msg("without a fault: %s", err.message);
    }
    expect_working(runtime);
    assert_int_equal(maker_entries(runtime), 1);
    dj_runtime_release(runtime);
    cu.live_now(&after);
    if (fired && cannot_be_clean(name)) {
        return true; /* what is left is counted into the next round's `before` */
    }
    if (after.libraries != before.libraries || after.allocations != before.allocations) {
        fail_msg("call %u (%s), code %d: %zu libraries and %zu allocations are left", nth, name,
                 code, after.libraries, after.allocations);
    }
    return fired;
}

static void every_call(int code)
{
    unsigned nth = 1;
    while (fail_nth(nth, code)) {
        nth++;
    }
    assert_in_range(nth, 30, 400);
}

static void every_call_fails_once(void **state)
{
    (void)state;
    every_call(999);
    every_call(2);
    every_call(201);
    every_call(400);
    every_call(719);
}

static int teardown_of_every_call(void **state)
{
    (void)state;
    return dj__remove_tree(maker.dir);
}

/* ---- memory and loss ---- */

static void no_memory_while_loading(void **state)
{
    (void)state;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    cu.fail_call("cuLibraryLoadData", 0, 2);
    maker_expect(maker_try(runtime, good, &kernel, &err), DJ_NO_MEMORY, &err,
                 "CUDA_ERROR_OUT_OF_MEMORY (2)");
    assert_null(kernel);
    assert_int_equal(maker_entries(runtime), 1);
    cu.reset();
    cu.fail_call("cuKernelGetFunction", 0, 2);
    maker_expect(maker_try(runtime, good, &kernel, &err), DJ_NO_MEMORY, &err, "kernel 'scale'");
    cu.reset();
    expect_working(runtime);
    assert_int_equal(atomic_load(&maker.compiles), 1); /* the entry was good all the time */
    dj_runtime_release(runtime);
}

static void no_memory_for_data(void **state)
{
    (void)state;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_error err = DJ_ERROR_INIT;
    void *memory = runtime;
    maker_expect(dj_mem_alloc(runtime, (size_t)1 << 50, &memory, &err), DJ_NO_MEMORY, &err,
                 "1125899906842624 bytes");
    assert_null(memory);
    assert_int_equal(dj_mem_alloc(runtime, 0, &memory, &err), DJ_OK);
    assert_int_equal(dj_mem_free(runtime, memory, &err), DJ_OK);
    maker_expect(dj_mem_free(runtime, memory, &err), DJ_DEVICE, &err, "CUDA_ERROR_INVALID_VALUE");
    assert_int_equal(dj_mem_free(runtime, NULL, &err), DJ_OK);
    dj_runtime_release(runtime);
}

static void device_is_lost(void **state)
{
    (void)state;
    static const int codes[] = {700, 702, 719};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        dj_runtime *runtime = maker_runtime(NULL);
        dj_kernel *kernel = maker_kernel_of(runtime, good);
        dj_kernel *other = NULL;
        void *memory = NULL;
        dj_error err = DJ_ERROR_INIT;
        char number[16];
        snprintf(number, sizeof(number), "(%d)", codes[i]);
        cu.fail_call("cuLaunchKernelEx", 1, codes[i]);
        maker_expect(launch_scale(kernel, &err), DJ_DEVICE, &err, number);
        assert_int_equal(err.native, codes[i]);
        maker_expect(launch_scale(kernel, &err), DJ_DEVICE, &err, "must be restarted");
        maker_expect(dj_synchronize(runtime, &err), DJ_DEVICE, &err, number);
        maker_expect(dj_mem_alloc(runtime, 8, &memory, &err), DJ_DEVICE, &err, number);
        maker_expect(maker_try(runtime, "kernel other 4\n", &other, &err), DJ_DEVICE, &err, number);
        dj_kernel_release(kernel);
        dj_runtime_release(runtime);
        cu.reset(); /* a new process */
        runtime = maker_runtime(NULL);
        expect_working(runtime);
        assert_int_equal(maker_entries(runtime), 2);
        dj_runtime_release(runtime);
    }
    assert_int_equal(atomic_load(&maker.compiles), 2);
}

/* ---- a driver that refuses ---- */

static void driver_refuses_a_good_cubin(void **state)
{
    (void)state;
    static const int codes[] = {200, 209, 222};
    dj_runtime *runtime = maker_runtime(NULL);
    expect_working(runtime);
    dj_runtime_release(runtime);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        runtime = maker_runtime(NULL);
        atomic_store(&maker.compiles, 0);
        dj_kernel *kernel = NULL;
        dj_error err = DJ_ERROR_INIT;
        cu.fail_call("cuLibraryLoadData", 0, codes[i]);
        maker_expect(maker_try(runtime, good, &kernel, &err), DJ_INCOMPATIBLE, &err, "CUDA 13.0");
        maker_expect(DJ_INCOMPATIBLE, DJ_INCOMPATIBLE, &err, "cubin maker 9.9");
        assert_null(kernel);
        assert_int_equal(atomic_load(&maker.compiles), 1);
        assert_int_equal(maker_entries(runtime), 1);
        cu.reset();
        expect_working(runtime);
        assert_int_equal(atomic_load(&maker.compiles), 1);
        assert_int_equal(maker_stats(runtime).healed, 0);
        dj_runtime_release(runtime);
    }
}

static void driver_refuses_once(void **state)
{
    (void)state;
    dj_runtime *runtime = maker_runtime(NULL);
    expect_working(runtime);
    dj_runtime_release(runtime);
    runtime = maker_runtime(NULL);
    cu.fail_call("cuLibraryLoadData", 1, 200);
    expect_working(runtime);
    assert_int_equal(atomic_load(&maker.compiles), 2);
    assert_int_equal(maker_entries(runtime), 1);
    dj_runtime_release(runtime);
}

static void driver_finds_no_kernel(void **state)
{
    (void)state;
    dj_runtime *runtime = maker_runtime(NULL);
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    cu.fail_call("cuLibraryGetKernel", 0, 500);
    maker_expect(maker_try(runtime, good, &kernel, &err), DJ_INCOMPATIBLE, &err, "CUDA 13.0");
    cu.reset();
    expect_working(runtime);
    dj_runtime_release(runtime);
}

/* ---- binaries that are none ---- */

static void compiler_delivers(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        dj_status status;
        const char *text;
    } bad[] = {
        {"kernel k 8\ndeliver garbage\n", DJ_INCOMPATIBLE, "kernel.cubin"},
        {"kernel k 8\ndeliver zeros\n", DJ_INCOMPATIBLE, "kernel.cubin"},
        {"kernel k 8\ndeliver truncated\n", DJ_INCOMPATIBLE, "kernel.cubin"},
        {"kernel k 8\ndeliver ptx\n", DJ_INCOMPATIBLE, "PTX"},
        {"kernel k 8\narch 80\n", DJ_INCOMPATIBLE, "architecture 80"},
        {"kernel k 8\narch 100f\n", DJ_INCOMPATIBLE, "architecture 100f"},
        {"no kernel at all\n", DJ_INVALID_ARGUMENT, "expected exactly one kernel, found 0"},
        {"kernel b 8\nkernel a 4\n", DJ_INVALID_ARGUMENT,
         "expected exactly one kernel, found 2: a, b"},
    };
    dj_runtime *runtime = maker_runtime(NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dj_kernel *kernel = NULL;
        dj_error err = DJ_ERROR_INIT;
        maker_expect(maker_try(runtime, bad[i].source, &kernel, &err), bad[i].status, &err,
                     bad[i].text);
        assert_null(kernel);
        expect_working(runtime);
    }
    assert_int_equal(maker_stats(runtime).loads, 1);
    dj_runtime_release(runtime);
}

static void compiler_delivers_nothing(void **state)
{
    (void)state;
    static const char *const sources[] = {"kernel k 8\ndeliver empty\n",
                                          "kernel k 8\ndeliver nothing\n"};
    dj_runtime *runtime = maker_runtime(NULL);
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        dj_kernel *kernel = NULL;
        dj_error err = DJ_ERROR_INIT;
        assert_int_not_equal(maker_try(runtime, sources[i], &kernel, &err), DJ_OK);
        assert_null(kernel);
        assert_true(err.message[0] != '\0');
        assert_int_equal(maker_entries(runtime), 0);
    }
    expect_working(runtime);
    dj_runtime_release(runtime);
}

static void hook_delivers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } bad[] = {
        {"open(sys.argv[1], 'wb').write(b'garbage, more garbage')\n", "kernel.cubin"},
        {"d = open(sys.argv[1], 'rb').read(); open(sys.argv[1], 'wb').write(d[:len(d) // 2])\n",
         "kernel.cubin"},
        {"open(sys.argv[1], 'wb').write(b'.version 8.0\\n.target sm_90\\n')\n", "PTX"},
        {"f = open(sys.argv[1], 'r+b'); f.write(b'HOOK')\n", "kernel.cubin"},
    };
    dj_config config = DJ_CONFIG_INIT;
    config.library_root = maker.dir;
    dj_runtime *runtime = maker_runtime(&config);
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.post_hook = "hook.py";
    char path[128];
    snprintf(path, sizeof(path), "%s/hook.py", maker.dir);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fprintf(file, "import sys\n%s", bad[i].text) > 0);
        assert_int_equal(fclose(file), 0);
        dj_kernel *kernel = NULL;
        dj_error err = DJ_ERROR_INIT;
        maker_expect(dj_compile(runtime, "t", good, strlen(good), &options, &kernel, &err),
                     DJ_COMPILE, &err, bad[i].message);
        assert_non_null(strstr(err.message, "post hook hook.py did not leave a valid"));
        assert_null(kernel);
        assert_int_equal(maker_entries(runtime), 0); /* good for nobody: not published */
    }
    expect_working(runtime); /* without the hook */
    dj_runtime_release(runtime);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, maker_setup, maker_teardown)
    const struct CMUnitTest tests[] = {
        TEST(no_memory_while_loading),
        TEST(no_memory_for_data),
        TEST(device_is_lost),
        TEST(driver_refuses_a_good_cubin),
        TEST(driver_refuses_once),
        TEST(driver_finds_no_kernel),
        TEST(compiler_delivers),
        TEST(compiler_delivers_nothing),
        TEST(hook_delivers),
        /* last, since it leaves in the driver what could not be removed */
        cmocka_unit_test_setup_teardown(every_call_fails_once, maker_setup, teardown_of_every_call),
    };
    return cmocka_run_group_tests_name("CUDA: faults", tests, maker_group, NULL);
}
