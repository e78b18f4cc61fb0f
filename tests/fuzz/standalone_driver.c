/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without libFuzzer: over the files given, over those in directories given,
 * and over a fixed number of seeded mutations of them, so that two runs do the same.
 *
 *     fuzz_x [-runs=N] [-seed=N] [-crash=FILE] [FILE | DIRECTORY]...
 *
 * The input at hand is written to the -crash file first, if one is given, so that it survives a
 * crash of the target.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DRIVER_MAX_INPUT = 64 * 1024, DRIVER_MAX_SEEDS = 1024 };

typedef struct seed {
    uint8_t *data;
    size_t size;
} seed;

static seed seeds[DRIVER_MAX_SEEDS];
static size_t num_seeds;
static const char *crash_path;
static uint64_t random_state;

static _Noreturn void die(const char *what, const char *name)
{
    fprintf(stderr, "%s: ", what);
    perror(name);
    exit(2);
}

/* SplitMix64: good enough, and the same everywhere. */
static uint64_t random_next(void)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static size_t random_below(size_t bound)
{
    return bound == 0 ? 0 : (size_t)(random_next() % bound);
}

static void run(const uint8_t *data, size_t size)
{
    if (crash_path != NULL) {
        FILE *file = fopen(crash_path, "wb");
        if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
            die("cannot write", crash_path);
        }
    }
    /* A copy of exactly this size, so that AddressSanitizer sees a read past the end. */
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        die("cannot allocate", "input");
    }
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void add_seed(const uint8_t *data, size_t size)
{
    if (num_seeds == DRIVER_MAX_SEEDS) {
        return;
    }
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        die("cannot allocate", "seed");
    }
    memcpy(copy, data, size);
    seeds[num_seeds++] = (seed){copy, size};
}

static void read_seed(const char *path)
{
    static uint8_t buffer[DRIVER_MAX_INPUT];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        die("cannot read", path);
    }
    const size_t size = fread(buffer, 1, sizeof buffer, file);
    fclose(file);
    add_seed(buffer, size);
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void read_seeds(const char *path)
{
    struct dirent **entries;
    const int count = scandir(path, &entries, visible, alphasort);
    if (count < 0) {
        read_seed(path); /* not a directory */
        return;
    }
    for (int i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        read_seed(name);
        free(entries[i]);
    }
    free(entries);
}

/* One small change in place; returns the new size. */
static size_t mutate_once(uint8_t *data, size_t size)
{
    static const uint8_t telling[] = {0, '\n', '\r', ' ', '"', '<', '>', '/', '.', ':', '\\', 0xff};
    const size_t at = random_below(size + 1);
    const size_t length = random_below(1 + (size - at < 32 ? size - at : 32));
    switch (random_below(6)) {
    case 0: /* flip a bit */
        if (at < size) {
            data[at] ^= (uint8_t)(1U << random_below(8));
        }
        return size;
    case 1: /* write a byte that means something to parsers */
        if (at < size) {
            data[at] = telling[random_below(sizeof telling)];
        }
        return size;
    case 2: /* insert one */
        if (size < DRIVER_MAX_INPUT) {
            memmove(data + at + 1, data + at, size - at);
            data[at] = telling[random_below(sizeof telling)];
            return size + 1;
        }
        return size;
    case 3: /* remove a piece */
        memmove(data + at, data + at + length, size - at - length);
        return size - length;
    case 4: /* repeat a piece */
        if (size + length <= DRIVER_MAX_INPUT) {
            memmove(data + at + length, data + at, size - at);
            return size + length;
        }
        return size;
    default: /* cut the end off */
        return at;
    }
}

static void run_mutations(size_t runs)
{
    static uint8_t buffer[DRIVER_MAX_INPUT];
    for (size_t i = 0; i < runs; i++) {
        const seed *from = &seeds[random_below(num_seeds)];
        size_t size = from->size;
        memcpy(buffer, from->data, size);
        for (size_t changes = 1 + random_below(8); changes > 0; changes--) {
            size = mutate_once(buffer, size);
        }
        run(buffer, size);
    }
}

int main(int argc, char **argv)
{
    size_t runs = 5000;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-runs=", 6) == 0) {
            runs = strtoul(argv[i] + 6, NULL, 10);
        } else if (strncmp(argv[i], "-seed=", 6) == 0) {
            random_state = strtoull(argv[i] + 6, NULL, 10);
        } else if (strncmp(argv[i], "-crash=", 7) == 0) {
            crash_path = argv[i] + 7;
        } else {
            read_seeds(argv[i]);
        }
    }
    add_seed((const uint8_t *)"", 0);
    for (size_t i = 0; i < num_seeds; i++) {
        run(seeds[i].data, seeds[i].size);
    }
    run_mutations(runs);
    printf("%zu inputs, %zu mutations\n", num_seeds, runs);
    for (size_t i = 0; i < num_seeds; i++) {
        free(seeds[i].data);
    }
    return 0;
}
