/* SPDX-License-Identifier: MIT */
/* What lies in a staging directory, and the way out for what cannot be published. */
#ifndef DJ_CACHE_STAGED_H
#define DJ_CACHE_STAGED_H

#include "cache/entry.h"

/*
 * Reads and hashes everything staged into a view that is GOOD and has its marker filled, as if
 * it had been published already. `dir` gets the open directory. INVALID_ARGUMENT for what cannot
 * be part of an entry (anything but plain files, no or an empty binary), else IO and the like.
 */
dj_status dj__staged_look(const char *path, const dj_manifest *what, int *dir, dj__view *view,
                          dj_error *err);

/* Makes `out` from a staged build that stays where it is; takes the path out of `staging` and
 * counts it as unpublished. */
dj_status dj__staged_keep(const dj__store_shared *shared, dj_staging *staging, const char *reason,
                          dj__view *view, dj_entry *out, dj_error *err);

#endif
