/* SPDX-License-Identifier: MIT */
/*
 * deepjit/sys/store.h: what keeps entries: name to verified files.
 *
 * Implementer API: may change between minor versions.
 *
 * A store object begins with `dj_store`; only the inline wrappers below call through the table.
 * The tiered cache is itself a store over stores.
 */
#ifndef DEEPJIT_SYS_STORE_H
#define DEEPJIT_SYS_STORE_H

#include <deepjit/cache.h>

DJ_BEGIN_DECLS

typedef enum dj_verify {
    DJ_VERIFY_BINARY = 0, /* marker and binary: enough to load */
    DJ_VERIFY_ALL = 1     /* every file: for those who hand out the directory */
} dj_verify;

/* One entry that was found and verified. Release with dj_entry_free. */
typedef struct dj_entry {
    char *path;   /* absolute */
    void *binary; /* the binary's bytes */
    size_t binary_size;
    char *log; /* compiler.log, NUL-terminated; "" if the entry has none */
    size_t log_size;
    bool lost_race; /* put: another writer's entry was adopted */
    char *reason;   /* put: why the entry could not be published and lies in `path`, which
                       is then private and the caller's to remove; else NULL */
} dj_entry;

/* A private directory being filled, on the same file system as the entries. */
typedef struct dj_staging {
    char *path;   /* absolute */
    char *reason; /* why it can never be published (private directory); else NULL */
} dj_staging;

/* What is being published. */
typedef struct dj_manifest {
    const char *tag;
    const char *digest; /* 32 hexadecimal characters */
    const char *backend;
    const char *arch;
    const char *binary_name; /* one of the files */
} dj_manifest;

typedef struct dj_store dj_store;

typedef struct dj_store_ops {
    size_t size;
    /* NOT_FOUND is a miss and carries no surprise; damage is healed and reported as NOT_FOUND. */
    dj_status (*get)(dj_store *store, const dj_manifest *what, dj_verify level, dj_entry *out,
                     dj_error *err);
    dj_status (*stage)(dj_store *store, dj_staging *out, dj_error *err);
    /* Publishes everything in the staging directory. Consumes `staging`, also on failure. Fails
     * only if the staged files themselves cannot be used; being unable to publish is success
     * with out->reason set. */
    dj_status (*put)(dj_store *store, dj_staging *staging, const dj_manifest *what, dj_entry *out,
                     dj_error *err);
    dj_status (*remove)(dj_store *store, const char *tag, size_t *removed, dj_error *err);
    dj_status (*list)(dj_store *store, dj_verify level, dj_cache_entry_fn visit, void *user,
                      dj_error *err);
    dj_status (*roots)(dj_store *store, dj_cache_root_fn visit, void *user, dj_error *err);
    void (*close)(dj_store *store);
} dj_store_ops;

struct dj_store {
    const dj_store_ops *ops;
};

static inline dj_status dj_store_get(dj_store *store, const dj_manifest *what, dj_verify level,
                                     dj_entry *out, dj_error *err)
{
    return store->ops->get(store, what, level, out, err);
}

static inline dj_status dj_store_stage(dj_store *store, dj_staging *out, dj_error *err)
{
    return store->ops->stage(store, out, err);
}

static inline dj_status dj_store_put(dj_store *store, dj_staging *staging, const dj_manifest *what,
                                     dj_entry *out, dj_error *err)
{
    return store->ops->put(store, staging, what, out, err);
}

static inline dj_status dj_store_remove(dj_store *store, const char *tag, size_t *removed,
                                        dj_error *err)
{
    return store->ops->remove(store, tag, removed, err);
}

static inline dj_status dj_store_list(dj_store *store, dj_verify level, dj_cache_entry_fn visit,
                                      void *user, dj_error *err)
{
    return store->ops->list(store, level, visit, user, err);
}

static inline dj_status dj_store_roots(dj_store *store, dj_cache_root_fn visit, void *user,
                                       dj_error *err)
{
    return store->ops->roots(store, visit, user, err);
}

static inline void dj_store_close(dj_store *store)
{
    if (store != NULL) {
        store->ops->close(store);
    }
}

DJ_END_DECLS

#endif
