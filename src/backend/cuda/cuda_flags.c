/* SPDX-License-Identifier: MIT */
/* From options to nvcc's flags. Their order is part of every key: it never changes without need. */
#include "backend/cuda/cuda_flags.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

enum { FLAGS_MAX_LEVEL = 10, FLAGS_FIRST_VARIANT = 90, FLAGS_FIRST_FAMILY = 100 };

static dj_status flags_check_arch(const char *arch, dj_error *err)
{
    static const char *const prefixes[] = {"sm_", "compute_"};
    for (size_t i = 0; i < 2; i++) {
        const size_t size = strlen(prefixes[i]);
        if (strncmp(arch, prefixes[i], size) == 0) {
            return dj__fail(err, DJ_INVALID_ARGUMENT, "invalid arch: %s (give %s, not %s)", arch,
                            arch + size, arch);
        }
    }
    const size_t digits = strspn(arch, "0123456789");
    const char *suffix = arch + digits;
    const bool variant = strcmp(suffix, "a") == 0 || strcmp(suffix, "f") == 0;
    if (digits < 2 || digits > 3 || arch[0] == '0' || (suffix[0] != '\0' && !variant)) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid arch: %s (expected the compute capability without its dot, such "
                        "as 80, 90, 90a, 100f or 120a)",
                        arch);
    }
    const long number = strtol(arch, NULL, 10);
    if (suffix[0] == 'f' && number < FLAGS_FIRST_FAMILY) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid arch: %s (families, f, exist from 100 on; give %ld%s)", arch,
                        number, number >= FLAGS_FIRST_VARIANT ? "a" : "");
    }
    if (suffix[0] == 'a' && number < FLAGS_FIRST_VARIANT) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid arch: %s (architecture-specific code, a, exists from 90 on; give "
                        "%ld)",
                        arch, number);
    }
    return DJ_OK;
}

static dj_status flags_check_values(const dj_compile_options *options, const char *arch,
                                    int64_t *usage, dj_error *err)
{
    const char *level = options->optimize_level;
    const char *standard = options->cuda->cpp_standard;
    const char *registers = options->cuda->ptxas_register_usage_level;
    if (arch == NULL || arch[0] == '\0') {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "CUDA architecture must be specified");
    }
    if (level == NULL || level[0] == '\0') {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "optimization level must be specified");
    }
    if (registers == NULL || registers[0] == '\0') {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "register usage level must be specified");
    }
    if (strchr("0123", level[0]) == NULL || level[1] != '\0') {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid optimize_level: %s (expected 0, 1, 2 or 3, as nvcc takes them)",
                        level);
    }
    if (!dj__parse_int(registers, usage) || *usage < 0 || *usage > FLAGS_MAX_LEVEL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid ptxas_register_usage_level: %s (expected 0 to %d)", registers,
                        FLAGS_MAX_LEVEL);
    }
    if (standard == NULL || strlen(standard) != 2 || strspn(standard, "0123456789") != 2) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid cpp_standard (JIT_CPP_STANDARD): %s (expected what follows "
                        "-std=c++, such as 17 or 20)",
                        standard != NULL ? standard : "");
    }
    return flags_check_arch(arch, err);
}

/* What the flags at `i` name as standard, "c++17"; NULL if they do not. */
static const char *flags_standard(const char *const *flags, size_t count, size_t i)
{
    const char *flag = flags[i];
    if (flag[0] != '-') {
        return NULL;
    }
    flag += flag[1] == '-' ? 2 : 1;
    if (strncmp(flag, "std=", 4) == 0) {
        return flag + 4;
    }
    return strcmp(flag, "std") == 0 && i + 1 < count ? flags[i + 1] : NULL;
}

/* True if the last flag that names a standard names one before C++20. */
static bool flags_are_before_20(const char *const *flags, size_t count, bool before_20)
{
    for (size_t i = 0; i < count; i++) {
        const char *standard = flags_standard(flags, count, i);
        if (standard != NULL && strncmp(standard, "c++", 3) == 0) {
            before_20 = standard[3] < '2';
        }
    }
    return before_20;
}

/* The caller's list, or the default one, of which gcc's headers take -fconcepts as a promise of
 * C++20: with an older standard they would not compile. clang does not know that flag. */
static void flags_add_list(const dj_compile_options *options, bool no_concepts, dj__strlist *out)
{
    for (size_t i = 0; i < options->num_flags; i++) {
        if (!no_concepts || strcmp(options->flags[i], "--compiler-options=-fconcepts") != 0) {
            dj__strlist_add(out, options->flags[i]);
        }
    }
}

/* nvcc gives each of its steps to `sh -c` as one argument, and Linux takes 128 KiB for one. */
static dj_status flags_check_size(const dj__strlist *flags, dj_error *err)
{
    enum { LIMIT = 112 * 1024 }; /* what is left is for nvcc's own */
    const size_t size = dj__cuda_flags_size((const char *const *)flags->items, flags->count);
    return size <= LIMIT ? DJ_OK
                         : dj__fail(err, DJ_INVALID_ARGUMENT,
                                    "the compiler flags are %zu bytes; nvcc, which hands them to "
                                    "a shell as one argument, can take %d; put definitions into "
                                    "the source or into a header",
                                    size, LIMIT);
}

const char *dj__cuda_flags_loud(const dj_cuda_compile_options *cuda)
{
    if (cuda->check_no_spills == DJ_ON) {
        return "check_no_spills";
    }
    return cuda->check_no_local_memory == DJ_ON ? "check_no_local_memory" : NULL;
}

/* From the number, for 5 and 05 mean the same; at most FLAGS_MAX_LEVEL. */
static void flags_add_usage(dj__strlist *out, int64_t usage)
{
    const char ones[] = {(char)('0' + usage % 10), '\0'};
    const char tens[] = {'1', ones[0], '\0'};
    dj__strlist_add_joined(out,
                           "--ptxas-options=--register-usage-level=", usage < 10 ? ones : tens);
}

dj_status dj__cuda_flags(const dj_compile_options *options, const char *arch, bool clang,
                         dj__strlist *out, dj_error *err)
{
    const dj_cuda_compile_options *cuda = options->cuda;
    const char *loud = dj__cuda_flags_loud(cuda);
    int64_t usage = 0;
    dj_status status = flags_check_values(options, arch, &usage, err);
    if (status == DJ_OK) {
        status = dj__cuda_check_flags("flags", options->flags, options->num_flags, loud, err);
    }
    if (status == DJ_OK) {
        status = dj__cuda_check_flags("extra_flags", options->extra_flags, options->num_extra_flags,
                                      loud, err);
    }
    if (status != DJ_OK) {
        return status;
    }
    dj__strlist_add_joined(out, "--gpu-architecture=sm_", arch);
    dj__strlist_add_joined(out, "-O", options->optimize_level);
    dj__strlist_add_joined(out, "--compiler-options=-O", options->optimize_level);
    if (options->fast_math == DJ_ON) {
        dj__strlist_add(out, "--use_fast_math");
    }
    flags_add_usage(out, usage);
    if (cuda->ptxas_verbose == DJ_ON) {
        dj__strlist_add(out, "--ptxas-options=--verbose");
    }
    if (cuda->check_no_spills == DJ_ON) {
        dj__strlist_add(out, "--ptxas-options=--warn-on-spills");
    }
    if (cuda->check_no_local_memory == DJ_ON) {
        dj__strlist_add(out, "--ptxas-options=--warn-on-local-memory-usage");
    }
    if (options->debug_info == DJ_ON) {
        dj__strlist_add(out, "--device-debug");
    } else if (cuda->with_line_info == DJ_ON) {
        dj__strlist_add(out, "--generate-line-info");
    }
    const bool standard =
        !dj__cuda_flags_have_standard(options->flags, options->num_flags) &&
        !dj__cuda_flags_have_standard(options->extra_flags, options->num_extra_flags);
    if (standard) {
        dj__strlist_add_joined(out, "-std=c++", cuda->cpp_standard);
    }
    bool before_20 = standard && cuda->cpp_standard[0] < '2';
    before_20 = flags_are_before_20(options->flags, options->num_flags, before_20);
    before_20 = flags_are_before_20(options->extra_flags, options->num_extra_flags, before_20);
    flags_add_list(options, before_20 || clang, out);
    dj__strlist_add_all(out, options->extra_flags, options->num_extra_flags);
    status = dj__strlist_ok(out, err);
    return status == DJ_OK ? flags_check_size(out, err) : status;
}
