/* SPDX-License-Identifier: MIT */
/*
 * One cache root, and what all roots of a store share.
 *
 * A root keeps no descriptor: every operation opens what it needs anew, so a root that is
 * removed, made again, or mounted over while we live is simply the new one. What is remembered
 * is which directories passed the trust check.
 */
#ifndef DJ_CACHE_ROOT_H
#define DJ_CACHE_ROOT_H

#include "cache/disk.h"
#include <sys/stat.h>

/* Sub-directories of a root. */
#define DJ__DIR_ENTRIES "cache"
#define DJ__DIR_STAGING "tmp"
#define DJ__DIR_TRASH "trash"
#define DJ__DIR_SOURCES "src" /* <digest>/kernel.<ext>, where debug information leads */

#define DJ__ENTRY_NAME_SIZE (128 + 1 + DJ__HEX_SIZE) /* <tag>.<digest> and a NUL */

typedef struct dj__store_shared {
    dj__strlist trust;
    mode_t loose; /* permission bits with which strangers could write */
    dj__fsync_mode fsync;
    const dj__env *env;
    dj__log *log;
    dj__store_counters *counters;
    char setting[256]; /* name of the variable that chooses roots */
} dj__store_shared;

typedef struct dj__root {
    dj_store store;
    const dj__store_shared *shared;
    char *path;
    bool primary;             /* the only root that is ever changed */
    _Atomic uint64_t trusted; /* fingerprint of the directory that passed the check; 0: none */
    _Atomic uint64_t entries; /* the same of the directory of entries in it */
    _Atomic bool warned;      /* a root that is skipped is mentioned once */
} dj__root;

/* One root as a store (disk.c). `shared` must outlive it. */
dj_status dj__disk_open(const char *path, bool primary, const dj__store_shared *shared,
                        dj_store **out, dj_error *err);

/* Opens the root and checks whom it can be trusted to; `create` makes it if missing. NOT_FOUND
 * if there is none. */
dj_status dj__root_open(dj__root *root, bool create, int *fd, dj_error *err);
/* Opens a sub-directory of an open root, `create` as above, with the root's mode. */
dj_status dj__root_open_sub(dj__root *root, int fd, const char *name, bool create, int *sub,
                            dj_error *err);
/* Both in one. */
dj_status dj__root_open_both(dj__root *root, const char *name, bool create, int *fd, int *sub,
                             dj_error *err);
/* The short way to a sub-directory of a root that has passed its check before: one open instead of
 * two. Negative if anything is missing or not as it was then; the long way says what. */
int dj__root_open_known(dj__root *root, const char *name);
/* The short way to an entry: for one that is open, true if it lies in the directory of entries of
 * the root, and both are as they were when they passed their check. `group` gets that of the
 * entries. False says nothing; the long way does. */
bool dj__root_has(const dj__root *root, int entry, gid_t *group);
/* Closes what is not negative. */
void dj__root_close(int fd, int sub);

/* "<root>/<dir>/<name>"; NULL without memory. */
char *dj__root_path(const dj__root *root, const char *dir, const char *name);
/* "dj-<pid>-", with which every private name of ours begins. */
void dj__root_prefix(char prefix[32]);

/* Checks tag and digest, and joins them to the entry's name. INVALID_ARGUMENT. */
dj_status dj__entry_name(const dj_manifest *what, char name[DJ__ENTRY_NAME_SIZE], dj_error *err);
/* True if `name` is "<tag>.<digest>"; `dot` (may be NULL) gets the length of the tag. */
bool dj__entry_name_parse(const char *name, size_t *tag_size);

/* Gives what lies in the root the root's group and `mode`; without group-write where the group
 * cannot be given, for then another group would get it. 0 or an errno value. */
int dj__root_share(int fd, const struct stat *root, mode_t mode);

#endif
