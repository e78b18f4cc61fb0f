/* SPDX-License-Identifier: MIT */
/* The back ends of this build, as backends.def lists them. */
#include <deepjit/sys/compiler.h>
#include <string.h>

#define X(name) extern const dj_backend dj__##name##_backend;
#include "backend/backends.def"
#undef X

static const dj_backend *const registry_list[] = {
#define X(name) &dj__##name##_backend,
#include "backend/backends.def"
#undef X
};

const dj_backend *dj_backend_at(size_t index)
{
    return index < sizeof registry_list / sizeof registry_list[0] ? registry_list[index] : NULL;
}

const dj_backend *dj_backend_find(const char *name)
{
    const dj_backend *backend = NULL;
    for (size_t i = 0; name != NULL && (backend = dj_backend_at(i)) != NULL; i++) {
        if (strcmp(backend->name, name) == 0) {
            return backend;
        }
    }
    return NULL;
}

const char *dj_backend_name(const dj_backend *backend)
{
    return backend != NULL ? backend->name : "";
}
