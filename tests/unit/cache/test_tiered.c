/* SPDX-License-Identifier: MIT */
/* Several roots, roots that cannot be used, sub-directories, threads and processes at once. */
#include "store_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

static int64_t fake_now;

static int64_t fake_clock(void)
{
    return fake_now;
}

static dj_store *open_one(store_fixture *fix, const char *root)
{
    dj__store_config config = fix_config(fix);
    config.roots = &root;
    config.num_roots = 1;
    config.now_ns = fake_clock;
    return fix_open_config(&config);
}

/* Stages in a private directory, puts, and expects a usable build with a reason. */
static void expect_private_build(store_fixture *fix, dj_store *store, const char *reason)
{
    dj_error err = DJ_ERROR_INIT;
    dj_staging staging;
    dj_entry entry;
    const dj_manifest what = fix_manifest("add", FIX_DIGEST);
    const uint64_t unpublished = fix->counters.unpublished;
    assert_int_equal(dj_store_stage(store, &staging, &err), DJ_OK);
    assert_non_null(staging.reason);
    assert_non_null(strstr(staging.reason, reason));
    assert_int_equal(strncmp(staging.path, fix->tmpdir, strlen(fix->tmpdir)), 0);
    assert_int_equal(fix_mode(staging.path), 0700);
    fix_fill(staging.path, FIX_BINARY);
    assert_int_equal(dj_store_put(store, &staging, &what, &entry, &err), DJ_OK);
    assert_null(staging.path);
    assert_null(staging.reason);
    assert_non_null(strstr(entry.reason, reason));
    assert_int_equal(entry.binary_size, strlen(FIX_BINARY));
    assert_memory_equal(entry.binary, FIX_BINARY, entry.binary_size);
    assert_string_equal(entry.log, "a warning\n");
    assert_true(fix_exists(fix_path(entry.path, "kernel.so")));
    assert_int_equal(fix->counters.unpublished, unpublished + 1);
    assert_int_equal(fix->warnings, 1); /* however often it happens */
    assert_non_null(strstr(fix->warning, "MYLIB_JIT_CACHE_DIR"));
    assert_int_equal(dj__remove_tree(entry.path), 0);
    dj__entry_fini(&entry);
}

static void test_roots_are_searched_in_order(void **state)
{
    store_fixture *fix = *state;
    dj_store *second = open_one(fix, fix->roots[1]);
    dj_store *third = open_one(fix, fix->roots[2]);
    fix_publish(second, "add", FIX_DIGEST, "of the second");
    fix_publish(third, "add", FIX_DIGEST, "of the third");
    fix_publish(third, "add", FIX_DIGEST_2, "only there");
    dj_store_close(second);
    dj_store_close(third);

    const char *marker = fix_path(fix_entry(fix, 1, "add", FIX_DIGEST), ".committed");
    const struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    assert_int_equal(utimensat(AT_FDCWD, marker, old, 0), 0);
    dj_store *store = fix_open(fix, 3);
    dj_entry entry;
    assert_int_equal(fix_get(store, "add", FIX_DIGEST, DJ_VERIFY_ALL, &entry), DJ_OK);
    assert_memory_equal(entry.binary, "of the second", entry.binary_size);
    assert_string_equal(entry.path, fix_entry(fix, 1, "add", FIX_DIGEST));
    dj__entry_fini(&entry);
    assert_int_equal(fix_get(store, "add", FIX_DIGEST_2, DJ_VERIFY_ALL, &entry), DJ_OK);
    assert_memory_equal(entry.binary, "only there", entry.binary_size);
    dj__entry_fini(&entry);
    assert_false(fix_exists(fix->roots[0])); /* a hit elsewhere writes nothing here */
    struct stat st;
    assert_int_equal(stat(marker, &st), 0);
    assert_int_equal(st.st_mtim.tv_sec, 1000000); /* and nothing there */

    assert_int_equal(fix_try(store, "sub", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
    fix_publish(store, "sub", FIX_DIGEST, FIX_BINARY); /* a miss is written to the first */
    assert_true(fix_exists(fix_entry(fix, 0, "sub", FIX_DIGEST)));
    size_t removed;
    assert_int_equal(dj_store_remove(store, NULL, &removed, NULL), DJ_OK);
    assert_int_equal(removed, 1);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_OK);
    dj_store_close(store);
}

static void test_other_roots_are_never_changed(void **state)
{
    store_fixture *fix = *state;
    dj_store *second = open_one(fix, fix->roots[1]);
    dj_store *third = open_one(fix, fix->roots[2]);
    fix_publish(second, "add", FIX_DIGEST, FIX_BINARY);
    fix_publish(third, "add", FIX_DIGEST, FIX_BINARY);
    dj_store_close(second);
    dj_store_close(third);
    fix_write(fix_entry(fix, 1, "add", FIX_DIGEST), "kernel.so", "damaged", 7);
    dj_store *store = fix_open(fix, 3);
    dj_entry entry;
    assert_int_equal(mkdir(fix->roots[0], 0700), 0);
    assert_int_equal(mkdir(fix_path(fix->roots[0], "cache"), 0700), 0);
    assert_int_equal(mkdir(fix_entry(fix, 0, "add", FIX_DIGEST), 0700), 0); /* unfinished */
    assert_int_equal(fix_get(store, "add", FIX_DIGEST, DJ_VERIFY_BINARY, &entry), DJ_OK);
    assert_string_equal(entry.path, fix_entry(fix, 2, "add", FIX_DIGEST));
    dj__entry_fini(&entry);
    assert_int_equal(fix->counters.healed, 0);
    assert_int_equal(fix->warnings, 1);
    assert_non_null(strstr(fix->warning, fix->roots[1]));
    assert_true(fix_exists(fix_entry(fix, 0, "add", FIX_DIGEST)));
    assert_true(fix_exists(fix_entry(fix, 1, "add", FIX_DIGEST)));
    assert_false(fix_exists(fix_path(fix->roots[1], "trash")));
    dj_store_close(store);
}

static void see_root(void *user, const dj_cache_root *root)
{
    dj__strbuf *text = user;
    dj__strbuf_printf(text, "%s r%d w%d %s\n", root->path, root->readable, root->writable,
                      root->reason);
}

static char *describe_roots(dj_store *store)
{
    dj__strbuf text;
    dj__strbuf_init(&text, 1 << 16);
    assert_int_equal(dj_store_roots(store, see_root, &text, NULL), DJ_OK);
    return dj__strbuf_steal(&text);
}

static bool count_entry(void *user, const dj_cache_entry *entry)
{
    (void)entry;
    ++*(size_t *)user;
    return true;
}

static void test_no_root(void **state)
{
    store_fixture *fix = *state;
    dj__store_config config = fix_config(fix);
    config.no_root_reason = "HOME is not set; set MYLIB_JIT_CACHE_DIR";
    dj_store *store = fix_open_config(&config);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
    for (int i = 0; i < 3; i++) {
        expect_private_build(fix, store, "HOME is not set; set MYLIB_JIT_CACHE_DIR");
    }
    dj_error err = DJ_ERROR_INIT;
    size_t removed = 99;
    assert_int_equal(dj_store_remove(store, NULL, &removed, &err), DJ_UNAVAILABLE);
    assert_int_equal(removed, 0);
    assert_non_null(strstr(err.message, "HOME is not set"));
    size_t entries = 0;
    assert_int_equal(dj_store_list(store, DJ_VERIFY_ALL, count_entry, &entries, NULL), DJ_OK);
    assert_int_equal(entries, 0);
    char *roots = describe_roots(store);
    assert_non_null(strstr(roots, " r0 w0 HOME is not set"));
    free(roots);
    char *path;
    assert_int_equal(dj__tiered_subdir(store, "src", true, 0, &path, &err), DJ_UNAVAILABLE);
    assert_int_equal(dj__tiered_subdir(store, "src", false, 0, &path, &err), DJ_NOT_FOUND);
    assert_null(path);
    dj_store_close(store);
    assert_int_equal(fix_count(fix->tmpdir), 0);
}

static void test_private_put_still_verifies(void **state)
{
    store_fixture *fix = *state;
    dj__store_config config = fix_config(fix);
    dj_store *store = fix_open_config(&config);
    dj_staging staging;
    dj_entry entry;
    dj_error err = DJ_ERROR_INIT;
    const dj_manifest what = fix_manifest("add", FIX_DIGEST);
    assert_int_equal(dj_store_stage(store, &staging, NULL), DJ_OK);
    assert_non_null(strstr(staging.reason, "MYLIB_JIT_CACHE_DIR"));
    assert_int_equal(dj_store_put(store, &staging, &what, &entry, &err), DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "kernel.so is missing"));
    assert_int_equal(fix_count(fix->tmpdir), 0);
    dj_store_close(store);
}

#define SECOND ((int64_t)1000 * 1000 * 1000)

static void test_unusable_root_is_tried_again(void **state)
{
    store_fixture *fix = *state;
    fix_write(fix->dir, "file", "", 0);
    char path[400];
    (void)snprintf(path, sizeof(path), "%s/file/root", fix->dir); /* not even root can make it */
    fake_now = -5 * SECOND;                                       /* the clock may start anywhere */
    dj_store *store = open_one(fix, path);
    expect_private_build(fix, store, "MYLIB_JIT_CACHE_DIR");
    expect_private_build(fix, store, path);
    char *roots = describe_roots(store);
    assert_non_null(strstr(roots, " r0 w0 "));
    free(roots);

    assert_int_equal(unlink(fix_path(fix->dir, "file")), 0);
    fake_now += 59 * SECOND;
    expect_private_build(fix, store, path);
    assert_false(fix_exists(path));
    fake_now += 1 * SECOND;
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_OK);
    assert_int_equal(fix->warnings, 1);
    dj_store_close(store);
}

static void test_unusable_tmpdir(void **state)
{
    store_fixture *fix = *state;
    dj__store_config config = fix_config(fix);
    config.tmpdir = "/nonexistent/tmp";
    dj_store *store = fix_open_config(&config);
    dj_staging staging;
    assert_int_equal(dj_store_stage(store, &staging, NULL), DJ_OK);
    assert_int_equal(strncmp(staging.path, "/tmp/dj-", 8), 0);
    dj__staging_fini(&staging);
    dj_store_close(store);
}

static void test_refused_root_is_neither_read_nor_written(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = open_one(fix, fix->roots[0]);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    assert_int_equal(chmod(fix->roots[0], 0777), 0);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
    expect_private_build(fix, store, "can be written by everybody");
    assert_int_equal(fix_count_in(fix, 0, "tmp"), 0);
    assert_int_equal(fix_count_in(fix, 0, "cache"), 1);
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj_store_remove(store, NULL, NULL, &err), DJ_PERMISSION);
    char *roots = describe_roots(store);
    assert_non_null(strstr(roots, " r0 w0 cache root"));
    free(roots);
    size_t entries = 0;
    assert_int_equal(dj_store_list(store, DJ_VERIFY_ALL, count_entry, &entries, NULL), DJ_OK);
    assert_int_equal(entries, 0);

    assert_int_equal(chmod(fix->roots[0], 0700), 0);
    assert_int_equal(chmod(fix_path(fix->roots[0], "cache"), 0777), 0);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
    assert_int_equal(chmod(fix_path(fix->roots[0], "cache"), 0700), 0);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_OK);
    dj_store_close(store);

    /* Another root that is refused is mentioned once, too. */
    fix->warnings = 0;
    assert_int_equal(chmod(fix->roots[0], 0777), 0);
    const char *const both[] = {fix->roots[1], fix->roots[0]};
    dj__store_config config = fix_config(fix);
    config.roots = both;
    config.num_roots = 2;
    store = fix_open_config(&config);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
    assert_int_equal(fix->warnings, 1);
    dj_store_close(store);
}

static void test_group_root(void **state)
{
    store_fixture *fix = *state;
    static const char *const trust[] = {"group"};
    const char *const roots[] = {fix->roots[0]};
    assert_int_equal(mkdir(fix->roots[0], 0700), 0);
    assert_int_equal(chmod(fix->roots[0], 02775), 0);
    dj__store_config config = fix_config(fix);
    config.roots = roots;
    config.num_roots = 1;
    config.trust = trust;
    config.num_trust = 1;
    dj_store *store = fix_open_config(&config);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    const char *entry = fix_entry(fix, 0, "add", FIX_DIGEST);
    assert_int_equal(fix_mode(entry), 02775);
    assert_int_equal(fix_mode(fix_path(entry, "kernel.so")), 0664);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_OK);
    dj_store_close(store);
}

static void test_read_only_root(void **state)
{
    store_fixture *fix = *state;
    if (geteuid() == 0) {
        print_message("root can write everywhere\n");
        skip();
    }
    dj_store *store = open_one(fix, fix->roots[0]);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    dj_store_close(store);
    static const char *const subs[] = {"tmp", "cache", "."};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(chmod(fix_path(fix->roots[0], subs[i]), 0500), 0);
    }
    fix_write(fix_entry(fix, 0, "add", FIX_DIGEST), "meta.json", "[]", 2);
    store = open_one(fix, fix->roots[0]);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_BINARY), DJ_OK);
    expect_private_build(fix, store, "Permission denied");
    char *roots = describe_roots(store);
    assert_non_null(strstr(roots, " r1 w0 "));
    assert_non_null(strstr(roots, "MYLIB_JIT_CACHE_DIR"));
    free(roots);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
    assert_int_equal(fix->counters.healed, 0); /* damaged, and cannot be moved */
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(chmod(fix_path(fix->roots[0], subs[2 - i]), 0700), 0);
    }
    dj_store_close(store);
}

static void test_roots_are_described(void **state)
{
    store_fixture *fix = *state;
    char expected[1024];
    dj_store *store = fix_open(fix, 2);
    char *roots = describe_roots(store);
    (void)snprintf(expected, sizeof(expected), "%s r0 w1 \n%s r0 w0 ", fix->roots[0],
                   fix->roots[1]);
    assert_int_equal(strncmp(roots, expected, strlen(expected)), 0);
    assert_false(fix_exists(fix->roots[0]));
    free(roots);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    assert_int_equal(mkdir(fix->roots[1], 0700), 0);
    roots = describe_roots(store);
    (void)snprintf(expected, sizeof(expected), "%s r1 w1 \n%s r1 w0 \n", fix->roots[0],
                   fix->roots[1]);
    assert_string_equal(roots, expected);
    free(roots);
    dj_store_close(store);
}

static void test_subdirs(void **state)
{
    store_fixture *fix = *state;
    dj_error err = DJ_ERROR_INIT;
    char *path = NULL;
    dj_store *store = fix_open(fix, 2);
    assert_int_equal(dj__tiered_subdir(store, "src", false, 0, &path, &err), DJ_UNAVAILABLE);
    assert_null(path);
    assert_false(fix_exists(fix->roots[0]));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dj__tiered_subdir(store, "src", true, 0, &path, &err), DJ_OK);
        assert_string_equal(path, fix_path(fix->roots[0], "src"));
        assert_int_equal(fix_mode(path), 0700);
        free(path);
    }
    assert_int_equal(dj__tiered_subdir(store, "src", false, 0, &path, &err), DJ_OK);
    assert_string_equal(path, fix_path(fix->roots[0], "src"));
    free(path);
    assert_int_equal(dj__tiered_subdir(store, "src", false, 1, &path, &err), DJ_UNAVAILABLE);
    assert_int_equal(dj__tiered_subdir(store, "src", false, 2, &path, &err), DJ_NOT_FOUND);
    assert_int_equal(chmod(fix_path(fix->roots[0], "src"), 0777), 0);
    assert_int_equal(dj__tiered_subdir(store, "src", true, 0, &path, &err), DJ_UNAVAILABLE);
    assert_non_null(strstr(err.message, "MYLIB_JIT_CACHE_DIR"));
    assert_null(path);
    dj_store_close(store);
}

/* ---- many at once ---- */

enum { CROWD_KEYS = 8, CROWD_THREADS = 8, CROWD_ROUNDS = 4, CROWD_PROCESSES = 4 };

typedef struct crowd {
    dj_store *store;
    pthread_barrier_t *barrier;
    bool damage;
    const char *root;
} crowd;

static void crowd_digest(unsigned key, char digest[33])
{
    (void)snprintf(digest, 33, "%032x", key);
}

/* NULL, or what went wrong: asserting is for the main thread. Everyone publishes different bytes
 * under the same names, so that a mix would show. */
static const char *crowd_step(const crowd *all, unsigned key, unsigned who)
{
    char digest[33];
    char binary[64];
    crowd_digest(key, digest);
    (void)snprintf(binary, sizeof(binary), "binary of %u by %u in %ld", key, who, (long)getpid());
    dj_staging staging;
    dj_entry entry;
    const dj_manifest what = fix_manifest("add", digest);
    dj_status status = dj_store_get(all->store, &what, DJ_VERIFY_ALL, &entry, NULL);
    if (status == DJ_NOT_FOUND) {
        if (dj_store_stage(all->store, &staging, NULL) != DJ_OK || staging.reason != NULL) {
            return "stage";
        }
        const int dir = dj__open_dir(staging.path);
        if (dj__write_new_at(dir, "kernel.so", binary, strlen(binary), 0600, false) != 0 ||
            dj__write_new_at(dir, "compiler.log", binary, strlen(binary), 0600, false) != 0) {
            return "write";
        }
        (void)close(dir);
        status = dj_store_put(all->store, &staging, &what, &entry, NULL);
        if (status == DJ_OK && entry.reason != NULL && !all->damage) {
            return "unpublished";
        }
    }
    if (status != DJ_OK) {
        return "status";
    }
    (void)snprintf(binary, sizeof(binary), "binary of %u by ", key);
    const bool right = entry.binary_size == entry.log_size &&
                       memcmp(entry.binary, entry.log, entry.log_size) == 0 &&
                       strncmp(entry.log, binary, strlen(binary)) == 0;
    if (entry.reason != NULL) {
        (void)dj__remove_tree(entry.path);
    }
    dj__entry_fini(&entry);
    if (right && all->damage && who == 0) {
        char path[1024];
        (void)snprintf(path, sizeof(path), "%s/cache/add.%s/kernel.so", all->root, digest);
        const int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            const bool wrote = write(fd, "D", 1) == 1;
            (void)close(fd);
            return wrote ? NULL : "damage";
        }
    }
    return right ? NULL : "content";
}

typedef struct crowd_member {
    const crowd *all;
    unsigned who;
    const char *problem;
} crowd_member;

static void *crowd_run(void *arg)
{
    crowd_member *member = arg;
    for (unsigned key = 0; key < CROWD_KEYS && member->problem == NULL; key++) {
        (void)pthread_barrier_wait(member->all->barrier);
        for (unsigned round = 0; round < CROWD_ROUNDS && member->problem == NULL; round++) {
            member->problem = crowd_step(member->all, key, member->who);
        }
    }
    return NULL;
}

static const char *crowd_threads(const crowd *all)
{
    pthread_t threads[CROWD_THREADS];
    crowd_member members[CROWD_THREADS];
    const char *problem = NULL;
    for (unsigned i = 0; i < CROWD_THREADS; i++) {
        members[i] = (crowd_member){.all = all, .who = i};
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, &members[i]), 0);
    }
    for (unsigned i = 0; i < CROWD_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        problem = problem != NULL ? problem : members[i].problem;
    }
    return problem;
}

static void expect_crowd_done(store_fixture *fix, dj_store *store)
{
    for (unsigned key = 0; key < CROWD_KEYS; key++) {
        char digest[33];
        crowd_digest(key, digest);
        assert_int_equal(fix_try(store, "add", digest, DJ_VERIFY_ALL), DJ_OK);
    }
    assert_int_equal(fix_count_in(fix, 0, "cache"), CROWD_KEYS);
    assert_int_equal(fix_count_in(fix, 0, "tmp"), 0);
}

static void test_crowd_of_threads(void **state)
{
    store_fixture *fix = *state;
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, CROWD_THREADS), 0);
    fix->log.level = DJ_LOG_OFF;
    const size_t files = fix_open_files();
    crowd all = {.store = fix_open(fix, 1), .barrier = &barrier, .root = fix->roots[0]};
    const char *problem = crowd_threads(&all);
    assert_null(problem);
    assert_int_equal(fix_open_files(), files);
    assert_int_equal(fix->counters.healed, 0);
    assert_int_equal(fix->counters.unpublished, 0);
    expect_crowd_done(fix, all.store);
    dj_store_close(all.store);
    assert_int_equal(pthread_barrier_destroy(&barrier), 0);
}

/* One of them damages entries all the time: nobody ever gets a wrong binary. */
static void test_crowd_with_damage(void **state)
{
    store_fixture *fix = *state;
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, CROWD_THREADS), 0);
    fix->log.level = DJ_LOG_OFF;
    crowd all = {
        .store = fix_open(fix, 1), .barrier = &barrier, .damage = true, .root = fix->roots[0]};
    const char *problem = crowd_threads(&all);
    assert_null(problem);
    assert_true(fix->counters.healed > 0);
    all.damage = false;
    problem = crowd_threads(&all);
    assert_null(problem);
    expect_crowd_done(fix, all.store);
    dj_store_close(all.store);
    assert_int_equal(pthread_barrier_destroy(&barrier), 0);
}

static void test_crowd_of_processes(void **state)
{
    store_fixture *fix = *state;
    int start[2];
    pid_t children[CROWD_PROCESSES];
    assert_int_equal(pipe2(start, O_CLOEXEC), 0);
    fix->log.level = DJ_LOG_OFF;
    crowd all = {.store = fix_open(fix, 1), .root = fix->roots[0]};
    for (unsigned i = 0; i < CROWD_PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            char byte;
            (void)close(start[1]);
            bool good = read(start[0], &byte, 1) == 0; /* all start when the writer is closed */
            for (unsigned key = 0; key < CROWD_KEYS; key++) {
                good = good && crowd_step(&all, key, i) == NULL;
            }
            _exit(good ? 0 : 1);
        }
    }
    assert_int_equal(close(start[0]), 0);
    assert_int_equal(close(start[1]), 0);
    for (unsigned i = 0; i < CROWD_PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    expect_crowd_done(fix, all.store);
    dj_store_close(all.store);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)
    const struct CMUnitTest tests[] = {
        T(test_crowd_of_processes),
        T(test_crowd_of_threads),
        T(test_crowd_with_damage),
        T(test_roots_are_searched_in_order),
        T(test_other_roots_are_never_changed),
        T(test_no_root),
        T(test_private_put_still_verifies),
        T(test_unusable_root_is_tried_again),
        T(test_unusable_tmpdir),
        T(test_refused_root_is_neither_read_nor_written),
        T(test_group_root),
        T(test_read_only_root),
        T(test_roots_are_described),
        T(test_subdirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
