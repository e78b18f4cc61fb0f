/* SPDX-License-Identifier: MIT */
/*
 * Finding libcuda. The libraries are compiled here from cuda_symbols.def: each function exists,
 * and cuInit gives what the test wants.
 */
#include "backend/cuda/cuda_driver.h"
#include "base/fs.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char library_dir[] = "/tmp/djlib-XXXXXX";
static dj_error library_err;

/* OMIT is the name of a function that is left out, under a name nobody looks for. */
static const char library_source[] = "#include \"backend/cuda/cuda_api.h\"\n"
                                     "#define CUDA_SYMBOL(need, name, exported, since, params) \\\n"
                                     "    dj__cu_result exported params; \\\n"
                                     "    dj__cu_result exported params { return RESULT_##name; }\n"
                                     "#include \"results.h\"\n"
                                     "#define RESULT_cuDriverGetVersion (*version = VERSION, 0)\n"
                                     "#define RESULT_cuInit (INIT)\n"
                                     "#define RESULT_cuDeviceGetCount (*count = 1, 0)\n"
                                     "#include \"backend/cuda/cuda_symbols.def\"\n";

static void library_write(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", library_dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* What every other function returns. */
static void library_write_results(void)
{
    static const char *const names[] = {
#define CUDA_SYMBOL(need, name, exported, since, params) #name,
#include "backend/cuda/cuda_symbols.def"
#undef CUDA_SYMBOL
    };
    char text[8192] = "";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t used = strlen(text);
        if (strcmp(names[i], "cuInit") != 0 && strcmp(names[i], "cuDriverGetVersion") != 0 &&
            strcmp(names[i], "cuDeviceGetCount") != 0) {
            (void)snprintf(text + used, sizeof text - used, "#define RESULT_%s 0\n", names[i]);
        }
    }
    library_write("results.h", text);
}

/* Compiles a libcuda; `name` gets a path in the setting's form. */
static void library_make(const char *name, const char *flags, char setting[512])
{
    char command[2048];
    const char *root = getenv("DJ_TEST_SOURCE_DIR");
    library_write("cuda.c", library_source);
    library_write_results();
    (void)snprintf(command, sizeof command,
                   "cc -shared -fPIC -w -I'%s/src' -I'%s' %s -o '%s/%s' '%s/cuda.c'",
                   root != NULL ? root : ".", library_dir, flags, library_dir, name, library_dir);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
    (void)snprintf(setting, 512, "DJ_JIT_CUDA_LIBRARY=%s/%s", library_dir, name);
}

static dj_status library_open_with(const char *first, const char *second, dj__cuda_library *library,
                                   dj__cuda_api *api)
{
    const char *variables[] = {first, second, NULL};
    dj__env *env = NULL;
    assert_int_equal(dj__env_create(NULL, (char *const *)variables, &env, NULL), DJ_OK);
    memset(&library_err, 0, sizeof library_err);
    const dj_status status = dj__cuda_library_open(env, library, api, &library_err);
    dj__env_destroy(env);
    return status;
}

static void library_refused(const char *first, const char *second, dj_status status,
                            const char *text)
{
    dj__cuda_library library;
    dj__cuda_api api;
    assert_int_equal(library_open_with(first, second, &library, &api), status);
    assert_int_equal(library_err.status, status);
    if (strstr(library_err.message, text) == NULL) {
        fail_msg("expected '%s' in '%s'", text, library_err.message);
    }
}

static void bad_settings(void **state)
{
    (void)state;
    library_refused("DJ_JIT_CUDA_LIBRARY=/nowhere/libcuda.so.1", NULL, DJ_UNAVAILABLE,
                    "no CUDA driver: cannot open what DJ_JIT_CUDA_LIBRARY names: "
                    "/nowhere/libcuda.so.1: cannot open shared object file");
    library_refused("DJ_JIT_CUDA_LIBRARY=libnowhere.so.7", NULL, DJ_UNAVAILABLE,
                    "cannot open what DJ_JIT_CUDA_LIBRARY names: libnowhere.so.7");
    library_refused("DJ_JIT_CUDA_LIBRARY=here/libcuda.so.1", NULL, DJ_INVALID_ARGUMENT,
                    "invalid value for DJ_JIT_CUDA_LIBRARY: here/libcuda.so.1 (expected an "
                    "absolute path");
}

static void no_library(void **state)
{
    (void)state;
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != NULL) {
        print_message("this machine has a libcuda.so.1\n");
        skip();
    }
    library_refused(NULL, NULL, DJ_UNAVAILABLE,
                    "no CUDA driver: libcuda.so.1 is not loaded in this process, and the dynamic "
                    "linker says: libcuda.so.1: cannot open shared object file");
    library_refused("DJ_JIT_CUDA_LIBRARY=", NULL, DJ_UNAVAILABLE,
                    "set DJ_JIT_CUDA_LIBRARY to the path of its libcuda.so.1");
}

static void good_library(void **state)
{
    (void)state;
    char setting[512];
    dj__cuda_library library;
    dj__cuda_api api;
    library_make("good.so", "-DINIT=0 -DVERSION=12080", setting);
    assert_int_equal(library_open_with(setting, NULL, &library, &api), DJ_OK);
    assert_int_equal(library.version, 12080);
    assert_string_equal(library.name, setting + strlen("DJ_JIT_CUDA_LIBRARY="));
#define CUDA_SYMBOL(need, name, exported, since, params) assert_non_null(api.name);
#include "backend/cuda/cuda_symbols.def"
#undef CUDA_SYMBOL
    /* The exported name is what counts, where there are two. */
    void *symbol = dlsym(library.handle, "cuMemAlloc_v2");
    assert_memory_equal(&api.cuMemAlloc, &symbol, sizeof symbol);
}

/* Through the table, with the device as this library describes it: not at all. */
static void opens_a_driver(void **state)
{
    (void)state;
    char setting[512];
    library_make("driver.so", "-DINIT=0 -DVERSION=13000", setting);
    const char *variables[] = {setting, NULL};
    dj_backend_context context = {.size = sizeof context};
    dj__env *env = NULL;
    dj_driver *driver = NULL;
    assert_int_equal(dj__env_create(NULL, (char *const *)variables, &env, NULL), DJ_OK);
    context.env = env;
    assert_int_equal(dj__cuda_driver_ops.open(&context, &driver, &library_err), DJ_OK);
    assert_int_equal(driver->num_devices, 1);
    dj__cuda_driver_ops.close(driver);
    dj__env_destroy(env);
}

static void old_driver(void **state)
{
    (void)state;
    char setting[512];
    char text[1024];
    library_make("old.so", "-DINIT=0 -DVERSION=11080 -DcuLibraryLoadData=absent", setting);
    (void)snprintf(text, sizeof text,
                   "%s: cuLibraryLoadData needs driver 12.0 or newer, this one supports CUDA 11.8",
                   setting + strlen("DJ_JIT_CUDA_LIBRARY="));
    library_refused(setting, NULL, DJ_INCOMPATIBLE, text);
    library_make("odd.so", "-DINIT=0 -DVERSION=0 -DcuDriverGetVersion=absent", setting);
    library_refused(setting, NULL, DJ_INCOMPATIBLE,
                    "cuDriverGetVersion needs driver 2.2 or newer, this one does not say its "
                    "version");
    /* Optional functions are missing without a word. */
    dj__cuda_library library;
    dj__cuda_api api;
    library_make("some.so", "-DINIT=0 -DVERSION=12000 -DcuKernelGetParamInfo=absent", setting);
    assert_int_equal(library_open_with(setting, NULL, &library, &api), DJ_OK);
    assert_null(api.cuKernelGetParamInfo);
    assert_non_null(api.cuLibraryGetKernelCount);
}

static void not_initialised(void **state)
{
    (void)state;
    char setting[512];
    library_make("none.so", "-DINIT=100 -DVERSION=13000", setting);
    library_refused(setting, NULL, DJ_UNAVAILABLE, "no CUDA device: the driver (");
    assert_int_equal(library_err.native, 100);
    library_refused(setting, "CUDA_VISIBLE_DEVICES=7", DJ_UNAVAILABLE,
                    "no CUDA device: the driver finds none with CUDA_VISIBLE_DEVICES=7");
    library_make("forked.so", "-DINIT=3 -DVERSION=13000", setting);
    library_refused(setting, NULL, DJ_DEVICE, "CUDA was used in this process before fork()");
    library_make("other.so", "-DINIT=803 -DVERSION=13000", setting);
    library_refused(setting, NULL, DJ_UNAVAILABLE, "cannot be initialised: unknown error (803)");
    library_make("stub.so", "-DINIT=34 -DVERSION=13000", setting);
    library_refused(setting, NULL, DJ_UNAVAILABLE, "is the toolkit's stub library");
}

static void the_toolkits_stub(void **state)
{
    (void)state;
    static const char path[] = "/usr/local/cuda/lib64/stubs/libcuda.so";
    char setting[512];
    if (access(path, R_OK) != 0) {
        print_message("no CUDA toolkit here\n");
        skip();
    }
    (void)snprintf(setting, sizeof setting, "DJ_JIT_CUDA_LIBRARY=%s", path);
    library_refused(setting, NULL, DJ_UNAVAILABLE,
                    "no CUDA driver: /usr/local/cuda/lib64/stubs/libcuda.so is the toolkit's stub "
                    "library");
}

/* Runs last: from here on this process has a libcuda.so.1. */
static void already_loaded(void **state)
{
    (void)state;
    char setting[512];
    dj__cuda_library library;
    dj__cuda_api api;
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != NULL) {
        print_message("this machine has a libcuda.so.1\n");
        skip();
    }
    library_make("loaded.so", "-DINIT=0 -DVERSION=12090 -Wl,-soname,libcuda.so.1", setting);
    void *handle = dlopen(setting + strlen("DJ_JIT_CUDA_LIBRARY="), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    assert_int_equal(library_open_with(NULL, NULL, &library, &api), DJ_OK);
    assert_int_equal(library.version, 12090);
    assert_string_equal(library.name, "libcuda.so.1");
    /* A setting comes before it. */
    library_make("chosen.so", "-DINIT=0 -DVERSION=12010", setting);
    assert_int_equal(library_open_with(setting, NULL, &library, &api), DJ_OK);
    assert_int_equal(library.version, 12010);
    library_refused("DJ_JIT_CUDA_LIBRARY=/nowhere", NULL, DJ_UNAVAILABLE, "/nowhere");
}

static int library_setup(void **state)
{
    (void)state;
    return mkdtemp(library_dir) != NULL ? 0 : -1;
}

static int library_teardown(void **state)
{
    (void)state;
    return dj__remove_tree(library_dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_settings),      cmocka_unit_test(no_library),
        cmocka_unit_test(good_library),      cmocka_unit_test(opens_a_driver),
        cmocka_unit_test(old_driver),        cmocka_unit_test(not_initialised),
        cmocka_unit_test(the_toolkits_stub), cmocka_unit_test(already_loaded),
    };
    return cmocka_run_group_tests(tests, library_setup, library_teardown);
}
