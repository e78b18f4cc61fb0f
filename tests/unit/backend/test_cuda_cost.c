/* SPDX-License-Identifier: MIT */
/* link: -Wl,--wrap=dj__cubin_read,--wrap=dj__cubin_fini */
/* link: -Wl,--wrap=malloc,--wrap=calloc,--wrap=pthread_mutex_lock */
/* noasan */
/*
 * What a launch costs of our own: instructions of dj__cuda_launch, counted by callgrind with a
 * driver that does nothing. Printed, not asserted, for compilers differ; what is asserted is that
 * a launch takes no lock and allocates nothing.
 */
#include "cuda_fake.h"

static long cost_heap_calls;
static long cost_lock_calls;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    cost_heap_calls++;
    return __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    cost_heap_calls++;
    return __real_calloc(count, size);
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    cost_lock_calls++;
    return __real_pthread_mutex_lock(mutex);
}

static dj__cu_result cost_id(dj__cu_context context, unsigned long long *id)
{
    (void)context;
    *id = 1 + FAKE_CONTEXTS; /* as the fake's, of its first context */
    return 0;
}

static dj__cu_result cost_launch(const dj__cu_launch_config *config, dj__cu_function function,
                                 void **params, void **extra)
{
    (void)config;
    (void)function;
    (void)params;
    (void)extra;
    return 0;
}

static void cost_prepare(cuda_fixture *fixture)
{
    fake_reset();
    cuda_fixture_start(fixture);
    fixture->driver->api.cuCtxGetId = cost_id;
    fixture->driver->api.cuLaunchKernelEx = cost_launch;
}

static void cost_run(cuda_fixture *fixture, size_t num_args, const dj_cuda_launch_options *cuda,
                     int count)
{
    dj_launch_options call = DJ_LAUNCH_OPTIONS_INIT;
    const dj_launch_options none = DJ_LAUNCH_OPTIONS_INIT;
    const dj_launch_config config = {.grid = {12, 1, 1},
                                     .block = {128, 1, 1},
                                     .shared_bytes = 1024,
                                     .call = &call,
                                     .defaults = &none};
    uint64_t value = 0;
    const void *args[16];
    call.cuda = cuda;
    for (size_t i = 0; i < 16; i++) {
        args[i] = &value;
    }
    for (int i = 0; i < count; i++) {
        assert_int_equal(dj__cuda_driver_ops.launch(fixture->driver, fixture->module, &config, args,
                                                    num_args, NULL),
                         DJ_OK);
    }
}

/* Instructions of one run of this program under callgrind, or -1. */
static long cost_count(const char *program, const char *num_args, const char *vendor,
                       const char *count)
{
    char command[1024];
    char line[512];
    long instructions = -1;
    (void)snprintf(command, sizeof command,
                   "valgrind --tool=callgrind --callgrind-out-file=/dev/null "
                   "--toggle-collect=dj__cuda_launch '%s' %s %s %s 2>&1",
                   program, num_args, vendor, count);
    FILE *pipe = popen(command, "r"); // NOLINT(cert-env33-c)
    assert_non_null(pipe);
    while (fgets(line, sizeof line, pipe) != NULL) {
        const char *at = strstr(line, "Collected : ");
        if (at != NULL) {
            instructions = strtol(at + strlen("Collected : "), NULL, 10);
        }
    }
    (void)pclose(pipe);
    return instructions;
}

static void instructions_of_a_launch(void **state)
{
    const char *program = *state;
    static const char *const counts[] = {"0", "3", "8", "16"};
    if (system("valgrind --version >/dev/null 2>&1") != 0) { // NOLINT(cert-env33-c)
        print_message("no valgrind here\n");
        skip();
    }
    for (int vendor = 0; vendor < 2; vendor++) {
        const char *word = vendor == 0 ? "plain" : "cluster";
        for (size_t i = 0; i < 4; i++) {
            const long few = cost_count(program, counts[i], word, "10");
            const long many = cost_count(program, counts[i], word, "1010");
            if (few < 0 || many <= few) {
                print_message("callgrind gave no count\n");
                skip();
            }
            print_message("%s, %s arguments: %ld instructions\n", word, counts[i],
                          (many - few) / 1000);
        }
    }
}

static void no_lock_and_no_memory(void **state)
{
    (void)state;
    cuda_fixture fixture;
    const dj_cuda_launch_options cuda = {.size = sizeof cuda, .cluster = {2, 1, 1}};
    cost_prepare(&fixture);
    assert_true(cost_heap_calls > 0 && cost_lock_calls > 0); /* they are counted */
    cost_heap_calls = 0;
    cost_lock_calls = 0;
    cost_run(&fixture, 16, NULL, 100);
    cost_run(&fixture, 16, &cuda, 100);
    assert_int_equal(cost_heap_calls, 0);
    assert_int_equal(cost_lock_calls, 0);
    cuda_fixture_stop(&fixture);
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        cuda_fixture fixture;
        const dj_cuda_launch_options cuda = {.size = sizeof cuda, .cluster = {2, 1, 1}};
        cost_prepare(&fixture);
        cost_run(&fixture, (size_t)strtol(argv[1], NULL, 10),
                 strcmp(argv[2], "cluster") == 0 ? &cuda : NULL, (int)strtol(argv[3], NULL, 10));
        cuda_fixture_stop(&fixture);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lock_and_no_memory),
        cmocka_unit_test_prestate(instructions_of_a_launch, argv[0]),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
