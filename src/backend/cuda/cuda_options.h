/* SPDX-License-Identifier: MIT */
/*
 * nvcc's own options: all that nvcc 13.0 knows, those that --help hides included. It compares
 * names as a whole and knows no abbreviations: "--" goes with the long one, "-" with the short one.
 */
#ifndef DJ_BACKEND_CUDA_OPTIONS_H
#define DJ_BACKEND_CUDA_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* What an option takes as its value: after '=', else the next argument. */
typedef enum dj__cuda_value {
    DJ__CUDA_NONE,
    DJ__CUDA_TEXT,
    DJ__CUDA_MACRO, /* nvcc puts it between quotes */
    DJ__CUDA_PATH,  /* the same, a list of names or paths */
    /* words for another tool */
    DJ__CUDA_HOST_WORDS,
    DJ__CUDA_PTXAS_WORDS,
    DJ__CUDA_CICC_WORDS,
    DJ__CUDA_OTHER_WORDS, /* of one that does not run for a cubin */
} dj__cuda_value;

/* What an option does that it may not. */
typedef enum dj__cuda_effect {
    DJ__CUDA_ALLOWED,
    DJ__CUDA_SETS_ARCH,
    DJ__CUDA_WRITES,        /* files, or elsewhere */
    DJ__CUDA_OTHER_PRODUCT, /* no cubin, none that can be loaded, or of something else */
    DJ__CUDA_READS_FLAGS,   /* from a file */
    DJ__CUDA_SETS_HOST,
    DJ__CUDA_OTHER_PARTS, /* of the toolchain than those that are hashed */
    DJ__CUDA_PASSES_ON,   /* what nvcc does not know, unchecked */
    DJ__CUDA_RUNS,        /* a program that is not part of the toolchain */
    DJ__CUDA_NAMES_LINES, /* line or debug information that the library would not know of */
    DJ__CUDA_SILENCES,    /* warnings of ptxas; allowed if nobody waits for them */
} dj__cuda_effect;

typedef struct dj__cuda_option {
    const char *name;
    dj__cuda_value value;
    dj__cuda_effect effect;
} dj__cuda_option;

/* The option that a flag begins with; NULL if nvcc is not known to have it. *value is what stands
 * in the same argument, NULL if nothing does. */
const dj__cuda_option *dj__cuda_find_option(const char *flag, const char **value);

/* What a word does that reaches another tool, which `tool` says. */
dj__cuda_effect dj__cuda_word_effect(dj__cuda_value tool, const char *word, size_t size);

/* For people, why that is refused; NULL for what is allowed. */
const char *dj__cuda_effect_text(dj__cuda_effect effect);

/* For tests: the table, in the order of its names. */
const dj__cuda_option *dj__cuda_options(size_t *count);

#endif
