/* SPDX-License-Identifier: MIT */
/* What dj_launch checks before the driver sees anything. */
#include "core_fixture.h"

static dj_runtime *runtime;
static dj_kernel *kernel;

static int setup(void **state)
{
    fake_setup(state);
    runtime = fake_runtime(NULL);
    kernel = fake_compile_ok(runtime, "t", "x", NULL);
    return 0;
}

static int teardown(void **state)
{
    dj_kernel_release(kernel);
    dj_runtime_release(runtime);
    return fake_teardown(state);
}

static void expect(const dj_launch_options *options, const dj_arg *args, size_t num_args,
                   const char *text)
{
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj_launch(kernel, options, args, num_args, &err), DJ_INVALID_ARGUMENT);
    if (strstr(err.message, text) == NULL) {
        fail_msg("expected '%s' in '%s'", text, err.message);
    }
    assert_int_equal(world.launches, 0);
}

static void bad_dimensions(void **state)
{
    (void)state;
    float *out = NULL;
    int n = 0;
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    expect(NULL, DJ_ARGS(out, n), "grid dimension must be specified");
    expect(&options, DJ_ARGS(out, n), "grid dimension must be specified");
    options.grid.y = 3;
    expect(&options, DJ_ARGS(out, n), "grid dimensions must be positive");
    options.grid.x = 1;
    expect(&options, DJ_ARGS(out, n), "block dimension must be specified");
    options.block.z = 1;
    expect(&options, DJ_ARGS(out, n), "block dimensions must be positive");
    options.block.x = 1;
    options.shared_bytes = -1;
    expect(&options, DJ_ARGS(out, n), "shared-memory size must not be negative");
    options.shared_bytes = 0;
    options.size = 8;
    expect(&options, DJ_ARGS(out, n), "dj_launch_options.size is 8");
    options.size = sizeof(options);
    options.cuda = &(dj_cuda_launch_options){.size = 8};
    expect(&options, DJ_ARGS(out, n), "dj_cuda_launch_options.size is 8");
    options.cuda = NULL;
    options.host = &(dj_host_launch_options){.size = 3};
    expect(&options, DJ_ARGS(out, n), "dj_host_launch_options.size is 3");
    options.host = NULL;
}

static void bad_arguments(void **state)
{
    (void)state;
    float *out = NULL;
    int n = 0;
    int64_t wide = 0;
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = options.block.x = 1;
    expect(&options, DJ_ARGS(out), "kernel 'fake_kernel' takes 2 arguments, got 1");
    expect(&options, DJ_NO_ARGS, "takes 2 arguments, got 0");
    expect(&options, DJ_ARGS(out, n, n), "takes 2 arguments, got 3");
    expect(&options, NULL, 2, "args is NULL");
    expect(&options, DJ_ARGS(out, wide), "argument 1 (int n) has 8 bytes, the kernel expects 4");
    const dj_arg missing[] = {{NULL, 8, 0}, {&n, 4, 0}};
    expect(&options, missing, 2, "argument 0 (float * out) has no address");
    assert_int_equal(dj_launch(kernel, &options, DJ_ARGS(out, n), NULL), DJ_OK);
}

/* More than fit on the stack, too: the driver gets every address, and a wrong size is found. */
static void any_number_of_arguments(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 63, 64, 65, FAKE_MANY_PARAMS};
    char values[FAKE_MANY_PARAMS];
    dj_arg args[FAKE_MANY_PARAMS];
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid.x = options.block.x = 1;
    for (size_t i = 0; i < FAKE_MANY_PARAMS; i++) {
        fake_many_params[i] = (dj_param){"", "", 1, 1};
        args[i] = (dj_arg){&values[i], 1, 0};
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const size_t last = counts[i] - 1;
        char source[32];
        dj_error err = DJ_ERROR_INIT;
        snprintf(source, sizeof(source), "many %zu", counts[i]);
        world.num_params = counts[i];
        dj_kernel *many = fake_compile_ok(runtime, "t", source, NULL);
        memset((void *)fake_last_args, 0, sizeof(fake_last_args));
        assert_int_equal(dj_launch(many, &options, args, counts[i], NULL), DJ_OK);
        for (size_t k = 0; k < counts[i]; k++) {
            assert_ptr_equal(fake_last_args[k], &values[k]);
        }
        const int launches = atomic_load(&world.launches);
        args[last].size = 2;
        assert_int_equal(dj_launch(many, &options, args, counts[i], &err), DJ_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "has 2 bytes, the kernel expects 1"));
        args[last] = (dj_arg){NULL, 1, 0};
        assert_int_equal(dj_launch(many, &options, args, counts[i], &err), DJ_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "has no address"));
        args[last].ptr = &values[last];
        assert_int_equal(atomic_load(&world.launches), launches);
        dj_kernel_release(many);
    }
    world.num_params = 0;
}

/* y and z that are left out are 1, whatever the defaults say. */
static void dimensions_left_out(void **state)
{
    (void)state;
    float *out = NULL;
    int n = 0;
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    options.grid = (dj_dim3){7, 0, 3};
    options.block = (dj_dim3){UINT32_MAX, UINT32_MAX, 0};
    assert_int_equal(dj_launch(kernel, &options, DJ_ARGS(out, n), NULL), DJ_OK);
    assert_int_equal(fake_last_config.grid.x, 7);
    assert_int_equal(fake_last_config.grid.y, 1);
    assert_int_equal(fake_last_config.grid.z, 3);
    assert_int_equal(fake_last_config.block.x, UINT32_MAX);
    assert_int_equal(fake_last_config.block.y, UINT32_MAX);
    assert_int_equal(fake_last_config.block.z, 1);
    assert_ptr_equal(fake_last_config.call, &options);
    /* Nobody has set anything of a vendor's. */
    assert_null(fake_last_config.defaults->cuda);
    assert_null(fake_last_config.defaults->host);
    /* A struct of another size is brought into ours. */
    struct {
        dj_launch_options options;
        uint64_t later;
    } longer = {.options = {.size = sizeof(longer), .grid = {2, 0, 0}, .block = {3, 0, 0}}};
    assert_int_equal(dj_launch(kernel, &longer.options, DJ_ARGS(out, n), NULL), DJ_OK);
    assert_int_equal(fake_last_config.grid.x, 2);
    assert_int_equal(fake_last_config.block.x, 3);
    longer.later = 1;
    assert_int_equal(dj_launch(kernel, &longer.options, DJ_ARGS(out, n), NULL), DJ_UNSUPPORTED);
}

/* The import says what is wrong, and no driver sees it. */
static void switches_that_are_none(void **state)
{
    (void)state;
    float *out = NULL;
    int n = 0;
    dj_error err;
    dj_launch_options options = DJ_LAUNCH_OPTIONS_INIT;
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    options.grid.x = options.block.x = 1;
    options.cuda = &cuda;
    dj_tri *const switches[] = {&cuda.cooperative, &cuda.enable_pdl, &cuda.nonportable_cluster};
    static const char *const words[] = {"option cooperative is 77", "option enable_pdl is 77",
                                        "option nonportable_cluster is 77"};
    const int launches = world.launches;
    for (size_t i = 0; i < 3; i++) {
        *switches[i] = (dj_tri)77;
        assert_int_equal(dj_launch(kernel, &options, DJ_ARGS(out, n), &err), DJ_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, words[i]));
        *switches[i] = (dj_tri)-1;
        assert_int_equal(dj_launch(kernel, &options, DJ_ARGS(out, n), &err), DJ_INVALID_ARGUMENT);
        *switches[i] = DJ_ON;
    }
    assert_int_equal(world.launches, launches);
    assert_int_equal(dj_launch(kernel, &options, DJ_ARGS(out, n), &err), DJ_OK);
    assert_int_equal(world.launches, launches + 1);
}

static void null_and_released(void **state)
{
    (void)state;
    dj_error err;
    assert_int_equal(dj_launch(NULL, NULL, DJ_NO_ARGS, &err), DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "kernel must not be null"));
    size_t size = 0;
    const char *name = NULL;
    assert_int_equal(dj_kernel_param(kernel, 1, &size, NULL, &name, NULL, NULL), DJ_OK);
    assert_int_equal(size, 4);
    assert_string_equal(name, "n");
    assert_int_equal(dj_kernel_param(kernel, 2, &size, NULL, &name, NULL, &err),
                     DJ_INVALID_ARGUMENT);
    assert_int_equal(dj_kernel_num_params(kernel), 2);
    assert_null((void *)dj_host_kernel_function(kernel));
}

static void used_after_release(void **state)
{
    (void)state;
    setenv("DJ_JIT_MEM_CACHE_MAX", "1", 1);
    dj_runtime *bounded = fake_runtime(NULL);
    dj_kernel *gone = fake_compile_ok(bounded, "t", "gone", NULL);
    dj_kernel_release(gone);
    dj_kernel_release(fake_compile_ok(bounded, "t", "next", NULL)); /* evicts it */
    dj_error err;
    assert_int_equal(dj_launch(gone, NULL, DJ_NO_ARGS, &err), DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "used after its release"));
    dj_runtime_release(bounded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bad_dimensions, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(any_number_of_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(dimensions_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(switches_that_are_none, setup, teardown),
        cmocka_unit_test_setup_teardown(null_and_released, setup, teardown),
        cmocka_unit_test_setup_teardown(used_after_release, setup, teardown),
    };
    return cmocka_run_group_tests_name("launch checks", tests, NULL, NULL);
}
