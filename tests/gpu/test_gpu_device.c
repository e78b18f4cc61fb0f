/* SPDX-License-Identifier: MIT */
/* What is said about devices agrees with the driver; entry points by name; architectures. */
#include "gpu_test.h"

static int attribute(int number)
{
    int value = -1;
    CHECK_CU(gpu_driver()->cuDeviceGetAttribute(&value, number, gpu_device()->ordinal));
    return value;
}

static void all_getters(void)
{
    const dj_cuda_device *const device = gpu_device();
    const struct {
        long long got;
        int number;
    } same[] = {
        {device->max_block_threads, 1},
        {device->max_block[0], 2},
        {device->max_block[1], 3},
        {device->max_block[2], 4},
        {device->max_grid[0], 5},
        {device->max_grid[1], 6},
        {device->max_grid[2], 7},
        {device->shared_bytes, 8},
        {device->warp_size, 10},
        {device->block_registers, 12},
        {device->clock_khz, 13},
        {device->multiprocessors, 16},
        {device->l2_bytes, 38},
        {device->max_multiprocessor_threads, 39},
        {device->major, 75},
        {device->minor, 76},
        {device->shared_multiprocessor_bytes, 81},
        {device->multiprocessor_registers, 82},
        {device->cooperative_launch, 95},
        {device->shared_optin_bytes, 97},
        {device->max_multiprocessor_blocks, 106},
        {device->shared_reserved_bytes, 111},
        {device->cluster_launch, 120},
    };
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        CHECK_INT(same[i].got, attribute(same[i].number));
        int value = -1;
        dj_error err = DJ_ERROR_INIT;
        CHECK_OK(dj_cuda_device_attribute(gpu_runtime(), -1, same[i].number, &value, &err));
        CHECK_INT(value, same[i].got);
    }
    CHECK(device->name[0] != '\0' && device->memory_bytes > 0 && device->multiprocessors > 0);
    int version = 0;
    CHECK_CU(gpu_driver()->cuDriverGetVersion(&version));
    CHECK_INT(device->driver_version, version);
    uint8_t bits = 0;
    for (int i = 0; i < 16; i++) {
        bits |= device->uuid[i];
    }
    CHECK(bits != 0);
}

/* "90", "90a", "100f": plain below 9, `a` for 9, the family's suffix above. */
static void architecture_names(void)
{
    const dj_cuda_device *const device = gpu_device();
    char number[16];
    char usual[24];
    char exact[24];
    snprintf(number, sizeof(number), "%d", 10 * device->major + device->minor);
    snprintf(usual, sizeof(usual), "%s%s", number,
             device->major > 9    ? "f"
             : device->major == 9 ? "a"
                                  : "");
    snprintf(exact, sizeof(exact), "%s%s", number, device->major >= 9 ? "a" : "");
    CHECK(strcmp(device->arch_number, number) == 0);
    CHECK(strcmp(device->arch, usual) == 0);
    CHECK(strcmp(device->arch_exact, exact) == 0);
    dj_device common = DJ_DEVICE_INIT;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_device_info(gpu_runtime(), &common, &err));
    CHECK(strcmp(common.arch, usual) == 0);
    CHECK(strcmp(common.name, device->name) == 0);
    CHECK_INT(common.compute_units, device->multiprocessors);
    CHECK_INT(common.max_shared_bytes, device->shared_optin_bytes);
    CHECK_INT(common.memory_bytes, device->memory_bytes);
    CHECK_INT(common.clock_hz, 1000LL * device->clock_khz);
    CHECK_INT(common.cache_bytes, device->l2_bytes);
}

/* Each name of this device's architecture compiles, launches and stands in meta.json. */
static void architectures_by_name(void)
{
    const char *const names[] = {gpu_device()->arch_number, gpu_device()->arch_exact};
    const int in_value = 6;
    int *const in = gpu_upload(&in_value, 4);
    int *const out = gpu_upload(NULL, 4);
    const int factor = 7;
    const int n = 1;
    for (int i = 0; i < 2; i++) {
        dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
        options.arch = names[i];
        dj_kernel *const kernel = gpu_compile("scale.cu", &options);
        const dj_launch_options shape = gpu_shape(1, 1);
        gpu_launch(kernel, &shape, DJ_ARGS(out, in, factor, n));
        int got = 0;
        gpu_download(&got, out, sizeof(got));
        CHECK_INT(got, 42);
        char path[4300];
        char meta[16384] = {0};
        char want[64];
        snprintf(path, sizeof(path), "%s/meta.json", dj_kernel_path(kernel));
        FILE *const file = fopen(path, "rb");
        CHECK(file != NULL);
        CHECK(fread(meta, 1, sizeof(meta) - 1, file) > 0);
        fclose(file);
        snprintf(want, sizeof(want), "\"arch\":\"%s\"", names[i]);
        size_t length = 0;
        for (const char *from = meta; *from != '\0'; from++) {
            meta[length] = *from;
            length += *from != ' ' && *from != '\n';
        }
        meta[length] = '\0';
        CHECK(strstr(meta, want) != NULL);
        dj_kernel_release(kernel);
    }
}

static void devices_that_are_not_there(void)
{
    dj_cuda_device device = DJ_CUDA_DEVICE_INIT;
    dj_error err;
    CHECK_ERROR(dj_cuda_device_info(gpu_runtime(), 4096, &device, &err), DJ_NOT_FOUND, "4096");
    int value = 0;
    CHECK_ERROR(dj_cuda_device_attribute(gpu_runtime(), 4096, 16, &value, &err), DJ_NOT_FOUND,
                "4096");
    CHECK(dj_cuda_device_attribute(gpu_runtime(), -1, 99999, &value, &err) != DJ_OK);
    CHECK(dj_cuda_device_info(gpu_runtime(), gpu_device()->ordinal, &device, &err) == DJ_OK);
    CHECK(strcmp(device.name, gpu_device()->name) == 0);
}

/* A second device, where there is one, runs the same kernel when its context is current. */
static void every_device(void)
{
    const hand_driver *const driver = gpu_driver();
    int count = 0;
    CHECK_CU(driver->cuDeviceGetCount(&count));
    if (count < 2) {
        gpu_skip("there is one device");
    }
    dj_kernel *const kernel = gpu_compile("scale.cu", NULL);
    const char *const arch = gpu_device()->arch;
    for (int i = 0; i < count; i++) {
        dj_cuda_device device = DJ_CUDA_DEVICE_INIT;
        dj_error err = DJ_ERROR_INIT;
        CHECK_OK(dj_cuda_device_info(gpu_runtime(), i, &device, &err));
        if (strcmp(device.arch, arch) != 0) {
            continue;
        }
        void *context = NULL;
        CHECK_CU(driver->cuDevicePrimaryCtxRetain(&context, i));
        CHECK_CU(driver->cuCtxSetCurrent(context));
        uint64_t memory = 0;
        const int values[2] = {0, 10 + i};
        CHECK_CU(driver->cuMemAlloc_v2(&memory, sizeof(values)));
        CHECK_CU(driver->cuMemcpyHtoD_v2(memory, values, sizeof(values)));
        const uint64_t in = memory + 4;
        const int factor = 2;
        const int n = 1;
        const dj_launch_options shape = gpu_shape(1, 1);
        gpu_launch(kernel, &shape, DJ_ARGS(memory, in, factor, n));
        int got = 0;
        CHECK_CU(driver->cuMemcpyDtoH_v2(&got, memory, 4));
        CHECK_INT(got, 2 * (10 + i));
    }
    dj_kernel_release(kernel);
}

static void entry_points(void)
{
    void *function = NULL;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_cuda_symbol(gpu_runtime(), "cuMemAlloc", 12000, &function, &err));
    CHECK(function != NULL);
    static const char *const names[] = {
        "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate",    "cuMemExportToShareableHandle",
        "cuMemGetAccess",      "cuMemMap",         "cuMemRelease",   "cuMemSetAccess",
        "cuMemUnmap",          "cuDeviceGet",      "cuGetErrorName", "cuGetErrorString"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CHECK_OK(dj_cuda_symbol(gpu_runtime(), names[i], 0, &function, &err));
        CHECK(function != NULL);
    }
    CHECK_ERROR(dj_cuda_symbol(gpu_runtime(), "cuNoSuchCall", 0, &function, &err), DJ_NOT_FOUND,
                "cuNoSuchCall");
    CHECK(function == NULL);
    CHECK_ERROR(dj_cuda_symbol(gpu_runtime(), "cuNoSuchCall", 12000, &function, &err), DJ_NOT_FOUND,
                "cuNoSuchCall");
}

/* A write by the stream itself, through an entry point looked up by name. */
static void stream_memory_operation(void)
{
    enum { CAN_USE_64_BIT = 122, WRITE_VALUE_64 = 5 };
    struct {
        int operation;
        uint64_t address;
        uint64_t value;
        unsigned flags;
        uint64_t alias;
        uint64_t pad;
    } write = {.operation = WRITE_VALUE_64, .value = 0x1122334455667788u};
    _Static_assert(sizeof(write) == 48, "CUstreamBatchMemOpParams");
    if (attribute(CAN_USE_64_BIT) != 1) {
        gpu_skip("the device has no 64-bit stream memory operations");
    }
    void *const memory = gpu_upload(NULL, 8);
    write.address = (uint64_t)(uintptr_t)memory;
    void *const stream = gpu_stream();
    CHECK_CU(gpu_driver()->cuStreamBatchMemOp_v2(stream, 1, &write, 0));
    CHECK_CU(gpu_driver()->cuStreamSynchronize(stream));
    uint64_t got = 0;
    gpu_download(&got, memory, sizeof(got));
    CHECK_INT(got, 0x1122334455667788);
}

static const gpu_case cases[] = {
    {"all_getters", all_getters, 0},
    {"architecture_names", architecture_names, 0},
    {"architectures_by_name", architectures_by_name, 0},
    {"devices_that_are_not_there", devices_that_are_not_there, 0},
    {"every_device", every_device, 0},
    {"entry_points", entry_points, 0},
    {"stream_memory_operation", stream_memory_operation, 0},
};
GPU_MAIN(cases)
