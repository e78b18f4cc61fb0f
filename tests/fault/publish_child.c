/* SPDX-License-Identifier: MIT */
/*
 * Publishes an entry under faults.
 *
 *   publish_child <root> <tmpdir> publish            without faults
 *   publish_child <root> <tmpdir> kill <scenario> N  dies at the N-th call of the scenario
 *   publish_child <root> <tmpdir> fail               every call of every scenario fails once and
 *                                                    for good, with every error
 *
 * Scenarios start from what "publish" left (or did not): publish (get, stage, put, get), remove.
 */
#include "base/fs.h"
#include "cache/disk.h"
#include "shim_kill.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static shim_arm_fn child_arm;
static shim_disarm_fn child_disarm;
static char child_what[128] = "without faults"; /* for messages */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: %s: not true: %s\n", __FILE__, __LINE__, child_what,     \
                          #condition);                                                             \
            exit(CHILD_WRONG);                                                                     \
        }                                                                                          \
    } while (0)

typedef struct child {
    const char *root;
    const char *tmpdir;
    dj__env *env;
    dj__log log;
    dj__store_counters counters;
    dj_store *store;
} child;

static const dj_manifest child_manifest = {.tag = CHILD_TAG,
                                           .digest = CHILD_DIGEST,
                                           .backend = "host",
                                           .arch = "x86_64",
                                           .binary_name = "kernel.so"};

static void child_open(child *self, dj__fsync_mode fsync_mode)
{
    const dj__store_config config = {.roots = &self->root,
                                     .num_roots = 1,
                                     .fsync = fsync_mode,
                                     .tmpdir = self->tmpdir,
                                     .env = self->env,
                                     .log = &self->log,
                                     .counters = &self->counters};
    CHECK(dj__tiered_open(&config, &self->store, NULL) == DJ_OK);
}

static void child_close(child *self)
{
    dj_store_close(self->store);
    self->store = NULL;
}

static void child_write_files(const char *path)
{
    const int dir = dj__open_dir(path);
    CHECK(dir >= 0);
    CHECK(dj__write_new_at(dir, "kernel.so", CHILD_BINARY, strlen(CHILD_BINARY), 0600, false) == 0);
    CHECK(dj__write_new_at(dir, "kernel.c", "int x;\n", 7, 0600, false) == 0);
    CHECK(dj__write_new_at(dir, "compiler.log", "", 0, 0600, false) == 0);
    CHECK(dj__close(dir) == 0);
}

static bool child_is_right(const dj_entry *entry)
{
    return entry->binary_size == strlen(CHILD_BINARY) &&
           memcmp(entry->binary, CHILD_BINARY, entry->binary_size) == 0;
}

static size_t child_count_dir(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return 0;
    }
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

/* ---- scenarios; `arm` and `disarm` surround what is ours to survive ---- */

typedef struct child_fault {
    long nth; /* 0: none */
    int error;
    int flags;
    bool must_publish;
    bool must_win;
    long calls;
} child_fault;

static void fault_on(const child_fault *fault)
{
    if (fault->nth > 0) {
        child_arm(fault->nth > fault->calls ? fault->nth - fault->calls : 1, fault->error,
                  fault->flags);
    }
}

static void fault_off(child_fault *fault)
{
    if (fault->nth > 0) {
        fault->calls += child_disarm();
    }
}

/* A fault that has struck once must not strike again in the next stretch. */
static bool fault_is_over(const child_fault *fault)
{
    return (fault->flags & SHIM_PERSISTENT) == 0 && fault->calls >= fault->nth;
}

static dj_status child_get(child *self, child_fault *fault, dj_entry *entry)
{
    dj_error err = DJ_ERROR_INIT;
    if (!fault_is_over(fault)) {
        fault_on(fault);
    }
    const dj_status status = dj_store_get(self->store, &child_manifest, DJ_VERIFY_ALL, entry, &err);
    fault_off(fault);
    CHECK(status == DJ_OK || status == DJ_NOT_FOUND);
    CHECK(status != DJ_OK || child_is_right(entry));
    CHECK(status == DJ_OK || (err.message[0] != '\0' && entry->path == NULL));
    return status;
}

static void child_check_put(child *self, const dj_entry *entry)
{
    char kernel[1200];
    CHECK(child_is_right(entry));
    (void)snprintf(kernel, sizeof(kernel), "%s/kernel.so", entry->path);
    CHECK(access(kernel, R_OK) == 0);
    if (entry->reason == NULL) {
        CHECK(strncmp(entry->path, self->root, strlen(self->root)) == 0);
    } else {
        CHECK(entry->reason[0] != '\0');
        CHECK(self->counters.unpublished > 0);
        CHECK(dj__remove_tree(entry->path) == 0);
    }
}

static void child_publish(child *self, child_fault *fault)
{
    dj_error err = DJ_ERROR_INIT;
    dj_staging staging;
    dj_entry entry;
    if (child_get(self, fault, &entry) == DJ_OK) {
        dj__entry_fini(&entry);
    }
    if (!fault_is_over(fault)) {
        fault_on(fault);
    }
    dj_status status = dj_store_stage(self->store, &staging, &err);
    fault_off(fault);
    if (status != DJ_OK) {
        CHECK(status == DJ_IO || status == DJ_PERMISSION);
        CHECK(err.message[0] != '\0' && staging.path == NULL && staging.reason == NULL);
        return;
    }
    child_write_files(staging.path);
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s", staging.path);
    if (!fault_is_over(fault)) {
        fault_on(fault);
    }
    status = dj_store_put(self->store, &staging, &child_manifest, &entry, &err);
    fault_off(fault);
    CHECK(staging.path == NULL && staging.reason == NULL);
    if (status == DJ_OK) {
        CHECK(entry.reason == NULL || !fault->must_publish);
        CHECK(!entry.lost_race || !fault->must_win);
        child_check_put(self, &entry);
    } else {
        CHECK(status == DJ_IO || status == DJ_PERMISSION);
        CHECK(err.message[0] != '\0' && entry.path == NULL && entry.binary == NULL);
        CHECK((fault->flags & SHIM_PERSISTENT) != 0 || access(path, F_OK) != 0);
        (void)dj__remove_tree(path);
    }
    dj__entry_fini(&entry);
    if (child_get(self, fault, &entry) == DJ_OK) {
        dj__entry_fini(&entry);
    }
}

static bool child_see(void *user, const dj_cache_entry *entry)
{
    (void)entry;
    ++*(size_t *)user;
    return true;
}

static void child_remove(child *self, child_fault *fault)
{
    dj_error err = DJ_ERROR_INIT;
    size_t removed = 0;
    size_t seen = 0;
    fault_on(fault);
    const dj_status listed = dj_store_list(self->store, DJ_VERIFY_ALL, child_see, &seen, NULL);
    const dj_status status = dj_store_remove(self->store, NULL, &removed, &err);
    fault_off(fault);
    CHECK(listed == DJ_OK && seen <= 1 && removed <= 1);
    CHECK(status == DJ_OK || err.message[0] != '\0');
}

/* Starting points. */
typedef enum child_start {
    START_EMPTY,
    START_GOOD,
    START_DAMAGED,
    START_UNMARKED,
    STARTS
} child_start;

static void child_prepare(child *self, child_start start)
{
    child_fault none = {0};
    char path[1100];
    CHECK(dj__remove_tree(self->root) == 0);
    if (start == START_EMPTY) {
        return;
    }
    child_open(self, DJ__FSYNC_NONE);
    child_publish(self, &none);
    child_close(self);
    (void)snprintf(path, sizeof(path), "%s/cache/" CHILD_TAG "." CHILD_DIGEST "/%s", self->root,
                   start == START_UNMARKED ? ".committed" : "kernel.so");
    if (start == START_DAMAGED) {
        CHECK(truncate(path, 3) == 0);
    } else if (start == START_UNMARKED) {
        CHECK(unlink(path) == 0);
    }
}

/* Afterwards everything works: a fresh store publishes or finds the entry. */
static void child_expect_recovery(child *self)
{
    child_fault none = {0};
    dj_entry entry;
    child_open(self, DJ__FSYNC_NONE);
    child_publish(self, &none);
    CHECK(child_get(self, &none, &entry) == DJ_OK);
    dj__entry_fini(&entry);
    child_close(self);
}

/* True if the fault struck. */
static bool child_fail_once(child *self, child_start start, bool publish, child_fault fault)
{
    (void)snprintf(child_what, sizeof(child_what), "start %d, %s, call %ld, errno %d, flags %d",
                   (int)start, publish ? "publish" : "remove", fault.nth, fault.error, fault.flags);
    child_prepare(self, start);
    memset(&self->counters, 0, sizeof(self->counters));
    child_open(self, DJ__FSYNC_FULL);
    const size_t files = child_count_dir("/proc/self/fd");
    if (publish) {
        child_publish(self, &fault);
    } else {
        child_remove(self, &fault);
    }
    CHECK(child_count_dir("/proc/self/fd") == files);
    /* An error of access is no reason to move an entry. */
    CHECK(self->counters.healed == 0 || start == START_DAMAGED || start == START_UNMARKED);
    child_close(self);
    child_expect_recovery(self);
    return fault.calls >= fault.nth;
}

static void child_fail_every_call(child *self, child_start start, int error, int flags)
{
    for (int publish = 0; publish < 2; publish++) {
        bool struck = true;
        for (long nth = 1; struck; nth++) {
            CHECK(nth < 2000);
            const child_fault fault = {.nth = nth,
                                       .error = error,
                                       .flags = flags,
                                       /* A lost reply loses nothing else. */
                                       .must_publish =
                                           (flags & SHIM_LOST_REPLY) != 0 &&
                                           (start == START_EMPTY || start == START_GOOD)};
            struck = child_fail_once(self, start, publish != 0, fault);
        }
    }
}

static void child_fail_all(child *self)
{
    static const int errors[] = {EIO, EACCES, ENOSPC, EROFS, ESTALE, EMFILE};
    for (child_start start = START_EMPTY; start < STARTS; start++) {
        const size_t count = start == START_EMPTY ? sizeof(errors) / sizeof(errors[0]) : 2;
        for (size_t i = 0; i < count; i++) {
            child_fail_every_call(self, start, errors[i], 0);
            child_fail_every_call(self, start, errors[i], SHIM_PERSISTENT);
        }
        child_fail_every_call(self, start, EIO, SHIM_LOST_REPLY);
    }
}

static int child_kill(child *self, const char *scenario, long nth)
{
    child_fault fault = {.nth = nth};
    (void)snprintf(child_what, sizeof(child_what), "%s, killed at call %ld", scenario, nth);
    child_open(self, DJ__FSYNC_FULL);
    if (strcmp(scenario, "remove") == 0) {
        child_remove(self, &fault);
    } else {
        child_publish(self, &fault);
    }
    child_close(self);
    return fault.calls < nth ? CHILD_NOT_REACHED : CHILD_DONE;
}

int main(int argc, char **argv)
{
    child self = {.log = {.level = DJ_LOG_OFF}};
    char *const environment[] = {NULL};
    CHECK(argc >= 4);
    self.root = argv[1];
    self.tmpdir = argv[2];
    CHECK(dj__env_create(NULL, environment, &self.env, NULL) == DJ_OK);
    int result = CHILD_DONE;
    if (strcmp(argv[3], "publish") == 0) {
        child_expect_recovery(&self);
    } else {
        child_arm = (shim_arm_fn)dlsym(RTLD_DEFAULT, "shim_arm");
        child_disarm = (shim_disarm_fn)dlsym(RTLD_DEFAULT, "shim_disarm");
        CHECK(child_arm != NULL && child_disarm != NULL);
        if (strcmp(argv[3], "fail") == 0) {
            child_fail_all(&self);
        } else {
            CHECK(argc == 6);
            result = child_kill(&self, argv[4], strtol(argv[5], NULL, 10));
        }
    }
    dj__env_destroy(self.env);
    return result;
}
