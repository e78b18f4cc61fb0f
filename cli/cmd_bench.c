/* SPDX-License-Identifier: MIT */
/*
 * deepjit bench: what the caches and a launch cost on this machine, on the host back end.
 *
 * Every measurement is a median over rounds, after one round of warm-up. What is compared is
 * measured in turns within one run, in alternating order.
 */
#include "cli_measure.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

typedef struct bench_options {
    bool json;
    bool quick;
} bench_options;

static const struct argp_option bench_argp_options[] = {
    {"json", 'j', NULL, 0, "JSON lines on standard output, no table", 0},
    {"quick", 'q', NULL, 0, "Fewer rounds", 0},
    {0},
};

static error_t bench_parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    bench_options *const options = state->input;
    switch (key) {
    case 'j':
        options->json = true;
        return 0;
    case 'q':
        options->quick = true;
        return 0;
    default:
        return cli_parse_other(key, state);
    }
}

static const char bench_doc[] =
    "Measures cache hits, launches and compilations of the host back end on this machine."
    "\v"
    "On a terminal: a table. Otherwise: JSON lines on standard output and the table\n"
    "on standard error. Limits that are missed are marked and do not change the\n"
    "exit status. Works in a private cache root under TMPDIR.\n\n"
    "Examples:\n"
    "  deepjit bench --quick\n"
    "  deepjit bench > results.jsonl\n";

/* ---- Frame ---- */

typedef struct bench_state {
    cli_report report;
    cli_runtime_options runtime;
    char *root;
    dj_cancel *cancel;
    size_t rounds;
    size_t hits;     /* calls in a round, 1 KiB of source */
    size_t launches; /* calls in a round */
    size_t kernels;  /* distinct kernels on disk */
    size_t colds;
    size_t starts;
} bench_state;

/* Reports and gives up: false. Also false once a signal arrived. */
static bool bench_ok(dj_status status, const dj_error *err)
{
    if (status != DJ_OK && !cli_guard_interrupted()) {
        cli_fail(err);
    }
    return status == DJ_OK && !cli_guard_interrupted();
}

static const char bench_body[] = "#include <deepjit/kernel.h>\n"
                                 "DJ_KERNEL(scale, (float *, out), (const float *, in), (int, n))\n"
                                 "{\n"
                                 "    int i = DJ_BLOCK_IDX_X * DJ_BLOCK_DIM_X + DJ_THREAD_IDX_X;\n"
                                 "    if (i < n) {\n"
                                 "        out[i] = in[i] * FACTOR;\n"
                                 "    }\n"
                                 "}\n";

/* A source of exactly `size` bytes (0: as it comes), different for each `number`. */
static void bench_source(cli_buffer *out, unsigned number, size_t size)
{
    out->size = 0;
    cli_buffer_printf(out, "#define FACTOR %u.0f\n%s", number, bench_body);
    while (out->size + 2 < size) {
        const bool start = out->size + 80 < size;
        cli_buffer_append(out, "//", 2);
        const size_t line = start ? 78 : size - out->size - 1;
        for (size_t i = 0; i < line; i++) {
            cli_buffer_append(out, "x", 1);
        }
        cli_buffer_append(out, "\n", 1);
    }
}

static dj_status bench_compile(const bench_state *bench, dj_runtime *runtime,
                               const cli_buffer *source, dj_kernel **out, dj_error *err)
{
    dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
    options.cancel = bench->cancel;
    return dj_compile(runtime, "bench", source->data, source->size, &options, out, err);
}

static bool bench_open(const bench_state *bench, dj_runtime **out)
{
    return cli_open_runtime(&bench->runtime, NULL, out) == CLI_DONE;
}

/* ---- Hits in memory ---- */

typedef struct hit_thread {
    dj_runtime *runtime;
    const cli_buffer *source;
    size_t calls;
    unsigned count;       /* threads of this round */
    atomic_uint *arrived; /* how many of them run */
    int64_t begin, end;
    dj_status status;
    dj_error err;
} hit_thread;

static void *hit_main(void *argument)
{
    hit_thread *const self = argument;
    dj_kernel *kernel = NULL;
    dj_status status = DJ_OK;
    /* Spinning keeps each thread on a processor of its own; a thread that sleeps in a barrier
     * is often woken on the waker's. */
    atomic_fetch_add(self->arrived, 1);
    while (atomic_load(self->arrived) < self->count) {
    }
    const int64_t begin = cli_now_ns();
    for (size_t i = 0; i < self->calls && status == DJ_OK; i++) {
        status = dj_compile(self->runtime, "bench", self->source->data, self->source->size, NULL,
                            &kernel, &self->err);
        dj_kernel_release(kernel);
    }
    /* Written once: neighbours on one cache line must not disturb the loop. */
    self->begin = begin;
    self->end = cli_now_ns();
    self->status = status;
    return NULL;
}

/* `count` threads hit their own kernels at once; calls per second of all together, or 0. */
static double hit_round(hit_thread threads[2], unsigned count)
{
    atomic_uint arrived = 0;
    pthread_t ids[2];
    for (unsigned i = 0; i < count; i++) {
        threads[i].count = count;
        threads[i].arrived = &arrived;
        if (pthread_create(&ids[i], NULL, hit_main, &threads[i]) != 0) {
            cli_error("cannot start a thread");
            exit(CLI_FAILURE); /* the others wait for ever */
        }
    }
    int64_t begin = INT64_MAX;
    int64_t end = 0;
    for (unsigned i = 0; i < count; i++) {
        pthread_join(ids[i], NULL);
        begin = threads[i].begin < begin ? threads[i].begin : begin;
        end = threads[i].end > end ? threads[i].end : end;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!bench_ok(threads[i].status, &threads[i].err)) {
            return 0;
        }
    }
    return 1e9 * (double)count * (double)threads[0].calls / (double)(end - begin);
}

static bool hit_measure(bench_state *bench, dj_runtime *runtime, const cli_buffer sources[2],
                        const char *name, double limit)
{
    const size_t calls = bench->hits / (sources[0].size > 4096 ? 3 : 1);
    hit_thread threads[2] = {
        {.runtime = runtime, .source = &sources[0], .calls = calls},
        {.runtime = runtime, .source = &sources[1], .calls = calls},
    };
    cli_samples one = {0};
    cli_samples two = {0};
    cli_samples ratio = {0};
    bool ok = true;
    for (size_t round = 0; round <= bench->rounds && ok; round++) {
        const bool swap = round % 2 == 1;
        const double first = hit_round(threads, swap ? 2 : 1);
        const double second = hit_round(threads, swap ? 1 : 2);
        ok = first > 0 && second > 0;
        if (ok && round > 0) {
            cli_samples_add(&one, 1e9 / (swap ? second : first));
            cli_samples_add(&two, 1e9 / (swap ? first : second));
            cli_samples_add(&ratio, swap ? first / second : second / first);
        }
    }
    if (ok) {
        char *const two_name = cli_format("%s_2_threads", name);
        const cli_verdict speed = {"median", NULL, cli_quantile(&one, 0.5), limit, false};
        const cli_verdict scaling = {"ratio", name, cli_quantile(&ratio, 0.5), 1.8, true};
        cli_report_add(&bench->report, name, "ns", &one, &speed);
        cli_report_add(&bench->report, two_name, "ns", &two, &scaling);
        free(two_name);
    }
    cli_samples_fini(&one);
    cli_samples_fini(&two);
    cli_samples_fini(&ratio);
    return ok;
}

static bool bench_memory(bench_state *bench)
{
    static const struct {
        size_t size;
        const char *name;
        double limit;
    } cases[] = {{1024, "memory_hit_1k", 150}, {10240, "memory_hit_10k", 600}};
    dj_runtime *runtime = NULL;
    bool ok = bench_open(bench, &runtime);
    for (size_t c = 0; c < 2 && ok; c++) {
        cli_buffer sources[2] = {{0}, {0}};
        dj_kernel *kernels[2] = {NULL, NULL};
        for (unsigned i = 0; i < 2 && ok; i++) {
            dj_error err = DJ_ERROR_INIT;
            bench_source(&sources[i], 100 + i, cases[c].size);
            ok = bench_ok(bench_compile(bench, runtime, &sources[i], &kernels[i], &err), &err);
        }
        ok = ok && hit_measure(bench, runtime, sources, cases[c].name, cases[c].limit);
        for (unsigned i = 0; i < 2; i++) {
            dj_kernel_release(kernels[i]);
            cli_buffer_fini(&sources[i]);
        }
    }
    dj_runtime_release(runtime);
    return ok;
}

/* ---- Launches ---- */

enum { LAUNCH_N = 32 };

typedef struct launch_case {
    dj_kernel *kernel;
    dj_host_block_fn function;
    float *out;
    const float *in;
    int n;
    size_t calls;
} launch_case;

static double launch_by_library(const launch_case *test, dj_status *status, dj_error *err)
{
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid = (dj_dim3){1, 1, 1};
    options.block = (dj_dim3){LAUNCH_N, 1, 1};
    const int64_t begin = cli_now_ns();
    for (size_t i = 0; i < test->calls && *status == DJ_OK; i++) {
        *status = dj_launch(test->kernel, &options, DJ_ARGS(test->out, test->in, test->n), err);
    }
    return (double)(cli_now_ns() - begin) / (double)test->calls;
}

static double launch_by_hand(const launch_case *test)
{
    const dj_host_block block = {.grid = {1, 1, 1}, .block = {LAUNCH_N, 1, 1}};
    const void *const args[] = {&test->out, &test->in, &test->n};
    /* Through a volatile pointer, so that the compiler sees a call it knows nothing about. */
    dj_host_block_fn volatile const function = test->function;
    const int64_t begin = cli_now_ns();
    for (size_t i = 0; i < test->calls; i++) {
        function(&block, args);
    }
    return (double)(cli_now_ns() - begin) / (double)test->calls;
}

static bool launch_measure(bench_state *bench, const launch_case *test)
{
    cli_samples ours = {0};
    cli_samples direct = {0};
    cli_samples difference = {0};
    dj_status status = DJ_OK;
    dj_error err = DJ_ERROR_INIT;
    for (size_t round = 0; round <= bench->rounds && status == DJ_OK; round++) {
        double by_hand = 0;
        if (round % 2 == 0) {
            by_hand = launch_by_hand(test);
        }
        const double by_library = launch_by_library(test, &status, &err);
        if (round % 2 == 1) {
            by_hand = launch_by_hand(test);
        }
        if (round > 0) {
            cli_samples_add(&ours, by_library);
            cli_samples_add(&direct, by_hand);
            cli_samples_add(&difference, by_library - by_hand);
        }
    }
    const bool ok = bench_ok(status, &err);
    if (ok) {
        const cli_verdict verdict = {"difference", "launch_direct_call",
                                     cli_quantile(&difference, 0.5), 100, false};
        cli_report_add(&bench->report, "launch_direct_call", "ns", &direct, NULL);
        cli_report_add(&bench->report, "launch", "ns", &ours, &verdict);
    }
    cli_samples_fini(&ours);
    cli_samples_fini(&direct);
    cli_samples_fini(&difference);
    return ok;
}

static bool bench_launch(bench_state *bench)
{
    static float in[LAUNCH_N];
    static float out[LAUNCH_N];
    dj_runtime *runtime = NULL;
    dj_kernel *kernel = NULL;
    cli_buffer source = {0};
    dj_error err = DJ_ERROR_INIT;
    bench_source(&source, 100, 1024);
    bool ok = bench_open(bench, &runtime) &&
              bench_ok(bench_compile(bench, runtime, &source, &kernel, &err), &err);
    if (ok) {
        const launch_case test = {
            kernel, dj_host_kernel_function(kernel), out, in, LAUNCH_N, bench->launches};
        ok = launch_measure(bench, &test);
    }
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    cli_buffer_fini(&source);
    return ok;
}

/* ---- Hits on disk ---- */

/* The least that a checked load can cost: reading the file, and dlopen of it where it lies.
 * Nanoseconds; 0: failed, reported. The handle is the caller's to close. */
static double disk_by_hand(const char *path, void **handle)
{
    cli_buffer file = {0};
    const int64_t begin = cli_now_ns();
    bool ok = cli_read_file(path, (size_t)1 << 30, &file);
    *handle = ok ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    ok = *handle != NULL && dlsym(*handle, "dj__host_kernels") != NULL;
    const int64_t end = cli_now_ns();
    cli_buffer_fini(&file);
    if (!ok) {
        cli_error("cannot load %s by hand", path);
    }
    return ok ? (double)(end - begin) : 0;
}

typedef struct disk_samples {
    cli_samples ours, by_hand, ratio;
} disk_samples;

static bool disk_one(bench_state *bench, dj_runtime *runtime, unsigned number, const char *path,
                     bool hand_first, disk_samples *samples)
{
    cli_buffer source = {0};
    dj_kernel *kernel = NULL;
    void *handle = NULL;
    dj_error err = DJ_ERROR_INIT;
    bench_source(&source, number, 1024);
    double by_hand = hand_first ? disk_by_hand(path, &handle) : 0;
    const int64_t begin = cli_now_ns();
    const dj_status status = bench_compile(bench, runtime, &source, &kernel, &err);
    const double ours = (double)(cli_now_ns() - begin);
    by_hand = hand_first ? by_hand : disk_by_hand(path, &handle);
    const bool ok = bench_ok(status, &err) && by_hand > 0;
    if (ok && samples != NULL) {
        cli_samples_add(&samples->ours, ours);
        cli_samples_add(&samples->by_hand, by_hand);
        cli_samples_add(&samples->ratio, ours / by_hand);
    }
    if (handle != NULL) {
        dlclose(handle);
    }
    dj_kernel_release(kernel);
    cli_buffer_fini(&source);
    return ok;
}

/* One runtime that knows its toolchain loads each kernel once. */
static bool disk_round(bench_state *bench, char *const *paths, bool hand_first,
                       disk_samples *samples)
{
    dj_runtime *runtime = NULL;
    dj_stats stats = DJ_STATS_INIT;
    dj_error err = DJ_ERROR_INIT;
    bool ok = bench_open(bench, &runtime) &&
              disk_one(bench, runtime, 0, paths[0], hand_first, NULL); /* warms the runtime */
    for (unsigned i = 1; i < bench->kernels && ok; i++) {
        ok = disk_one(bench, runtime, i, paths[i], (i % 2 == 0) == hand_first, samples);
    }
    ok = ok && bench_ok(dj_runtime_stats(runtime, &stats, &err), &err);
    if (ok && (stats.compiles != 0 || stats.disk_hits != bench->kernels)) {
        cli_error("the disk cache was not hit");
        ok = false;
    }
    dj_runtime_release(runtime);
    return ok;
}

static bool disk_prepare(bench_state *bench, char **paths)
{
    dj_runtime *runtime = NULL;
    cli_buffer source = {0};
    bool ok = bench_open(bench, &runtime);
    for (unsigned i = 0; i < bench->kernels && ok; i++) {
        dj_artifact *artifact = NULL;
        dj_error err = DJ_ERROR_INIT;
        dj_compile_options options = DJ_COMPILE_OPTIONS_INIT;
        options.cancel = bench->cancel;
        bench_source(&source, i, 1024);
        ok = bench_ok(
            dj_build(runtime, "bench", source.data, source.size, &options, &artifact, &err), &err);
        paths[i] = cli_format("%s", ok ? dj_artifact_binary(artifact) : "");
        dj_artifact_release(artifact);
    }
    cli_buffer_fini(&source);
    dj_runtime_release(runtime);
    return ok;
}

static bool bench_disk(bench_state *bench)
{
    char **const paths = cli_alloc(bench->kernels, sizeof *paths);
    disk_samples samples = {0};
    bool ok = disk_prepare(bench, paths);
    for (size_t round = 0; round <= bench->rounds && ok; round++) {
        ok = disk_round(bench, paths, round % 2 == 0, round > 0 ? &samples : NULL);
    }
    if (ok) {
        const cli_verdict ratio = {"ratio", "disk_by_hand", cli_quantile(&samples.ratio, 0.5), 2,
                                   false};
        cli_report_add(&bench->report, "disk_by_hand", "ns", &samples.by_hand, NULL);
        cli_report_add(&bench->report, "disk_hit", "ns", &samples.ours, &ratio);
    }
    cli_samples_fini(&samples.ours);
    cli_samples_fini(&samples.by_hand);
    cli_samples_fini(&samples.ratio);
    for (size_t i = 0; i < bench->kernels; i++) {
        free(paths[i]);
    }
    free(paths);
    return ok;
}

/* ---- Compilations and processes ---- */

static bool bench_cold(bench_state *bench)
{
    dj_runtime *runtime = NULL;
    cli_samples samples = {0};
    cli_buffer source = {0};
    bool ok = bench_open(bench, &runtime);
    for (unsigned i = 0; i <= bench->colds && ok; i++) {
        dj_kernel *kernel = NULL;
        dj_error err = DJ_ERROR_INIT;
        bench_source(&source, 1000 + i, 1024);
        const int64_t begin = cli_now_ns();
        ok = bench_ok(bench_compile(bench, runtime, &source, &kernel, &err), &err);
        if (ok && i > 0) {
            cli_samples_add(&samples, (double)(cli_now_ns() - begin));
        }
        dj_kernel_release(kernel);
    }
    if (ok) {
        cli_report_add(&bench->report, "cold_compile", "ns", &samples, NULL);
    }
    cli_samples_fini(&samples);
    cli_buffer_fini(&source);
    dj_runtime_release(runtime);
    return ok;
}

/* Whole processes: one that prints its version, one that finds its kernel on disk. */
static bool bench_process(bench_state *bench)
{
    char *const file = cli_format("%s/start.c", bench->root);
    const char *const nothing[] = {"version", NULL};
    const char *const build[] = {"build", "--backend", "host", file, NULL};
    cli_samples idle = {0};
    cli_samples hit = {0};
    cli_buffer source = {0};
    bench_source(&source, 1, 1024);
    bool ok = cli_write_file(file, source.data, source.size);
    for (size_t i = 0; i <= bench->starts && ok; i++) {
        int64_t idle_ns = 0;
        int64_t hit_ns = 0;
        ok = cli_run_self(nothing, &idle_ns) == 0 && cli_run_self(build, &hit_ns) == 0 &&
             !cli_guard_interrupted();
        if (ok && i > 0) { /* the first one compiles */
            cli_samples_add(&idle, (double)idle_ns);
            cli_samples_add(&hit, (double)hit_ns);
        }
    }
    if (ok) {
        cli_report_add(&bench->report, "process_version", "ns", &idle, NULL);
        cli_report_add(&bench->report, "process_disk_hit", "ns", &hit, NULL);
    } else if (!cli_guard_interrupted()) {
        cli_error("a process of this program failed");
    }
    cli_samples_fini(&idle);
    cli_samples_fini(&hit);
    cli_buffer_fini(&source);
    free(file);
    return ok;
}

/* ---- Machine ---- */

typedef struct machine_facts {
    char *compiler;
} machine_facts;

static void machine_visit(void *user, const dj_finding *finding)
{
    machine_facts *const facts = user;
    if (strcmp(finding->what, "compiler") == 0 && facts->compiler == NULL) {
        /* The first two lines are path and version. */
        const size_t path = strcspn(finding->detail, "\n");
        const char *const rest = finding->detail + path + strspn(finding->detail + path, "\n");
        facts->compiler =
            cli_format("%.*s, %.*s", (int)path, finding->detail, (int)strcspn(rest, "\n"), rest);
    }
}

static bool bench_machine(bench_state *bench)
{
    dj_runtime *runtime = NULL;
    dj_device device = DJ_DEVICE_INIT;
    dj_error err = DJ_ERROR_INIT;
    machine_facts facts = {NULL};
    struct utsname system;
    char date[32] = "";
    const time_t now = time(NULL);
    struct tm parts;
    bool ok = bench_open(bench, &runtime) &&
              bench_ok(dj_device_info(runtime, &device, &err), &err) &&
              bench_ok(dj_doctor(runtime, machine_visit, &facts, &err), &err);
    if (ok && uname(&system) == 0 && gmtime_r(&now, &parts) != NULL) {
        strftime(date, sizeof date, "%FT%TZ", &parts);
        const char *const compiler = facts.compiler != NULL ? facts.compiler : "";
        if (bench->report.table != NULL) {
            fprintf(bench->report.table, "%s, %u processors, %s %s\n%s\ndeepjit %s, %s\n\n",
                    device.name, device.compute_units, system.sysname, system.release, compiler,
                    dj_version(), date);
        }
        if (bench->report.json != NULL) {
            json_t *const object = json_object();
            cli_json_set(object, "name", json_string("machine"));
            cli_json_set(object, "cpu", cli_json_text(device.name));
            cli_json_set(object, "arch", cli_json_text(device.arch));
            cli_json_set(object, "processors", json_integer(device.compute_units));
            cli_json_set(object, "kernel", cli_json_text(system.release));
            cli_json_set(object, "compiler", cli_json_text(compiler));
            cli_json_set(object, "deepjit", json_string(dj_version()));
            cli_json_set(object, "date", json_string(date));
            cli_json_print_line(object);
        }
    }
    free(facts.compiler);
    dj_runtime_release(runtime);
    return ok;
}

static int bench_run(const bench_options *options)
{
    const bool quick = options->quick;
    bench_state bench = {
        .runtime = {.backend = "host"},
        .root = cli_make_temp_dir("bench"),
        .rounds = quick ? 7 : 31,
        .hits = quick ? 200000 : 1000000,
        .launches = quick ? 20000 : 100000,
        .kernels = quick ? 8 : 32,
        .colds = quick ? 5 : 21,
        .starts = quick ? 7 : 31,
    };
    if (bench.root == NULL) {
        return CLI_FAILURE;
    }
    const bool terminal = isatty(STDOUT_FILENO) == 1;
    bench.report.json = options->json || !terminal ? stdout : NULL;
    bench.report.table = options->json ? NULL : terminal ? stdout : stderr;
    char *const cache = cli_format("%s/cache", bench.root);
    bench.runtime.cache_dir = cache;
    bench.cancel = cli_guard_begin();
    bool ok = bench_machine(&bench);
    cli_report_begin(&bench.report);
    ok = ok && bench_memory(&bench) && bench_launch(&bench) && bench_disk(&bench) &&
         bench_cold(&bench) && bench_process(&bench);
    cli_remove_tree(bench.root);
    free(bench.root);
    free(cache);
    cli_guard_end();
    return cli_guard_status(ok ? CLI_DONE : CLI_FAILURE);
}

int cli_cmd_bench(int argc, char **argv)
{
    bench_options options = {.json = false};
    static const struct argp argp = {
        .options = bench_argp_options, .parser = bench_parse, .doc = bench_doc};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    return bench_run(&options);
}
