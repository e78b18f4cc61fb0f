/* SPDX-License-Identifier: MIT */
/* BLAKE2b-128 (names, keys) and XXH3-128/64 (damage, tables). The first BLAKE2b of a process
 * initialises libsodium, which picks the fastest code for this processor. */
#ifndef DJ_BASE_HASH_H
#define DJ_BASE_HASH_H

#include <deepjit/base.h>
#include <sodium/crypto_generichash_blake2b.h>

#define DJ__HEX_SIZE 33 /* 32 lowercase hexadecimal characters and a NUL */

typedef struct dj__blake2b {
    crypto_generichash_blake2b_state state;
} dj__blake2b;

/* Makes libsodium ready, once. For runtimes, when they are created: a child forked while another
 * thread is inside would wait for libsodium's lock for ever. */
void dj__hash_prepare(void);

void dj__blake2b_init(dj__blake2b *hash);
void dj__blake2b_update(dj__blake2b *hash, const void *data, size_t size);
void dj__blake2b_final(dj__blake2b *hash, char hex[DJ__HEX_SIZE]);

/* One-shot XXH3-128 as hexadecimal, high half first (as the xxhsum tool prints it). */
void dj__xxh128_hex(const void *data, size_t size, char hex[DJ__HEX_SIZE]);
uint64_t dj__xxh64(const void *data, size_t size, uint64_t seed); /* XXH3, 64 bits */
/* True for exactly 32 lowercase hexadecimal characters. */
bool dj__is_hex32(const char *text, size_t size);
/* Fills from the system's random source; false if there is none. */
bool dj__random_bytes(void *out, size_t size);

#endif
