/* SPDX-License-Identifier: MIT */
/*
 * Binaries that are none, memory that is not there, kernels that fault: a status and a message,
 * nothing lost, and the runtime goes on where the device can.
 */
#include "gpu_test.h"

static dj_stats stats_of(dj_runtime *runtime)
{
    dj_stats stats = DJ_STATS_INIT;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_runtime_stats(runtime, &stats, &err));
    return stats;
}

static void check_usable(dj_runtime *runtime)
{
    dj_kernel *const kernel = gpu_compile_in(runtime, "scale.cu", NULL);
    const int in_value = 2;
    int *const in = gpu_upload(&in_value, 4);
    int *const out = gpu_upload(NULL, 4);
    const int factor = 8;
    const int n = 1;
    const dj_launch_options shape = gpu_shape(1, 1);
    gpu_launch(kernel, &shape, DJ_ARGS(out, in, factor, n));
    int got = 0;
    gpu_download(&got, out, sizeof(got));
    CHECK_INT(got, 16);
    dj_kernel_release(kernel);
}

static dj_status try_compile(dj_runtime *runtime, const char *file,
                             const dj_compile_options *options, dj_error *err)
{
    char *const source = gpu_source(file);
    dj_kernel *kernel = NULL;
    memset(err, 0, sizeof(*err));
    const dj_status status =
        dj_compile(runtime, "bad", source, strlen(source), options, &kernel, err);
    free(source);
    CHECK((status == DJ_OK) == (kernel != NULL));
    dj_kernel_release(kernel);
    return status;
}

/* Hooks that leave something else where the cubin was. */
static void binaries_that_are_none(void)
{
    static const char *const hooks[] = {"hooks/garbage.py", "hooks/ptx.py", "hooks/truncated.py",
                                        "hooks/zeroed.py"};
    dj_config config = DJ_CONFIG_INIT;
    config.library_root = gpu_source_dir();
    dj_runtime *const runtime = gpu_new_runtime(&config);
    check_usable(runtime);
    const uint64_t loads = stats_of(runtime).loads;
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
        dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
        options.post_hook = hooks[i];
        for (int round = 0; round < 2; round++) { /* the second time perhaps from disk */
            dj_error err;
            const dj_status status = try_compile(runtime, "scale.cu", &options, &err);
            printf("    %s: %s: %s\n", hooks[i], dj_status_name(status), err.message);
            CHECK(status != DJ_OK && status != DJ_INTERNAL && status != DJ_DEVICE);
            CHECK(strstr(err.message, "cubin") != NULL || strstr(err.message, "CUBIN") != NULL);
        }
    }
    CHECK_INT(stats_of(runtime).loads, loads);
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.post_hook = "hooks/harmless.py";
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(try_compile(runtime, "scale.cu", &options, &err));
    CHECK_INT(stats_of(runtime).loads, loads + 1);
    check_usable(runtime);
    dj_runtime_release(runtime);
}

/* A good cubin of another architecture: it builds, and does not load here. */
static void wrong_architecture(void)
{
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.arch = gpu_device()->major >= 10 ? "90" : gpu_device()->major == 9 ? "100" : "90";
    dj_error err;
    const dj_status status = try_compile(gpu_runtime(), "scale.cu", &options, &err);
    printf("    %s: %s\n", dj_status_name(status), err.message);
    CHECK_INT(status, DJ_INCOMPATIBLE);
    CHECK(strstr(err.message, options.arch) != NULL);
    CHECK(strstr(err.message, gpu_device()->arch_number) != NULL);
    /* The entry is good; it is not thrown away. */
    CHECK_INT(stats_of(gpu_runtime()).healed, 0);
    char *const source = gpu_source("scale.cu");
    dj_artifact *artifact = NULL;
    CHECK_OK(dj_build(gpu_runtime(), "bad", source, strlen(source), &options, &artifact, &err));
    CHECK(dj_artifact_is_hit(artifact));
    dj_artifact_release(artifact);
    free(source);
    check_usable(gpu_runtime());
}

static void not_exactly_one_kernel(void)
{
    dj_error err;
    static const char *const files[] = {"none.cu", "two.cu"};
    for (int i = 0; i < 2; i++) {
        CHECK_ERROR(try_compile(gpu_runtime(), files[i], NULL, &err), DJ_INVALID_ARGUMENT,
                    "expected exactly one kernel");
        char *const source = gpu_source(files[i]);
        dj_artifact *artifact = NULL;
        CHECK_OK(dj_build(gpu_runtime(), "bad", source, strlen(source), NULL, &artifact, &err));
        dj_artifact_release(artifact);
        dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
        options.single_kernel = DJ_ON;
        artifact = NULL;
        CHECK_ERROR(
            dj_build(gpu_runtime(), "bad", source, strlen(source), &options, &artifact, &err),
            DJ_INVALID_ARGUMENT, "expected exactly one kernel");
        CHECK(artifact == NULL);
        free(source);
    }
    check_usable(gpu_runtime());
}

static void spill_checks(void)
{
    dj_cuda_compile_options cuda = DJ_CUDA_COMPILE_OPTIONS_INIT;
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.cuda = &cuda;
    dj_error err;
    cuda.check_no_spills = DJ_ON;
    CHECK_ERROR(try_compile(gpu_runtime(), "spill.cu", &options, &err), DJ_COMPILE,
                "register spills");
    CHECK_OK(try_compile(gpu_runtime(), "local.cu", &options, &err));
    CHECK_OK(try_compile(gpu_runtime(), "scale.cu", &options, &err));
    cuda.check_no_spills = DJ_OFF;
    cuda.check_no_local_memory = DJ_ON;
    CHECK_ERROR(try_compile(gpu_runtime(), "local.cu", &options, &err), DJ_COMPILE,
                "local memory usage");
    CHECK_OK(try_compile(gpu_runtime(), "scale.cu", &options, &err));
    CHECK_OK(try_compile(gpu_runtime(), "spill.cu", NULL, &err));
}

/* Takes the device's memory but for `leave` to 2 * `leave` bytes. */
static void fill_memory(size_t leave)
{
    const hand_driver *const driver = gpu_driver();
    uint64_t reserve = 0;
    CHECK_CU(driver->cuMemAlloc_v2(&reserve, leave));
    for (size_t size = (size_t)8 << 30; size >= (size_t)1 << 20; size /= 2) {
        for (;;) {
            size_t available = 0;
            size_t total = 0;
            uint64_t memory = 0;
            CHECK_CU(driver->cuMemGetInfo_v2(&available, &total));
            if (available < leave || driver->cuMemAlloc_v2(&memory, size) != 0) {
                break;
            }
        }
    }
    CHECK_CU(driver->cuMemFree_v2(reserve));
}

/* A kernel that needs 256 MiB where less is left. */
static void no_memory_while_loading(void)
{
    dj_kernel *const before = gpu_compile("scale.cu", NULL);
    fill_memory((size_t)96 << 20);
    dj_error err;
    dj_status status = try_compile(gpu_runtime(), "hungry.cu", NULL, &err);
    printf("    %s: %s\n", dj_status_name(status), err.message);
    CHECK(status == DJ_NO_MEMORY || status == DJ_DEVICE);
    CHECK_INT(err.native, 2);
    CHECK(strstr(err.message, "memory") != NULL);
    const dj_stats after = stats_of(gpu_runtime());
    CHECK_INT(after.healed, 0);
    status = try_compile(gpu_runtime(), "hungry.cu", NULL, &err);
    CHECK(status == DJ_NO_MEMORY || status == DJ_DEVICE);
    CHECK_INT(stats_of(gpu_runtime()).compiles, after.compiles); /* the entry is kept */
    void *memory = NULL;
    CHECK_ERROR(dj_mem_alloc(gpu_runtime(), (size_t)64 << 30, &memory, &err), DJ_NO_MEMORY,
                "memory");
    CHECK(memory == NULL);
    dj_kernel_release(before);
    check_usable(gpu_runtime());
}

/* A write to nowhere. The context is lost then, for ever: every call says so, none crashes. */
static void kernel_that_faults(void)
{
    dj_kernel *const kernel = gpu_compile("fault.cu", NULL);
    void *const nowhere = (void *)(uintptr_t)16;
    const dj_launch_options shape = gpu_shape(1, 1);
    gpu_launch(kernel, &shape, DJ_ARGS(nowhere));
    dj_error err = DJ_ERROR_INIT;
    dj_status status = dj_synchronize(gpu_runtime(), &err);
    printf("    %s %d: %s\n", dj_status_name(status), err.native, err.message);
    CHECK_INT(status, DJ_DEVICE);
    CHECK_INT(err.native, 700);
    CHECK(strstr(err.message, "ILLEGAL_ADDRESS") != NULL);
    void *memory = NULL;
    status = dj_mem_alloc(gpu_runtime(), 4, &memory, &err);
    CHECK_INT(status, DJ_DEVICE);
    CHECK(memory == NULL);
    status = dj_launch(kernel, &shape, DJ_ARGS(nowhere), &err);
    CHECK_INT(status, DJ_DEVICE);
    CHECK(err.native == 700 && err.message[0] != '\0');
    const dj_status compiled = try_compile(gpu_runtime(), "scale.cu", NULL, &err);
    printf("    afterwards: %s: %s\n", dj_status_name(compiled), err.message);
    CHECK(compiled == DJ_DEVICE || compiled == DJ_OK);
    CHECK(stats_of(gpu_runtime()).healed == 0);
    dj_kernel_release(kernel);
}

/* After a fault in another process this one works. */
static void fault_stays_in_its_process(void)
{
    check_usable(gpu_runtime());
}

static const gpu_case cases[] = {
    {"binaries_that_are_none", binaries_that_are_none, 0},
    {"wrong_architecture", wrong_architecture, 0},
    {"not_exactly_one_kernel", not_exactly_one_kernel, 0},
    {"spill_checks", spill_checks, 0},
    {"no_memory_while_loading", no_memory_while_loading, GPU_ALONE},
    {"kernel_that_faults", kernel_that_faults, GPU_ALONE},
    {"fault_stays_in_its_process", fault_stays_in_its_process, 0},
};
GPU_MAIN(cases)
