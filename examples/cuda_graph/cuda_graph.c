/* SPDX-License-Identifier: MIT */
/*
 * A CUDA graph from a stream capture that compiles, loads and launches: a library may call
 * dj_compile while its user captures, the capture stays valid. The graph is then replayed. The
 * driver's functions for streams and graphs come from dj_cuda_symbol.
 *
 * Run: build/examples/cuda_graph [COUNT]
 */
#include "../common/example.h"
#include <math.h>

static const char source[] =
    "/* Moves x towards target, a part of the way. */\n"
    "extern \"C\" __global__ void step(float *x, const float *target, float rate, int n)\n"
    "{\n"
    "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) {\n"
    "        x[i] += rate * (target[i] - x[i]);\n"
    "    }\n"
    "}\n";

enum { STEPS = 3, REPLAYS = 5 };
enum { CAPTURE_MODE_GLOBAL = 0 };
static const float rate = 0.25f;

typedef struct driver {
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_synchronize)(void *stream);
    int (*stream_destroy)(void *stream);
    int (*begin_capture)(void *stream, int mode);
    int (*end_capture)(void *stream, void **graph);
    int (*get_nodes)(void *graph, void **nodes, size_t *count);
    int (*instantiate)(void **executable, void *graph, unsigned long long flags);
    int (*launch)(void *executable, void *stream);
    int (*exec_destroy)(void *executable);
    int (*graph_destroy)(void *graph);
} driver;

static driver find_driver(dj_runtime *runtime)
{
    driver api;
    const struct {
        const char *name;
        void *into;
    } symbols[] = {
        {"cuStreamCreate", &api.stream_create},
        {"cuStreamSynchronize", &api.stream_synchronize},
        {"cuStreamDestroy", &api.stream_destroy},
        {"cuStreamBeginCapture", &api.begin_capture},
        {"cuStreamEndCapture", &api.end_capture},
        {"cuGraphGetNodes", &api.get_nodes},
        {"cuGraphInstantiateWithFlags", &api.instantiate},
        {"cuGraphLaunch", &api.launch},
        {"cuGraphExecDestroy", &api.exec_destroy},
        {"cuGraphDestroy", &api.graph_destroy},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        dj_error err = DJ_ERROR_INIT;
        /* The functions as they were in CUDA 12.0, whatever the driver's version. */
        void *function = NULL;
        must(dj_cuda_symbol(runtime, symbols[i].name, 12000, &function, &err), &err);
        memcpy(symbols[i].into, &function, sizeof function);
    }
    return api;
}

/* What is captured: a library's function that knows nothing of capture. */
static void relax(dj_runtime *runtime, void *stream, void *x, void *target, int n)
{
    dj_error err = DJ_ERROR_INIT;
    dj_kernel *kernel = NULL;
    must(dj_compile(runtime, "step", source, sizeof source - 1, NULL, &kernel, &err), &err);
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = (uint32_t)(n + 255) / 256;
    options.block.x = 256;
    options.stream = stream;
    for (int i = 0; i < STEPS; i++) {
        must(dj_launch(kernel, &options, DJ_ARGS(x, target, rate, n), &err), &err);
    }
    /* The runtime keeps the kernel loaded; a graph does not. */
    dj_kernel_release(kernel);
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 10000;
    if (n < 1) {
        fprintf(stderr, "COUNT is positive\n");
        return 1;
    }
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *const runtime = open_cuda(NULL);
    need_device(runtime, 0);
    const driver api = find_driver(runtime);
    const size_t size = (size_t)n * sizeof(float);
    float *const start = need_memory(size);
    float *const target = need_memory(size);
    float *const result = need_memory(size);
    uint32_t seed = 1;
    for (int i = 0; i < n; i++) {
        start[i] = next_number(&seed);
        target[i] = next_number(&seed);
    }
    void *const x = to_device(runtime, start, size);
    void *const to = to_device(runtime, target, size);

    void *stream = NULL;
    void *graph = NULL;
    void *executable = NULL;
    size_t nodes = 0;
    must_cu(api.stream_create(&stream, 0), "cuStreamCreate");
    must_cu(api.begin_capture(stream, CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
    relax(runtime, stream, x, to, n);
    must_cu(api.end_capture(stream, &graph), "cuStreamEndCapture");
    must_cu(api.get_nodes(graph, NULL, &nodes), "cuGraphGetNodes");
    must_cu(api.instantiate(&executable, graph, 0), "cuGraphInstantiateWithFlags");
    for (int i = 0; i < REPLAYS; i++) {
        must_cu(api.launch(executable, stream), "cuGraphLaunch");
    }
    must_cu(api.stream_synchronize(stream), "cuStreamSynchronize");
    must(dj_mem_copy(runtime, result, x, size, &err), &err);

    printf("a graph of %zu kernels, replayed %d times\n", nodes, REPLAYS);
    const double left = pow(1 - (double)rate, STEPS * REPLAYS);
    double largest = 0;
    for (int i = 0; i < n; i++) {
        const double expected = (double)target[i] + left * ((double)start[i] - (double)target[i]);
        largest = worst(largest, fabs((double)result[i] - expected));
    }
    const int wrong = verdict("relaxation", largest, 1e-6) | (nodes != STEPS);
    must_cu(api.exec_destroy(executable), "cuGraphExecDestroy");
    must_cu(api.graph_destroy(graph), "cuGraphDestroy");
    must_cu(api.stream_destroy(stream), "cuStreamDestroy");
    (void)dj_mem_free(runtime, x, NULL);
    (void)dj_mem_free(runtime, to, NULL);
    free(start);
    free(target);
    free(result);
    dj_runtime_release(runtime);
    return wrong;
}
