/* SPDX-License-Identifier: MIT */
/* The only file that knows which hash libraries are in use. xxHash is compiled in, inlined. */
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium/core.h>
#include <sys/random.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { HASH_BYTES = 16 };
_Static_assert(DJ__HEX_SIZE == 2 * HASH_BYTES + 1, "a digest in hexadecimal and a NUL");

static void hash_hex(const unsigned char digest[HASH_BYTES], char hex[DJ__HEX_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < HASH_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * HASH_BYTES] = '\0';
}

/* sodium_init picks the fast code. It aborts where there is no random source, hence the check. */
static void hash_init_sodium(void)
{
    unsigned char probe;
    if (dj__random_bytes(&probe, sizeof(probe))) {
        const int result = sodium_init();
        (void)result; /* failed or not, BLAKE2b works */
    }
}

void dj__hash_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, hash_init_sodium);
}

void dj__blake2b_init(dj__blake2b *hash)
{
    dj__hash_prepare();
    (void)crypto_generichash_blake2b_init(&hash->state, NULL, 0, HASH_BYTES);
}

void dj__blake2b_update(dj__blake2b *hash, const void *data, size_t size)
{
    (void)crypto_generichash_blake2b_update(&hash->state, data, size);
}

void dj__blake2b_final(dj__blake2b *hash, char hex[DJ__HEX_SIZE])
{
    unsigned char digest[HASH_BYTES];
    (void)crypto_generichash_blake2b_final(&hash->state, digest, sizeof(digest));
    hash_hex(digest, hex);
}

void dj__xxh128_hex(const void *data, size_t size, char hex[DJ__HEX_SIZE])
{
    XXH128_canonical_t canonical;
    _Static_assert(sizeof(canonical.digest) == HASH_BYTES, "XXH3-128 has 16 bytes");
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
    hash_hex(canonical.digest, hex);
}

uint64_t dj__xxh64(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

bool dj__is_hex32(const char *text, size_t size)
{
    if (size != DJ__HEX_SIZE - 1) {
        return false;
    }
    unsigned char bad = 0;
    for (size_t i = 0; i < DJ__HEX_SIZE - 1; i++) { /* without branches, for the vectoriser */
        const unsigned char digit = (unsigned char)(text[i] - '0');
        const unsigned char letter = (unsigned char)(text[i] - 'a');
        bad |= (unsigned char)((digit > 9 ? 1 : 0) & (letter > 5 ? 1 : 0));
    }
    return bad == 0;
}

/* For kernels and sandboxes without getrandom(2). */
static bool hash_read_urandom(unsigned char *out, size_t size)
{
    const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return false;
    }
    while (size > 0) {
        const ssize_t got = read(fd, out, size);
        if (got > 0) {
            out += got;
            size -= (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            break;
        }
    }
    (void)close(fd);
    return size == 0;
}

bool dj__random_bytes(void *out, size_t size)
{
    unsigned char *bytes = out;
    while (size > 0) {
        const ssize_t got = getrandom(bytes, size, 0);
        if (got >= 0) {
            bytes += got;
            size -= (size_t)got;
        } else if (errno != EINTR) {
            return hash_read_urandom(bytes, size);
        }
    }
    return true;
}
