/* SPDX-License-Identifier: MIT */
/* What words do that nvcc passes on: to the host compiler, to ptxas, to cicc. */
#include "backend/cuda/cuda_options.h"
#include <string.h>

typedef struct words_rule {
    const char *text;
    bool prefix; /* whatever follows; else the whole word, or as far as '=' */
    dj__cuda_effect effect;
} words_rule;

/* gcc and clang preprocess; what they would do beyond that is not wanted. */
static const words_rule words_host[] = {
    {"-B", true, DJ__CUDA_OTHER_PARTS},
    {"--prefix", true, DJ__CUDA_OTHER_PARTS},
    {"-specs", true, DJ__CUDA_READS_FLAGS},
    {"--specs", true, DJ__CUDA_READS_FLAGS},
    {"--config", true, DJ__CUDA_READS_FLAGS},
    {"-no-canonical-prefixes", true, DJ__CUDA_OTHER_PARTS},
    {"--no-canonical-prefixes", true, DJ__CUDA_OTHER_PARTS},
    {"-resource-dir", true, DJ__CUDA_OTHER_PARTS},
    {"--resource-dir", true, DJ__CUDA_OTHER_PARTS},
    {"-gcc-toolchain", true, DJ__CUDA_OTHER_PARTS},
    {"--gcc-toolchain", true, DJ__CUDA_OTHER_PARTS},
    {"--gcc-install-dir", true, DJ__CUDA_OTHER_PARTS},
    {"--gcc-triple", true, DJ__CUDA_OTHER_PARTS},
    {"-ccc-", true, DJ__CUDA_OTHER_PARTS},
    {"-fplugin", true, DJ__CUDA_RUNS},
    {"-iplugindir", true, DJ__CUDA_RUNS},
    {"-fpass-plugin", true, DJ__CUDA_RUNS},
    {"-load", true, DJ__CUDA_RUNS},
    {"-plugin", true, DJ__CUDA_RUNS},
    {"-add-plugin", true, DJ__CUDA_RUNS},
    {"-wrapper", true, DJ__CUDA_RUNS},
    {"--wrapper", true, DJ__CUDA_RUNS},
    {"-o", true, DJ__CUDA_WRITES},
    {"--output", true, DJ__CUDA_WRITES},
    {"-M", true, DJ__CUDA_WRITES},
    {"--dependencies", true, DJ__CUDA_WRITES},
    {"--user-dependencies", true, DJ__CUDA_WRITES},
    {"--write-", true, DJ__CUDA_WRITES},
    {"-save-temps", true, DJ__CUDA_WRITES},
    {"--save-temps", true, DJ__CUDA_WRITES},
    {"-aux-info", true, DJ__CUDA_WRITES},
    {"-fdump-", true, DJ__CUDA_WRITES},
    {"-ftime-trace", true, DJ__CUDA_WRITES},
    {"-fdiagnostics-add-output", true, DJ__CUDA_WRITES},
    {"-fdiagnostics-set-output", true, DJ__CUDA_WRITES},
    {"-time=", true, DJ__CUDA_WRITES},
    {"-d", true, DJ__CUDA_OTHER_PRODUCT},
    {"--dump", true, DJ__CUDA_OTHER_PRODUCT},
    {"-S", false, DJ__CUDA_OTHER_PRODUCT},
    {"--assemble", false, DJ__CUDA_OTHER_PRODUCT},
    {"-c", false, DJ__CUDA_OTHER_PRODUCT},
    {"--compile", false, DJ__CUDA_OTHER_PRODUCT},
    {"-E", false, DJ__CUDA_OTHER_PRODUCT},
    {"--preprocess", false, DJ__CUDA_OTHER_PRODUCT},
    {"-fsyntax-only", false, DJ__CUDA_OTHER_PRODUCT},
    {"-x", true, DJ__CUDA_OTHER_PRODUCT},
    {"--language", true, DJ__CUDA_OTHER_PRODUCT},
    {"-emit-", true, DJ__CUDA_OTHER_PRODUCT},
    {"-cc1", true, DJ__CUDA_OTHER_PRODUCT},
    {"--help", true, DJ__CUDA_OTHER_PRODUCT},
    {"--target-help", false, DJ__CUDA_OTHER_PRODUCT},
    {"--version", false, DJ__CUDA_OTHER_PRODUCT},
    {"-print-", true, DJ__CUDA_OTHER_PRODUCT},
    {"--print-", true, DJ__CUDA_OTHER_PRODUCT},
};

static const words_rule words_ptxas[] = {
    {"-arch", false, DJ__CUDA_SETS_ARCH},
    {"--gpu-name", false, DJ__CUDA_SETS_ARCH},
    {"-o", false, DJ__CUDA_WRITES},
    {"--output-file", false, DJ__CUDA_WRITES},
    {"-c", false, DJ__CUDA_OTHER_PRODUCT},
    {"--compile-only", false, DJ__CUDA_OTHER_PRODUCT},
    {"-ewp", false, DJ__CUDA_OTHER_PRODUCT},
    {"--extensible-whole-program", false, DJ__CUDA_OTHER_PRODUCT},
    {"-astoolspatch", false, DJ__CUDA_OTHER_PRODUCT},
    {"--compile-as-tools-patch", false, DJ__CUDA_OTHER_PRODUCT},
    {"-ias", false, DJ__CUDA_OTHER_PRODUCT},
    {"--input-as-string", false, DJ__CUDA_OTHER_PRODUCT},
    {"-h", false, DJ__CUDA_OTHER_PRODUCT},
    {"--help", false, DJ__CUDA_OTHER_PRODUCT},
    {"-V", false, DJ__CUDA_OTHER_PRODUCT},
    {"--version", false, DJ__CUDA_OTHER_PRODUCT},
    {"-version-ls", false, DJ__CUDA_OTHER_PRODUCT},
    {"--list-version", false, DJ__CUDA_OTHER_PRODUCT},
    {"/", true, DJ__CUDA_OTHER_PRODUCT}, /* another input */
    {"-g", false, DJ__CUDA_NAMES_LINES},
    {"--device-debug", false, DJ__CUDA_NAMES_LINES},
    {"-lineinfo", false, DJ__CUDA_NAMES_LINES},
    {"--generate-line-info", false, DJ__CUDA_NAMES_LINES},
    {"-w", false, DJ__CUDA_SILENCES},
    {"--disable-warnings", false, DJ__CUDA_SILENCES},
};

static const words_rule words_cicc[] = {
    {"-arch", true, DJ__CUDA_SETS_ARCH},
    {"--arch", true, DJ__CUDA_SETS_ARCH},
    {"-o", false, DJ__CUDA_WRITES},
    {"--xref", true, DJ__CUDA_WRITES},
    {"--error_output", true, DJ__CUDA_WRITES},
    {"--list", true, DJ__CUDA_WRITES},
    {"-nvvmir-library", true, DJ__CUDA_OTHER_PARTS},
    {"--nvvmir-library", true, DJ__CUDA_OTHER_PARTS},
    {"-load", true, DJ__CUDA_RUNS},
    {"--load", true, DJ__CUDA_RUNS},
    {"-g", false, DJ__CUDA_NAMES_LINES},
    {"-lineinfo", false, DJ__CUDA_NAMES_LINES},
    {"--device-debug", false, DJ__CUDA_NAMES_LINES},
    {"--generate-line-info", false, DJ__CUDA_NAMES_LINES},
    {"-generate-line-info", false, DJ__CUDA_NAMES_LINES},
};

/* Of every tool. */
static const words_rule words_common[] = {
    {"@", true, DJ__CUDA_READS_FLAGS},
    {"-optf", false, DJ__CUDA_READS_FLAGS},
    {"--options-file", false, DJ__CUDA_READS_FLAGS},
};

static dj__cuda_effect words_search(const words_rule *rules, size_t count, const char *word,
                                    size_t size)
{
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(rules[i].text);
        if (size >= length && strncmp(word, rules[i].text, length) == 0 &&
            (rules[i].prefix || size == length || word[length] == '=')) {
            return rules[i].effect;
        }
    }
    return DJ__CUDA_ALLOWED;
}

dj__cuda_effect dj__cuda_word_effect(dj__cuda_value tool, const char *word, size_t size)
{
    const words_rule *rules = NULL;
    size_t count = 0;
    dj__cuda_effect effect =
        words_search(words_common, sizeof words_common / sizeof words_common[0], word, size);
    if (tool == DJ__CUDA_HOST_WORDS) {
        rules = words_host;
        count = sizeof words_host / sizeof words_host[0];
    } else if (tool == DJ__CUDA_PTXAS_WORDS) {
        rules = words_ptxas;
        count = sizeof words_ptxas / sizeof words_ptxas[0];
    } else if (tool == DJ__CUDA_CICC_WORDS) {
        rules = words_cicc;
        count = sizeof words_cicc / sizeof words_cicc[0];
    }
    return effect == DJ__CUDA_ALLOWED && rules != NULL ? words_search(rules, count, word, size)
                                                       : effect;
}
