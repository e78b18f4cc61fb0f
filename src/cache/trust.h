/* SPDX-License-Identifier: MIT */
/*
 * Who may write what we are about to load. A stranger is anyone but root, this user, and those
 * named in JIT_CACHE_TRUST. A directory or parent that a stranger can write is refused; sticky
 * parents owned by root (such as /tmp) are fine as parents.
 */
#ifndef DJ_CACHE_TRUST_H
#define DJ_CACHE_TRUST_H

#include "base/env.h"
#include <sys/types.h>

/* True for root, this user, and those that `trust` names; "owner" means `root_owner`. */
bool dj__trust_allows(uid_t uid, uid_t root_owner, const char *const *trust, size_t num_trust);

/* `fd` is the open root, `path` its configured name. PERMISSION with a message that names the
 * directory, its owner and mode, and the setting. */
dj_status dj__trust_check(int fd, const char *path, const char *const *trust, size_t num_trust,
                          const dj__env *env, dj_error *err);
/* INVALID_ARGUMENT for a name that is no user and none of the words. */
dj_status dj__trust_validate(const char *const *trust, size_t num_trust, const dj__env *env,
                             dj_error *err);
/* True if members of a directory's group may write it. */
bool dj__trust_has_group(const char *const *trust, size_t num_trust);

#endif
