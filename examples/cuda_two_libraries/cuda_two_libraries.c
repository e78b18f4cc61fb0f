/* SPDX-License-Identifier: MIT */
/*
 * Two kernel libraries in one process, as two packages of one program would embed DeepJIT: each
 * has a runtime of its own with its own prefix for settings, defaults for compilation and launch,
 * and cache root. ALPHA_JIT_CACHE_DIR and BETA_JIT_CACHE_DIR choose the roots; unset, they are
 * directories beside each other in the usual one.
 *
 * Run: build/examples/cuda_two_libraries
 */
#include "../common/example.h"
#include <math.h>

/* Both libraries have this source; what they make of it are their defaults. */
static const char source[] =
    "extern \"C\" __global__ void fill(double *out, int n)\n"
    "{\n"
    "    for (int i = threadIdx.x; i < n; i += blockDim.x) {\n"
    "        out[i] = FACTOR * i + (__cplusplus / 100 - 2000) + blockDim.x;\n"
    "    }\n"
    "}\n";

enum { N = 1000 };

typedef struct library {
    const char *prefix, *version, *cpp_standard, *flag;
    unsigned threads;
    double factor, standard; /* what the flag and the standard give */
    dj_runtime *runtime;
} library;

static library libraries[] = {
    {"ALPHA", "alpha 1.0", "17", "-DFACTOR=0.5", 64, 0.5, 17, NULL},
    {"BETA", "beta 2.3", "20", "-DFACTOR=3.0", 256, 3.0, 20, NULL},
};

/* An embedding library would leave this to its users. */
static void choose_root(const char *prefix)
{
    char name[64];
    char path[4096];
    const char *const common = getenv("DJ_JIT_CACHE_DIR");
    const char *const home = getenv("HOME");
    if (common == NULL && home == NULL) {
        return;
    }
    snprintf(name, sizeof name, "%s_JIT_CACHE_DIR", prefix);
    if (common != NULL) {
        snprintf(path, sizeof path, "%.*s/%s", (int)strcspn(common, ":"), common, prefix);
    } else {
        snprintf(path, sizeof path, "%s/.dj/%s", home, prefix);
    }
    setenv(name, path, 0);
}

static void open_library(library *lib)
{
    choose_root(lib->prefix);
    dj_cuda_compile_options cuda = DJ_CUDA_COMPILE_OPTIONS_INIT;
    cuda.cpp_standard = lib->cpp_standard;
    dj_compile_options compile = DJ_COMPILE_OPTIONS_INIT;
    compile.cuda = &cuda;
    compile.extra_flags = &lib->flag;
    compile.num_extra_flags = 1;
    dj_launch_options launch = DJ_LAUNCH_OPTIONS_INIT;
    launch.grid.x = 1;
    launch.block.x = lib->threads;
    dj_config config = DJ_CONFIG_INIT;
    config.env_prefix = lib->prefix;
    config.extra_signature = lib->version;
    config.extra_signature_size = strlen(lib->version);
    config.compile_defaults = &compile;
    config.launch_defaults = &launch;
    lib->runtime = open_cuda(&config);
}

static int use_library(const library *lib)
{
    static double out[N];
    const int n = N;
    dj_error err = DJ_ERROR_INIT;
    dj_kernel *kernel = NULL;
    must(dj_compile(lib->runtime, "fill", source, sizeof source - 1, NULL, &kernel, &err), &err);
    void *const memory = to_device(lib->runtime, NULL, sizeof out);
    /* Grid and block are the library's defaults. */
    must(dj_launch(kernel, NULL, DJ_ARGS(memory, n), &err), &err);
    must(dj_mem_copy(lib->runtime, out, memory, sizeof out, &err), &err);
    double largest = 0;
    for (int i = 0; i < N; i++) {
        const double expected = lib->factor * i + lib->standard + lib->threads;
        largest = worst(largest, fabs(out[i] - expected));
    }
    printf("%s: C++%s, %s, %u threads, %s\n", lib->prefix, lib->cpp_standard, lib->flag,
           lib->threads, dj_kernel_path(kernel));
    (void)dj_mem_free(lib->runtime, memory, NULL);
    dj_kernel_release(kernel);
    return verdict("    fill", largest, 0);
}

int main(void)
{
    open_library(&libraries[0]);
    open_library(&libraries[1]);
    need_device(libraries[0].runtime, 0);
    int wrong = 0;
    for (int round = 0; round < 2; round++) { /* the second round finds both in memory */
        for (int i = 0; i < 2; i++) {
            wrong |= use_library(&libraries[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        dj_runtime_release(libraries[i].runtime);
    }
    return wrong;
}
