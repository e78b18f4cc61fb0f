/* SPDX-License-Identifier: MIT */
/*
 * Looking at one entry: what is it, and are its files what was published. Reading only; what
 * follows from it (healing, adopting, skipping) is the caller's business.
 */
#ifndef DJ_CACHE_ENTRY_H
#define DJ_CACHE_ENTRY_H

#include "cache/root.h"
#include <sys/types.h>

#define DJ__FILE_LIMIT ((size_t)1 << 31) /* of one file of an entry */
#define DJ__LOG_NAME "compiler.log"

typedef enum dj__look {
    DJ__LOOK_GOOD,
    DJ__LOOK_ABSENT,
    DJ__LOOK_UNMARKED, /* a directory without marker */
    DJ__LOOK_FOREIGN,  /* not ours to judge */
    DJ__LOOK_DAMAGED,  /* ours, and not what was published */
    DJ__LOOK_ERROR     /* could not be read: says nothing about it */
} dj__look;

typedef enum dj__depth {
    DJ__DEPTH_MARKER, /* only the marker */
    DJ__DEPTH_BINARY, /* and the binary and the log */
    DJ__DEPTH_ALL     /* and every file */
} dj__depth;

typedef struct dj__view {
    dj__look look;
    int error;         /* of LOOK_ERROR */
    char problem[320]; /* "" if GOOD */
    dev_t dev;         /* of the directory that was looked at, unless ABSENT */
    ino_t ino;
    gid_t group;  /* of the directory of entries: the only one that may have write permission */
    int64_t used; /* mtime of the marker, else of the directory */
    dj__marker marker; /* filled when the marker is good, whatever else is wrong */
    char *text;        /* the marker as read */
    size_t text_size;
    char *binary; /* from DEPTH_BINARY on */
    size_t binary_size;
    char *log; /* NULL if the entry has none */
    size_t log_size;
} dj__view;

/* `name` in the open directory of entries. `loose`: permission bits that make it DAMAGED, as does
 * write permission for another group than that directory's. */
void dj__entry_look(int entries, const char *name, mode_t loose, dj__depth depth, dj__view *view);
/* The same for an entry that is open as `dir`, in a directory of entries that has this group. */
void dj__entry_look_open(int dir, gid_t group, const char *name, mode_t loose, dj__depth depth,
                         dj__view *view);
void dj__view_fini(dj__view *view);
/* Moves *path, binary and log to `out`. NO_MEMORY leaves all where it was. */
dj_status dj__view_take(dj__view *view, char **path, dj_entry *out, dj_error *err);
/* True if `name` still is the directory that was looked at. */
bool dj__view_is_current(const dj__view *view, int entries, const char *name);

#endif
