/* SPDX-License-Identifier: MIT */
/* Who may write a root and what leads to it. Owners other than ours need root to set up. */
#include "store_fixture.h"

#include "cache/trust.h"

#define STRANGER 12345

typedef struct trust_dirs {
    char top[400]; /* <fixture>/top */
    char mid[400]; /* <top>/mid */
    char root[400];
} trust_dirs;

static trust_dirs make_trust_dirs(store_fixture *fix)
{
    trust_dirs dirs;
    (void)snprintf(dirs.top, sizeof(dirs.top), "%s/top", fix->dir);
    (void)snprintf(dirs.mid, sizeof(dirs.mid), "%s/top/mid", fix->dir);
    (void)snprintf(dirs.root, sizeof(dirs.root), "%s/top/mid/root", fix->dir);
    assert_int_equal(mkdir(dirs.top, 0700), 0);
    assert_int_equal(mkdir(dirs.mid, 0700), 0);
    assert_int_equal(mkdir(dirs.root, 0700), 0);
    return dirs;
}

/* `trust` is a word, or two separated by a colon, or NULL. */
static dj_status check(store_fixture *fix, const char *path, const char *trust, dj_error *err)
{
    dj__strlist words;
    dj__strlist_init(&words);
    if (trust != NULL) {
        const size_t first = strcspn(trust, ":");
        dj__strlist_addn(&words, trust, first);
        if (trust[first] == ':') {
            dj__strlist_add(&words, trust + first + 1);
        }
    }
    const int fd = dj__open_dir(path);
    assert_true(fd >= 0);
    const size_t files = fix_open_files();
    const dj_status status =
        dj__trust_check(fd, path, dj__strlist_items(&words), words.count, fix->env, err);
    assert_int_equal(fix_open_files(), files);
    assert_int_equal(close(fd), 0);
    dj__strlist_fini(&words);
    return status;
}

static void expect_trusted(store_fixture *fix, const char *path, const char *trust)
{
    dj_error err = DJ_ERROR_INIT;
    const dj_status status = check(fix, path, trust, &err);
    if (status != DJ_OK) {
        print_message("%s\n", err.message);
    }
    assert_int_equal(status, DJ_OK);
}

/* The message names the root, the directory at fault, its mode, and what to set. */
static void expect_refused(store_fixture *fix, const char *path, const char *trust,
                           const char *culprit, const char *text)
{
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(check(fix, path, trust, &err), DJ_PERMISSION);
    char mode[32];
    (void)snprintf(mode, sizeof(mode), "mode %04o", (unsigned)fix_mode(culprit));
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, culprit));
    assert_non_null(strstr(err.message, mode));
    assert_non_null(strstr(err.message, "MYLIB_JIT_CACHE_DIR"));
    assert_non_null(strstr(err.message, text));
}

static void test_own_directories(void **state)
{
    store_fixture *fix = *state;
    const trust_dirs dirs = make_trust_dirs(fix);
    static const mode_t modes[] = {0700, 0755, 02755, 0500};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(chmod(dirs.root, modes[i]), 0);
        expect_trusted(fix, dirs.root, NULL);
    }
    expect_trusted(fix, "/", NULL);
}

static void test_writable_by_all(void **state)
{
    store_fixture *fix = *state;
    const trust_dirs dirs = make_trust_dirs(fix);
    static const mode_t modes[] = {0777, 01777, 0702};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(chmod(dirs.root, modes[i]), 0);
        expect_refused(fix, dirs.root, NULL, dirs.root, "by everybody");
        expect_refused(fix, dirs.root, "owner:group", dirs.root, "by everybody");
    }
    assert_int_equal(chmod(dirs.root, 0700), 0);
    assert_int_equal(chmod(dirs.top, 0777), 0);
    expect_refused(fix, dirs.root, "owner:group", dirs.top, "its parent");
    assert_int_equal(chmod(dirs.top, 01777), 0); /* as /tmp */
    expect_trusted(fix, dirs.root, NULL);
}

static void test_writable_by_group(void **state)
{
    store_fixture *fix = *state;
    const trust_dirs dirs = make_trust_dirs(fix);
    assert_int_equal(chmod(dirs.root, 0775), 0);
    expect_refused(fix, dirs.root, NULL, dirs.root, "MYLIB_JIT_CACHE_TRUST=group");
    expect_refused(fix, dirs.root, "owner", dirs.root, "by group");
    expect_trusted(fix, dirs.root, "group");
    assert_int_equal(chmod(dirs.root, 0700), 0);
    assert_int_equal(chmod(dirs.mid, 0770), 0);
    expect_refused(fix, dirs.root, NULL, dirs.mid, "MYLIB_JIT_CACHE_TRUST=group");
    expect_trusted(fix, dirs.root, "group");
}

/* What counts is where the directory is, not through which links it was reached. */
static void test_links_are_seen_through(void **state)
{
    store_fixture *fix = *state;
    const trust_dirs dirs = make_trust_dirs(fix);
    const char *link = fix_path(fix->dir, "link");
    assert_int_equal(symlink(dirs.root, link), 0);
    expect_trusted(fix, link, NULL);
    assert_int_equal(chmod(dirs.top, 0777), 0);
    expect_refused(fix, link, NULL, dirs.top, "its parent");
}

static void test_owners(void **state)
{
    store_fixture *fix = *state;
    if (geteuid() != 0) {
        print_message("only root can give directories away\n");
        skip();
    }
    const trust_dirs dirs = make_trust_dirs(fix);
    assert_int_equal(chown(dirs.root, STRANGER, STRANGER), 0);
    expect_refused(fix, dirs.root, NULL, dirs.root, "MYLIB_JIT_CACHE_TRUST=owner");
    expect_refused(fix, dirs.root, "group", dirs.root, "another user");
    expect_refused(fix, dirs.root, "12346", dirs.root, "uid 12345");
    expect_trusted(fix, dirs.root, "owner");
    expect_trusted(fix, dirs.root, "12345");
    expect_trusted(fix, dirs.root, "12346:12345");
    assert_int_equal(chown(dirs.root, 1, 1), 0);
    expect_trusted(fix, dirs.root, "daemon");
    expect_refused(fix, dirs.root, "bin", dirs.root, "daemon (uid 1)");

    /* "owner" means the root's owner, so a parent's other owner stays a stranger. */
    assert_int_equal(chown(dirs.root, 0, 0), 0);
    assert_int_equal(chown(dirs.mid, STRANGER, 0), 0);
    expect_refused(fix, dirs.root, "owner", dirs.mid, "MYLIB_JIT_CACHE_TRUST=12345");
    expect_trusted(fix, dirs.root, "12345");
    assert_int_equal(chown(dirs.root, STRANGER, 0), 0);
    expect_trusted(fix, dirs.root, "owner");
    assert_int_equal(chmod(dirs.mid, 01777), 0); /* sticky, but its owner could replace us */
    expect_refused(fix, dirs.root, NULL, dirs.root, "another user");
    assert_int_equal(chown(dirs.root, 0, 0), 0);
    expect_refused(fix, dirs.root, NULL, dirs.mid, "another user");
}

static gid_t test_trust_gid(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_gid;
}

/* "group" means the root's group: everything published gets it, and what another group could
 * have written is neither opened nor loaded. */
static void test_only_the_roots_group(void **state)
{
    store_fixture *fix = *state;
    if (geteuid() != 0) {
        skip(); /* needs groups this process is not in */
    }
    static const char *const trust[] = {"group"};
    const char *const roots[] = {fix->roots[0]};
    const gid_t group = 54321;
    const gid_t other = 54322;
    assert_int_equal(mkdir(fix->roots[0], 0700), 0);
    assert_int_equal(chown(fix->roots[0], 0, group), 0);
    assert_int_equal(chmod(fix->roots[0], 0775), 0); /* no set-group-ID */
    dj__store_config config = fix_config(fix);
    config.roots = roots;
    config.num_roots = 1;
    config.trust = trust;
    config.num_trust = 1;
    dj_store *store = fix_open_config(&config);
    dj_entry entry;
    fix_put(store, "t", FIX_DIGEST, FIX_BINARY, &entry);
    assert_null(entry.reason);
    dj__entry_fini(&entry);
    char dir[512];
    (void)snprintf(dir, sizeof(dir), "%s", fix_entry(fix, 0, "t", FIX_DIGEST));
    assert_int_equal(test_trust_gid(fix_path(fix->roots[0], "cache")), group);
    assert_int_equal(test_trust_gid(dir), group);
    assert_int_equal(test_trust_gid(fix_path(dir, "kernel.so")), group);
    assert_int_equal(test_trust_gid(fix_path(dir, ".committed")), group);

    const dj_manifest what = fix_manifest("t", FIX_DIGEST);
    assert_int_equal(dj_store_get(store, &what, DJ_VERIFY_ALL, &entry, NULL), DJ_OK);
    dj__entry_fini(&entry);
    assert_int_equal(chown(fix_path(dir, "kernel.so"), 0, other), 0);
    assert_int_equal(dj_store_get(store, &what, DJ_VERIFY_ALL, &entry, NULL), DJ_NOT_FOUND);
    assert_false(fix_exists(dir)); /* healed: moved aside */

    fix_put(store, "t", FIX_DIGEST, FIX_BINARY, &entry);
    dj__entry_fini(&entry);
    assert_int_equal(chown(dir, 0, other), 0);
    assert_int_equal(dj_store_get(store, &what, DJ_VERIFY_BINARY, &entry, NULL), DJ_NOT_FOUND);

    fix_put(store, "t", FIX_DIGEST, FIX_BINARY, &entry);
    dj__entry_fini(&entry);
    assert_int_equal(chown(fix_path(fix->roots[0], "cache"), 0, other), 0);
    assert_int_equal(dj_store_get(store, &what, DJ_VERIFY_BINARY, &entry, NULL), DJ_NOT_FOUND);
    assert_true(fix_exists(dir)); /* refused, not touched */
    /* A sub-directory that a stranger owns is no better for having no group bit. */
    assert_int_equal(chown(fix_path(fix->roots[0], "cache"), 54323, group), 0);
    assert_int_equal(chmod(fix_path(fix->roots[0], "cache"), 0755), 0);
    dj_store_close(store);
    config.num_trust = 0;
    assert_int_equal(chmod(fix->roots[0], 0755), 0);
    store = fix_open_config(&config);
    assert_int_equal(dj_store_get(store, &what, DJ_VERIFY_BINARY, &entry, NULL), DJ_NOT_FOUND);
    dj_store_close(store);

    /* Parents too: only the root's group. */
    char inner[400];
    (void)snprintf(inner, sizeof(inner), "%s/inner", fix->roots[1]);
    assert_int_equal(mkdir(fix->roots[1], 0700), 0);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(chown(inner, 0, group), 0);
    assert_int_equal(chown(fix->roots[1], 0, other), 0);
    assert_int_equal(chmod(fix->roots[1], 0775), 0);
    const int fd = dj__open_dir(inner);
    assert_true(fd >= 0);
    assert_int_equal(dj__trust_check(fd, inner, trust, 1, fix->env, NULL), DJ_PERMISSION);
    assert_int_equal(dj__close(fd), 0);
}

static void test_validate(void **state)
{
    store_fixture *fix = *state;
    dj_error err = DJ_ERROR_INIT;
    static const char *const good[] = {"owner", "group", "root", "0", "12345"};
    assert_int_equal(dj__trust_validate(NULL, 0, fix->env, &err), DJ_OK);
    assert_int_equal(dj__trust_validate(good, 5, fix->env, &err), DJ_OK);
    static const char *const bad[] = {"no_such_user_here", "-1", "99999999999", "1x", "Owner"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(dj__trust_validate(&bad[i], 1, fix->env, &err), DJ_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "MYLIB_JIT_CACHE_TRUST"));
        assert_non_null(strstr(err.message, bad[i]));
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)
    const struct CMUnitTest tests[] = {
        T(test_own_directories),
        T(test_writable_by_all),
        T(test_writable_by_group),
        T(test_links_are_seen_through),
        T(test_owners),
        T(test_only_the_roots_group),
        T(test_validate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
