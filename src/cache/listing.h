/* SPDX-License-Identifier: MIT */
/* Going through all entries of one root: for people who list, verify and remove them. */
#ifndef DJ_CACHE_LISTING_H
#define DJ_CACHE_LISTING_H

#include "cache/root.h"

/* dj_store_ops.list and .remove of one root. Both fail with the reason if the root cannot be
 * used; a root that does not exist has no entries. */
dj_status dj__listing_visit(dj__root *root, dj_verify level, dj_cache_entry_fn visit, void *user,
                            dj_error *err);
dj_status dj__listing_remove(dj__root *root, const char *tag, size_t *removed, dj_error *err);

#endif
