/* SPDX-License-Identifier: MIT */
/* From a staging directory to an entry that everybody sees, or to the reason why not. */
#ifndef DJ_CACHE_PUBLISH_H
#define DJ_CACHE_PUBLISH_H

#include "cache/entry.h"

/* dj_store_ops.put of one root. Being unable to publish is OK with out->reason set. */
dj_status dj__publish(dj__root *root, dj_staging *staging, const dj_manifest *what, dj_entry *out,
                      dj_error *err);

#endif
