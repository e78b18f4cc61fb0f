/* SPDX-License-Identifier: MIT */
/*
 * Taking entries out of sight: a rename into <root>/trash, so that nobody ever sees half an
 * entry and readers that have it open can finish.
 */
#ifndef DJ_CACHE_TRASH_H
#define DJ_CACHE_TRASH_H

#include "cache/entry.h"

/* Moves the entry that was looked at aside. 0; ESTALE if another one lies there now (or none);
 * or another errno value. `trash_name` gets its name in the trash. */
int dj__trash_move(dj__root *root, int fd, int entries, const char *name, const dj__view *view,
                   char trash_name[128]);
/* The same for damage: counts and logs it. */
int dj__trash_heal(dj__root *root, int fd, int entries, const char *name, const dj__view *view);
/* Deletes what lies in the trash under names of ours, as far as that is possible. */
void dj__trash_empty(dj__root *root, int fd);

#endif
