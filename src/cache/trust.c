/* SPDX-License-Identifier: MIT */
/*
 * The trust check of a cache root. It looks at directories through descriptors, walking up with
 * "..", so that what is checked is the directory that is open and its real parents, whatever
 * links the configured path went through.
 *
 * Access lists need no care of their own: their mask shows in the group's permission bits.
 */
#include "cache/trust.h"

#include "base/error.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRUST_MAX_DEPTH 4096
#define TRUST_NSS_LIMIT (1u << 20)

/* 1 with the user's number, 0 if there is no such user, -1 if that could not be found out. */
static int trust_user_by_name(const char *name, uid_t *uid)
{
    for (size_t size = 1024; size <= TRUST_NSS_LIMIT; size *= 4) {
        char *buffer = malloc(size);
        if (buffer == NULL) {
            return -1;
        }
        struct passwd entry;
        struct passwd *found = NULL;
        const int error = getpwnam_r(name, &entry, buffer, size, &found);
        if (found != NULL) {
            *uid = entry.pw_uid;
        }
        free(buffer);
        if (found != NULL) {
            return 1;
        }
        if (error != ERANGE) {
            return error == 0 || error == ENOENT || error == ESRCH ? 0 : -1;
        }
    }
    return -1;
}

/* "alice (uid 1000)", or "uid 1000". */
static void trust_describe_user(uid_t uid, char *out, size_t size)
{
    char buffer[4096];
    struct passwd entry;
    struct passwd *found = NULL;
    if (getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) == 0 && found != NULL) {
        (void)snprintf(out, size, "%s (uid %lu)", entry.pw_name, (unsigned long)uid);
    } else {
        (void)snprintf(out, size, "uid %lu", (unsigned long)uid);
    }
}

static void trust_describe_group(gid_t gid, char *out, size_t size)
{
    char buffer[4096];
    struct group entry;
    struct group *found = NULL;
    if (getgrgid_r(gid, &entry, buffer, sizeof(buffer), &found) == 0 && found != NULL) {
        (void)snprintf(out, size, "%s (gid %lu)", entry.gr_name, (unsigned long)gid);
    } else {
        (void)snprintf(out, size, "gid %lu", (unsigned long)gid);
    }
}

static bool trust_is_number(const char *word, uid_t *uid)
{
    int64_t value;
    if (word[0] < '0' || word[0] > '9' || !dj__parse_int(word, &value) || value < 0 ||
        value >= (int64_t)UINT32_MAX) {
        return false;
    }
    *uid = (uid_t)value;
    return true;
}

bool dj__trust_has_group(const char *const *trust, size_t num_trust)
{
    for (size_t i = 0; i < num_trust; i++) {
        if (strcmp(trust[i], "group") == 0) {
            return true;
        }
    }
    return false;
}

bool dj__trust_allows(uid_t uid, uid_t root_owner, const char *const *trust, size_t num_trust)
{
    if (uid == 0 || uid == geteuid()) {
        return true;
    }
    for (size_t i = 0; i < num_trust; i++) {
        uid_t named;
        if (strcmp(trust[i], "group") == 0) {
            continue;
        }
        if (strcmp(trust[i], "owner") == 0) {
            if (uid == root_owner) {
                return true;
            }
        } else if (trust_is_number(trust[i], &named) || trust_user_by_name(trust[i], &named) == 1) {
            if (uid == named) {
                return true;
            }
        }
    }
    return false;
}

/* The state of one walk from a root to "/". */
typedef struct trust_walk {
    const char *path; /* of the root, as configured */
    uid_t root_owner;
    gid_t root_group; /* the only group that the word "group" stands for */
    bool at_root;     /* the directory being looked at is the root itself */
    const char *const *trust;
    size_t num_trust;
    const dj__env *env;
} trust_walk;

static dj_status trust_refuse(const trust_walk *walk, int fd, const struct stat *st,
                              const char *why, const char *word, dj_error *err)
{
    char where[512];
    char link[64];
    char owner[256];
    char dir_setting[256];
    char trust_setting[256];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, where, sizeof(where) - 1);
    where[size > 0 ? size : 0] = '\0';
    trust_describe_user(st->st_uid, owner, sizeof(owner));
    dj__env_name(walk->env, "JIT_CACHE_DIR", dir_setting);
    dj__env_name(walk->env, "JIT_CACHE_TRUST", trust_setting);
    char remedy[512] = "";
    if (word != NULL) {
        (void)snprintf(remedy, sizeof(remedy), ", or %s=%s if you trust them with the code you run",
                       trust_setting, word);
    }
    return dj__fail(err, DJ_PERMISSION,
                    "cache root %s is refused: %s %s (owner %s, mode %04o) %s; set %s to another "
                    "directory%s",
                    walk->path, walk->at_root ? "the directory" : "its parent",
                    where[0] != '\0' ? where : "directory", owner, (unsigned)(st->st_mode & 07777),
                    why, dir_setting, remedy);
}

static dj_status trust_check_one(const trust_walk *walk, int fd, const struct stat *st,
                                 dj_error *err)
{
    if (!dj__trust_allows(st->st_uid, walk->root_owner, walk->trust, walk->num_trust)) {
        char word[32];
        (void)snprintf(word, sizeof(word), "%lu", (unsigned long)st->st_uid);
        return trust_refuse(walk, fd, st, "belongs to another user", walk->at_root ? "owner" : word,
                            err);
    }
    /* In a sticky parent nobody can replace what belongs to somebody else, and the owner of
     * the next directory down has been checked. */
    if (!walk->at_root && (st->st_mode & S_ISVTX) != 0) {
        return DJ_OK;
    }
    if ((st->st_mode & S_IWOTH) != 0) {
        return trust_refuse(walk, fd, st, "can be written by everybody", NULL, err);
    }
    const bool group_is_trusted =
        st->st_gid == walk->root_group && dj__trust_has_group(walk->trust, walk->num_trust);
    if ((st->st_mode & S_IWGRP) != 0 && !group_is_trusted) {
        char group[256];
        char why[320];
        trust_describe_group(st->st_gid, group, sizeof(group));
        (void)snprintf(why, sizeof(why), "can be written by group %s", group);
        const bool is_roots = st->st_gid == walk->root_group;
        return trust_refuse(walk, fd, st, why, is_roots ? "group" : NULL, err);
    }
    return DJ_OK;
}

dj_status dj__trust_check(int fd, const char *path, const char *const *trust, size_t num_trust,
                          const dj__env *env, dj_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return dj__fail_errno(err, errno, "cannot examine cache root %s", path);
    }
    trust_walk walk = {.path = path,
                       .root_owner = st.st_uid,
                       .root_group = st.st_gid,
                       .at_root = true,
                       .trust = trust,
                       .num_trust = num_trust,
                       .env = env};
    dj_status status = trust_check_one(&walk, fd, &st, err);
    walk.at_root = false;
    int at = fd;
    for (unsigned depth = 0; status == DJ_OK; depth++) {
        const int parent = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct stat above;
        if (parent < 0 || fstat(parent, &above) != 0 || depth > TRUST_MAX_DEPTH) {
            status = dj__fail_errno(err, depth > TRUST_MAX_DEPTH ? ELOOP : errno,
                                    "cannot examine the parents of cache root %s", path);
        } else {
            status = trust_check_one(&walk, parent, &above, err);
        }
        if (at != fd) {
            (void)dj__close(at);
        }
        at = parent;
        if (status == DJ_OK && above.st_dev == st.st_dev && above.st_ino == st.st_ino) {
            break; /* "/" is its own parent */
        }
        st = above;
    }
    if (at != fd && at >= 0) {
        (void)dj__close(at);
    }
    return status;
}

dj_status dj__trust_validate(const char *const *trust, size_t num_trust, const dj__env *env,
                             dj_error *err)
{
    char setting[256];
    dj__env_name(env, "JIT_CACHE_TRUST", setting);
    for (size_t i = 0; i < num_trust; i++) {
        uid_t uid;
        if (strcmp(trust[i], "owner") == 0 || strcmp(trust[i], "group") == 0 ||
            trust_is_number(trust[i], &uid)) {
            continue;
        }
        if (trust_user_by_name(trust[i], &uid) != 1) {
            return dj__fail(err, DJ_INVALID_ARGUMENT,
                            "invalid value for %s: %s is no user here; accepted are owner, group, "
                            "user names and user numbers, separated by colons",
                            setting, trust[i]);
        }
    }
    return DJ_OK;
}
