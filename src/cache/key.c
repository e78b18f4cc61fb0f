/* SPDX-License-Identifier: MIT */
/* The framing of the request key; see key.h. Watchers see exactly the bytes that are hashed. */
#include "cache/key.h"

#include <stdlib.h>
#include <string.h>

struct dj__key_start {
    dj__blake2b hash; /* of `bytes` */
    size_t size;
    unsigned char bytes[];
};

static void key_flush(dj__key *key)
{
    dj__blake2b_update(&key->hash, key->pending, key->num_pending);
    key->num_pending = 0;
    key->flushed = true;
}

static void key_put(dj__key *key, const void *data, size_t size)
{
    if (size > sizeof(key->pending) - key->num_pending) {
        key_flush(key);
    }
    if (size > sizeof(key->pending)) {
        dj__blake2b_update(&key->hash, data, size);
    } else if (size > 0) {
        memcpy(key->pending + key->num_pending, data, size);
        key->num_pending += size;
    }
}

static void key_put_length(dj__key *key, uint64_t length)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(length >> (8 * i));
    }
    key_put(key, bytes, sizeof(bytes));
}

void dj__key_init(dj__key *key, dj_key_field_fn visit, void *user)
{
    dj__blake2b_init(&key->hash);
    key->num_pending = 0;
    key->flushed = false;
    key->visit = visit;
    key->user = user;
    dj__key_text(key, "format", DJ__KEY_FORMAT);
}

void dj__key_field(dj__key *key, const char *tag, const void *value, size_t size)
{
    const size_t tag_size = strlen(tag);
    key_put_length(key, tag_size);
    key_put(key, tag, tag_size);
    key_put_length(key, size);
    key_put(key, value, size);
    if (key->visit != NULL) {
        key->visit(key->user, tag, value, size);
    }
}

void dj__key_text(dj__key *key, const char *tag, const char *value)
{
    dj__key_field(key, tag, value, strlen(value));
}

static dj__key_start *key_start_new(dj__key *key)
{
    const size_t size = sizeof(dj__key_start) + key->num_pending;
    const size_t unit = _Alignof(dj__key_start);
    dj__key_start *start = aligned_alloc(unit, (size + unit - 1) / unit * unit);
    if (start == NULL) {
        return NULL; /* only a shortcut is lost */
    }
    start->size = key->num_pending;
    memcpy(start->bytes, key->pending, key->num_pending);
    key_flush(key);
    start->hash = key->hash;
    return start;
}

void dj__key_share(dj__key *key, _Atomic(dj__key_start *) *known)
{
    dj__key_start *start = atomic_load_explicit(known, memory_order_acquire);
    if (key->flushed) {
        return;
    }
    if (start == NULL) {
        start = key_start_new(key);
        dj__key_start *none = NULL;
        if (start != NULL && !atomic_compare_exchange_strong_explicit(
                                 known, &none, start, memory_order_release, memory_order_relaxed)) {
            free(start);
        }
    } else if (start->size == key->num_pending &&
               memcmp(start->bytes, key->pending, start->size) == 0) {
        key->hash = start->hash;
        key->num_pending = 0;
        key->flushed = true;
    }
}

void dj__key_final(dj__key *key, char hex[DJ__HEX_SIZE])
{
    key_flush(key);
    dj__blake2b_final(&key->hash, hex);
}
