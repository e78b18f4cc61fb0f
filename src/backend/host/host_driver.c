/* SPDX-License-Identifier: MIT */
/*
 * The host driver: a module is a shared object loaded from memory, a launch is complete when it
 * returns. Limits are those of CUDA devices where there is no reason for others, so that what
 * runs here runs there.
 */
#include "backend/host/host_backend.h"
#include "backend/host/host_pool.h"
#include "base/dl.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fp.h"
#include "base/fs.h"
#include "base/thread.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define DRIVER_MAX_THREADS 1024      /* in one block, and in the pool */
#define DRIVER_MAX_BLOCK_Z 64        /* threads in z */
#define DRIVER_MAX_GRID_X 2147483647 /* blocks */
#define DRIVER_MAX_GRID_YZ 65535
#define DRIVER_MAX_ARGS 64
#define DRIVER_MEM_ALIGN 64
#define DRIVER_PROC_LIMIT ((size_t)16 << 20)

struct dj_driver {
    const dj_backend_context *context;
    dj__host_pool *pool;
};

struct dj_module {
    void *handle;
    const dj__host_kernel *kernel;
};

static dj_status host_open(const dj_backend_context *context, dj_driver **out, dj_error *err)
{
    *out = NULL;
    int64_t threads = dj__cpu_count();
    threads = threads < DRIVER_MAX_THREADS ? threads : DRIVER_MAX_THREADS;
    dj_status status =
        dj__env_int(context->env, "JIT_HOST_THREADS", 1, DRIVER_MAX_THREADS, &threads, err);
    if (status != DJ_OK) {
        return status;
    }
    dj_driver *driver = calloc(1, sizeof *driver);
    if (driver == NULL) {
        return dj__fail_memory(err);
    }
    driver->context = context;
    status = dj__host_pool_create((unsigned)threads, &driver->pool, err);
    if (status != DJ_OK) {
        free(driver);
        return status;
    }
    *out = driver;
    return DJ_OK;
}

static void host_close(dj_driver *driver)
{
    if (driver != NULL) {
        dj__host_pool_destroy(driver->pool);
        free(driver);
    }
}

/* Copies the value of the first "key : value" line of /proc/cpuinfo; false if there is none. */
static bool host_cpuinfo(const char *text, const char *key, char *out, size_t size)
{
    const size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = line + strcspn(line, "\n");
        const char *at = line + length;
        if (strncmp(line, key, length) == 0) {
            at += strspn(at, " \t");
            if (*at == ':') {
                at += 1 + strspn(at + 1, " \t");
                const size_t count = (size_t)(end - at) < size - 1 ? (size_t)(end - at) : size - 1;
                memcpy(out, at, count);
                out[count] = '\0';
                return count > 0;
            }
        }
        line = *end != '\0' ? end + 1 : NULL;
    }
    return false;
}

static void host_describe_cpu(const char *machine, dj_device *out)
{
    char *text = NULL;
    size_t size = 0;
    char clock[32];
    (void)snprintf(out->name, sizeof out->name, "%s processor", machine);
    if (dj__read_file("/proc/cpuinfo", DRIVER_PROC_LIMIT, &text, &size) == 0) {
        char name[sizeof out->name];
        if (host_cpuinfo(text, "model name", name, sizeof name) ||
            host_cpuinfo(text, "Model", name, sizeof name) ||
            host_cpuinfo(text, "cpu", name, sizeof name)) {
            memcpy(out->name, name, sizeof name);
        }
        if (host_cpuinfo(text, "cpu MHz", clock, sizeof clock)) {
            out->clock_hz = (uint64_t)(strtod(clock, NULL) * 1e6);
        }
        free(text);
    }
    /* The nominal clock is better than the present one. */
    if (dj__read_file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", 4096, &text,
                      &size) == 0) {
        const unsigned long long khz = strtoull(text, NULL, 10);
        out->clock_hz = khz > 0 ? khz * 1000 : out->clock_hz;
        free(text);
    }
}

static uint64_t host_sysconf(int name)
{
    const long value = sysconf(name);
    return value > 0 ? (uint64_t)value : 0;
}

static uint64_t host_cache_bytes(void)
{
#ifdef _SC_LEVEL3_CACHE_SIZE
    const uint64_t level3 = host_sysconf(_SC_LEVEL3_CACHE_SIZE);
    return level3 > 0 ? level3 : host_sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
    return 0;
#endif
}

static dj_status host_device_info(dj_driver *driver, dj_device *out, dj_error *err)
{
    (void)err;
    struct utsname machine;
    memset(&machine, 0, sizeof machine);
    (void)uname(&machine);
    *out = (dj_device){
        .size = out->size,
        .compute_units = dj__host_pool_size(driver->pool),
        .max_block_threads = DRIVER_MAX_THREADS,
        .max_block = {DRIVER_MAX_THREADS, DRIVER_MAX_THREADS, DRIVER_MAX_BLOCK_Z},
        .max_grid = {DRIVER_MAX_GRID_X, DRIVER_MAX_GRID_YZ, DRIVER_MAX_GRID_YZ},
        .max_shared_bytes = DJ__HOST_MAX_SHARED,
        .memory_bytes = host_sysconf(_SC_PHYS_PAGES) * host_sysconf(_SC_PAGESIZE),
        .cache_bytes = host_cache_bytes(),
    };
    (void)snprintf(out->arch, sizeof out->arch, "%.*s", (int)sizeof out->arch - 1, machine.machine);
    host_describe_cpu(out->arch, out);
    return DJ_OK;
}

static dj_status host_mem_alloc(dj_driver *driver, size_t size, void **out, dj_error *err)
{
    (void)driver;
    *out = NULL;
    return posix_memalign(out, DRIVER_MEM_ALIGN, size > 0 ? size : 1) == 0 ? DJ_OK
                                                                           : dj__fail_memory(err);
}

static dj_status host_mem_free(dj_driver *driver, void *memory, dj_error *err)
{
    (void)driver;
    (void)err;
    free(memory);
    return DJ_OK;
}

static dj_status host_mem_copy(dj_driver *driver, void *to, const void *from, size_t size,
                               dj_error *err)
{
    (void)driver;
    (void)err;
    if (size > 0) {
        memmove(to, from, size);
    }
    return DJ_OK;
}

static dj_status host_synchronize(dj_driver *driver, dj_error *err)
{
    (void)driver;
    (void)err;
    return DJ_OK;
}

static int host_compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "expected exactly one kernel, found 2: a, b"; sorted, since compilers emit them in any order. */
static dj_status host_fail_count(const dj__host_kernel *const *kernels, size_t count, dj_error *err)
{
    if (count == 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "expected exactly one kernel, found 0: include <deepjit/kernel.h> and "
                        "define one with DJ_KERNEL or DJ_BLOCK_KERNEL");
    }
    dj__strlist names;
    dj__strbuf text;
    dj__strlist_init(&names);
    dj__strbuf_init(&text, sizeof err->message);
    for (size_t i = 0; i < count; i++) {
        dj__strlist_add(&names, kernels[i]->name);
    }
    if (names.count > 0) {
        qsort(names.items, names.count, sizeof names.items[0], host_compare_names);
    }
    for (size_t i = 0; i < names.count; i++) {
        dj__strbuf_printf(&text, "%s%s", i > 0 ? ", " : "", names.items[i]);
    }
    dj_status status =
        dj__fail(err, DJ_INVALID_ARGUMENT, "expected exactly one kernel, found %zu: %s", count,
                 dj__strbuf_str(&text));
    dj__strbuf_fini(&text);
    dj__strlist_fini(&names);
    return status;
}

static dj_status host_find_kernel(void *handle, const char *path, const dj__host_kernel **out,
                                  dj_error *err)
{
    uint32_t abi = 0;
    size_t count = 0;
    const dj__host_kernel *const *kernels = NULL;
    void *symbol = dj__dl_symbol(handle, DJ__HOST_KERNELS_SYMBOL);
    if (symbol != NULL) {
        dj__host_kernels_fn list = NULL;
        memcpy(&list, &symbol, sizeof list); /* ISO C has no cast from void * to a function */
        kernels = list(&abi, &count);
        if (abi != DJ__HOST_ABI) {
            return dj__fail(err, DJ_INCOMPATIBLE,
                            "%s was compiled for kernel ABI %u, this library has %u", path,
                            (unsigned)abi, (unsigned)DJ__HOST_ABI);
        }
    }
    if (count != 1) {
        return host_fail_count(kernels, count, err);
    }
    *out = kernels[0];
    return DJ_OK;
}

static dj_status host_load(dj_driver *driver, const dj_binary *binary, dj_module **out,
                           dj_module_info *info, dj_error *err)
{
    *out = NULL;
    const char *path = binary->path != NULL ? binary->path : "binary";
    dj_module *module = calloc(1, sizeof *module);
    if (module == NULL) {
        return dj__fail_memory(err);
    }
    const uint64_t fp = dj__fp_get();
    dj_status status =
        dj__dl_load(binary->data, binary->size, dj__env_raw(driver->context->env, "TMPDIR"),
                    &module->handle, err);
    dj__fp_set(fp); /* -ffast-math links a constructor that changes it for the whole thread */
    if (status != DJ_OK) {
        dj__error_prefix(err, "%s", path);
        free(module);
        return status;
    }
    status = host_find_kernel(module->handle, path, &module->kernel, err);
    if (status != DJ_OK) {
        dj__dl_unload(module->handle);
        free(module);
        return status;
    }
    *info = (dj_module_info){
        .kernel_name = module->kernel->name,
        .params = module->kernel->params,
        .num_params = module->kernel->num_params,
    };
    *out = module;
    return DJ_OK;
}

static void host_unload(dj_driver *driver, dj_module *module)
{
    (void)driver;
    if (module != NULL) {
        dj__dl_unload(module->handle);
        free(module);
    }
}

dj_host_block_fn dj__host_module_function(const dj_module *module)
{
    return module->kernel->run;
}

static dj_status host_fail_limit(const char *what, uint64_t value, uint64_t limit, dj_error *err)
{
    return dj__fail(err, DJ_INVALID_ARGUMENT, "%s is %llu, the host back end allows at most %llu",
                    what, (unsigned long long)value, (unsigned long long)limit);
}

static dj_status host_check_limits(const dj_launch_config *config, size_t num_args, dj_error *err)
{
    const dj_dim3 grid = config->grid;
    const dj_dim3 block = config->block;
    /* A product of three dimensions cannot overflow once each is within its limit. */
    const struct {
        const char *what;
        uint64_t value, limit;
    } checks[] = {
        {"block.x", block.x, DRIVER_MAX_THREADS},
        {"block.y", block.y, DRIVER_MAX_THREADS},
        {"block.z", block.z, DRIVER_MAX_BLOCK_Z},
        {"threads per block", (uint64_t)block.x * block.y * block.z, DRIVER_MAX_THREADS},
        {"grid.x", grid.x, DRIVER_MAX_GRID_X},
        {"grid.y", grid.y, DRIVER_MAX_GRID_YZ},
        {"grid.z", grid.z, DRIVER_MAX_GRID_YZ},
        /* Indices are int, see DJ_KERNEL. */
        {"grid.x * block.x", (uint64_t)grid.x * block.x, INT32_MAX},
        {"shared_bytes", config->shared_bytes, DJ__HOST_MAX_SHARED},
        {"number of arguments", num_args, DRIVER_MAX_ARGS},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i].value > checks[i].limit) {
            return host_fail_limit(checks[i].what, checks[i].value, checks[i].limit, err);
        }
    }
    return DJ_OK;
}

/* dj_host_launch_options.max_threads of the call, else of the defaults, else 0. */
static dj_status host_max_threads(const dj_launch_config *config, uint32_t *out, dj_error *err)
{
    const dj_launch_options *const levels[] = {config->call, config->defaults};
    *out = 0;
    for (size_t i = 0; i < 2 && *out == 0; i++) {
        const dj_host_launch_options *options = levels[i]->host;
        if (options == NULL) {
            continue;
        }
        if (options->max_threads < 0 || options->max_threads > DRIVER_MAX_THREADS) {
            return dj__fail(err, DJ_INVALID_ARGUMENT, "max_threads is %lld, expected 0 to %d",
                            (long long)options->max_threads, DRIVER_MAX_THREADS);
        }
        *out = (uint32_t)options->max_threads;
    }
    return DJ_OK;
}

static dj_status host_launch(dj_driver *driver, dj_module *module, const dj_launch_config *config,
                             const void **args, size_t num_args, dj_error *err)
{
    dj__host_work work = {.run = module->kernel->run, .args = args};
    dj_status status = host_check_limits(config, num_args, err);
    if (status == DJ_OK) {
        status = host_max_threads(config, &work.max_threads, err);
    }
    if (status != DJ_OK) {
        return status;
    }
    work.block = (dj_host_block){
        .grid = {(int32_t)config->grid.x, (int32_t)config->grid.y, (int32_t)config->grid.z},
        .block = {(int32_t)config->block.x, (int32_t)config->block.y, (int32_t)config->block.z},
        .shared_bytes = (uint32_t)config->shared_bytes,
    };
    dj__host_pool_run(driver->pool, &work);
    return DJ_OK;
}

static void host_after_fork(dj_driver *driver)
{
    dj__host_pool_after_fork(driver->pool);
}

const dj_driver_ops dj__host_driver_ops = {
    .size = sizeof(dj_driver_ops),
    .caps = DJ_DRIVER_FORK_SAFE | DJ_DRIVER_SYNCHRONOUS,
    .open = host_open,
    .close = host_close,
    .device_info = host_device_info,
    .mem_alloc = host_mem_alloc,
    .mem_free = host_mem_free,
    .mem_copy = host_mem_copy,
    .load = host_load,
    .launch = host_launch,
    .synchronize = host_synchronize,
    .unload = host_unload,
    .after_fork = host_after_fork,
};
