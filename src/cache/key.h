/* SPDX-License-Identifier: MIT */
/*
 * The request key: BLAKE2b-128 over tagged, length-prefixed fields. One function of the core
 * (src/core/request_key.c) feeds it; this file only fixes the framing.
 *
 * Framing of a field: length of the tag (8 bytes, little-endian), tag, length of the value
 * (8 bytes, little-endian), value. So no two field lists share a byte stream.
 */
#ifndef DJ_CACHE_KEY_H
#define DJ_CACHE_KEY_H

#include "base/hash.h"
#include <deepjit/compile.h>
#include <stdatomic.h>

#define DJ__KEY_FORMAT "deepjit-key-1"

typedef struct dj__key {
    dj__blake2b hash;
    unsigned char pending[2048]; /* bytes that are still to be hashed: most pieces are tiny */
    size_t num_pending;
    bool flushed;          /* there were more of them */
    dj_key_field_fn visit; /* NULL: nobody watches */
    void *user;
} dj__key;

/* The beginning that many keys have in common, hashed. */
typedef struct dj__key_start dj__key_start;

/* Starts with the format version as the first field. */
void dj__key_init(dj__key *key, dj_key_field_fn visit, void *user);
void dj__key_field(dj__key *key, const char *tag, const void *value, size_t size);
void dj__key_text(dj__key *key, const char *tag, const char *value);
/* Between two fields: what the key covers so far need not be hashed if `known` has the same. If it
 * has nothing, it gets this; the caller frees it, after the last use, with free(). */
void dj__key_share(dj__key *key, _Atomic(dj__key_start *) *known);
void dj__key_final(dj__key *key, char hex[DJ__HEX_SIZE]);

#endif
