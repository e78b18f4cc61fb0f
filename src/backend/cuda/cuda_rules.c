/* SPDX-License-Identifier: MIT */
/*
 * Which flags nvcc may be given: what the options mean is in cuda_options.c and cuda_words.c, this
 * file goes through lists of them and knows what nvcc's shell does to characters.
 *
 * What nvcc 13.0 does with a flag, seen in its command lines:
 *   - Definitions and directories (-D, -U, -I, -isystem, -include) go between double quotes. In
 *     definitions \" and \, are kept, " becomes \", and any other backslash is dropped or, when
 *     doubled, left so that it eats the closing quote. Directories are lists, cut at commas and
 *     stripped of blanks around them; ' becomes \', which the shell leaves as it is, so that
 *     another directory is searched; nothing else is escaped.
 *   - Everything else, above all -Xcompiler and -Xptxas, goes to the shell as it is.
 */
#include "backend/cuda/cuda_flags.h"
#include "backend/cuda/cuda_options.h"
#include "base/error.h"
#include <string.h>

/* "=native" as a whole word. */
static bool rules_is_native(const char *text)
{
    for (const char *at = strstr(text, "=native"); at != NULL; at = strstr(at + 1, "=native")) {
        const char after = at[strlen("=native")];
        if (after == '\0' || strchr("+, \t\"", after) != NULL) {
            return true;
        }
    }
    return false;
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
    if (text[strcspn(text, "`$\\\"'")] != '\0') {
        return "nvcc hands paths to a shell between double quotes, and there `, $, \\, ' and \" do "
               "not come through as they are; use include_dirs (-I of the command), which take "
               "any path";
    }
    for (const char *at = text; *at != '\0';) {
        const size_t size = strcspn(at, ",");
        if (size > 0 &&
            (strchr(" \t\n\r\v\f", at[0]) != NULL || strchr(" \t\n\r\v\f", at[size - 1]) != NULL)) {
            return "nvcc drops blanks at the ends of paths, so another one would be meant; use "
                   "include_dirs (-I of the command), which take any path";
        }
        at += size + (at[size] == ',');
    }
    return NULL;
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

static const char *rules_shell_fault(const char *text, dj__cuda_value kind)
{
    switch (kind) {
    case DJ__CUDA_MACRO:
        return rules_macro_fault(text);
    case DJ__CUDA_PATH:
        return rules_directory_fault(text);
    default:
        return rules_raw_fault(text);
    }
}

/* ---- what it means ---- */

typedef struct rules_context {
    const char *origin; /* whose flags these are */
    const char *loud;   /* the check that reads ptxas's warnings; NULL: none */
    bool meaning;       /* else only what the shell would make of them */
    bool host_allowed;  /* -ccbin */
} rules_context;

static dj_status rules_refuse(const rules_context *context, const char *flag, const char *why,
                              dj_error *err)
{
    return dj__fail(err, DJ_INVALID_ARGUMENT, "%s: compiler flag %s: %s", context->origin,
                    flag[0] != '\0' ? flag : "\"\"", why);
}

/* Refuses the flag for an effect that its context does not allow. */
static dj_status rules_refuse_effect(const rules_context *context, const char *flag,
                                     dj__cuda_effect effect, dj_error *err)
{
    if (effect == DJ__CUDA_ALLOWED || (effect == DJ__CUDA_SETS_HOST && context->host_allowed)) {
        return DJ_OK;
    }
    if (effect != DJ__CUDA_SILENCES) {
        return rules_refuse(context, flag, dj__cuda_effect_text(effect), err);
    }
    return context->loud == NULL
               ? DJ_OK
               : dj__fail(err, DJ_INVALID_ARGUMENT,
                          "%s: compiler flag %s: %s, but %s works by ptxas's warnings; leave one "
                          "of the two out",
                          context->origin, flag, dj__cuda_effect_text(effect), context->loud);
}

/* Words are separated by blanks for the shell, by commas for nvcc, and quotes vanish. */
static dj_status rules_check_tool(const rules_context *context, dj__cuda_value tool,
                                  const char *flag, const char *value, dj_error *err)
{
    static const char separators[] = " \t\n\r\v\f,\"";
    dj_status status = DJ_OK;
    for (const char *at = value; *at != '\0' && status == DJ_OK;) {
        at += strspn(at, separators);
        const size_t size = strcspn(at, separators);
        status = size > 0
                     ? rules_refuse_effect(context, flag, dj__cuda_word_effect(tool, at, size), err)
                     : DJ_OK;
        at += size;
    }
    if (status == DJ_OK && rules_is_native(value)) {
        status = rules_refuse(
            context, flag,
            "native means another processor on every machine, so its binaries cannot be shared",
            err);
    }
    return status;
}

static bool rules_is_words(dj__cuda_value kind)
{
    return kind >= DJ__CUDA_HOST_WORDS;
}

/* An option that no table has. nvcc knows it, refuses it, or passes it on. */
static dj_status rules_check_unknown(const rules_context *context, const char *flag, dj_error *err)
{
    const dj__cuda_effect effect = dj__cuda_word_effect(DJ__CUDA_HOST_WORDS, flag, strlen(flag));
    const bool hides =
        effect == DJ__CUDA_OTHER_PARTS || effect == DJ__CUDA_RUNS || effect == DJ__CUDA_READS_FLAGS;
    if (strchr(flag, '=') != NULL && rules_is_native(flag)) {
        return rules_check_tool(context, DJ__CUDA_OTHER_WORDS, flag, flag, err);
    }
    return hides ? rules_refuse_effect(context, flag, effect, err) : DJ_OK;
}

/* What stands where nvcc would look for an option. */
static dj_status rules_check_place(const rules_context *context, const char *flag,
                                   bool may_be_value, dj_error *err)
{
    const char *why = NULL;
    if (flag[0] == '\0') {
        why = "it is empty, which nvcc takes for the name of a file";
    } else if (flag[0] == '@') {
        why = dj__cuda_effect_text(DJ__CUDA_READS_FLAGS);
    } else if (strchr(" \t\n\r\v\f", flag[0]) != NULL) {
        why = "it begins with a blank, so nvcc takes it for the name of a file";
    } else if ((flag[0] != '-' || flag[1] == '\0') && !may_be_value) {
        why = "it is the value of no option, so nvcc would take it for another source";
    }
    return why != NULL ? rules_refuse(context, flag, why, err) : DJ_OK;
}

/* ---- one after the other ---- */

/* What the flag before means for the one that follows. */
typedef struct rules_state {
    const dj__cuda_option *takes; /* its value comes next */
    bool may_take;                /* an unknown one may have one */
} rules_state;

static dj_status rules_check_meaning(const rules_context *context, const rules_state *state,
                                     const char *flag, const dj__cuda_option *option,
                                     const char *value, dj_error *err)
{
    dj_status status = DJ_OK;
    if (state->takes == NULL) {
        status = rules_check_place(context, flag, state->may_take, err);
        /* As -rdc=false, which is what nvcc does anyway. */
        const bool off = value != NULL && strcmp(value, "false") == 0 && option != NULL &&
                         option->effect == DJ__CUDA_OTHER_PRODUCT;
        if (status == DJ_OK && option != NULL && !off) {
            status = rules_refuse_effect(context, flag, option->effect, err);
        } else if (status == DJ_OK && option == NULL) {
            status = rules_check_unknown(context, flag, err);
        }
    }
    if (status == DJ_OK && option != NULL && value != NULL && rules_is_words(option->value)) {
        status = rules_check_tool(context, option->value, flag, value, err);
    }
    if (status == DJ_OK && value != NULL && value[0] == '\0' && option != NULL &&
        option->value == DJ__CUDA_PATH) {
        status = rules_refuse(context, flag, "it names nothing", err);
    }
    return status;
}

/* The option of a flag, or the one whose value it is; and the value. */
static const dj__cuda_option *rules_take(rules_state *state, const char *flag, const char **value)
{
    const dj__cuda_option *option = state->takes;
    if (option != NULL) {
        *value = flag;
        *state = (rules_state){0};
        return option;
    }
    option = dj__cuda_find_option(flag, value);
    *state = (rules_state){
        .takes = option != NULL && option->value != DJ__CUDA_NONE && *value == NULL ? option : NULL,
        .may_take =
            option == NULL && flag[0] == '-' && flag[1] != '\0' && strchr(flag, '=') == NULL,
    };
    return option;
}

static dj_status rules_check(const rules_context *context, const char *const *flags, size_t count,
                             dj_error *err)
{
    rules_state state = {0};
    dj_status status = DJ_OK;
    for (size_t i = 0; i < count && status == DJ_OK; i++) {
        const rules_state before = state;
        const char *value = NULL;
        const dj__cuda_option *option = rules_take(&state, flags[i], &value);
        if (context->meaning) {
            status = rules_check_meaning(context, &before, flags[i], option, value, err);
        }
        if (status == DJ_OK) {
            /* After an unknown option it may be that one's value, which nvcc does not quote. */
            const bool quoted = option != NULL && value != NULL && !before.may_take;
            const char *why = quoted ? rules_shell_fault(value, option->value)
                                     : rules_shell_fault(flags[i], DJ__CUDA_TEXT);
            status = why != NULL ? rules_refuse(context, flags[i], why, err) : DJ_OK;
        }
    }
    if (status == DJ_OK && context->meaning && state.takes != NULL) {
        status = rules_refuse(context, flags[count - 1],
                              "its value is missing, so nvcc would take what follows for it", err);
    }
    return status;
}

/* True if one of the options is among the flags, and not as another one's value. */
static bool rules_have(const char *const *flags, size_t count, const char *const *names)
{
    rules_state state = {0};
    for (size_t i = 0; i < count; i++) {
        const bool is_value = state.takes != NULL;
        const char *value = NULL;
        const dj__cuda_option *option = rules_take(&state, flags[i], &value);
        for (size_t k = 0; names[k] != NULL && option != NULL && !is_value; k++) {
            if (strcmp(option->name, names[k]) == 0) {
                return true;
            }
        }
    }
    return false;
}

dj_status dj__cuda_check_flags(const char *origin, const char *const *flags, size_t count,
                               const char *loud, dj_error *err)
{
    const rules_context context = {
        .origin = origin,
        .loud = loud,
        .meaning = true,
    };
    return rules_check(&context, flags, count, err);
}

dj_status dj__cuda_check_shell(const char *const *flags, size_t count, dj_error *err)
{
    const rules_context context = {.origin = "flags"};
    return rules_check(&context, flags, count, err);
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

size_t dj__cuda_flags_size(const char *const *flags, size_t count)
{
    enum { AROUND = 4 }; /* a blank, and quotes */
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        for (const char *at = flags[i]; *at != '\0'; at++) {
            size += *at == '"' ? 2 : 1;
        }
        size += AROUND;
    }
    return size;
}

/* ---- the environment ---- */

/* nvcc cuts these at blanks and adds the words to its own arguments. */
static dj_status rules_check_words(const char *name, const char *text, const char *loud,
                                   dj_error *err)
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
        const rules_context context = {
            .origin = name,
            .loud = loud,
            .meaning = true,
            .host_allowed = true,
        };
        status = rules_check(&context, dj__strlist_items(&words), words.count, err);
    }
    if (status == DJ_OK && dj__cuda_flags_have_lines(dj__strlist_items(&words), words.count)) {
        status = dj__fail(err, DJ_INVALID_ARGUMENT, "%s: %s: %s", name, text,
                          dj__cuda_effect_text(DJ__CUDA_NAMES_LINES));
    }
    dj__strlist_fini(&words);
    return status;
}

/* Cuts the text as the shell does: at blanks outside of quotes, which vanish. */
static dj_status rules_check_pieces(const rules_context *context, dj__cuda_value tool,
                                    const char *text, dj_error *err)
{
    dj__strbuf word;
    dj__strbuf_init(&word, strlen(text) + 1);
    dj_status status = DJ_OK;
    bool quoted = false;
    for (const char *at = text; status == DJ_OK; at++) {
        const bool ends = *at == '\0' || (!quoted && (*at == ' ' || *at == '\t'));
        quoted = *at == '"' ? !quoted : quoted;
        if (!ends && *at != '"') {
            dj__strbuf_append(&word, at, 1);
        } else if (ends) {
            status = dj__strbuf_ok(&word, err);
            if (status == DJ_OK) {
                const char *flag = dj__strbuf_str(&word);
                status = rules_refuse_effect(context, flag,
                                             dj__cuda_word_effect(tool, flag, word.size), err);
            }
            dj__strbuf_clear(&word);
        }
        if (*at == '\0') {
            break;
        }
    }
    dj__strbuf_fini(&word);
    return status;
}

/* nvcc puts these into its command lines as they are: words, or words between double quotes. */
static dj_status rules_check_text(const char *name, const char *text, dj__cuda_value tool,
                                  const char *loud, dj_error *err)
{
    const rules_context context = {.origin = name, .loud = loud, .meaning = true};
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
    return rules_check_pieces(&context, tool, text, err);
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

dj_status dj__cuda_check_env(const dj__strlist *env, const char *loud, dj_error *err)
{
    static const char *const words[] = {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"};
    static const struct {
        const char *name;
        dj__cuda_value tool; /* whose command line it goes to */
    } texts[] = {
        {"INCLUDES", DJ__CUDA_HOST_WORDS},     {"SYSTEM_INCLUDES", DJ__CUDA_HOST_WORDS},
        {"CUDAFE_FLAGS", DJ__CUDA_CICC_WORDS}, {"NVVM_FLAGS", DJ__CUDA_CICC_WORDS},
        {"LLVMC_FLAGS", DJ__CUDA_CICC_WORDS},  {"PTXAS_FLAGS", DJ__CUDA_PTXAS_WORDS},
        {"OCG_FLAGS", DJ__CUDA_PTXAS_WORDS},   {"NVLINK_FLAGS", DJ__CUDA_OTHER_WORDS},
        {"NVASM_FLAGS", DJ__CUDA_OTHER_WORDS}, {"LIBRARIES", DJ__CUDA_OTHER_WORDS},
    };
    enum { LIMIT = 8 * 1024 };
    dj_status status = DJ_OK;
    size_t size = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && status == DJ_OK; i++) {
        const char *value = rules_value(env, words[i]);
        status = value != NULL ? rules_check_words(words[i], value, loud, err) : DJ_OK;
        size += value != NULL ? dj__cuda_flags_size(&value, 1) : 0;
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && status == DJ_OK; i++) {
        const char *value = rules_value(env, texts[i].name);
        status = value != NULL ? rules_check_text(texts[i].name, value, texts[i].tool, loud, err)
                               : DJ_OK;
        size += value != NULL ? strlen(value) : 0;
    }
    if (status == DJ_OK && size > LIMIT) {
        status = dj__fail(err, DJ_INVALID_ARGUMENT,
                          "the flags in NVCC_APPEND_FLAGS, NVCC_PREPEND_FLAGS, INCLUDES and the "
                          "others that nvcc reads are %zu bytes; they may be %d",
                          size, LIMIT);
    }
    return status;
}
