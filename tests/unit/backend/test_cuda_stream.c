/* SPDX-License-Identifier: MIT */
/* link: -Wl,--wrap=dj__cubin_read,--wrap=dj__cubin_fini */
/*
 * The hosting framework's stream. The frameworks are small shared objects, loaded as Python loads
 * its extensions: not into the global scope.
 */
#include "cuda_fake.h"

#include "base/fs.h"

#include <dlfcn.h>

static const char stream_torch[] =
    "#include <stdint.h>\n"
    "int32_t aoti_torch_get_current_cuda_stream(int32_t device, void **out);\n"
    "int32_t test_torch_result;\n"
    "int32_t aoti_torch_get_current_cuda_stream(int32_t device, void **out)\n"
    "{\n"
    "    *out = (void *)(intptr_t)(0x100 + device);\n"
    "    return test_torch_result;\n"
    "}\n";
static const char stream_tvm[] = "#include <stdint.h>\n"
                                 "void *TVMFFIEnvGetStream(int32_t type, int32_t device);\n"
                                 "void *TVMFFIEnvGetStream(int32_t type, int32_t device)\n"
                                 "{\n"
                                 "    return (void *)(intptr_t)(0x1000 + 16 * type + device);\n"
                                 "}\n";

static char stream_dir[] = "/tmp/djstream-XXXXXX";

static void *stream_load(const char *name, const char *source)
{
    char path[256];
    char command[1024];
    (void)snprintf(path, sizeof path, "%s/%s.c", stream_dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(source, file) >= 0);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(command, sizeof command, "cc -shared -fPIC -o %s/%s.so %s", stream_dir, name,
                   path);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
    (void)snprintf(path, sizeof path, "%s/%s.so", stream_dir, name);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fail_msg("%s", dlerror());
    }
    return handle;
}

static void *stream_of(const cuda_fixture *fixture)
{
    return dj__cuda_driver_ops.current_stream(fixture->driver);
}

/* In one test, for what a process has loaded stays. */
static void frameworks_come_later(void **state)
{
    (void)state;
    cuda_fixture fixture;
    fake_reset();
    cuda_fixture_start(&fixture);
    assert_null(stream_of(&fixture));

    /* Not seen before the next load: a launch does not search. */
    (void)stream_load("tvm", stream_tvm);
    assert_null(stream_of(&fixture));
    dj__cuda_driver_ops.unload(fixture.driver, fixture.module);
    assert_int_equal(cuda_fixture_load(&fixture), DJ_OK);
    assert_int_equal((uintptr_t)stream_of(&fixture), 0x1000 + 16 * 2 + 0);
    atomic_store(&fake.contexts[1].alive, true);
    fake_current = 2;
    assert_int_equal((uintptr_t)stream_of(&fixture), 0x1000 + 16 * 2 + 1);

    /* PyTorch comes first. */
    void *torch = stream_load("torch", stream_torch);
    int32_t *result = dlsym(torch, "test_torch_result");
    assert_non_null(result);
    dj__cuda_driver_ops.unload(fixture.driver, fixture.module);
    assert_int_equal(cuda_fixture_load(&fixture), DJ_OK);
    assert_int_equal((uintptr_t)stream_of(&fixture), 0x100 - 1);
    *result = 1;
    assert_null(stream_of(&fixture));
    *result = 0;

    /* Its address stays valid even if the library is closed. */
    assert_int_equal(dlclose(torch), 0);
    assert_int_equal((uintptr_t)stream_of(&fixture), 0x100 - 1);
    cuda_fixture_stop(&fixture);

    /* A driver that is opened now knows it from the start. */
    assert_int_equal(cuda_fixture_open(&fixture, NULL), DJ_OK);
    assert_int_equal((uintptr_t)stream_of(&fixture), 0x100 - 1);
    cuda_fixture_stop(&fixture);
}

/* dlpi_adds tells whether there is anything new; nothing new costs no search. */
static void nothing_new_is_not_searched(void **state)
{
    (void)state;
    dj__cuda_streams streams;
    memset(&streams, 0, sizeof streams);
    dj__cuda_streams_look(&streams);
    const uint64_t seen = atomic_load(&streams.seen);
    assert_true(seen > 0);
    dj__cuda_streams_look(&streams);
    assert_int_equal(atomic_load(&streams.seen), seen);
}

static int stream_setup(void **state)
{
    (void)state;
    return mkdtemp(stream_dir) != NULL ? 0 : -1;
}

static int stream_teardown(void **state)
{
    (void)state;
    return dj__remove_tree(stream_dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_new_is_not_searched),
        cmocka_unit_test(frameworks_come_later),
    };
    return cmocka_run_group_tests(tests, stream_setup, stream_teardown);
}
