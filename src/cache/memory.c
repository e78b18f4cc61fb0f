/* SPDX-License-Identifier: MIT */
/*
 * The memory cache: an insert-only open-addressing table from request hash to a small tree.
 *
 * The hash samples the source, so generated sources that differ by one digit in the middle share
 * it. Requests with the same hash and size therefore hang in a crit-bit tree: each branch looks
 * at one bit of the source, and one comparison in full at the leaf decides. A hit costs one probe,
 * log2(colliding requests) byte loads and one memcmp.
 *
 * Writers hold the lock. Readers follow pointers that are stored with release order after what
 * they point to is complete. Nothing a reader can reach is changed, except the values of leaves
 * and the links, and nothing is freed before dj__memory_destroy: old tables stay, too.
 */
#include "cache/memory.h"

#include "base/error.h"
#include "base/thread.h"
#include <stdlib.h>
#include <string.h>

enum { TABLE_MIN = 64, HASH_WINDOWS = 6 };

/* Every node knows the size of the sources below it, so that no reader looks past the end. */
typedef struct memory_node {
    struct memory_node *older; /* all nodes, for destroy */
    size_t size;
    bool leaf;
    unsigned char mask; /* branch: the bit of source[offset] that decides */
    size_t offset;
    _Atomic(struct memory_node *) child[2];
} memory_node;

typedef struct memory_slot {
    memory_node node;
    dj_compile_options *options;
    _Atomic(dj__cached *) value;
    _Atomic(struct memory_slot *) next; /* same source, other options, same hash */
    char source[];
} memory_slot;

typedef struct memory_entry {
    _Atomic(memory_node *) root; /* NULL: free */
    _Atomic uint64_t hash;       /* valid once root is set */
} memory_entry;

typedef struct memory_table {
    struct memory_table *older;
    size_t mask;
    size_t count;
    memory_entry entries[];
} memory_table;

struct dj__memory {
    /* Read by every hit; written by inserts only. */
    _Atomic(memory_table *) table;
    dj__memory_ops ops;
    _Atomic uint64_t clock;

    _Alignas(DJ__CACHE_LINE) pthread_mutex_t lock;
    size_t limit;
    size_t loaded; /* values with in_cache */
    uint64_t evictions;
    bool closed;
    dj__cached *values; /* adopted and, when last looked at, loaded */
    dj__cached *dead;   /* adopted and unloaded, for good */
    uint64_t dead_hits;
    memory_node *nodes;
};

/* ---- hash ---- */

static inline uint64_t memory_load64(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

/* Folded 64x64 multiplication: every input bit reaches every output bit. */
static inline uint64_t memory_mix(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t memory_mix16(const char *at, uint64_t salt)
{
    return memory_mix(memory_load64(at) ^ 0x9e3779b97f4a7c15u ^ salt,
                      memory_load64(at + 8) ^ 0xd6e8feb86659fd93u);
}

uint64_t dj__memory_hash(const char *source, size_t size, uint64_t options_hash)
{
    uint64_t hash = memory_mix(options_hash ^ 0xa0761d6478bd642fu, size ^ 0xe7037ed1a0b428dbu);

    if (size < 16) {
        char small[16] = {0};
        if (size > 0) {
            memcpy(small, source, size);
        }
        hash ^= memory_mix16(small, hash);
    } else {
        /* Windows salted by their number, at even distances, the last one at the very end. They
         * do not depend on each other, so the processor overlaps them. */
        const size_t last = size - 16;
        const size_t step = last / (HASH_WINDOWS - 1);
        uint64_t sum = memory_mix16(source + last, hash);
        for (size_t i = 0; i < HASH_WINDOWS - 1; i++) {
            sum += memory_mix16(source + i * step, (i + 1) * 0x8ebc6af09c88c6e3u);
        }
        hash ^= sum;
    }
    return memory_mix(hash, 0x589965cc75374cc3u);
}

/* ---- table and tree, read side ---- */

static memory_node *memory_root(memory_table *table, uint64_t hash, size_t size,
                                memory_entry **entry)
{
    for (size_t i = hash & table->mask;; i = (i + 1) & table->mask) {
        memory_entry *e = &table->entries[i];
        memory_node *root = atomic_load_explicit(&e->root, memory_order_acquire);
        if (root == NULL ||
            (atomic_load_explicit(&e->hash, memory_order_relaxed) == hash && root->size == size)) {
            *entry = e;
            return root;
        }
    }
}

static inline unsigned memory_side(const memory_node *branch, const char *source)
{
    return ((unsigned char)source[branch->offset] & branch->mask) != 0;
}

/* The only leaf that can have this source. */
static memory_slot *memory_leaf(memory_node *node, const char *source)
{
    while (!node->leaf) {
        node = atomic_load_explicit(&node->child[memory_side(node, source)], memory_order_acquire);
    }
    return (memory_slot *)node;
}

static inline bool memory_same_source(const memory_slot *slot, const dj__memory_request *request)
{
    return request->size == 0 || memcmp(slot->source, request->source, request->size) == 0;
}

static memory_slot *memory_lookup(dj__memory *memory, const dj__memory_request *request)
{
    memory_table *table = atomic_load_explicit(&memory->table, memory_order_acquire);
    memory_entry *entry;
    memory_node *root = memory_root(table, request->hash, request->size, &entry);
    if (root == NULL) {
        return NULL;
    }
    memory_slot *slot = memory_leaf(root, request->source);
    if (!memory_same_source(slot, request)) {
        return NULL;
    }
    while (slot != NULL && !memory->ops.options_equal(slot->options, request->options)) {
        slot = atomic_load_explicit(&slot->next, memory_order_acquire);
    }
    return slot;
}

bool dj__cached_retain(dj__cached *value)
{
    int64_t refs = atomic_load_explicit(&value->refs, memory_order_relaxed);
    while (refs > 0) {
        if (atomic_compare_exchange_weak_explicit(&value->refs, &refs, refs + 1,
                                                  memory_order_acquire, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/* Takes a reference and stamps the value with the clock, which stands still between inserts. */
static bool memory_take(dj__memory *memory, dj__cached *value)
{
    if (!dj__cached_retain(value)) {
        return false;
    }
    const uint64_t now = atomic_load_explicit(&memory->clock, memory_order_relaxed);
    if (atomic_load_explicit(&value->used, memory_order_relaxed) != now) {
        atomic_store_explicit(&value->used, now, memory_order_relaxed);
    }
    return true;
}

dj__cached *dj__memory_find(dj__memory *memory, const dj__memory_request *request)
{
    memory_slot *slot = memory_lookup(memory, request);
    if (slot == NULL) {
        return NULL;
    }
    dj__cached *value = atomic_load_explicit(&slot->value, memory_order_acquire);
    if (!memory_take(memory, value)) {
        return NULL;
    }
    atomic_fetch_add_explicit(&value->hits, 1, memory_order_relaxed);
    return value;
}

dj__cached *dj__memory_find_key(dj__memory *memory, const char key[33])
{
    pthread_mutex_lock(&memory->lock);
    dj__cached *value = memory->values;
    while (value != NULL && (strcmp(value->key, key) != 0 || !memory_take(memory, value))) {
        value = value->next;
    }
    pthread_mutex_unlock(&memory->lock);
    return value;
}

/* ---- write side, under the lock ---- */

static memory_table *memory_table_new(size_t capacity)
{
    memory_table *table = calloc(1, sizeof(*table) + capacity * sizeof(memory_entry));
    if (table != NULL) {
        table->mask = capacity - 1;
    }
    return table;
}

static void memory_entry_set(memory_entry *entry, uint64_t hash, memory_node *root)
{
    atomic_store_explicit(&entry->hash, hash, memory_order_relaxed);
    atomic_store_explicit(&entry->root, root, memory_order_release);
}

/* Makes room for one more entry at a load of at most one half. */
static bool memory_reserve(dj__memory *memory)
{
    memory_table *old = atomic_load_explicit(&memory->table, memory_order_relaxed);
    const size_t capacity = old->mask + 1;
    if (old->count < capacity / 2) {
        return true;
    }
    memory_table *table = memory_table_new(capacity * 2);
    if (table == NULL) {
        return false;
    }
    for (size_t i = 0; i < capacity; i++) {
        memory_node *root = atomic_load_explicit(&old->entries[i].root, memory_order_relaxed);
        if (root != NULL) {
            const uint64_t hash = atomic_load_explicit(&old->entries[i].hash, memory_order_relaxed);
            memory_entry *entry;
            memory_root(table, hash, root->size, &entry);
            memory_entry_set(entry, hash, root);
        }
    }
    table->count = old->count;
    table->older = old;
    atomic_store_explicit(&memory->table, table, memory_order_release);
    return true;
}

static void memory_own(dj__memory *memory, memory_node *node)
{
    node->older = memory->nodes;
    memory->nodes = node;
}

static memory_slot *memory_slot_new(dj__memory *memory, const dj__memory_request *request,
                                    dj__cached *value)
{
    if (request->size > SIZE_MAX - sizeof(memory_slot)) {
        return NULL;
    }
    memory_slot *slot = calloc(1, sizeof(*slot) + request->size);
    if (slot == NULL) {
        return NULL;
    }
    slot->options = memory->ops.options_copy(request->options);
    if (slot->options == NULL) {
        free(slot);
        return NULL;
    }
    if (request->size > 0) {
        memcpy(slot->source, request->source, request->size);
    }
    slot->node.size = request->size;
    slot->node.leaf = true;
    atomic_init(&slot->value, value);
    memory_own(memory, &slot->node);
    return slot;
}

/* Hangs `slot` into a tree that has no leaf of its source: a branch at the first bit in which it
 * differs from the nearest leaf goes where the bits above it stop being decided earlier. */
static void memory_tree_insert(dj__memory *memory, memory_entry *entry, memory_slot *slot,
                               const memory_slot *nearest)
{
    memory_node *branch = calloc(1, sizeof(*branch));
    if (branch == NULL) {
        return; /* the slot stays unreachable: not cached */
    }
    size_t offset = 0;
    while (slot->source[offset] == nearest->source[offset]) {
        offset++;
    }
    unsigned difference = (unsigned char)slot->source[offset] ^ //
                          (unsigned char)nearest->source[offset];
    while ((difference & (difference - 1)) != 0) {
        difference &= difference - 1; /* keep the highest bit */
    }
    branch->size = slot->node.size;
    branch->offset = offset;
    branch->mask = (unsigned char)difference;
    memory_own(memory, branch);

    _Atomic(memory_node *) *link = &entry->root;
    memory_node *below = atomic_load_explicit(link, memory_order_relaxed);
    while (!below->leaf &&
           (below->offset < offset || (below->offset == offset && below->mask > branch->mask))) {
        link = &below->child[memory_side(below, slot->source)];
        below = atomic_load_explicit(link, memory_order_relaxed);
    }
    const unsigned side = memory_side(branch, slot->source);
    atomic_init(&branch->child[side], &slot->node);
    atomic_init(&branch->child[!side], below);
    atomic_store_explicit(link, branch, memory_order_release);
}

static void memory_remember(dj__memory *memory, const dj__memory_request *request,
                            dj__cached *value)
{
    memory_slot *slot = memory_lookup(memory, request);
    if (slot != NULL) {
        atomic_store_explicit(&slot->value, value, memory_order_release);
        return;
    }
    if (!memory_reserve(memory) || (slot = memory_slot_new(memory, request, value)) == NULL) {
        return;
    }
    memory_table *table = atomic_load_explicit(&memory->table, memory_order_relaxed);
    memory_entry *entry;
    memory_node *root = memory_root(table, request->hash, request->size, &entry);
    if (root == NULL) {
        memory_entry_set(entry, request->hash, &slot->node);
        table->count++;
        return;
    }
    memory_slot *nearest = memory_leaf(root, request->source);
    if (memory_same_source(nearest, request)) {
        atomic_init(&slot->next, atomic_load_explicit(&nearest->next, memory_order_relaxed));
        atomic_store_explicit(&nearest->next, slot, memory_order_release);
    } else {
        memory_tree_insert(memory, entry, slot, nearest);
    }
}

/* Also puts aside what is not loaded any more, so that the list stays as short as what is. Whoever
 * counts a hit has a reference, so the hits of a value without any are final. */
static void memory_adopt(dj__memory *memory, dj__cached *value)
{
    bool known = false;
    for (dj__cached **link = &memory->values; *link != NULL;) {
        dj__cached *v = *link;
        known = known || v == value;
        if (atomic_load_explicit(&v->refs, memory_order_acquire) > 0) {
            link = &v->next;
            continue;
        }
        *link = v->next;
        v->next = memory->dead;
        memory->dead = v;
        memory->dead_hits += atomic_load_explicit(&v->hits, memory_order_relaxed);
    }
    if (!known) {
        value->next = memory->values;
        memory->values = value;
    }
}

/* Takes the least recently used value other than `keep` out of the cache if there are too many.
 * The caller releases it without the lock, since unloading may take long. */
static dj__cached *memory_evict(dj__memory *memory, const dj__cached *keep)
{
    if (memory->limit == 0 || memory->loaded <= memory->limit) {
        return NULL;
    }
    dj__cached *oldest = NULL;
    uint64_t oldest_used = 0;
    for (dj__cached *v = memory->values; v != NULL; v = v->next) {
        const uint64_t used = atomic_load_explicit(&v->used, memory_order_relaxed);
        /* "<=": of equals the one inserted first. */
        if (v->in_cache && v != keep && (oldest == NULL || used <= oldest_used)) {
            oldest = v;
            oldest_used = used;
        }
    }
    if (oldest != NULL) {
        oldest->in_cache = false;
        memory->loaded--;
        memory->evictions++;
    }
    return oldest;
}

void dj__memory_insert(dj__memory *memory, const dj__memory_request *request, dj__cached *value)
{
    dj__cached *evicted = NULL;

    pthread_mutex_lock(&memory->lock);
    memory_adopt(memory, value);
    if (!memory->closed) {
        if (!value->in_cache && dj__cached_retain(value)) {
            value->in_cache = true;
            memory->loaded++;
        }
        /* Hits from now on are later than this insert. */
        const uint64_t now = atomic_load_explicit(&memory->clock, memory_order_relaxed) + 1;
        atomic_store_explicit(&value->used, now, memory_order_relaxed);
        atomic_store_explicit(&memory->clock, now + 1, memory_order_relaxed);
        memory_remember(memory, request, value);
        evicted = memory_evict(memory, value);
    }
    pthread_mutex_unlock(&memory->lock);
    if (evicted != NULL) {
        memory->ops.release(evicted);
    }
}

/* ---- life ---- */

dj_status dj__memory_create(const dj__memory_ops *ops, size_t limit, dj__memory **out,
                            dj_error *err)
{
    *out = NULL;
    dj__memory *memory = aligned_alloc(DJ__CACHE_LINE, sizeof(*memory));
    memory_table *table = memory_table_new(TABLE_MIN);
    if (memory == NULL || table == NULL) {
        free(memory);
        free(table);
        return dj__fail_memory(err);
    }
    memset(memory, 0, sizeof(*memory));
    atomic_init(&memory->table, table);
    memory->ops = *ops;
    memory->limit = limit;
    dj__mutex_init(&memory->lock);
    *out = memory;
    return DJ_OK;
}

void dj__memory_close(dj__memory *memory)
{
    dj__cached *dropped;
    do {
        pthread_mutex_lock(&memory->lock);
        memory->closed = true;
        dropped = memory->values;
        while (dropped != NULL && !dropped->in_cache) {
            dropped = dropped->next;
        }
        if (dropped != NULL) {
            dropped->in_cache = false;
            memory->loaded--;
        }
        pthread_mutex_unlock(&memory->lock);
        if (dropped != NULL) {
            memory->ops.release(dropped);
        }
    } while (dropped != NULL);
}

static void memory_destroy_values(dj__memory *memory, dj__cached *value)
{
    while (value != NULL) {
        dj__cached *next = value->next;
        memory->ops.destroy(value);
        value = next;
    }
}

void dj__memory_destroy(dj__memory *memory)
{
    if (memory == NULL) {
        return;
    }
    dj__memory_close(memory);
    memory_destroy_values(memory, memory->values);
    memory_destroy_values(memory, memory->dead);
    for (memory_node *node = memory->nodes; node != NULL;) {
        memory_node *older = node->older;
        if (node->leaf) {
            memory->ops.options_free(((memory_slot *)node)->options);
        }
        free(node);
        node = older;
    }
    for (memory_table *table = atomic_load_explicit(&memory->table, memory_order_relaxed);
         table != NULL;) {
        memory_table *older = table->older;
        free(table);
        table = older;
    }
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

uint64_t dj__memory_hits(dj__memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    uint64_t hits = memory->dead_hits;
    for (dj__cached *v = memory->values; v != NULL; v = v->next) {
        hits += atomic_load_explicit(&v->hits, memory_order_relaxed);
    }
    pthread_mutex_unlock(&memory->lock);
    return hits;
}

uint64_t dj__memory_evictions(dj__memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    const uint64_t evictions = memory->evictions;
    pthread_mutex_unlock(&memory->lock);
    return evictions;
}

void dj__memory_after_fork(dj__memory *memory)
{
    dj__mutex_init(&memory->lock);
}
