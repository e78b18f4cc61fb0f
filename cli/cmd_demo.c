/* SPDX-License-Identifier: MIT */
/*
 * deepjit demo: a tiled matrix product, compiled in an empty cache, then found on disk by another
 * runtime, then in memory; launched and checked each time.
 */
#include "cli.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEMO_TAG "deepjit_demo"
enum { DEMO_N = 256, DEMO_TILE = 16, DEMO_MEMORY_HITS = 10000, DEMO_STARTS = 5 };

static const char demo_source[] =
    "#include <deepjit/kernel.h>\n"
    "#define TILE 16\n"
    "\n"
    "/* c = a * b, n by n, n a multiple of TILE; a block of TILE * TILE threads makes a tile. */\n"
    "DJ_BLOCK_KERNEL(matmul, (float *, c), (const float *, a), (const float *, b), (int, n))\n"
    "{\n"
    "    DJ_SHARED(float, ta[TILE][TILE]);\n"
    "    DJ_SHARED(float, tb[TILE][TILE]);\n"
    "    DJ_SHARED(float, sum[TILE][TILE]);\n"
    "    int row = DJ_BLOCK_IDX_Y * TILE;\n"
    "    int col = DJ_BLOCK_IDX_X * TILE;\n"
    "    DJ_FOR_THREADS {\n"
    "        sum[DJ_THREAD_IDX_Y][DJ_THREAD_IDX_X] = 0.0f;\n"
    "    }\n"
    "    for (int k = 0; k < n; k += TILE) {\n"
    "        DJ_FOR_THREADS {\n"
    "            int x = DJ_THREAD_IDX_X, y = DJ_THREAD_IDX_Y;\n"
    "            ta[y][x] = a[(row + y) * n + k + x];\n"
    "            tb[y][x] = b[(k + y) * n + col + x];\n"
    "        }\n"
    "        DJ_FOR_THREADS {\n"
    "            int x = DJ_THREAD_IDX_X, y = DJ_THREAD_IDX_Y;\n"
    "            float part = 0.0f;\n"
    "            for (int i = 0; i < TILE; i++) {\n"
    "                part += ta[y][i] * tb[i][x];\n"
    "            }\n"
    "            sum[y][x] += part;\n"
    "        }\n"
    "    }\n"
    "    DJ_FOR_THREADS {\n"
    "        int x = DJ_THREAD_IDX_X, y = DJ_THREAD_IDX_Y;\n"
    "        c[(row + y) * n + col + x] = sum[y][x];\n"
    "    }\n"
    "}\n";

typedef struct demo_options {
    cli_runtime_options runtime;
    bool keep;
} demo_options;

static const struct argp_option demo_argp_options[] = {
    {"keep", 'k', NULL, 0, "Leave the private cache root behind", 0},
    {0},
};

static error_t demo_parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    demo_options *const options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->runtime;
        return 0;
    case 'k':
        options->keep = true;
        return 0;
    default:
        return cli_parse_other(key, state);
    }
}

static const char demo_doc[] =
    "Compiles a kernel in an empty cache, then takes it from disk and from memory, launches it "
    "each time and checks its results."
    "\v"
    "Works in a private cache root under TMPDIR, which it removes; with --cache-dir\n"
    "in that root, where it leaves its entry.\n\n"
    "Examples:\n"
    "  deepjit demo\n"
    "  deepjit demo --backend host --cache-dir /mnt/nfs/cache\n";

typedef struct demo_state {
    dj_cancel *cancel;
    float *a, *b, *c;           /* on the host */
    double *expected;           /* a * b, computed here */
    int64_t cold, disk, memory; /* nanoseconds */
    int64_t launch;
    char *entry;
} demo_state;

static void demo_fill(demo_state *demo)
{
    const size_t count = (size_t)DEMO_N * DEMO_N;
    demo->a = cli_alloc(count, sizeof *demo->a);
    demo->b = cli_alloc(count, sizeof *demo->b);
    demo->c = cli_alloc(count, sizeof *demo->c);
    demo->expected = cli_alloc(count, sizeof *demo->expected);
    /* Small integers: every sum is exact, in any order. */
    for (size_t i = 0; i < count; i++) {
        demo->a[i] = (float)(i * 7 % 11) - 5;
        demo->b[i] = (float)(i * 5 % 13) - 6;
    }
    for (size_t row = 0; row < DEMO_N; row++) {
        for (size_t k = 0; k < DEMO_N; k++) {
            for (size_t col = 0; col < DEMO_N; col++) {
                demo->expected[row * DEMO_N + col] +=
                    (double)demo->a[row * DEMO_N + k] * (double)demo->b[k * DEMO_N + col];
            }
        }
    }
}

static void demo_fini(demo_state *demo)
{
    free(demo->a);
    free(demo->b);
    free(demo->c);
    free(demo->expected);
    free(demo->entry);
}

static int demo_compare(const demo_state *demo)
{
    for (size_t i = 0; i < (size_t)DEMO_N * DEMO_N; i++) {
        if ((double)demo->c[i] != demo->expected[i]) {
            cli_error("wrong result: element %zu is %g, expected %g", i, (double)demo->c[i],
                      demo->expected[i]);
            return CLI_FAILURE;
        }
    }
    return CLI_DONE;
}

static dj_status demo_launch(demo_state *demo, dj_runtime *runtime, dj_kernel *kernel,
                             void *memory[3], dj_error *err)
{
    const size_t size = (size_t)DEMO_N * DEMO_N * sizeof(float);
    float *const inputs[] = {demo->c, demo->a, demo->b};
    for (size_t i = 0; i < 3; i++) {
        dj_status status = dj_mem_alloc(runtime, size, &memory[i], err);
        if (status == DJ_OK) {
            status = dj_mem_copy(runtime, memory[i], inputs[i], size, err);
        }
        if (status != DJ_OK) {
            return status;
        }
    }
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid = (dj_dim3){DEMO_N / DEMO_TILE, DEMO_N / DEMO_TILE, 1};
    options.block = (dj_dim3){DEMO_TILE, DEMO_TILE, 1};
    const int n = DEMO_N;
    const int64_t begin = cli_now_ns();
    dj_status status =
        dj_launch(kernel, &options, DJ_ARGS(memory[0], memory[1], memory[2], n), err);
    if (status == DJ_OK) {
        status = dj_synchronize(runtime, err);
    }
    demo->launch = cli_now_ns() - begin;
    return status == DJ_OK ? dj_mem_copy(runtime, demo->c, memory[0], size, err) : status;
}

/* Launches and compares. */
static int demo_check(demo_state *demo, dj_runtime *runtime, dj_kernel *kernel)
{
    void *memory[3] = {NULL, NULL, NULL};
    dj_error err = DJ_ERROR_INIT;
    memset(demo->c, 0xff, (size_t)DEMO_N * DEMO_N * sizeof(float));
    const dj_status status = demo_launch(demo, runtime, kernel, memory, &err);
    for (size_t i = 0; i < 3; i++) {
        dj_mem_free(runtime, memory[i], NULL);
    }
    return status == DJ_OK ? demo_compare(demo) : cli_fail(&err);
}

static dj_status demo_compile(const demo_state *demo, dj_runtime *runtime, dj_kernel **kernel,
                              int64_t *ns, dj_error *err)
{
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.cancel = demo->cancel;
    const int64_t begin = cli_now_ns();
    const dj_status status =
        dj_compile(runtime, DEMO_TAG, demo_source, sizeof demo_source - 1, &options, kernel, err);
    *ns = cli_now_ns() - begin;
    return status;
}

static int demo_cold(demo_state *demo, const demo_options *options)
{
    dj_runtime *runtime = NULL;
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    int result = cli_open_runtime(&options->runtime, NULL, &runtime);
    if (result != CLI_DONE) {
        return result;
    }
    fprintf(stderr, "compiling a kernel for the %s back end ...\n",
            dj_backend_name(dj_runtime_backend(runtime)));
    if (dj_cache_clear(runtime, DEMO_TAG, NULL, &err) != DJ_OK ||
        demo_compile(demo, runtime, &kernel, &demo->cold, &err) != DJ_OK) {
        result = cli_fail(&err);
    } else {
        demo->entry = cli_format("%s", dj_kernel_path(kernel));
        result = demo_check(demo, runtime, kernel);
    }
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    return result;
}

/* From disk, then from memory, in a runtime that has seen nothing yet. */
static int demo_warm(demo_state *demo, const demo_options *options)
{
    dj_runtime *runtime = NULL;
    dj_kernel *kernel = NULL;
    dj_error err = DJ_ERROR_INIT;
    dj_stats stats = DJ_STATS_INIT;
    int result = cli_open_runtime(&options->runtime, NULL, &runtime);
    if (result != CLI_DONE) {
        return result;
    }
    dj_status status = demo_compile(demo, runtime, &kernel, &demo->disk, &err);
    const int64_t begin = cli_now_ns();
    for (int i = 0; i < DEMO_MEMORY_HITS && status == DJ_OK; i++) {
        dj_kernel *again = NULL;
        int64_t ignored = 0;
        status = demo_compile(demo, runtime, &again, &ignored, &err);
        dj_kernel_release(again);
    }
    demo->memory = (cli_now_ns() - begin) / DEMO_MEMORY_HITS;
    if (status == DJ_OK) {
        status = dj_runtime_stats(runtime, &stats, &err);
    }
    if (status != DJ_OK) {
        result = cli_fail(&err);
    } else if (stats.compiles != 0 || stats.disk_hits != 1 ||
               stats.memory_hits != DEMO_MEMORY_HITS) {
        cli_error("the caches were not hit: %llu compilations, %llu disk hits, %llu memory hits; "
                  "'deepjit doctor' shows the cache roots",
                  (unsigned long long)stats.compiles, (unsigned long long)stats.disk_hits,
                  (unsigned long long)stats.memory_hits);
        result = CLI_FAILURE;
    } else {
        result = demo_check(demo, runtime, kernel);
    }
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    return result;
}

/* ---- Report ---- */

static int demo_show_entry(const demo_state *demo)
{
    cli_file *files = NULL;
    size_t count = 0;
    char text[32];
    if (!cli_list_files(demo->entry, &files, &count)) {
        return CLI_FAILURE;
    }
    printf("\nentry  %s\n", demo->entry);
    for (size_t i = 0; i < count; i++) {
        printf("  %-14s %10s\n", files[i].name, cli_bytes(files[i].size, text));
    }
    cli_files_free(files, count);
    return CLI_DONE;
}

static void demo_show_library(void)
{
    Dl_info library;
    Dl_info program;
    struct stat info;
    char text[32];
    int (*const own)(int, char **) = cli_cmd_demo;
    const char *(*const theirs)(void) = dj_version;
    void *own_address;
    void *their_address;
    /* ISO C has no cast from a function to an object pointer. */
    memcpy(&own_address, &own, sizeof own_address);
    memcpy(&their_address, &theirs, sizeof their_address);
    if (dladdr(their_address, &library) == 0 || dladdr(own_address, &program) == 0) {
        return;
    }
    const bool inside = library.dli_fbase == program.dli_fbase;
    if (stat(inside ? "/proc/self/exe" : library.dli_fname, &info) == 0) {
        printf("library size     %s%s\n", cli_bytes((uint64_t)info.st_size, text),
               inside ? " (with this command, in one file)" : "");
    }
}

static void demo_show_process(void)
{
    static const char *const arguments[] = {"version", NULL};
    char text[32];
    int64_t best = INT64_MAX;
    for (int i = 0; i < DEMO_STARTS; i++) {
        int64_t wall = 0;
        if (cli_run_self(arguments, &wall) == 0 && wall < best) {
            best = wall;
        }
    }
    if (best != INT64_MAX) {
        printf("start-up time    %s ('deepjit version', start to end)\n",
               cli_duration((double)best, text));
    }
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        printf("resident memory  %s at most\n", cli_bytes((uint64_t)usage.ru_maxrss * 1024, text));
    }
}

static int demo_report(const demo_state *demo)
{
    char text[32];
    printf("result correct: %d x %d matrix product in tiles, launch %s\n\n", DEMO_N, DEMO_N,
           cli_duration((double)demo->launch, text));
    printf("cold (compiled)  %s\n", cli_duration((double)demo->cold, text));
    printf("from disk        %s\n", cli_duration((double)demo->disk, text));
    printf("from memory      %s\n", cli_duration((double)demo->memory, text));
    const int result = demo_show_entry(demo);
    putchar('\n');
    demo_show_library();
    demo_show_process();
    return result;
}

static int demo_steps(demo_state *demo, const demo_options *options)
{
    demo_fill(demo);
    int result = demo_cold(demo, options);
    if (result == CLI_DONE && demo->entry[0] == '\0') {
        cli_error("no cache entry could be made; 'deepjit doctor' shows the cache roots");
        result = CLI_FAILURE;
    }
    if (result == CLI_DONE) {
        result = demo_warm(demo, options);
    }
    return result == CLI_DONE ? demo_report(demo) : result;
}

static int demo_run(demo_options *options)
{
    char *root = NULL;
    if (options->runtime.cache_dir == NULL) {
        root = cli_make_temp_dir("demo");
        if (root == NULL) {
            return CLI_FAILURE;
        }
        options->runtime.cache_dir = root;
    }
    demo_state demo = {.cancel = cli_guard_begin()};
    const int result = demo_steps(&demo, options);
    demo_fini(&demo);
    if (root != NULL && options->keep) {
        printf("\ncache root kept: %s\n", root);
    } else if (root != NULL) {
        cli_remove_tree(root);
    }
    free(root);
    cli_guard_end();
    return cli_guard_status(result);
}

int cli_cmd_demo(int argc, char **argv)
{
    demo_options options = {.keep = false};
    static const struct argp_child children[] = {{&cli_runtime_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = demo_argp_options, .parser = demo_parse, .doc = demo_doc, .children = children};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    return demo_run(&options);
}
