/* SPDX-License-Identifier: MIT */
/* link: -Wl,--wrap=dj__cubin_read,--wrap=dj__cubin_fini */
/* Launches: what reaches the driver, what does not, and what is said then. */
#include "cuda_fake.h"

static cuda_fixture fixture;

static int setup(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cuda_fixture_stop(&fixture);
    return 0;
}

static const cuda_call one_block = {.grid = {1, 1, 1}, .block = {32, 1, 1}};

static void expect_launch(const cuda_call *call)
{
    if (cuda_fixture_launch(&fixture, call) != DJ_OK) {
        fail_msg("%s", fixture.err.message);
    }
}

static void expect_refusal(const cuda_call *call, dj_status status, const char *text)
{
    const int before = fake.launches;
    assert_int_equal(cuda_fixture_launch(&fixture, call), status);
    assert_int_equal(fixture.err.status, status);
    cuda_fixture_says(&fixture, text);
    cuda_fixture_says(&fixture, "kernel 'scale'");
    assert_int_equal(fake.launches, before);
}

static void configuration_and_arguments(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    const cuda_call call = {
        .grid = {5, 6, 7}, .block = {8, 4, 2}, .shared = 640, .stream = &fixture};
    expect_launch(&call);
    assert_int_equal(fake.config.grid[0], 5);
    assert_int_equal(fake.config.grid[1], 6);
    assert_int_equal(fake.config.grid[2], 7);
    assert_int_equal(fake.config.block[0], 8);
    assert_int_equal(fake.config.block[1], 4);
    assert_int_equal(fake.config.block[2], 2);
    assert_int_equal(fake.config.shared_bytes, 640);
    assert_ptr_equal(fake.config.stream, &fixture);
    assert_int_equal(fake.config.num_attributes, 0);
    assert_int_equal(fake.values[0], 100);
    assert_int_equal(fake.values[1], 101);
    assert_int_equal(fake.sets, 0);
    /* The function is asked for once, by the load. */
    expect_launch(&call);
    assert_int_equal(fake.get_functions, 1);
    assert_int_equal(fake.launches, 2);
}

static void any_number_of_arguments(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 64, 65, FAKE_PARAMS};
    cuda_fixture_start(&fixture);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        fake_params(counts[i], 8);
        expect_launch(&one_block);
        assert_true((fake.params_seen == NULL) == (counts[i] == 0));
        for (size_t k = 0; k < counts[i]; k++) {
            assert_int_equal(fake.values[k], 100 + k);
        }
    }
}

static void limits(void **state)
{
    (void)state;
    fake.kernel_threads = 512;
    fake.static_shared = 2048;
    fake.kernels[0].shared_bytes = 1024; /* the driver counts the reserve, the cubin does not */
    cuda_fixture_start(&fixture);
    static const struct {
        cuda_call call;
        const char *text;
    } cases[] = {
        {{.grid = {1, 1, 1}, .block = {1025, 1, 1}}, "block.x is 1025, Fake 0 allows at most 1024"},
        {{.grid = {1, 1, 1}, .block = {1, 1025, 1}}, "block.y is 1025, Fake 0 allows at most 1024"},
        {{.grid = {1, 1, 1}, .block = {1, 1, 65}}, "block.z is 65, Fake 0 allows at most 64"},
        {{.grid = {1, 1, 1}, .block = {64, 8, 4}},
         "threads per block are 2048, Fake 0 allows at "
         "most 1024"},
        {{.grid = {1, 1, 1}, .block = {513, 1, 1}},
         "threads per block are 513, this kernel allows "
         "at most 512 (by its registers"},
        /* A product that wraps around 2^64. */
        {{.grid = {1, 1, 1}, .block = {1u << 31, 1u << 31, 4}}, "block.x is 2147483648"},
        {{.grid = {2147483648u, 1, 1}, .block = {1, 1, 1}},
         "grid.x is 2147483648, Fake 0 allows "
         "at most 2147483647"},
        {{.grid = {1, 65536, 1}, .block = {1, 1, 1}},
         "grid.y is 65536, Fake 0 allows at most "
         "65535"},
        {{.grid = {1, 1, 65536}, .block = {1, 1, 1}}, "grid.z is 65536"},
        {{.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared = FAKE_OPTIN - 1023},
         "shared_bytes is 231425, and the kernel has 1024 bytes of its own; Fake 0 allows at most "
         "232448 bytes"},
        {{.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared = (uint64_t)1 << 40},
         "shared_bytes is 1099511627776"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_refusal(&cases[i].call, DJ_INVALID_ARGUMENT, cases[i].text);
    }
    /* Exactly at the limits. */
    const cuda_call most = {
        .grid = {2147483647, 65535, 65535}, .block = {8, 1, 64}, .shared = FAKE_OPTIN - 1024};
    expect_launch(&most);
    assert_int_equal(fake.config.shared_bytes, FAKE_OPTIN - 1024);
}

/* Limits that no single comparison stands for. */
static void odd_limits(void **state)
{
    (void)state;
    fake.max_block_x = 100;
    fake.max_grid_yz = 40000;
    cuda_fixture_start(&fixture);
    const cuda_call good[] = {
        {.grid = {1, 32767, 32767}, .block = {100, 1, 1}},
        {.grid = {1, 40000, 1}, .block = {100, 10, 1}},
        {.grid = {1, 30000, 40000}, .block = {2, 512, 1}},
        {.grid = {1, 1, 32768}, .block = {1, 1024, 1}},
    };
    const cuda_call grid_y = {.grid = {1, 40001, 1}, .block = {1, 1, 1}};
    const cuda_call grid_z = {.grid = {1, 1, 40001}, .block = {1, 1, 1}};
    const cuda_call block_x = {.grid = {1, 1, 1}, .block = {101, 1, 1}};
    const cuda_call threads = {.grid = {1, 1, 1}, .block = {100, 11, 1}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        expect_launch(&good[i]);
        assert_int_equal(fake.config.grid[1], good[i].grid.y);
        assert_int_equal(fake.config.grid[2], good[i].grid.z);
        assert_int_equal(fake.config.block[0], good[i].block.x);
        assert_int_equal(fake.config.block[1], good[i].block.y);
    }
    expect_refusal(&grid_y, DJ_INVALID_ARGUMENT, "grid.y is 40001, Fake 0 allows at most 40000");
    expect_refusal(&grid_z, DJ_INVALID_ARGUMENT, "grid.z is 40001, Fake 0 allows at most 40000");
    expect_refusal(&block_x, DJ_INVALID_ARGUMENT, "block.x is 101, Fake 0 allows at most 100");
    expect_refusal(&threads, DJ_INVALID_ARGUMENT, "threads per block are 1100, Fake 0 allows");
}

static void shared_memory_grows_once(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    static const struct {
        uint64_t bytes;
        int sets;
        int value;
    } steps[] = {
        {0, 0, 0},         {49152, 0, 0},       {49153, 1, 49153},  {49153, 1, 49153},
        {40000, 1, 49153}, {100000, 2, 100000}, {60000, 2, 100000}, {FAKE_OPTIN, 3, FAKE_OPTIN}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        cuda_call call = one_block;
        call.shared = steps[i].bytes;
        expect_launch(&call);
        assert_int_equal(fake.sets, steps[i].sets);
        assert_int_equal(fake.set_value, steps[i].value);
        assert_int_equal(fake.config.shared_bytes, steps[i].bytes);
    }
}

/* 48 KiB are for the kernel's own shared memory, too. */
static void static_shared_counts(void **state)
{
    (void)state;
    fake.static_shared = 4096;
    cuda_fixture_start(&fixture);
    cuda_call call = one_block;
    call.shared = 49152 - 4096;
    expect_launch(&call);
    assert_int_equal(fake.sets, 0);
    call.shared++;
    expect_launch(&call);
    assert_int_equal(fake.sets, 1);
    /* What the driver refuses although it is within what we know is said in the same words. */
    fake.set_result = DJ__CU_INVALID_VALUE;
    call.shared = 200000;
    expect_refusal(&call, DJ_INVALID_ARGUMENT, "shared_bytes is 200000, and the kernel has 4096");
    assert_int_equal(fixture.err.native, 1);
    assert_string_equal(fixture.err.origin, "cuda");
}

static void attributes(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda_call call = {.grid = {4, 1, 1}, .block = {32, 1, 1}, .call = &cuda};
    expect_launch(&call);
    assert_int_equal(fake.config.num_attributes, 0);

    cuda.cluster = (dj_dim3){1, 1, 1}; /* says nothing */
    cuda.cooperative = DJ_OFF;
    cuda.enable_pdl = DJ_OFF;
    cuda.nonportable_cluster = DJ_OFF;
    expect_launch(&call);
    assert_int_equal(fake.config.num_attributes, 0);
    assert_int_equal(fake.sets, 0);

    cuda.cluster = (dj_dim3){2, 0, 0};
    cuda.cooperative = DJ_ON;
    cuda.enable_pdl = DJ_ON;
    expect_launch(&call);
    assert_int_equal(fake.config.num_attributes, 3);
    assert_int_equal(fake.attributes[0].id, DJ__CU_LAUNCH_CLUSTER_DIMENSION);
    assert_int_equal(fake.attributes[0].value.cluster[0], 2);
    assert_int_equal(fake.attributes[0].value.cluster[1], 1);
    assert_int_equal(fake.attributes[0].value.cluster[2], 1);
    assert_int_equal(fake.attributes[1].id, DJ__CU_LAUNCH_COOPERATIVE);
    assert_int_equal(fake.attributes[1].value.flag, 1);
    assert_int_equal(fake.attributes[2].id, DJ__CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION);
    assert_int_equal(fake.attributes[2].value.flag, 1);
}

static void vendor_fields_inherit_one_by_one(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    dj_cuda_launch_options defaults = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    defaults.cluster = (dj_dim3){4, 1, 1};
    defaults.cooperative = DJ_ON;
    cuda_call call = {.grid = {4, 1, 1}, .block = {32, 1, 1}, .defaults = &defaults};
    expect_launch(&call);
    assert_int_equal(fake.config.num_attributes, 2);
    assert_int_equal(fake.attributes[0].value.cluster[0], 4);

    call.call = &cuda;
    cuda.cooperative = DJ_OFF;
    expect_launch(&call);
    assert_int_equal(fake.config.num_attributes, 1);
    assert_int_equal(fake.attributes[0].id, DJ__CU_LAUNCH_CLUSTER_DIMENSION);

    cuda.cluster = (dj_dim3){1, 1, 1};
    expect_launch(&call);
    assert_int_equal(fake.config.num_attributes, 0);
}

static void bad_clusters(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    static const struct {
        dj_dim3 cluster;
        uint32_t grid;
        dj_tri nonportable;
        const char *text;
    } cases[] = {
        {{0, 1, 1}, 4, DJ_DEFAULT, "cluster dimension must be positive: (0, 1, 1)"},
        {{1, 2, 1}, 4, DJ_DEFAULT, "only one-dimensional CUDA clusters are supported: (1, 2, 1)"},
        {{1, 1, 2}, 4, DJ_DEFAULT, "only one-dimensional CUDA clusters are supported"},
        {{2, 1, 1}, 5, DJ_DEFAULT, "grid.x is 5, which is not a multiple of cluster.x (2)"},
        {{16, 1, 1}, 16, DJ_OFF, "cluster.x is 16; more than 8 need nonportable_cluster"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
        cuda.cluster = cases[i].cluster;
        cuda.nonportable_cluster = cases[i].nonportable;
        const cuda_call call = {.grid = {cases[i].grid, 1, 1}, .block = {32, 1, 1}, .call = &cuda};
        expect_refusal(&call, DJ_INVALID_ARGUMENT, cases[i].text);
    }
}

static void nonportable_is_allowed_once(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda.cluster.x = 16;
    cuda.nonportable_cluster = DJ_ON;
    const cuda_call call = {.grid = {32, 1, 1}, .block = {32, 1, 1}, .call = &cuda};
    expect_launch(&call);
    expect_launch(&call);
    assert_int_equal(fake.sets, 1);
    assert_int_equal(fake.set_attribute, DJ__CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    assert_int_equal(fake.set_value, 1);
    assert_int_equal(fake.attributes[0].value.cluster[0], 16);
}

static void old_devices(void **state)
{
    (void)state;
    fake.major = 8;
    fake.cluster = 0;
    fake.cooperative = 0;
    cuda_fixture_start(&fixture);
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    const cuda_call call = {.grid = {4, 1, 1}, .block = {32, 1, 1}, .call = &cuda};
    cuda.cluster.x = 1;
    expect_launch(&call);
    cuda.cluster.x = 2;
    expect_refusal(&call, DJ_UNSUPPORTED,
                   "clusters need architecture 9.0 or newer, but Fake 0 has architecture 8.0");
    cuda.cluster.x = 0;
    cuda.nonportable_cluster = DJ_ON;
    expect_refusal(&call, DJ_UNSUPPORTED, "clusters need architecture 9.0");
    cuda.nonportable_cluster = DJ_OFF;
    cuda.enable_pdl = DJ_ON;
    expect_refusal(&call, DJ_UNSUPPORTED, "programmatic dependent launch needs architecture 9.0");
    cuda.enable_pdl = DJ_OFF;
    cuda.cooperative = DJ_ON;
    expect_refusal(&call, DJ_UNSUPPORTED, "a cooperative launch was asked for");
}

/* ---- contexts ---- */

static void thread_without_context(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    assert_int_equal(fake_current, 1);
    fake_current = 0;
    expect_launch(&one_block);
    assert_int_equal(fake_current, 1);
    assert_int_equal(fake.retains, 1);
    assert_int_equal(fake.get_functions, 1);
}

/* The kernel goes where the current context is; each has its own function and limits. */
static void two_contexts(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    atomic_store(&fake.contexts[1].alive, true);
    cuda_call call = one_block;
    call.shared = 60000;
    for (int i = 0; i < 6; i++) {
        fake_current = 1 + i % 2;
        expect_launch(&call);
        assert_ptr_equal(fake.function, &fake.functions[i % 2]);
    }
    assert_int_equal(fake.get_functions, 2);
    assert_int_equal(fake.sets, 2);
    assert_int_equal(fake.functions[0].context, 0);
    assert_int_equal(fake.functions[1].context, 1);
    /* Words name the device of the context. */
    call.block.x = 4096;
    expect_refusal(&call, DJ_INVALID_ARGUMENT, "block.x is 4096, Fake 1 allows");
}

static void context_was_reset_and_made_again(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda.nonportable_cluster = DJ_ON;
    cuda_call call = one_block;
    call.shared = 60000;
    call.call = &cuda;
    expect_launch(&call);
    assert_int_equal(fake.sets, 2);
    for (int i = 1; i <= 3; i++) {
        atomic_store(&fake.functions[i - 1].valid, false);
        expect_launch(&call); /* and asks for all that the new function needs */
        assert_ptr_equal(fake.function, &fake.functions[i]);
        assert_int_equal(fake.sets, 2 + 2 * i);
    }
    assert_int_equal(fake.retains, 1);
}

/* The new function may lie where the old one was. */
static void function_at_the_same_address(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    cuda_call call = one_block;
    call.shared = 60000;
    expect_launch(&call);
    fake.functions[0].shared_allowed = 49152; /* reset, and valid again */
    fake.launch_result = DJ__CU_INVALID_HANDLE;
    assert_int_equal(cuda_fixture_launch(&fixture, &call), DJ_DEVICE);
    fake.launch_result = 0;
    expect_launch(&call);
    assert_int_equal(fake.functions[0].shared_allowed, 60000);
    assert_int_equal(fake.num_functions, 1);
}

static void primary_context_was_reset(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    expect_launch(&one_block);
    atomic_store(&fake.contexts[0].alive, false);
    atomic_store(&fake.functions[0].valid, false);
    expect_launch(&one_block);
    assert_int_equal(fake.retains, 2);
    assert_ptr_equal(fake.function, &fake.functions[1]);
    /* The same in a thread that has no context. */
    atomic_store(&fake.contexts[0].alive, false);
    atomic_store(&fake.functions[1].valid, false);
    fake_current = 0;
    expect_launch(&one_block);
    assert_int_equal(fake.retains, 3);
    assert_ptr_equal(fake.function, &fake.functions[2]);
}

/* Somebody else made the primary context current: we never retained it, but know it again. */
static void primary_context_of_others_was_reset(void **state)
{
    (void)state;
    atomic_store(&fake.contexts[0].alive, true);
    fake_current = 1;
    cuda_fixture_start(&fixture);
    expect_launch(&one_block);
    assert_int_equal(fake.retains, 0);
    atomic_store(&fake.contexts[0].alive, false);
    atomic_store(&fake.functions[0].valid, false);
    expect_launch(&one_block);
    assert_true(fake.retains > 0);
    assert_ptr_equal(fake.function, &fake.functions[1]);
}

/* A context that is not ours is not replaced. */
static void foreign_context_was_destroyed(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    atomic_store(&fake.contexts[3].alive, true);
    fake_current = 4;
    expect_launch(&one_block);
    atomic_store(&fake.contexts[3].alive, false);
    assert_int_equal(cuda_fixture_launch(&fixture, &one_block), DJ_DEVICE);
    assert_int_equal(fixture.err.native, DJ__CU_CONTEXT_IS_DESTROYED);
    cuda_fixture_says(&fixture, "was destroyed or reset");
    assert_int_equal(fake_current, 4);
    assert_int_equal(fake.retains, 1);
    fake_current = 1;
    expect_launch(&one_block);
}

/* ---- failures ---- */

static void words_of_failures(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    dj_cuda_launch_options cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT;
    cuda.cluster.x = 2;
    cuda.cooperative = DJ_ON;
    const cuda_call call = {.grid = {4, 2, 1}, .block = {64, 1, 1}, .shared = 512, .call = &cuda};
    static const struct {
        int result;
        const char *text;
    } cases[] = {
        {1, "launch failed with grid (4, 2, 1), block (64, 1, 1), 512 bytes of dynamic shared "
            "memory, clusters of 2, cooperative: CUDA_ERROR_INVALID_VALUE (1): invalid argument"},
        {1, "of the 232448 bytes of shared memory that Fake 0 allows a block the kernel takes 0"},
        {400, "the stream may not be one of the current context"},
        {701, "the kernel uses 40 registers a thread, and a block has at most 65536"},
        {720, "Fake 0 has 132 multiprocessors with room for 32 such blocks each"},
        {912, "clusters have at most 8 blocks everywhere"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS (700): some text; a kernel that ran before has failed, "
              "its CUDA context is lost, and the process must be restarted"},
        {719, "context is lost"},
        {3, "CUDA was used in this process before fork()"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake.launch_result = cases[i].result;
        expect_refusal(&call, DJ_DEVICE, cases[i].text);
        assert_int_equal(fixture.err.native, cases[i].result);
        assert_string_equal(fixture.err.origin, "cuda");
    }
    fake.launch_result = 0;
    fixture.module->cluster[0] = 4;
    fixture.module->cluster[1] = fixture.module->cluster[2] = 1;
    fake.launch_result = 1;
    expect_refusal(&call, DJ_DEVICE, "was compiled for clusters of (4, 1, 1)");
    fake.launch_result = 2;
    expect_refusal(&call, DJ_NO_MEMORY, "launch failed");
    /* Nothing of this is remembered. */
    fake.launch_result = 0;
    expect_launch(&call);
    assert_int_equal(fake.num_functions, 1);
}

static void an_error_is_not_needed(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    fake.launch_result = 720;
    const dj_launch_options none = DJ_LAUNCH_OPTIONS_INIT;
    const dj_launch_config config = {
        .grid = {1, 1, 1}, .block = {1, 1, 1}, .call = &none, .defaults = &none};
    uint64_t value = 0;
    const void *args[] = {&value, &value};
    assert_int_equal(
        dj__cuda_driver_ops.launch(fixture.driver, fixture.module, &config, args, 2, NULL),
        DJ_DEVICE);
}

/* A launch in another context during a capture loads the function there, and the capture stays. */
static void first_launch_in_a_context_under_capture(void **state)
{
    (void)state;
    cuda_fixture_start(&fixture);
    atomic_store(&fake.contexts[1].alive, true);
    fake_current = 2;
    fake.capturing = true;
    expect_launch(&one_block);
    assert_false(fake.capture_spoiled);
    assert_int_equal(fake_mode, 0);
    fake_current = 0;
    expect_launch(&one_block);
    assert_false(fake.capture_spoiled);
    fake.capturing = false;
}

int main(void)
{
#define LAUNCH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        LAUNCH_TEST(configuration_and_arguments),
        LAUNCH_TEST(any_number_of_arguments),
        LAUNCH_TEST(limits),
        LAUNCH_TEST(odd_limits),
        LAUNCH_TEST(shared_memory_grows_once),
        LAUNCH_TEST(static_shared_counts),
        LAUNCH_TEST(attributes),
        LAUNCH_TEST(vendor_fields_inherit_one_by_one),
        LAUNCH_TEST(bad_clusters),
        LAUNCH_TEST(nonportable_is_allowed_once),
        LAUNCH_TEST(old_devices),
        LAUNCH_TEST(thread_without_context),
        LAUNCH_TEST(two_contexts),
        LAUNCH_TEST(context_was_reset_and_made_again),
        LAUNCH_TEST(function_at_the_same_address),
        LAUNCH_TEST(primary_context_was_reset),
        LAUNCH_TEST(primary_context_of_others_was_reset),
        LAUNCH_TEST(foreign_context_was_destroyed),
        LAUNCH_TEST(words_of_failures),
        LAUNCH_TEST(an_error_is_not_needed),
        LAUNCH_TEST(first_launch_in_a_context_under_capture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
