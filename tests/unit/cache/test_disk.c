/* SPDX-License-Identifier: MIT */
/* One root: publication, reading, healing, what is left alone, listing and removal. */
#include "store_fixture.h"

#include <time.h>

static void test_publish_and_get(void **state)
{
    store_fixture *fix = *state;
    const size_t files = fix_open_files();
    dj_store *store = fix_open(fix, 1);
    dj_entry entry;
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_BINARY), DJ_NOT_FOUND);
    assert_false(fix_exists(fix->roots[0])); /* looking creates nothing */

    fix_put(store, "add", FIX_DIGEST, FIX_BINARY, &entry);
    assert_null(entry.reason);
    assert_false(entry.lost_race);
    assert_string_equal(entry.path, fix_entry(fix, 0, "add", FIX_DIGEST));
    assert_memory_equal(entry.binary, FIX_BINARY, strlen(FIX_BINARY));
    assert_string_equal(entry.log, "a warning\n");
    dj__entry_fini(&entry);
    assert_int_equal(fix_count_in(fix, 0, "tmp"), 0);
    assert_int_equal(fix_count_in(fix, 0, "trash"), 0);
    assert_int_equal(fix_count(fix_entry(fix, 0, "add", FIX_DIGEST)), 5);

    for (int level = DJ_VERIFY_BINARY; level <= DJ_VERIFY_ALL; level++) {
        assert_int_equal(fix_get(store, "add", FIX_DIGEST, (dj_verify)level, &entry), DJ_OK);
        assert_string_equal(entry.path, fix_entry(fix, 0, "add", FIX_DIGEST));
        assert_int_equal(entry.binary_size, strlen(FIX_BINARY));
        assert_memory_equal(entry.binary, FIX_BINARY, entry.binary_size);
        assert_int_equal(entry.log_size, 10);
        assert_string_equal(entry.log, "a warning\n");
        assert_null(entry.reason);
        dj__entry_fini(&entry);
    }
    assert_int_equal(fix->counters.bytes_read, 2 * strlen(FIX_BINARY));
    assert_true(fix->counters.bytes_written > strlen(FIX_BINARY));
    assert_int_equal(fix_try(store, "add", FIX_DIGEST_2, DJ_VERIFY_BINARY), DJ_NOT_FOUND);
    assert_int_equal(fix_try(store, "sub", FIX_DIGEST, DJ_VERIFY_BINARY), DJ_NOT_FOUND);
    assert_int_equal(fix->warnings, 0);
    dj_store_close(store);
    assert_int_equal(fix_open_files(), files);
}

static void test_entry_without_log(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    dj_staging staging;
    dj_entry entry;
    const dj_manifest what = fix_manifest("add", FIX_DIGEST);
    assert_int_equal(dj_store_stage(store, &staging, NULL), DJ_OK);
    fix_write(staging.path, "kernel.so", "x", 1);
    assert_int_equal(dj_store_put(store, &staging, &what, &entry, NULL), DJ_OK);
    assert_string_equal(entry.log, "");
    dj__entry_fini(&entry);
    assert_int_equal(fix_get(store, "add", FIX_DIGEST, DJ_VERIFY_ALL, &entry), DJ_OK);
    assert_string_equal(entry.log, "");
    assert_int_equal(entry.log_size, 0);
    dj__entry_fini(&entry);
    dj_store_close(store);
}

static void test_fsync_modes_publish_alike(void **state)
{
    store_fixture *fix = *state;
    const char *const roots[] = {fix->roots[0]};
    for (int mode = DJ__FSYNC_NONE; mode <= DJ__FSYNC_FULL; mode++) {
        dj__store_config config = fix_config(fix);
        config.roots = roots;
        config.num_roots = 1;
        config.fsync = (dj__fsync_mode)mode;
        dj_store *store = fix_open_config(&config);
        fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
        assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_OK);
        dj_store_close(store);
        assert_int_equal(dj__remove_tree(fix->roots[0]), 0);
    }
}

static void test_modes_follow_the_root(void **state)
{
    store_fixture *fix = *state;
    static const mode_t modes[] = {0700, 0755, 0750, 0711};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        const mode_t mask = umask(i % 2 == 0 ? 0077 : 0);
        assert_int_equal(mkdir(fix->roots[0], 0700), 0);
        assert_int_equal(chmod(fix->roots[0], modes[i]), 0);
        dj_store *store = fix_open(fix, 1);
        dj_staging staging;
        assert_int_equal(dj_store_stage(store, &staging, NULL), DJ_OK);
        assert_int_equal(fix_mode(staging.path), 0700); /* private while it is being filled */
        dj__staging_fini(&staging);
        fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
        const char *entry = fix_entry(fix, 0, "add", FIX_DIGEST);
        assert_int_equal(fix_mode(entry), modes[i]);
        assert_int_equal(fix_mode(fix_path(entry, "kernel.so")), modes[i] & 0666);
        assert_int_equal(fix_mode(fix_path(entry, ".committed")), modes[i] & 0666);
        assert_int_equal(fix_mode(fix_path(fix->roots[0], "cache")), modes[i]);
        assert_int_equal(fix_mode(fix_path(fix->roots[0], "tmp")), modes[i]);
        assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_OK);
        dj_store_close(store);
        (void)umask(mask);
        assert_int_equal(dj__remove_tree(fix->roots[0]), 0);
    }
}

static void test_new_root_is_private(void **state)
{
    store_fixture *fix = *state;
    const mode_t mask = umask(0);
    dj_store *store = fix_open(fix, 1);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    (void)umask(mask);
    assert_int_equal(fix_mode(fix->roots[0]), 0700);
    dj_store_close(store);
}

static void test_loser_adopts_the_winner(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    dj_entry entry;
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    fix_put(store, "add", FIX_DIGEST, "another binary", &entry);
    assert_true(entry.lost_race);
    assert_null(entry.reason);
    assert_int_equal(entry.binary_size, strlen(FIX_BINARY));
    assert_memory_equal(entry.binary, FIX_BINARY, entry.binary_size);
    assert_string_equal(entry.path, fix_entry(fix, 0, "add", FIX_DIGEST));
    dj__entry_fini(&entry);
    assert_int_equal(fix->counters.lost_races, 1);
    assert_int_equal(fix_count_in(fix, 0, "tmp"), 0);
    dj_store_close(store);
}

/* An empty directory counts as absent; one without marker, or damaged, makes room. */
static void test_publish_over_leftovers(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    fix_publish(store, "other", FIX_DIGEST, FIX_BINARY);
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s", fix_entry(fix, 0, "add", FIX_DIGEST));

    assert_int_equal(mkdir(path, 0700), 0);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    assert_int_equal(fix->counters.healed, 0);

    assert_int_equal(unlink(fix_path(path, ".committed")), 0);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
    assert_true(fix_exists(path)); /* a look leaves it alone */
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    assert_int_equal(fix->counters.healed, 1);
    assert_int_equal(fix_count_in(fix, 0, "trash"), 1);

    fix_write(path, "meta.json", "[]", 2); /* seen only by a complete check */
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    assert_int_equal(fix->counters.healed, 2);
    assert_int_equal(fix->counters.lost_races, 0);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_OK);
    assert_int_equal(fix_count_in(fix, 0, "tmp"), 0);
    dj_store_close(store);
}

static void expect_untouched(store_fixture *fix, dj_store *store, const char *path,
                             const char *problem)
{
    dj_entry entry;
    const uint64_t unpublished = fix->counters.unpublished;
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
    fix_put(store, "add", FIX_DIGEST, FIX_BINARY, &entry);
    assert_non_null(entry.reason);
    assert_non_null(strstr(entry.reason, problem));
    assert_non_null(strstr(entry.reason, "MYLIB_JIT_CACHE_DIR"));
    assert_memory_equal(entry.binary, FIX_BINARY, strlen(FIX_BINARY));
    assert_int_equal(fix_mode(entry.path), 0700); /* the build itself is usable, and private */
    assert_true(fix_exists(fix_path(entry.path, "kernel.so")));
    assert_false(fix_exists(fix_path(entry.path, ".committed")));
    assert_int_equal(dj__remove_tree(entry.path), 0);
    dj__entry_fini(&entry);
    assert_int_equal(fix->counters.unpublished, unpublished + 1);
    assert_int_equal(fix->counters.healed, 0);
    size_t removed = 99;
    assert_int_equal(dj_store_remove(store, NULL, &removed, NULL), DJ_OK);
    assert_int_equal(removed, 0);
    assert_true(fix_exists(path));
}

static void test_foreign_entries_are_left_alone(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s", fix_entry(fix, 0, "add", FIX_DIGEST));
    fix_write(path, ".committed", "", 0); /* as the original does */
    expect_untouched(fix, store, path, "another program");
    assert_int_equal(fix->warnings, 1);
    static const char future[] = "deepjit-entry 2\nwhatever\nend deepjit-entry 2 x\n";
    fix_write(path, ".committed", future, sizeof(future) - 1);
    expect_untouched(fix, store, path, "format version");
    fix_write(path, ".committed", "{\"json\": true}\n", 15);
    expect_untouched(fix, store, path, "another program");
    assert_int_equal(fix->warnings, 1); /* people are told once */
    dj_store_close(store);
}

static void test_links_in_place_of_entries(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    char link[1024];
    (void)snprintf(link, sizeof(link), "%s", fix_entry(fix, 0, "add", FIX_DIGEST));
    const char *real = fix_path(fix->dir, "real"); /* a good entry, but not here */
    assert_int_equal(rename(link, real), 0);
    assert_int_equal(symlink(real, link), 0);
    expect_untouched(fix, store, link, "not a directory");
    assert_int_equal(unlink(link), 0);
    fix_write(fix->roots[0], "cache/add." FIX_DIGEST, "a file", 6);
    expect_untouched(fix, store, link, "not a directory");
    dj_store_close(store);
}

/* What was found once must still lie where it was found, and be what it was. */
static void test_moved_directories_are_noticed(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_BINARY), DJ_OK);
    char entries[1024];
    char elsewhere[1024];
    char old[1024];
    (void)snprintf(entries, sizeof(entries), "%s", fix_path(fix->roots[0], "cache"));
    (void)snprintf(elsewhere, sizeof(elsewhere), "%s", fix_path(fix->dir, "elsewhere"));
    (void)snprintf(old, sizeof(old), "%s", fix_path(fix->dir, "old"));

    assert_int_equal(rename(entries, elsewhere), 0);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_BINARY), DJ_NOT_FOUND);
    assert_int_equal(symlink(elsewhere, entries), 0);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_BINARY), DJ_NOT_FOUND);
    assert_int_equal(unlink(entries), 0);
    assert_int_equal(rename(elsewhere, entries), 0);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_BINARY), DJ_OK);

    /* Another root in the place of the first. */
    assert_int_equal(rename(fix->roots[0], old), 0);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_BINARY), DJ_NOT_FOUND);
    fix_publish(store, "add", FIX_DIGEST, "another binary");
    dj_entry entry;
    const dj_manifest what = fix_manifest("add", FIX_DIGEST);
    assert_int_equal(dj_store_get(store, &what, DJ_VERIFY_BINARY, &entry, NULL), DJ_OK);
    assert_int_equal(entry.binary_size, strlen("another binary"));
    assert_memory_equal(entry.binary, "another binary", entry.binary_size);
    dj__entry_fini(&entry);
    dj_store_close(store);
}

static void expect_healed(store_fixture *fix, dj_store *store, dj_verify level, const char *problem)
{
    const uint64_t healed = fix->counters.healed;
    const unsigned warnings = fix->warnings;
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, level), DJ_NOT_FOUND);
    assert_int_equal(fix->counters.healed, healed + 1);
    assert_int_equal(fix->warnings, warnings + 1);
    assert_non_null(strstr(fix->warning, problem));
    assert_false(fix_exists(fix_entry(fix, 0, "add", FIX_DIGEST)));
    assert_int_equal(fix_count_in(fix, 0, "trash"), healed + 1);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_OK);
}

static void test_damage_is_healed(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s", fix_entry(fix, 0, "add", FIX_DIGEST));

    fix_write(path, "kernel.so", "shorter", 7);
    expect_healed(fix, store, DJ_VERIFY_BINARY, "kernel.so has 7 bytes");
    assert_int_equal(unlink(fix_path(path, "kernel.so")), 0);
    expect_healed(fix, store, DJ_VERIFY_BINARY, "kernel.so is missing");
    assert_int_equal(unlink(fix_path(path, "kernel.so")), 0);
    assert_int_equal(symlink("meta.json", fix_path(path, "kernel.so")), 0);
    expect_healed(fix, store, DJ_VERIFY_BINARY, "not a regular file");
    assert_int_equal(unlink(fix_path(path, "kernel.so")), 0);
    assert_int_equal(mkfifo(fix_path(path, "kernel.so"), 0600), 0);
    expect_healed(fix, store, DJ_VERIFY_BINARY, "not a regular file");
    fix_write(path, "compiler.log", "A warning\n", 10);
    expect_healed(fix, store, DJ_VERIFY_BINARY, "compiler.log does not match");
    assert_int_equal(chmod(fix_path(path, "kernel.so"), 0666), 0);
    expect_healed(fix, store, DJ_VERIFY_BINARY, "written by strangers");
    assert_int_equal(chmod(path, 0777), 0);
    expect_healed(fix, store, DJ_VERIFY_BINARY, "written by strangers");

    /* Only a complete check reads the other files. */
    fix_write(path, "meta.json", "[]", 2);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_BINARY), DJ_OK);
    expect_healed(fix, store, DJ_VERIFY_ALL, "meta.json does not match");
    assert_int_equal(unlink(fix_path(path, "kernel.c")), 0);
    expect_healed(fix, store, DJ_VERIFY_ALL, "kernel.c is missing");
    dj_store_close(store);
}

/* A good entry under another name answers another question. */
static void test_marker_must_match_the_name(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    fix_publish(store, "sub", FIX_DIGEST, FIX_BINARY);
    char from[1024];
    (void)snprintf(from, sizeof(from), "%s", fix_entry(fix, 0, "sub", FIX_DIGEST));
    assert_int_equal(rename(from, fix_entry(fix, 0, "add", FIX_DIGEST)), 0);
    expect_healed(fix, store, DJ_VERIFY_BINARY, "another entry");
    dj_store_close(store);
}

static void test_every_flipped_byte_is_noticed(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    fix->log.level = DJ_LOG_OFF;
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s", fix_entry(fix, 0, "add", FIX_DIGEST));
    static const char *const names[] = {"kernel.c", "kernel.so", "compiler.log", "meta.json",
                                        ".committed"};
    static const char masks[] = {0x20, (char)0xff};
    uint64_t flips = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t size;
        char *data = fix_read(path, names[i], &size);
        for (size_t at = 0; at < size; at++) {
            for (size_t m = 0; m < sizeof(masks); m++) {
                data[at] ^= masks[m];
                fix_write(path, names[i], data, size);
                data[at] ^= masks[m];
                assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
                assert_int_equal(fix->counters.healed, ++flips);
                fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
            }
        }
        free(data);
    }
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_OK);
    assert_true(flips > 2 * 300);
    dj_store_close(store);
}

static void test_every_truncation_is_noticed(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    fix->log.level = DJ_LOG_OFF;
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s", fix_entry(fix, 0, "add", FIX_DIGEST));
    static const char *const names[] = {"kernel.c", "kernel.so", "compiler.log", "meta.json",
                                        ".committed"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t size;
        char *data = fix_read(path, names[i], &size);
        /* A marker of no bytes belongs to somebody else. */
        for (size_t at = strcmp(names[i], ".committed") == 0 ? 1 : 0; at < size; at++) {
            const uint64_t healed = fix->counters.healed;
            fix_write(path, names[i], data, at);
            assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
            assert_int_equal(fix->counters.healed, healed + 1);
            fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
        }
        free(data);
    }
    dj_store_close(store);
}

static void test_access_errors_change_nothing(void **state)
{
    store_fixture *fix = *state;
    if (geteuid() == 0) {
        print_message("root is denied nothing\n");
        skip();
    }
    dj_store *store = fix_open(fix, 1);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    char paths[4][1024];
    (void)snprintf(paths[0], sizeof(paths[0]), "%s", fix_entry(fix, 0, "add", FIX_DIGEST));
    (void)snprintf(paths[1], sizeof(paths[1]), "%s", fix_path(paths[0], "kernel.so"));
    (void)snprintf(paths[2], sizeof(paths[2]), "%s", fix_path(paths[0], ".committed"));
    (void)snprintf(paths[3], sizeof(paths[3]), "%s/cache", fix->roots[0]);
    for (size_t i = 0; i < 4; i++) {
        const mode_t mode = fix_mode(paths[i]);
        assert_int_equal(chmod(paths[i], 0), 0);
        assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_NOT_FOUND);
        assert_int_equal(chmod(paths[i], mode), 0);
        assert_true(fix_exists(paths[0]));
    }
    assert_int_equal(fix->counters.healed, 0);
    assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_ALL), DJ_OK);
    dj_store_close(store);
}

static void test_touch_is_hourly(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    fix_publish(store, "add", FIX_DIGEST, FIX_BINARY);
    const char *marker = fix_path(fix_entry(fix, 0, "add", FIX_DIGEST), ".committed");
    const time_t now = time(NULL);
    static const struct {
        time_t age;
        bool touched;
    } cases[] = {{3000, false}, {4000, true}, {-4000, false}, {4000, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (i == 3) { /* one that has not seen the root's directories before */
            dj_store_close(store);
            store = fix_open(fix, 1);
        }
        const struct timespec times[2] = {{.tv_sec = now - cases[i].age},
                                          {.tv_sec = now - cases[i].age}};
        struct stat st;
        assert_int_equal(utimensat(AT_FDCWD, marker, times, 0), 0);
        assert_int_equal(fix_try(store, "add", FIX_DIGEST, DJ_VERIFY_BINARY), DJ_OK);
        assert_int_equal(stat(marker, &st), 0);
        assert_int_equal(st.st_mtim.tv_sec != now - cases[i].age, cases[i].touched);
        if (cases[i].touched) {
            assert_true(st.st_mtim.tv_sec >= now - 1);
        }
    }
    dj_store_close(store);
}

static void expect_refused_put(dj_store *store, const dj_staging *prepared, const dj_manifest *what,
                               const char *text)
{
    dj_error err = DJ_ERROR_INIT;
    dj_entry entry;
    dj_staging staging = *prepared;
    char path[512];
    (void)snprintf(path, sizeof(path), "%s", staging.path);
    assert_int_equal(dj_store_put(store, &staging, what, &entry, &err), DJ_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, text));
    assert_null(entry.path);
    assert_false(fix_exists(path)); /* consumed all the same */
}

static void test_what_cannot_be_published(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    dj_staging staging;
    dj_manifest what = fix_manifest("add", FIX_DIGEST);
    static const struct {
        const char *kind;
        const char *text;
    } cases[] = {{"nothing", "kernel.so is missing"}, {"empty", "kernel.so is empty"},
                 {"directory", "only plain files"},   {"link", "only plain files"},
                 {"fifo", "only plain files"},        {"marker", "only plain files"},
                 {"newline", "not allowed"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(dj_store_stage(store, &staging, NULL), DJ_OK);
        const char *kind = cases[i].kind;
        if (strcmp(kind, "nothing") != 0) {
            fix_write(staging.path, "kernel.so", "x", strcmp(kind, "empty") == 0 ? 0 : 1);
        }
        if (strcmp(kind, "directory") == 0) {
            assert_int_equal(mkdir(fix_path(staging.path, "sub"), 0700), 0);
        } else if (strcmp(kind, "link") == 0) {
            assert_int_equal(symlink("/etc", fix_path(staging.path, "inc0")), 0);
        } else if (strcmp(kind, "fifo") == 0) {
            assert_int_equal(mkfifo(fix_path(staging.path, "pipe"), 0600), 0);
        } else if (strcmp(kind, "marker") == 0) {
            fix_write(staging.path, ".committed", "", 0);
        } else if (strcmp(kind, "newline") == 0) {
            fix_write(staging.path, "a\nb", "x", 1);
        }
        expect_refused_put(store, &staging, &what, cases[i].text);
    }
    static const char *const tags[] = {"", "path/tag", "dot.tag", "invalid-tag", "../x"};
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        what.tag = tags[i];
        assert_int_equal(dj_store_stage(store, &staging, NULL), DJ_OK);
        expect_refused_put(store, &staging, &what, "letters, digits, or underscores");
    }
    what.tag = "add";
    what.digest = "0123";
    assert_int_equal(dj_store_stage(store, &staging, NULL), DJ_OK);
    expect_refused_put(store, &staging, &what, "32 lowercase hexadecimal");
    assert_int_equal(fix_count_in(fix, 0, "cache"), 0);
    assert_int_equal(fix_count_in(fix, 0, "tmp"), 0);
    dj_store_close(store);
}

static void test_staging_names_are_ours(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    dj_staging a;
    dj_staging b;
    char prefix[64];
    assert_int_equal(dj_store_stage(store, &a, NULL), DJ_OK);
    assert_int_equal(dj_store_stage(store, &b, NULL), DJ_OK);
    (void)snprintf(prefix, sizeof(prefix), "/tmp/dj-%ld-", (long)getpid());
    assert_non_null(strstr(a.path, prefix));
    assert_string_not_equal(a.path, b.path);
    assert_null(a.reason);
    assert_int_equal(mkdir(fix_path(fix->roots[0], "tmp/foreign"), 0700), 0);
    assert_int_equal(mkdir(fix_path(a.path, "nested"), 0700), 0);
    dj__staging_fini(&a);
    dj__staging_fini(&b);
    dj__staging_fini(&b);
    assert_int_equal(dj_store_remove(store, NULL, NULL, NULL), DJ_OK);
    assert_int_equal(fix_count_in(fix, 0, "tmp"), 1); /* not ours, so still there */
    dj_store_close(store);
}

typedef struct listed {
    size_t count;
    size_t stop_after;
    char tags[8][64];
    dj_entry_state states[8];
    char problems[8][128];
    uint64_t bytes[8];
    uint64_t files[8];
} listed;

static bool collect_entry(void *user, const dj_cache_entry *entry)
{
    listed *list = user;
    const size_t i = list->count++;
    assert_true(i < 8);
    (void)snprintf(list->tags[i], sizeof(list->tags[i]), "%s", entry->tag);
    (void)snprintf(list->problems[i], sizeof(list->problems[i]), "%s", entry->problem);
    list->states[i] = entry->state;
    list->bytes[i] = entry->bytes;
    list->files[i] = entry->files;
    assert_int_equal(strlen(entry->digest), 32);
    assert_true(entry->used > 1600000000);
    assert_string_equal(entry->backend, entry->state == DJ_ENTRY_GOOD ? "host" : "");
    assert_string_equal(entry->arch, entry->state == DJ_ENTRY_GOOD ? "x86_64" : "");
    return list->count != list->stop_after;
}

static void test_list_and_verify(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    listed none = {0};
    assert_int_equal(dj_store_list(store, DJ_VERIFY_BINARY, collect_entry, &none, NULL), DJ_OK);
    assert_int_equal(none.count, 0);
    fix_publish(store, "b", FIX_DIGEST, FIX_BINARY);
    fix_publish(store, "a", FIX_DIGEST_2, FIX_BINARY);
    fix_publish(store, "c", FIX_DIGEST, FIX_BINARY);
    fix_publish(store, "d", FIX_DIGEST, FIX_BINARY);
    fix_write(fix_entry(fix, 0, "c", FIX_DIGEST), ".committed", "", 0);
    fix_write(fix_entry(fix, 0, "d", FIX_DIGEST), "meta.json", "[]", 2);
    fix_write(fix_path(fix->roots[0], "cache"), "stray", "x", 1);
    assert_int_equal(symlink("/", fix_entry(fix, 0, "e", FIX_DIGEST)), 0);

    listed list = {0};
    assert_int_equal(dj_store_list(store, DJ_VERIFY_BINARY, collect_entry, &list, NULL), DJ_OK);
    assert_int_equal(list.count, 5);
    static const char *const tags[] = {"a", "b", "c", "d", "e"};
    static const dj_entry_state states[] = {DJ_ENTRY_GOOD, DJ_ENTRY_GOOD, DJ_ENTRY_FOREIGN,
                                            DJ_ENTRY_GOOD, DJ_ENTRY_FOREIGN};
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(list.tags[i], tags[i]);
        assert_int_equal(list.states[i], states[i]);
        assert_int_equal(list.problems[i][0] == '\0', states[i] == DJ_ENTRY_GOOD);
    }
    assert_int_equal(list.files[0], 4);
    assert_int_equal(list.bytes[0], 12 + 10 + 2 + strlen(FIX_BINARY));
    assert_int_equal(list.bytes[2], list.bytes[0]);

    listed verified = {0};
    assert_int_equal(dj_store_list(store, DJ_VERIFY_ALL, collect_entry, &verified, NULL), DJ_OK);
    assert_int_equal(verified.states[3], DJ_ENTRY_DAMAGED);
    assert_string_equal(verified.problems[3], "meta.json does not match its checksum");
    assert_int_equal(fix->counters.healed, 0); /* looking changes nothing */
    assert_int_equal(fix_count_in(fix, 0, "cache"), 6);

    listed stopped = {.stop_after = 2};
    assert_int_equal(dj_store_list(store, DJ_VERIFY_ALL, collect_entry, &stopped, NULL), DJ_OK);
    assert_int_equal(stopped.count, 2);
    dj_store_close(store);
}

static void test_remove(void **state)
{
    store_fixture *fix = *state;
    dj_store *store = fix_open(fix, 1);
    size_t removed = 99;
    assert_int_equal(dj_store_remove(store, NULL, &removed, NULL), DJ_OK);
    assert_int_equal(removed, 0);
    assert_false(fix_exists(fix->roots[0]));
    fix_publish(store, "a", FIX_DIGEST, FIX_BINARY);
    fix_publish(store, "a", FIX_DIGEST_2, FIX_BINARY);
    fix_publish(store, "ab", FIX_DIGEST, FIX_BINARY);
    fix_publish(store, "bad", FIX_DIGEST, FIX_BINARY);
    fix_publish(store, "other", FIX_DIGEST, FIX_BINARY);
    fix_write(fix_entry(fix, 0, "bad", FIX_DIGEST), ".committed", "deepjit-entry 1\n", 16);
    fix_write(fix_entry(fix, 0, "other", FIX_DIGEST), ".committed", "", 0);
    assert_int_equal(dj_store_remove(store, "a", &removed, NULL), DJ_OK);
    assert_int_equal(removed, 2);
    assert_int_equal(fix_count_in(fix, 0, "cache"), 3);
    assert_int_equal(fix_count_in(fix, 0, "trash"), 0);
    assert_int_equal(mkdir(fix_path(fix->roots[0], "trash/foreign"), 0700), 0);
    assert_int_equal(mkdir(fix_path(fix->roots[0], "trash/dj-1-left"), 0700), 0);
    assert_int_equal(dj_store_remove(store, NULL, &removed, NULL), DJ_OK);
    assert_int_equal(removed, 2);
    assert_int_equal(fix_count_in(fix, 0, "cache"), 1);
    assert_true(fix_exists(fix_entry(fix, 0, "other", FIX_DIGEST)));
    assert_int_equal(fix_count_in(fix, 0, "trash"), 1);
    dj_store_close(store);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)
    const struct CMUnitTest tests[] = {
        T(test_publish_and_get),
        T(test_entry_without_log),
        T(test_fsync_modes_publish_alike),
        T(test_modes_follow_the_root),
        T(test_new_root_is_private),
        T(test_loser_adopts_the_winner),
        T(test_publish_over_leftovers),
        T(test_foreign_entries_are_left_alone),
        T(test_links_in_place_of_entries),
        T(test_moved_directories_are_noticed),
        T(test_damage_is_healed),
        T(test_marker_must_match_the_name),
        T(test_every_flipped_byte_is_noticed),
        T(test_every_truncation_is_noticed),
        T(test_access_errors_change_nothing),
        T(test_touch_is_hourly),
        T(test_what_cannot_be_published),
        T(test_staging_names_are_ours),
        T(test_list_and_verify),
        T(test_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
