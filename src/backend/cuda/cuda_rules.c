/* SPDX-License-Identifier: MIT */
/*
 * Which flags nvcc may be given.
 *
 * What nvcc 13.0 does with a flag, seen in its command lines:
 *   - Definitions and directories (-D, -U, -I, -isystem, -include) go between double quotes. In
 *     definitions \" and \, are kept, " becomes \", and any other backslash is dropped or, when
 *     doubled, left so that it eats the closing quote. In directories nothing is escaped.
 *   - Everything else, above all -Xcompiler and -Xptxas, goes to the shell as it is.
 */
#include "backend/cuda/cuda_flags.h"
#include "base/error.h"
#include <string.h>

typedef enum rules_kind {
    RULES_MACRO,     /* quoted; the value of a definition */
    RULES_DIRECTORY, /* quoted; a directory or file */
    RULES_RAW        /* not quoted */
} rules_kind;

typedef struct rules_quoted {
    const char *name;
    rules_kind kind;
    bool joined; /* the value may follow without '=' */
} rules_quoted;

static const rules_quoted rules_quoted_options[] = {
    {"-D", RULES_MACRO, true},
    {"--define-macro", RULES_MACRO, false},
    {"-U", RULES_DIRECTORY, true},
    {"--undefine-macro", RULES_DIRECTORY, false},
    {"-I", RULES_DIRECTORY, true},
    {"--include-path", RULES_DIRECTORY, false},
    {"-isystem", RULES_DIRECTORY, false},
    {"--system-include", RULES_DIRECTORY, false},
    {"-include", RULES_DIRECTORY, false},
    {"--pre-include", RULES_DIRECTORY, false},
};

/* Options without a value, after which a definition may follow. After any other one that has no
 * '=' it might be that one's value, and then it is not quoted. */
static const char *const rules_switches[] = {
    "--use_fast_math",
    "-use_fast_math",
    "--expt-relaxed-constexpr",
    "-expt-relaxed-constexpr",
    "--expt-extended-lambda",
    "-expt-extended-lambda",
    "--extended-lambda",
    "-extended-lambda",
    "--generate-line-info",
    "-lineinfo",
    "--device-debug",
    "-G",
    "--debug",
    "-g",
    "--restrict",
    "-restrict",
    "--disable-warnings",
    "-w",
    "--resource-usage",
    "-res-usage",
    "--extra-device-vectorization",
    "-extra-device-vectorization",
    NULL,
};

/* ---- what changes the product, or hides from the key ---- */

typedef struct rules_refused {
    const char *why;
    const char *const *names;
} rules_refused;

static const char *const rules_arch[] = {
    "-arch",    "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code",
    "-arch-ls", "--list-gpu-arch",    "-code-ls", "--list-gpu-code", NULL,
};
static const char *const rules_output[] = {
    "-o",
    "--output-file",
    "-odir",
    "--output-directory",
    "-keep",
    "--keep",
    "-save-temps",
    "--save-temps",
    "-keep-dir",
    "--keep-dir",
    "--objdir-as-tempdir",
    "-objtemp",
    NULL,
};
static const char *const rules_phase[] = {
    "-c",
    "--compile",
    "-cubin",
    "--cubin",
    "-ptx",
    "--ptx",
    "-fatbin",
    "--fatbin",
    "-cuda",
    "--cuda",
    "-dc",
    "--device-c",
    "-dw",
    "--device-w",
    "-rdc",
    "--relocatable-device-code",
    "-dlink",
    "--device-link",
    "-dlto",
    "--dlink-time-opt",
    "-gen-opt-lto",
    "--gen-opt-lto",
    "-ltoir",
    "--ltoir",
    "-optix-ir",
    "--optix-ir",
    "-lib",
    "--lib",
    "-link",
    "--link",
    "-run",
    "--run",
    "-E",
    "--preprocess",
    "-M",
    "--generate-dependencies",
    "-MM",
    "--generate-nonsystem-dependencies",
    "-MD",
    "--generate-dependencies-with-compile",
    "-MMD",
    "--generate-nonsystem-dependencies-with-compile",
    "-MF",
    "--dependency-output",
    "-fdevice-syntax-only",
    "--fdevice-syntax-only",
    "-dryrun",
    "--dryrun",
    "-clean",
    "--clean-targets",
    "-h",
    "--help",
    "-V",
    "--version",
    NULL,
};
static const char *const rules_files[] = {
    "-optf", "--options-file", "-qpp-config", "--qpp-config", NULL,
};
static const char *const rules_host[] = {"-ccbin", "--compiler-bindir", NULL};

static const rules_refused rules_table[] = {
    {"the architecture is set by the option arch", rules_arch},
    {"where results go is decided by the library", rules_output},
    {"it changes what nvcc produces, which must be one cubin", rules_phase},
    {"files of flags are not part of the key; give the flags themselves", rules_files},
    {"the host compiler is part of the toolchain's identity; set NVCC_CCBIN instead", rules_host},
};

/* A flag as the tables are searched for it. */
typedef struct rules_flag {
    const char *text;
    size_t size;
    size_t name_size; /* up to the first '=' */
    char second;      /* of the name; NUL where it has no such character */
    char third;
} rules_flag;

static rules_flag rules_split(const char *text)
{
    const size_t size = strlen(text);
    const char *equal = memchr(text, '=', size);
    const size_t name_size = equal != NULL ? (size_t)(equal - text) : size;
    return (rules_flag){
        .text = text,
        .size = size,
        .name_size = name_size,
        .second = name_size > 1 ? text[1] : '\0',
        .third = name_size > 2 ? text[2] : '\0',
    };
}

/* The tables are searched for every flag of every request, hence the look at two characters first.
 * Each name has a second one. */
static inline bool rules_is_option(const rules_flag *flag, const char *name)
{
    return name[1] == flag->second && name[2] == flag->third &&
           strncmp(flag->text, name, flag->name_size) == 0 && name[flag->name_size] == '\0';
}

static bool rules_is_any(const rules_flag *flag, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        if (rules_is_option(flag, names[i])) {
            return true;
        }
    }
    return false;
}

/* "=native" as a whole word. */
static bool rules_is_native(const char *text)
{
    for (const char *at = strstr(text, "=native"); at != NULL; at = strstr(at + 1, "=native")) {
        const char after = at[strlen("=native")];
        if (after == '\0' || strchr("+, \t", after) != NULL) {
            return true;
        }
    }
    return false;
}

/* Why the flag is refused whatever its characters are; NULL if it is not. */
static const char *rules_meaning(const rules_flag *flag, bool host_allowed)
{
    for (size_t i = 0; i < sizeof rules_table / sizeof rules_table[0]; i++) {
        const bool skipped = host_allowed && rules_table[i].names == rules_host;
        if (!skipped && rules_is_any(flag, rules_table[i].names)) {
            return rules_table[i].why;
        }
    }
    return NULL;
}

/* Why a value that goes to another tool, or the flag as a whole, hides something. */
static const char *rules_hidden(const rules_flag *flag)
{
    const char *text = flag->text;
    const bool has_equal = flag->name_size < flag->size;
    if (has_equal && rules_is_native(text)) {
        return "native means another processor on every machine, so its binaries cannot be shared";
    }
    const bool has_file = memchr(text, '@', flag->size) != NULL &&
                          (text[0] == '@' || strstr(text, "=@") != NULL ||
                           strstr(text, ",@") != NULL || strstr(text, " @") != NULL);
    if (has_file || (has_equal && strstr(text, "-specs=") != NULL) ||
        strstr(text, "--options-file") != NULL) {
        return "files of flags are not part of the key; give the flags themselves";
    }
    return NULL;
}

/* ---- what the shell would make of it ---- */

static const char *rules_macro_fault(const char *text)
{
    size_t quotes = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '`' || *at == '$') {
            return "nvcc hands definitions to a shell, which runs or replaces what follows ` or $";
        }
        if (*at == '\\') {
            at++;
            if (*at != '"' && *at != ',') {
                return "nvcc does not carry backslashes, except in \\\" and \\,";
            }
        } else if (*at == '"') {
            quotes++;
        }
    }
    return quotes % 2 != 0 ? "it has an unmatched \"; write \\\" for a quote" : NULL;
}

static const char *rules_directory_fault(const char *text)
{
    return text[strcspn(text, "`$\\\"")] != '\0'
               ? "nvcc hands paths to a shell between double quotes, where `, $, \\ and \" do not "
                 "stand for themselves"
               : NULL;
}

static const char *rules_raw_fault(const char *text)
{
    static const bool special[256] = {
        ['`'] = true, ['$'] = true, [';'] = true,  ['&'] = true,  ['|'] = true,  ['<'] = true,
        ['>'] = true, ['('] = true, [')'] = true,  ['\''] = true, ['"'] = true,  ['\\'] = true,
        ['*'] = true, ['?'] = true, ['['] = true,  [']'] = true,  ['{'] = true,  ['}'] = true,
        ['~'] = true, ['#'] = true, ['\n'] = true, ['\r'] = true, ['\v'] = true, ['\f'] = true,
    };
    while (*text != '\0' && !special[(unsigned char)*text]) {
        text++;
    }
    return *text != '\0' ? "nvcc hands it to a shell without quotes, so it may not have any of "
                           "`$;&|<>()'\"\\*?[]{}~# and line breaks"
                         : NULL;
}

static const char *rules_shell_fault(const char *text, rules_kind kind)
{
    switch (kind) {
    case RULES_MACRO:
        return rules_macro_fault(text);
    case RULES_DIRECTORY:
        return rules_directory_fault(text);
    case RULES_RAW:
        break;
    }
    return rules_raw_fault(text);
}

/* ---- one after the other ---- */

/* What the flag before means for the one that follows. */
typedef struct rules_state {
    bool takes_value; /* it certainly has the next one as its value */
    bool may_take;    /* it may have */
    rules_kind kind;  /* of that value */
} rules_state;

/* The quoted option at the start of the flag; NULL if it is none. */
static const rules_quoted *rules_find_quoted(const rules_flag *flag)
{
    for (size_t i = 0; i < sizeof rules_quoted_options / sizeof rules_quoted_options[0]; i++) {
        const rules_quoted *option = &rules_quoted_options[i];
        if (rules_is_option(flag, option->name) ||
            (option->joined && flag->second == option->name[1] &&
             strncmp(flag->text, option->name, strlen(option->name)) == 0)) {
            return option;
        }
    }
    return NULL;
}

/* -Xcompiler, --compiler-options and their kind. */
static bool rules_is_passing(const rules_flag *flag)
{
    return strncmp(flag->text, "-X", 2) == 0 || strncmp(flag->text, "--X", 3) == 0 ||
           (flag->size > 8 && strcmp(flag->text + flag->size - 8, "-options") == 0);
}

static rules_state rules_after(const rules_flag *flag, const rules_quoted *quoted)
{
    rules_state state = {.kind = RULES_RAW};
    if (quoted != NULL) {
        state.takes_value = strcmp(flag->text, quoted->name) == 0;
        state.kind = quoted->kind;
    } else if (flag->text[0] == '-' && flag->name_size == flag->size) {
        state.takes_value = rules_is_passing(flag);
        state.may_take = !rules_is_any(flag, rules_switches) && strncmp(flag->text, "-O", 2) != 0;
    }
    return state;
}

enum { RULES_MEANING = 1, RULES_HOST_ALLOWED = 2 };

static dj_status rules_check(const char *origin, const char *const *flags, size_t count,
                             unsigned checks, dj_error *err)
{
    rules_state state = {.kind = RULES_RAW};
    for (size_t i = 0; i < count; i++) {
        const rules_flag flag = rules_split(flags[i]);
        const rules_quoted *quoted = state.takes_value ? NULL : rules_find_quoted(&flag);
        const char *fault = NULL;
        rules_kind kind = RULES_RAW;
        if (state.takes_value) {
            kind = state.kind;
        } else if (quoted != NULL && !state.may_take) {
            kind = quoted->kind;
        }
        if (!state.takes_value && (checks & RULES_MEANING) != 0) {
            fault = rules_meaning(&flag, (checks & RULES_HOST_ALLOWED) != 0);
        }
        if (fault == NULL && kind == RULES_RAW) {
            fault = rules_hidden(&flag);
        }
        if (fault == NULL) {
            fault = rules_shell_fault(flag.text, kind);
        }
        if (fault != NULL) {
            return dj__fail(err, DJ_INVALID_ARGUMENT, "%s: compiler flag %s: %s", origin, flag.text,
                            fault);
        }
        state = state.takes_value ? (rules_state){.kind = RULES_RAW} : rules_after(&flag, quoted);
    }
    return DJ_OK;
}

dj_status dj__cuda_check_flags(const char *origin, const char *const *flags, size_t count,
                               dj_error *err)
{
    return rules_check(origin, flags, count, RULES_MEANING, err);
}

dj_status dj__cuda_check_shell(const char *const *flags, size_t count, dj_error *err)
{
    return rules_check("flags", flags, count, 0, err);
}

/* True if the flag of this index is the value of the one before it. */
static bool rules_is_value(const char *const *flags, size_t index)
{
    bool is_value = false;
    for (size_t i = 0; i < index; i++) {
        const rules_flag flag = rules_split(flags[i]);
        is_value = !is_value && rules_after(&flag, rules_find_quoted(&flag)).takes_value;
    }
    return is_value;
}

/* True if one of the options is among the flags, and not as another one's value. */
static bool rules_have(const char *const *flags, size_t count, const char *const *names)
{
    for (size_t i = 0; i < count; i++) {
        const rules_flag flag = rules_split(flags[i]);
        if (rules_is_any(&flag, names) && !rules_is_value(flags, i)) {
            return true;
        }
    }
    return false;
}

bool dj__cuda_flags_have_standard(const char *const *flags, size_t count)
{
    static const char *const names[] = {"-std", "--std", NULL};
    return rules_have(flags, count, names);
}

bool dj__cuda_flags_have_lines(const char *const *flags, size_t count)
{
    static const char *const names[] = {"-lineinfo", "--generate-line-info", "-G", "--device-debug",
                                        NULL};
    return rules_have(flags, count, names);
}

/* ---- the environment ---- */

/* nvcc cuts these at blanks and adds the words to its own arguments. */
static dj_status rules_check_words(const char *name, const char *text, dj_error *err)
{
    dj__strlist words;
    if (text[strcspn(text, "\n\r\v\f'\"")] != '\0') {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "%s: %s: nvcc separates flags by blanks there and knows no quotes and no "
                        "line breaks",
                        name, text);
    }
    dj__strlist_init(&words);
    for (const char *at = text; *at != '\0';) {
        at += strspn(at, " \t");
        const size_t size = strcspn(at, " \t");
        if (size > 0) {
            dj__strlist_addn(&words, at, size);
        }
        at += size;
    }
    dj_status status = dj__strlist_ok(&words, err);
    if (status == DJ_OK) {
        status = rules_check(name, dj__strlist_items(&words), words.count,
                             RULES_MEANING | RULES_HOST_ALLOWED, err);
    }
    if (status == DJ_OK && dj__cuda_flags_have_lines(dj__strlist_items(&words), words.count)) {
        status = dj__fail(err, DJ_INVALID_ARGUMENT,
                          "%s: %s: line and debug information from there would name a source that "
                          "is not kept; use with_line_info or debug_info (JIT_WITH_LINEINFO, "
                          "JIT_KERNEL_DEBUG_INFO)",
                          name, text);
    }
    dj__strlist_fini(&words);
    return status;
}

/* nvcc puts these into its command lines as they are: words, or words between double quotes. */
static dj_status rules_check_text(const char *name, const char *text, dj_error *err)
{
    size_t quotes = 0;
    for (const char *at = text; *at != '\0'; at++) {
        quotes += *at == '"';
    }
    if (text[strcspn(text, "`$;&|<>()'\\*?[]{}~#\n\r\v\f")] != '\0' || quotes % 2 != 0) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "%s: %s: nvcc hands it to a shell, so it may have no unmatched \" and none "
                        "of `$;&|<>()'\\*?[]{}~# and line breaks",
                        name, text);
    }
    return DJ_OK;
}

/* The value of `name` in a list of NAME=value; NULL if it is not there. */
static const char *rules_value(const dj__strlist *env, const char *name)
{
    const size_t size = strlen(name);
    for (size_t i = 0; i < env->count; i++) {
        if (strncmp(env->items[i], name, size) == 0 && env->items[i][size] == '=') {
            return env->items[i] + size + 1;
        }
    }
    return NULL;
}

dj_status dj__cuda_check_env(const dj__strlist *env, dj_error *err)
{
    static const char *const words[] = {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"};
    static const char *const texts[] = {
        "INCLUDES",   "SYSTEM_INCLUDES", "LIBRARIES",   "CUDAFE_FLAGS", "PTXAS_FLAGS",
        "NVVM_FLAGS", "OCG_FLAGS",       "LLVMC_FLAGS", "NVLINK_FLAGS", "NVASM_FLAGS",
    };
    dj_status status = DJ_OK;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && status == DJ_OK; i++) {
        const char *value = rules_value(env, words[i]);
        status = value != NULL ? rules_check_words(words[i], value, err) : DJ_OK;
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && status == DJ_OK; i++) {
        const char *value = rules_value(env, texts[i]);
        status = value != NULL ? rules_check_text(texts[i], value, err) : DJ_OK;
    }
    return status;
}
