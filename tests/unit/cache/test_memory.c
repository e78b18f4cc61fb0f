/* SPDX-License-Identifier: MIT */
/* link: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=free */
/* The memory cache: hits, collisions, eviction, closing, threads; and that a hit neither allocates,
 * locks nor enters the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/thread.h"
#include "cache/memory.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- counting and failing allocations ---- */

static _Atomic long alloc_count;
static _Atomic long alloc_fail_after = -1; /* -1: never */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);

static bool alloc_fails(void)
{
    alloc_count++;
    return alloc_fail_after >= 0 && alloc_fail_after-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return alloc_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return alloc_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return alloc_fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return alloc_fails() ? NULL : __real_aligned_alloc(alignment, size);
}

void __wrap_free(void *memory)
{
    alloc_count++;
    __real_free(memory);
}

/* ---- values and requests ---- */

typedef struct test_value {
    dj__cached cached;
    _Atomic bool loaded;
} test_value;

static _Atomic int values_made;
static _Atomic int values_unloaded;
static _Atomic int values_destroyed;
static _Atomic int options_copied;
static _Atomic int options_freed;

static bool test_options_equal(const dj_compile_options *a, const dj_compile_options *b)
{
    return a->debug_info == b->debug_info;
}

static dj_compile_options *test_options_copy(const dj_compile_options *options)
{
    dj_compile_options *copy = malloc(sizeof(*copy));
    if (copy != NULL) {
        *copy = *options;
        options_copied++;
    }
    return copy;
}

static void test_options_free(dj_compile_options *options)
{
    options_freed++;
    free(options);
}

static void test_release(dj__cached *cached)
{
    test_value *value = (test_value *)cached;
    if (atomic_fetch_sub(&cached->refs, 1) == 1) {
        assert_true(value->loaded);
        value->loaded = false;
        values_unloaded++;
    }
}

static void test_destroy(dj__cached *cached)
{
    values_destroyed++;
    free(cached);
}

static const dj__memory_ops test_ops = {
    .options_equal = test_options_equal,
    .options_copy = test_options_copy,
    .options_free = test_options_free,
    .release = test_release,
    .destroy = test_destroy,
};

/* A value to which the caller has the only reference. */
static dj__cached *new_value(int key)
{
    test_value *value = aligned_alloc(DJ__CACHE_LINE, 2 * DJ__CACHE_LINE);
    if (value == NULL) {
        abort();
    }
    memset(value, 0, sizeof(*value));
    atomic_init(&value->cached.refs, 1);
    atomic_init(&value->loaded, true);
    snprintf(value->cached.key, sizeof(value->cached.key), "%032x", (unsigned)key);
    values_made++;
    return &value->cached;
}

static bool is_loaded(const dj__cached *cached)
{
    return ((const test_value *)cached)->loaded;
}

static const dj_compile_options plain = DJ_COMPILE_OPTIONS_INIT;
static const dj_compile_options debug = {.size = sizeof(debug), .debug_info = DJ_ON};

static dj__memory_request request_of(const char *source, size_t size,
                                     const dj_compile_options *options)
{
    const uint64_t hash = dj__memory_hash(source, size, (uint64_t)options->debug_info);
    return (dj__memory_request){source, size, options, hash};
}

static dj__memory_request text_request(const char *source)
{
    return request_of(source, strlen(source), &plain);
}

/* Inserts a new value, keeping no reference. */
static dj__cached *insert(dj__memory *memory, dj__memory_request request, int key)
{
    dj__cached *value = new_value(key);
    dj__memory_insert(memory, &request, value);
    test_release(value);
    return value;
}

static bool finds(dj__memory *memory, dj__memory_request request, const dj__cached *value)
{
    dj__cached *found = dj__memory_find(memory, &request);
    if (found != NULL) {
        test_release(found);
    }
    return found == value;
}

static dj__memory *new_memory(size_t limit)
{
    dj__memory *memory = NULL;
    assert_int_equal(dj__memory_create(&test_ops, limit, &memory, NULL), DJ_OK);
    assert_non_null(memory);
    return memory;
}

static int reset_counts(void **state)
{
    (void)state;
    values_made = values_unloaded = values_destroyed = options_copied = options_freed = 0;
    alloc_fail_after = -1;
    return 0;
}

/* Every value, slot and copy of options is gone, each once. */
static int check_counts(void **state)
{
    (void)state;
    return values_made == values_destroyed && values_made == values_unloaded &&
                   options_copied == options_freed
               ? 0
               : -1;
}

/* ---- one thread ---- */

static void hit_gives_the_value_with_a_reference(void **state)
{
    (void)state;
    dj__memory *memory = new_memory(0);
    assert_null(dj__memory_find(memory, &(dj__memory_request){"a", 1, &plain, 5}));
    dj__cached *value = insert(memory, text_request("kernel"), 1);

    const dj__memory_request request = text_request("kernel");
    assert_ptr_equal(dj__memory_find(memory, &request), value);
    assert_int_equal(value->refs, 2);
    assert_int_equal(dj__memory_hits(memory), 1);
    test_release(value);

    assert_null(dj__memory_find(memory, &(dj__memory_request){"kerneL", 6, &plain, request.hash}));
    assert_null(dj__memory_find(memory, &(dj__memory_request){"kerne", 5, &plain, request.hash}));
    assert_null(dj__memory_find(memory, &(dj__memory_request){"kernel", 6, &debug, request.hash}));
    assert_true(finds(memory, text_request("kernel"), value));
    dj__memory_destroy(memory);
}

static void sources_may_be_empty_and_have_nul_bytes(void **state)
{
    (void)state;
    dj__memory *memory = new_memory(0);
    dj__cached *empty = insert(memory, request_of(NULL, 0, &plain), 1);
    dj__cached *nul = insert(memory, request_of("\0", 1, &plain), 2);
    dj__cached *nuls = insert(memory, request_of("\0\0", 2, &plain), 3);
    dj__cached *text = insert(memory, request_of("a\0b", 3, &plain), 4);
    assert_true(finds(memory, request_of("", 0, &plain), empty));
    assert_true(finds(memory, request_of("\0", 1, &plain), nul));
    assert_true(finds(memory, request_of("\0\0", 2, &plain), nuls));
    assert_true(finds(memory, request_of("a\0b", 3, &plain), text));
    assert_true(finds(memory, request_of("a\0c", 3, &plain), NULL));
    dj__memory_destroy(memory);
}

static void hash_sees_size_ends_and_options(void **state)
{
    (void)state;
    char a[4096];
    char b[4096];
    memset(a, 'x', sizeof(a));
    memset(b, 'x', sizeof(b));
    const uint64_t hash = dj__memory_hash(a, sizeof(a), 7);
    assert_int_equal(hash, dj__memory_hash(b, sizeof(b), 7));
    assert_int_not_equal(hash, dj__memory_hash(a, sizeof(a), 8));
    for (size_t size = 0; size < 64; size++) {
        assert_int_not_equal(dj__memory_hash(a, size, 7), dj__memory_hash(a, size + 1, 7));
        for (size_t i = 0; i < size; i++) {
            b[i] = 'y'; /* short sources are hashed in full */
            assert_int_not_equal(dj__memory_hash(a, size, 7), dj__memory_hash(b, size, 7));
            b[i] = 'x';
        }
    }
    b[0] = 'y';
    assert_int_not_equal(hash, dj__memory_hash(b, sizeof(b), 7));
    b[0] = 'x';
    b[sizeof(b) - 1] = 'y';
    assert_int_not_equal(hash, dj__memory_hash(b, sizeof(b), 7));
}

/* All requests share one hash, so that only the tree tells them apart. */
static void requests_of_one_hash_stay_apart(void **state)
{
    (void)state;
    enum { COUNT = 600, SIZE = 300 };
    static char sources[COUNT][SIZE];
    static dj__cached *values[COUNT];
    dj__memory *memory = new_memory(0);
    unsigned seed = 1;

    for (int i = 0; i < COUNT; i++) {
        memset(sources[i], 'x', SIZE);
        if (i > 0) {
            memcpy(sources[i], sources[(i - 1) / 2], SIZE);
            seed = seed * 1103515245u + 12345u;
            sources[i][seed / 65536 % SIZE] ^= (char)(1 << i % 8);
            memcpy(sources[i] + 150, &i, sizeof(i)); /* surely another source */
        }
        const dj__memory_request request = {sources[i], SIZE, &plain, 42};
        assert_null(dj__memory_find(memory, &request));
        values[i] = insert(memory, request, i);
        /* The same source, shorter or with other options, shares the hash, too. */
        if (i % 50 == 0) {
            dj__cached *other =
                insert(memory, (dj__memory_request){sources[i], SIZE, &debug, 42}, COUNT + i);
            assert_true(finds(memory, (dj__memory_request){sources[i], SIZE, &debug, 42}, other));
            assert_true(
                finds(memory, (dj__memory_request){sources[i], SIZE - 1, &plain, 42}, NULL));
        }
    }
    dj__cached *shorter =
        insert(memory, (dj__memory_request){sources[0], SIZE - 1, &plain, 42}, 5 * COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_true(finds(memory, (dj__memory_request){sources[i], SIZE, &plain, 42}, values[i]));
    }
    assert_true(finds(memory, (dj__memory_request){sources[0], SIZE - 1, &plain, 42}, shorter));
    dj__memory_destroy(memory);
}

static void grows(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static dj__cached *values[COUNT];
    dj__memory *memory = new_memory(0);
    for (int i = 0; i < COUNT; i++) {
        char source[32];
        snprintf(source, sizeof(source), "kernel number %d", i);
        values[i] = insert(memory, text_request(source), i);
    }
    for (int i = 0; i < COUNT; i++) {
        char source[32];
        snprintf(source, sizeof(source), "kernel number %d", i);
        assert_true(finds(memory, text_request(source), values[i]));
    }
    assert_int_equal(dj__memory_hits(memory), COUNT);
    dj__memory_destroy(memory);
}

static void requests_of_one_key_share_a_value(void **state)
{
    (void)state;
    dj__memory *memory = new_memory(0);
    dj__cached *value = insert(memory, text_request("a"), 7);
    dj__cached *found = dj__memory_find_key(memory, value->key);
    assert_ptr_equal(found, value);
    assert_int_equal(dj__memory_hits(memory), 0);
    assert_null(dj__memory_find_key(memory, "00000000000000000000000000000008"));

    const dj__memory_request other = request_of("a", 1, &debug);
    dj__memory_insert(memory, &other, found);
    test_release(found);
    assert_int_equal(value->refs, 1);
    assert_true(finds(memory, text_request("a"), value));
    assert_true(finds(memory, other, value));
    dj__memory_destroy(memory);
}

static void a_request_has_one_slot(void **state)
{
    (void)state;
    dj__memory *memory = new_memory(0);
    dj__cached *first = insert(memory, text_request("a"), 1);
    for (int i = 0; i < 10; i++) {
        const dj__memory_request request = text_request("a");
        dj__memory_insert(memory, &request, first);
    }
    assert_int_equal(options_copied, 1);
    assert_int_equal(first->refs, 1);
    dj__memory_destroy(memory);
}

static void the_least_recently_used_goes(void **state)
{
    (void)state;
    dj__memory *memory = new_memory(2);
    dj__cached *a = insert(memory, text_request("a"), 1);
    dj__cached *b = insert(memory, text_request("b"), 2);
    assert_true(finds(memory, text_request("a"), a));
    dj__cached *c = insert(memory, text_request("c"), 3);
    assert_int_equal(dj__memory_evictions(memory), 1);
    assert_true(is_loaded(a));
    assert_false(is_loaded(b));
    assert_true(is_loaded(c));
    assert_true(finds(memory, text_request("b"), NULL));
    assert_null(dj__memory_find_key(memory, b->key));

    /* Loaded again under the same key: the slot gets the new value. */
    dj__cached *again = insert(memory, text_request("b"), 2);
    assert_ptr_not_equal(again, b);
    assert_true(finds(memory, text_request("b"), again));
    assert_int_equal(options_copied, 3);
    assert_int_equal(dj__memory_evictions(memory), 2);
    assert_false(is_loaded(a)); /* last used before c was inserted */
    dj__memory_destroy(memory);
}

static void an_evicted_value_lives_while_it_is_held(void **state)
{
    (void)state;
    dj__memory *memory = new_memory(1);
    dj__cached *a = insert(memory, text_request("a"), 1);
    assert_true(dj__cached_retain(a));
    insert(memory, text_request("b"), 2);
    assert_true(is_loaded(a));
    assert_true(finds(memory, text_request("a"), a));

    /* Inserted again it is kept again. */
    const dj__memory_request request = text_request("a");
    dj__memory_insert(memory, &request, a);
    assert_int_equal(a->refs, 2);
    test_release(a);
    assert_true(finds(memory, request, a));
    assert_int_equal(dj__memory_evictions(memory), 2);
    dj__memory_destroy(memory);
}

static void retain_needs_a_reference(void **state)
{
    (void)state;
    dj__cached cached = {0};
    assert_false(dj__cached_retain(&cached));
    assert_int_equal(cached.refs, 0);
    atomic_store(&cached.refs, 1);
    assert_true(dj__cached_retain(&cached));
    assert_int_equal(cached.refs, 2);
}

static void close_drops_references_and_adopts_only(void **state)
{
    (void)state;
    dj__memory *memory = new_memory(0);
    dj__cached *held = insert(memory, text_request("a"), 1);
    dj__cached *other = insert(memory, text_request("b"), 2);
    assert_true(dj__cached_retain(held));
    dj__memory_close(memory);
    assert_true(is_loaded(held));
    assert_false(is_loaded(other));
    assert_true(finds(memory, text_request("b"), NULL));

    dj__cached *late = new_value(3);
    const dj__memory_request request = text_request("c");
    dj__memory_insert(memory, &request, late);
    assert_int_equal(late->refs, 1);
    assert_true(finds(memory, request, NULL));
    dj__memory_close(memory);
    test_release(late);
    test_release(held);
    dj__memory_destroy(memory);
    dj__memory_destroy(NULL);
}

static void without_memory_nothing_is_lost(void **state)
{
    (void)state;
    dj__memory *memory = NULL;
    for (int fail = 0; fail < 2; fail++) {
        dj_error err = DJ_ERROR_INIT;
        alloc_fail_after = fail;
        assert_int_equal(dj__memory_create(&test_ops, 0, &memory, &err), DJ_NO_MEMORY);
        assert_null(memory);
        assert_int_equal(err.status, DJ_NO_MEMORY);
    }
    alloc_fail_after = -1;

    memory = new_memory(0);
    static const char *const first = "0123456789012345";
    static const char *const second = "0123456789x12345";
    dj__cached *value = insert(memory, (dj__memory_request){first, 16, &plain, 1}, 1);
    const dj__memory_request request = {second, 16, &plain, 1};
    for (int fail = 0; fail < 3; fail++) { /* slot, options, branch */
        dj__cached *lost = new_value(2 + fail);
        alloc_fail_after = fail;
        dj__memory_insert(memory, &request, lost);
        assert_int_equal(alloc_fail_after, -1);
        assert_true(finds(memory, request, NULL));
        assert_int_equal(lost->refs, 2); /* found by key */
        test_release(lost);
    }
    assert_true(finds(memory, (dj__memory_request){first, 16, &plain, 1}, value));
    dj__cached *found = insert(memory, request, 9);
    assert_true(finds(memory, request, found));
    dj__memory_destroy(memory);
}

/* ---- the hit path ---- */

static void fill(dj__memory *memory, char (*sources)[2048], dj__cached **values, int count)
{
    for (int i = 0; i < count; i++) {
        memset(sources[i], 'a', sizeof(sources[i]));
        memcpy(sources[i] + 1000, &i, sizeof(i));
        values[i] = insert(memory, request_of(sources[i], sizeof(sources[i]), &plain), i);
    }
}

static bool hit_all(dj__memory *memory, char (*sources)[2048], dj__cached **values, int count)
{
    bool right = true;
    for (int i = 0; i < count; i++) {
        right =
            right && finds(memory, request_of(sources[i], sizeof(sources[i]), &plain), values[i]);
    }
    return right;
}

/* From now on any system call of this thread but exit_group kills the process. */
static bool forbid_system_calls(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void hits_allocate_nothing_and_never_enter_the_kernel(void **state)
{
    (void)state;
    enum { COUNT = 100, NO_SECCOMP = 77 };
    static char sources[COUNT][2048];
    static dj__cached *values[COUNT];
    dj__memory *memory = new_memory(0);
    fill(memory, sources, values, COUNT);

    const long before = alloc_count;
    assert_true(hit_all(memory, sources, values, COUNT));
    assert_int_equal(alloc_count, before);

    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!forbid_system_calls()) {
            syscall(SYS_exit_group, NO_SECCOMP);
        }
        syscall(SYS_exit_group, hit_all(memory, sources, values, COUNT) ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SECCOMP) {
        print_message("no seccomp here: system calls are not checked\n");
    } else {
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    dj__memory_destroy(memory);
}

/* A hit succeeds while another thread sits in the lock: here, inside options_copy. */
static dj__memory *locked_memory;
static dj__memory_request locked_request;
static dj__cached *locked_value;
static int locked_hits;

static void *hit_from_another_thread(void *arg)
{
    (void)arg;
    locked_hits += finds(locked_memory, locked_request, locked_value);
    return NULL;
}

static dj_compile_options *copy_while_another_thread_hits(const dj_compile_options *options)
{
    pthread_t thread;
    if (locked_memory != NULL) {
        if (pthread_create(&thread, NULL, hit_from_another_thread, NULL) != 0) {
            abort();
        }
        pthread_join(thread, NULL);
    }
    return test_options_copy(options);
}

static void hits_take_no_lock(void **state)
{
    (void)state;
    dj__memory_ops ops = test_ops;
    ops.options_copy = copy_while_another_thread_hits;
    dj__memory *memory;
    assert_int_equal(dj__memory_create(&ops, 0, &memory, NULL), DJ_OK);
    locked_hits = 0;
    locked_request = text_request("a");
    locked_value = insert(memory, locked_request, 1);
    locked_memory = memory;
    insert(memory, text_request("b"), 2);
    locked_memory = NULL;
    assert_int_equal(locked_hits, 1);
    dj__memory_destroy(memory);
}

static void child_of_a_fork_can_go_on(void **state)
{
    (void)state;
    dj__memory *memory = new_memory(0);
    dj__cached *value = insert(memory, text_request("a"), 1);
    dj__memory_after_fork(memory);
    assert_true(finds(memory, text_request("a"), value));
    dj__cached *other = insert(memory, text_request("b"), 2);
    assert_true(finds(memory, text_request("b"), other));
    dj__memory_destroy(memory);
}

/* ---- threads ---- */

enum { RACE_KEYS = 24, RACE_ROUNDS = 4000, RACE_THREADS = 6 };

static char race_sources[RACE_KEYS][256];
static dj__memory *race_memory;
static _Atomic int race_wrong;
static _Atomic int race_closed;

/* What dj_compile does: find, else make and insert; each value found must be the right one and
 * loaded as long as it is held. All sources share one hash. */
static void *race_run(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (int round = 0; round < RACE_ROUNDS; round++) {
        seed = seed * 1103515245u + 12345u;
        const int key = (int)(seed / 65536 % RACE_KEYS);
        const dj__memory_request request = {race_sources[key], sizeof(race_sources[key]), &plain,
                                            key % 2 ? 1 : 99};
        dj__cached *value = dj__memory_find(race_memory, &request);
        if (value == NULL) {
            char name[33];
            snprintf(name, sizeof(name), "%032x", (unsigned)key);
            value = dj__memory_find_key(race_memory, name);
            if (value == NULL) {
                value = new_value(key);
            }
            dj__memory_insert(race_memory, &request, value);
        }
        race_wrong += strtol(value->key, NULL, 16) != key || !is_loaded(value);
        if (seed % 64 == 0) {
            (void)dj__memory_hits(race_memory);
        }
        if (round == RACE_ROUNDS / 2 && (uintptr_t)arg == 1) {
            dj__memory_close(race_memory);
            race_closed++;
        }
        test_release(value);
    }
    return NULL;
}

static void threads_see_right_and_loaded_values(void **state)
{
    (void)state;
    pthread_t threads[RACE_THREADS];
    race_memory = new_memory(RACE_KEYS / 3);
    race_wrong = race_closed = 0;
    for (int i = 0; i < RACE_KEYS; i++) {
        memset(race_sources[i], 'a', sizeof(race_sources[i]));
        race_sources[i][100 + i % 5] = (char)i;
        race_sources[i][200] = (char)(i % 7);
    }
    for (uintptr_t i = 0; i < RACE_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, race_run, (void *)(i + 1)), 0);
    }
    for (int i = 0; i < RACE_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(race_wrong, 0);
    assert_int_equal(race_closed, 1);
    assert_true(dj__memory_evictions(race_memory) > 0);
    dj__memory_destroy(race_memory);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, reset_counts, check_counts)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hit_gives_the_value_with_a_reference),
        TEST(sources_may_be_empty_and_have_nul_bytes),
        TEST(hash_sees_size_ends_and_options),
        TEST(requests_of_one_hash_stay_apart),
        TEST(grows),
        TEST(requests_of_one_key_share_a_value),
        TEST(a_request_has_one_slot),
        TEST(the_least_recently_used_goes),
        TEST(an_evicted_value_lives_while_it_is_held),
        TEST(retain_needs_a_reference),
        TEST(close_drops_references_and_adopts_only),
        TEST(without_memory_nothing_is_lost),
        TEST(hits_allocate_nothing_and_never_enter_the_kernel),
        TEST(hits_take_no_lock),
        TEST(child_of_a_fork_can_go_on),
        TEST(threads_see_right_and_loaded_values),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
