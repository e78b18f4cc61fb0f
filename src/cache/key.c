/* SPDX-License-Identifier: MIT */
/* The framing of the request key; see key.h. Watchers see exactly the bytes that are hashed. */
#include "cache/key.h"

#include <string.h>

static void key_put_length(dj__key *key, uint64_t length)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(length >> (8 * i));
    }
    dj__blake2b_update(&key->hash, bytes, sizeof(bytes));
}

void dj__key_init(dj__key *key, dj_key_field_fn visit, void *user)
{
    dj__blake2b_init(&key->hash);
    key->visit = visit;
    key->user = user;
    dj__key_text(key, "format", DJ__KEY_FORMAT);
}

void dj__key_field(dj__key *key, const char *tag, const void *value, size_t size)
{
    const size_t tag_size = strlen(tag);
    key_put_length(key, tag_size);
    dj__blake2b_update(&key->hash, tag, tag_size);
    key_put_length(key, size);
    dj__blake2b_update(&key->hash, value, size);
    if (key->visit != NULL) {
        key->visit(key->user, tag, value, size);
    }
}

void dj__key_text(dj__key *key, const char *tag, const char *value)
{
    dj__key_field(key, tag, value, strlen(value));
}

void dj__key_final(dj__key *key, char hex[DJ__HEX_SIZE])
{
    dj__blake2b_final(&key->hash, hex);
}
