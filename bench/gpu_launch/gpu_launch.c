/* SPDX-License-Identifier: MIT */
/*
 * dj_launch against cuLaunchKernelEx by hand: the same kernel, function, configuration and stream,
 * in alternating chunks of one pinned thread, with an empty queue before each. Options and
 * configuration are made once, arguments are gathered anew for each launch, on both sides.
 *
 * Run: gpu_launch                    on a GPU
 *      gpu_launch --null <driver>    on a driver that does nothing: the library's own time
 */
#include "../common/bench.h"

/* A chunk is far below what a stream's queue holds (1024 launches), and short, so that both sides
 * of a pair see the same clock and neighbours. */
enum { CHUNK = 64, CHUNKS = 1600, WARM_UP = 80, ALL = 16 };

static struct values {
    void *p[ALL / 2];
    int i[ALL / 2];
} v;

#define ARGS3 v.p[0], v.i[0], v.p[1]
#define ARGS8 ARGS3, v.i[1], v.p[2], v.i[2], v.p[3], v.i[3]
#define ARGS16 ARGS8, v.p[4], v.i[4], v.p[5], v.i[5], v.p[6], v.i[6], v.p[7], v.i[7]
#define PARAMS3 &v.p[0], &v.i[0], &v.p[1]
#define PARAMS8 PARAMS3, &v.i[1], &v.p[2], &v.i[2], &v.p[3], &v.i[3]
#define PARAMS16 PARAMS8, &v.p[4], &v.i[4], &v.p[5], &v.i[5], &v.p[6], &v.i[6], &v.p[7], &v.i[7]

typedef struct launch_side {
    const hand_driver *driver;
    dj_kernel *kernel;
    dj_launch_options options;
    void *function;
    hand_config config;
} launch_side;

/* Nanoseconds a launch. */
typedef double (*launch_chunk)(const launch_side *side);

#define LAUNCH_CHUNKS(n, args, ...)                                                                \
    static double ours##n(const launch_side *side)                                                 \
    {                                                                                              \
        int failed = 0;                                                                            \
        const double begin = bench_now();                                                          \
        for (int k = 0; k < CHUNK; k++) {                                                          \
            failed |= (int)dj_launch(side->kernel, &side->options, args, NULL);                    \
        }                                                                                          \
        const double end = bench_now();                                                            \
        bench_cu(failed, "dj_launch");                                                             \
        return (end - begin) / CHUNK;                                                              \
    }                                                                                              \
    static double theirs##n(const launch_side *side)                                               \
    {                                                                                              \
        int failed = 0;                                                                            \
        const double begin = bench_now();                                                          \
        for (int k = 0; k < CHUNK; k++) {                                                          \
            void *params[] = {__VA_ARGS__};                                                        \
            failed |= side->driver->cuLaunchKernelEx(&side->config, side->function, params, NULL); \
        }                                                                                          \
        const double end = bench_now();                                                            \
        bench_cu(failed, "cuLaunchKernelEx");                                                      \
        return (end - begin) / CHUNK;                                                              \
    }

LAUNCH_CHUNKS(0, DJ_NO_ARGS, NULL)
LAUNCH_CHUNKS(3, DJ_ARGS(ARGS3), PARAMS3)
LAUNCH_CHUNKS(8, DJ_ARGS(ARGS8), PARAMS8)
LAUNCH_CHUNKS(16, DJ_ARGS(ARGS16), PARAMS16)

static const struct launch_case {
    int num_args;
    launch_chunk ours, theirs;
} launch_cases[] = {
    {0, ours0, theirs0}, {3, ours3, theirs3}, {8, ours8, theirs8}, {16, ours16, theirs16}};

/* An empty kernel with parameters pointer, int, pointer, int, ... */
static void launch_source(int num_args, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "extern \"C\" __global__ void empty%d(", num_args);
    for (int i = 0; i < num_args; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%sa%d", i > 0 ? ", " : "",
                                 i % 2 == 0 ? "void *" : "int ", i);
    }
    snprintf(out + used, size - used, ") {}\n");
}

static void launch_measure(const launch_side *side, const struct launch_case *what, bool null,
                           const char *stream)
{
    static bench_pair pair;
    memset(&pair, 0, sizeof(pair));
    for (int i = 0; i < WARM_UP + CHUNKS; i++) {
        const bool swap = i % 2 == 1;
        const double first = (swap ? what->theirs : what->ours)(side);
        bench_cu(side->driver->cuCtxSynchronize(), "cuCtxSynchronize");
        const double second = (swap ? what->ours : what->theirs)(side);
        bench_cu(side->driver->cuCtxSynchronize(), "cuCtxSynchronize");
        if (i >= WARM_UP) {
            bench_add_pair(&pair, swap ? second : first, swap ? first : second);
        }
    }
    char name[64];
    snprintf(name, sizeof(name), "launch, %d arguments, %s%s", what->num_args, stream,
             null ? ", no driver" : "");
    if (null) {
        /* What the call itself costs is the loop by hand. */
        const double own = bench_median(&pair.ours) - bench_median(&pair.theirs);
        bench_report(name, own, 0, 0, BENCH_OURS, 60);
    } else {
        bench_report_pair(name, &pair, BENCH_RATIO, 1.03);
    }
}

int main(int argc, char **argv)
{
    const bool null = argc == 3 && strcmp(argv[1], "--null") == 0;
    const char *const library = null ? argv[2] : NULL;
    bench_make_root();
    bench_pin();
    if (null) {
        setenv("DJ_JIT_CUDA_LIBRARY", library, 1);
    }
    hand_driver driver;
    if (!hand_open(&driver, library)) {
        fprintf(stderr, "no driver: %s\n", dlerror());
        return 1;
    }
    bench_cu(hand_start(&driver), "cuInit");
    void *stream = NULL;
    if (driver.cuStreamCreate != NULL) {
        bench_cu(driver.cuStreamCreate(&stream, HAND_STREAM_NON_BLOCKING), "cuStreamCreate");
    }
    dj_runtime *const runtime = bench_runtime();
    for (size_t i = 0; i < sizeof(launch_cases) / sizeof(launch_cases[0]); i++) {
        char source[1024];
        launch_source(launch_cases[i].num_args, source, sizeof(source));
        dj_kernel *const kernel = bench_compile(runtime, source);
        dj_cuda_handles handles = DJ_CUDA_HANDLES_INIT;
        dj_error err = DJ_ERROR_INIT;
        bench_check(dj_cuda_kernel_handles(kernel, &handles, &err), &err, "handles");
        launch_side side = {.driver = &driver,
                            .kernel = kernel,
                            .options = DJ_LAUNCH_OPTIONS_INIT,
                            .function = handles.function,
                            .config = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .stream = stream}};
        side.options.grid.x = 1;
        side.options.block.x = 32;
        side.options.stream = stream;
        side.options.stream_set = true;
        launch_measure(&side, &launch_cases[i], null, "explicit stream");
        side.options.stream = NULL;
        side.options.stream_set = false;
        side.config.stream = NULL;
        launch_measure(&side, &launch_cases[i], null, "no stream");
        dj_kernel_release(kernel);
    }
    dj_runtime_release(runtime);
    return 0;
}
