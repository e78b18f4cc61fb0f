/* SPDX-License-Identifier: MIT */
/* See gpu_test.h. */
#include "gpu_test.h"
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GPU_PASSED = 0, GPU_FAILED = 251, GPU_SKIPPED = 252, GPU_LIMIT_SECONDS = 120 };

static char gpu_dir[64];
static dj_runtime *case_runtime;
static hand_driver case_driver;
static bool case_has_driver;
static dj_cuda_device case_device;
static jmp_buf case_end;
static int case_result;
static pid_t case_process; /* who may jump: only the case itself */

/* ---- Checks ---- */

static _Noreturn void gpu_leave(int result)
{
    fflush(NULL);
    if (getpid() == case_process) {
        case_result = result;
        longjmp(case_end, 1);
    }
    _exit(result);
}

void gpu_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("    %s:%d: ", file, line);
    vprintf(format, args);
    printf("\n");
    va_end(args);
    gpu_leave(GPU_FAILED);
}

void gpu_skip(const char *why)
{
    printf("    skipped: %s\n", why);
    gpu_leave(GPU_SKIPPED);
}

/* ---- Runtime and driver ---- */

dj_runtime *gpu_new_runtime(const dj_config *config)
{
    const dj_backend *const backend = dj_backend_find("cuda");
    if (backend == NULL) {
        gpu_fail(__FILE__, __LINE__, "this build has no back end named cuda");
    }
    dj_runtime *runtime = NULL;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_runtime_create(backend, config, &runtime, &err));
    return runtime;
}

dj_runtime *gpu_runtime(void)
{
    if (case_runtime == NULL) {
        case_runtime = gpu_new_runtime(NULL);
    }
    return case_runtime;
}

static void *gpu_symbol(void *user, const char *name)
{
    (void)user;
    void *function = NULL;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_cuda_symbol(gpu_runtime(), name, 0, &function, &err));
    return function;
}

const hand_driver *gpu_driver(void)
{
    if (!case_has_driver) {
        hand_fill(&case_driver, gpu_symbol, NULL);
        case_has_driver = true;
        (void)gpu_device(); /* and a current context, which streams and memory by hand need */
        dj_error err = DJ_ERROR_INIT;
        CHECK_OK(dj_synchronize(gpu_runtime(), &err));
    }
    return &case_driver;
}

const dj_cuda_device *gpu_device(void)
{
    if (case_device.size == 0) {
        dj_error err = DJ_ERROR_INIT;
        dj_cuda_device device = DJ_CUDA_DEVICE_INIT;
        CHECK_OK(dj_cuda_device_info(gpu_runtime(), -1, &device, &err));
        case_device = device;
    }
    return &case_device;
}

/* ---- Files ---- */

const char *gpu_directory(void)
{
    return gpu_dir;
}

const char *gpu_source_dir(void)
{
    static char resolved[PATH_MAX];
    char path[PATH_MAX];
    const char *const tree = getenv("DJ_TEST_SOURCE_DIR");
    snprintf(path, sizeof(path), "%s/tests/gpu", tree != NULL ? tree : ".");
    if (realpath(path, resolved) == NULL) {
        gpu_fail(__FILE__, __LINE__, "there is no %s (set DJ_TEST_SOURCE_DIR)", path);
    }
    return resolved;
}

char *gpu_source(const char *name)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/kernels/%s", gpu_source_dir(), name);
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        gpu_fail(__FILE__, __LINE__, "cannot read %s", path);
    }
    char *const text = calloc(1, 1 << 16);
    CHECK(text != NULL);
    CHECK(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

size_t gpu_count_entries(void)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/cache/cache", gpu_dir);
    DIR *const dir = opendir(path);
    size_t count = 0;
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

/* ---- Kernels, memory, launches ---- */

dj_kernel *gpu_compile_in(dj_runtime *runtime, const char *file, const dj_compile_options *options)
{
    char tag[64];
    snprintf(tag, sizeof(tag), "%.*s", (int)strcspn(file, "."), file);
    char *const source = gpu_source(file);
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_compile(runtime, tag, source, strlen(source), options, &kernel, &err));
    CHECK(kernel != NULL);
    free(source);
    return kernel;
}

dj_kernel *gpu_compile(const char *file, const dj_compile_options *options)
{
    return gpu_compile_in(gpu_runtime(), file, options);
}

void *gpu_upload(const void *data, size_t size)
{
    void *memory = NULL;
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_mem_alloc(gpu_runtime(), size, &memory, &err));
    void *const zeros = data == NULL ? calloc(1, size) : NULL;
    CHECK(data != NULL || zeros != NULL);
    CHECK_OK(dj_mem_copy(gpu_runtime(), memory, data != NULL ? data : zeros, size, &err));
    free(zeros);
    return memory;
}

void gpu_download(void *to, const void *memory, size_t size)
{
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_synchronize(gpu_runtime(), &err));
    CHECK_OK(dj_mem_copy(gpu_runtime(), to, memory, size, &err));
}

dj_launch_options gpu_shape(uint32_t grid, uint32_t block)
{
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = grid;
    options.block.x = block;
    return options;
}

void gpu_launch(dj_kernel *kernel, const dj_launch_options *options, const dj_arg *args,
                size_t num_args)
{
    dj_error err = DJ_ERROR_INIT;
    CHECK_OK(dj_launch(kernel, options, args, num_args, &err));
}

void *gpu_stream(void)
{
    void *stream = NULL;
    CHECK_CU(gpu_driver()->cuStreamCreate(&stream, HAND_STREAM_NON_BLOCKING));
    return stream;
}

size_t gpu_kernel_nodes(void *graph)
{
    void *nodes[16];
    size_t count = 0;
    CHECK(graph != NULL);
    CHECK_CU(gpu_driver()->cuGraphGetNodes(graph, NULL, &count));
    CHECK(count <= 16);
    if (count == 0) {
        return 0;
    }
    CHECK_CU(gpu_driver()->cuGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; i++) {
        int type = -1;
        CHECK_CU(gpu_driver()->cuGraphNodeGetType(nodes[i], &type));
        CHECK_INT(type, HAND_NODE_KERNEL);
    }
    return count;
}

void gpu_replay(void *graph, void *stream)
{
    const hand_driver *const driver = gpu_driver();
    void *exec = NULL;
    CHECK_CU(driver->cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_CU(driver->cuGraphLaunch(exec, stream));
    CHECK_CU(driver->cuStreamSynchronize(stream));
    CHECK_CU(driver->cuGraphExecDestroy(exec));
    CHECK_CU(driver->cuGraphDestroy(graph));
}

/* ---- Processes ---- */

static int gpu_wait(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

int gpu_in_child(int (*body)(void *user), void *user)
{
    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(GPU_LIMIT_SECONDS);
        const int result = body(user);
        fflush(NULL);
        _exit(result);
    }
    const int status = gpu_wait(child);
    if (WIFSIGNALED(status)) {
        gpu_fail(__FILE__, __LINE__, "a child died by signal %d", WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}

/* ---- Running cases ---- */

static int gpu_run_here(const gpu_case *test)
{
    case_process = getpid();
    case_result = GPU_PASSED;
    if (setjmp(case_end) == 0) {
        test->run();
    }
    dj_runtime_release(case_runtime);
    case_runtime = NULL;
    case_has_driver = false;
    case_device.size = 0;
    return case_result;
}

static int gpu_run_apart(const gpu_case *test)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return GPU_FAILED;
    }
    if (child == 0) {
        alarm(GPU_LIMIT_SECONDS);
        const int result = gpu_run_here(test);
        fflush(NULL);
        _exit(result);
    }
    const int status = gpu_wait(child);
    if (WIFSIGNALED(status)) {
        printf("    died by signal %d\n", WTERMSIG(status));
        return GPU_FAILED;
    }
    return WEXITSTATUS(status);
}

static bool gpu_selected(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return true;
        }
    }
    return argc < 2;
}

static int gpu_remove(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static bool gpu_prepare(void)
{
    snprintf(gpu_dir, sizeof(gpu_dir), "/tmp/djgpu-XXXXXX");
    if (mkdtemp(gpu_dir) == NULL) {
        perror("mkdtemp");
        return false;
    }
    char root[128];
    snprintf(root, sizeof(root), "%s/cache", gpu_dir);
    setenv("DJ_JIT_CACHE_DIR", root, 1);
    setenv("DJ_JIT_CACHE_FSYNC", "none", 1);
    return true;
}

int gpu_main(int argc, char **argv, const gpu_case *cases, size_t count)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!gpu_prepare()) {
        return 1;
    }
    const char *const together = getenv("DJ_GPU_IN_PROCESS");
    const bool apart = together == NULL || strcmp(together, "1") != 0;
    size_t passed = 0;
    size_t failed = 0;
    size_t skipped = 0;
    for (size_t i = 0; i < count; i++) {
        if (!gpu_selected(argc, argv, cases[i].name) ||
            (!apart && (cases[i].flags & GPU_ALONE) != 0)) {
            continue;
        }
        struct timespec begin;
        struct timespec end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        const int result = apart ? gpu_run_apart(&cases[i]) : gpu_run_here(&cases[i]);
        clock_gettime(CLOCK_MONOTONIC, &end);
        passed += result == GPU_PASSED;
        skipped += result == GPU_SKIPPED;
        failed += result != GPU_PASSED && result != GPU_SKIPPED;
        printf("%s %s (%.2f s)\n",
               result == GPU_PASSED    ? "ok     "
               : result == GPU_SKIPPED ? "skipped"
                                       : "FAILED ",
               cases[i].name,
               (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
    }
    printf("%zu passed, %zu skipped, %zu failed\n", passed, skipped, failed);
    nftw(gpu_dir, gpu_remove, 16, FTW_DEPTH | FTW_PHYS);
    return failed == 0 && passed + skipped > 0 ? 0 : 1;
}
