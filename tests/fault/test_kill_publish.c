/* SPDX-License-Identifier: MIT */
/*
 * A writer that dies at any call leaves nothing, or a complete entry, and never stands in the way
 * of the next one; a call that fails costs at most the publication.
 */
#include "../unit/cache/store_fixture.h"
#include "shim_kill.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

/* Runs publish_child and gives its wait status. */
static int run_child(store_fixture *fix, bool shim, const char *mode, const char *scenario,
                     long nth)
{
    const char *bin = getenv("DJ_TEST_BIN_DIR");
    assert_non_null(bin);
    char number[32];
    (void)snprintf(number, sizeof(number), "%ld", nth);
    /* By its bare name: blanks in LD_PRELOAD separate. */
    char preload[] = "LD_PRELOAD=shim_kill.so";
    char *search = dj__format("LD_LIBRARY_PATH=%s", bin);
    assert_non_null(search);
    char *program = dj__format("%s/publish_child", bin);
    assert_non_null(program);
    char *const argv[] = {program,
                          fix->roots[0],
                          fix->tmpdir,
                          (char *)(uintptr_t)mode,
                          (char *)(uintptr_t)scenario,
                          scenario != NULL ? number : NULL,
                          NULL};
    /* Sanitizers want to come first; the shim does, and hands on to them. */
    char asan[] = "ASAN_OPTIONS=verify_asan_link_order=0";
    char *const envp[] = {asan, search, shim ? preload : NULL, NULL};
    pid_t pid;
    int status;
    assert_int_equal(posix_spawn(&pid, program, NULL, NULL, argv, envp), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    free(program);
    free(search);
    return status;
}

static void expect_recovery(store_fixture *fix)
{
    const int status = run_child(fix, false, "publish", NULL, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CHILD_DONE);
}

typedef struct seen_entries {
    size_t good;
    size_t bad;
} seen_entries;

static bool see_entry(void *user, const dj_cache_entry *entry)
{
    seen_entries *seen = user;
    assert_string_equal(entry->tag, CHILD_TAG);
    assert_string_equal(entry->digest, CHILD_DIGEST);
    *(entry->state == DJ_ENTRY_GOOD ? &seen->good : &seen->bad) += 1;
    return true;
}

typedef void (*prepare_fn)(store_fixture *fix);

static void start_empty(store_fixture *fix)
{
    (void)fix;
}

static void start_good(store_fixture *fix)
{
    expect_recovery(fix);
}

static void start_damaged(store_fixture *fix)
{
    expect_recovery(fix);
    fix_write(fix_entry(fix, 0, CHILD_TAG, CHILD_DIGEST), "kernel.so", "damaged", 7);
}

/* Kills the child at call 1, 2, 3, ... until it survives. */
static void kill_at_every_call(store_fixture *fix, const char *scenario, prepare_fn prepare,
                               bool may_stay_damaged)
{
    for (long nth = 1;; nth++) {
        assert_true(nth < 2000);
        prepare(fix);
        const int status = run_child(fix, true, "kill", scenario, nth);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), CHILD_NOT_REACHED);
            assert_true(nth > 10); /* the shim did count */
            return;
        }
        assert_int_equal(WTERMSIG(status), SIGKILL);

        seen_entries seen = {0};
        dj_store *store = fix_open(fix, 1);
        assert_int_equal(dj_store_list(store, DJ_VERIFY_ALL, see_entry, &seen, NULL), DJ_OK);
        assert_true(seen.good + seen.bad <= 1);
        assert_true(seen.bad == 0 || may_stay_damaged);
        assert_true(fix_count_in(fix, 0, "tmp") <= 1); /* what the dead left is never in the way */
        dj_store_close(store);

        expect_recovery(fix);
        store = fix_open(fix, 1);
        assert_int_equal(fix_try(store, CHILD_TAG, CHILD_DIGEST, DJ_VERIFY_ALL), DJ_OK);
        assert_int_equal(fix_count_in(fix, 0, "cache"), 1);
        dj_store_close(store);
        assert_int_equal(dj__remove_tree(fix->roots[0]), 0);
    }
}

static void test_kill_publisher(void **state)
{
    kill_at_every_call(*state, "publish", start_empty, false);
}

static void test_kill_loser(void **state)
{
    kill_at_every_call(*state, "publish", start_good, false);
}

static void test_kill_healer(void **state)
{
    kill_at_every_call(*state, "publish", start_damaged, true);
}

static void test_kill_remover(void **state)
{
    kill_at_every_call(*state, "remove", start_good, false);
}

static void test_every_call_fails(void **state)
{
    store_fixture *fix = *state;
    const int status = run_child(fix, true, "fail", NULL, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CHILD_DONE);
    assert_int_equal(fix_count(fix->tmpdir), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)
    const struct CMUnitTest tests[] = {
        T(test_kill_publisher), T(test_kill_loser),       T(test_kill_healer),
        T(test_kill_remover),   T(test_every_call_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
