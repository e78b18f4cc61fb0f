/* SPDX-License-Identifier: MIT */
/*
 * The option groups that commands share. What compilations can be told comes from the library's
 * option table: --name=value for each of its rows, dashes for underscores.
 */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

error_t cli_parse_other(int key, struct argp_state *state)
{
    if (key == ARGP_KEY_ARG) {
        argp_error(state, "no arguments expected");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

enum {
    KEY_BACKEND = 0x1000,
    KEY_ENV_PREFIX,
    KEY_CACHE_DIR,
    KEY_TAG,
    KEY_TRACK,
    KEY_FLAG,
    KEY_DEFAULT_FLAG,
    KEY_LIBRARY_ROOT,
    KEY_SIGNATURE,
    KEY_TABLE /* + row; last */
};
enum { TABLE_LIMIT = 96, NAME_LIMIT = 48, TAG_LIMIT = 128 };

static const struct argp_option runtime_options[] = {
    {NULL, 0, NULL, 0, "Where to look:", 20},
    {"backend", KEY_BACKEND, "NAME", 0, "Back end to use (default: the first available)", 0},
    {"cache-dir", KEY_CACHE_DIR, "DIR", 0, "Cache root to use instead of the configured ones", 0},
    {"env-prefix", KEY_ENV_PREFIX, "NAME", 0,
     "Read settings from NAME_... first, as a library with this prefix does", 0},
    {0},
};

static error_t runtime_parse(int key, char *arg, struct argp_state *state)
{
    cli_runtime_options *const options = state->input;
    switch (key) {
    case KEY_BACKEND:
        options->backend = arg;
        return 0;
    case KEY_ENV_PREFIX:
        options->env_prefix = arg;
        return 0;
    case KEY_CACHE_DIR:
        if (arg[0] == '\0' || strchr(arg, ':') != NULL) {
            argp_error(state, "--cache-dir needs a name without ':'");
        }
        options->cache_dir = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp cli_runtime_argp = {.options = runtime_options, .parser = runtime_parse};

const char *cli_setting(const char *env_prefix, const char *suffix, char **name)
{
    const char *const prefixes[] = {env_prefix, "DJ"};
    const char *value = NULL;
    char *found = NULL;
    for (size_t i = 0; i < 2 && value == NULL; i++) {
        if (prefixes[i] != NULL) {
            char *const variable = cli_format("%s_%s", prefixes[i], suffix);
            value = getenv(variable);
            free(found);
            found = variable;
        }
    }
    if (value == NULL && env_prefix != NULL) {
        free(found);
        found = cli_format("%s_%s", env_prefix, suffix);
    }
    if (name != NULL) {
        *name = found;
    } else {
        free(found);
    }
    return value;
}

/* `source` is the variable that names it; NULL: the command line. */
static int find_backend(const char *name, const char *source, const dj_backend **out)
{
    *out = dj_backend_find(name);
    if (*out != NULL) {
        return CLI_DONE;
    }
    cli_buffer known = {0};
    for (size_t i = 0; dj_backend_at(i) != NULL; i++) {
        cli_buffer_printf(&known, "%s%s", i > 0 ? ", " : "", dj_backend_name(dj_backend_at(i)));
    }
    cli_error("back end '%s'%s%s%s is not in this build of DeepJIT %s; looked at its list: %s\n"
              "%s one of these, or install a build that has '%s'",
              name, source != NULL ? " (from " : "", source != NULL ? source : "",
              source != NULL ? ")" : "", dj_version(), known.size > 0 ? known.data : "(empty)",
              source != NULL ? "unset it or set it to" : "use --backend with", name);
    cli_buffer_fini(&known);
    return CLI_UNAVAILABLE;
}

int cli_find_backend(const char *name, const dj_backend **out)
{
    return find_backend(name, NULL, out);
}

int cli_check_backend_setting(const cli_runtime_options *options)
{
    char *variable = NULL;
    const dj_backend *ignored = NULL;
    const char *const name = cli_setting(options->env_prefix, "JIT_BACKEND", &variable);
    const int status = name != NULL ? find_backend(name, variable, &ignored) : CLI_DONE;
    free(variable);
    return status;
}

static bool use_cache_dir(const cli_runtime_options *options)
{
    char *const dir = cli_absolute(options->cache_dir);
    if (dir == NULL) {
        return false;
    }
    const char *const prefix = options->env_prefix != NULL ? options->env_prefix : "DJ";
    char *const name = cli_format("%s_JIT_CACHE_DIR", prefix);
    const bool ok = strchr(dir, ':') == NULL && setenv(name, dir, 1) == 0;
    if (!ok) {
        cli_error("cannot use %s as cache root: its name must not contain ':'", dir);
    }
    free(name);
    free(dir);
    return ok;
}

int cli_open_runtime(const cli_runtime_options *options, dj_config *config, dj_runtime **out)
{
    dj_config empty = DJ_CONFIG_INIT;
    if (config == NULL) {
        config = &empty;
    }
    *out = NULL;
    const dj_backend *backend = NULL;
    const int found = options->backend != NULL ? cli_find_backend(options->backend, &backend)
                                               : cli_check_backend_setting(options);
    if (found != CLI_DONE) {
        return found;
    }
    if (options->cache_dir != NULL && !use_cache_dir(options)) {
        return CLI_FAILURE;
    }
    config->env_prefix = options->env_prefix;
    dj_error err = DJ_ERROR_INIT;
    if (dj_runtime_create(backend, config, out, &err) != DJ_OK) {
        return cli_fail(&err);
    }
    return CLI_DONE;
}

static const struct argp_option compile_fixed_options[] = {
    {NULL, 0, NULL, 0, "What to compile:", 5},
    {"tag", KEY_TAG, "NAME", 0, "Readable part of the entry's name (default: the file's)", 0},
    {NULL, 'I', "DIR", 0, "Directory for #include, searched in order; may be repeated", 0},
    {"track", KEY_TRACK, "PREFIX", 0,
     "The content of #include <PREFIX...> enters the key; may be repeated", 0},
    {"flag", KEY_FLAG, "FLAG", 0, "Compiler flag, after the default ones; may be repeated", 0},
    {"default-flag", KEY_DEFAULT_FLAG, "FLAG", 0,
     "Compiler flag in place of the default ones; may be repeated", 0},
    {"library-root", KEY_LIBRARY_ROOT, "DIR", 0, "Directory under which post hooks are found", 0},
    {"signature", KEY_SIGNATURE, "TEXT", 0, "Text that enters the key, such as a version", 0},
    {"verbose", 'v', NULL, 0, "Show the compiler's output on standard error", 0},
#define COMPILE_MISTAKE(key)                                                                       \
    {                                                                                              \
        NULL, key, "TEXT", OPTION_ARG_OPTIONAL | OPTION_HIDDEN | OPTION_NO_USAGE, NULL, 0          \
    }
    /* Flags of compilers, which people give directly; see compile_mistake. */
    COMPILE_MISTAKE('D'),
    COMPILE_MISTAKE('U'),
    COMPILE_MISTAKE('O'),
    COMPILE_MISTAKE('W'),
    COMPILE_MISTAKE('X'),
    COMPILE_MISTAKE('L'),
    COMPILE_MISTAKE('f'),
    COMPILE_MISTAKE('g'),
    COMPILE_MISTAKE('l'),
    COMPILE_MISTAKE('m'),
    COMPILE_MISTAKE('s'),
#undef COMPILE_MISTAKE
    {NULL, 0, NULL, 0, "How to compile:", 6},
};
enum { FIXED_COUNT = sizeof compile_fixed_options / sizeof compile_fixed_options[0] };

static cli_strings *compile_list(cli_compile_options *options, const char *name)
{
    if (strcmp(name, "flags") == 0) {
        return &options->flags;
    }
    return strcmp(name, "extra_flags") == 0 ? &options->extra_flags : NULL;
}

static void compile_set_row(cli_compile_options *options, const dj_option *row, const char *text,
                            const struct argp_state *state)
{
    if (row->type == DJ_TYPE_LIST) {
        cli_strings *const list = compile_list(options, row->name);
        if (list == NULL) {
            argp_error(state, "%s cannot be given on the command line", row->name);
        }
        cli_strings_add(list, text);
        return;
    }
    void *const into =
        row->scope == DJ_SCOPE_CUDA_COMPILE ? (void *)&options->cuda : (void *)&options->options;
    cli_set_option(state, row->scope, row->name, text, into);
}

static bool is_tag_character(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_tag(const char *text)
{
    size_t length = 0;
    while (is_tag_character(text[length])) {
        length++;
    }
    return text[length] == '\0' && length > 0 && length <= TAG_LIMIT;
}

/* A compiler's flag where an option of ours was expected. */
static void compile_mistake(int key, const char *arg, const struct argp_state *state)
{
    const bool apart = arg == NULL && strchr("DULlX", key) != NULL && state->next < state->argc;
    argp_error(state, "-%c is no option; compiler flags are given so: --flag=-%c%s", key, key,
               arg != NULL ? arg
               : apart     ? state->argv[state->next]
                           : "");
}

static error_t compile_parse(int key, char *arg, struct argp_state *state)
{
    cli_compile_options *const options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->runtime;
        return 0;
    case KEY_TAG:
        if (!is_tag(arg)) {
            argp_error(state, "--tag '%s': expected 1 to %d letters, digits and underscores", arg,
                       TAG_LIMIT);
        }
        options->tag = arg;
        return 0;
    case 'I':
        cli_strings_add(&options->include_dirs, arg);
        return 0;
    case KEY_TRACK:
        cli_strings_add(&options->prefixes, arg);
        return 0;
    case KEY_FLAG:
        cli_strings_add(&options->extra_flags, arg);
        return 0;
    case KEY_DEFAULT_FLAG:
        cli_strings_add(&options->flags, arg);
        return 0;
    case 'D':
    case 'U':
    case 'O':
    case 'W':
    case 'X':
    case 'L':
    case 'f':
    case 'g':
    case 'l':
    case 'm':
    case 's':
        compile_mistake(key, arg, state);
        return 0;
    case KEY_LIBRARY_ROOT:
        options->library_root = arg;
        return 0;
    case KEY_SIGNATURE:
        options->signature = arg;
        return 0;
    case 'v':
        options->verbose = true;
        return 0;
    default:
        if (key >= KEY_TABLE && key < KEY_TABLE + TABLE_LIMIT) {
            const dj_option *const row = dj_option_at((size_t)(key - KEY_TABLE));
            compile_set_row(options, row, arg != NULL ? arg : "true", state);
            return 0;
        }
        return ARGP_ERR_UNKNOWN;
    }
}

/* What cli_compile_argp returns is the first member. */
typedef struct compile_group {
    struct argp argp;
    struct argp_child children[2];
    struct argp_option options[FIXED_COUNT + TABLE_LIMIT + 2]; /* and a heading, and an end */
    char names[TABLE_LIMIT][NAME_LIMIT];
} compile_group;

static const char *row_argument(const dj_option *row)
{
    switch (row->type) {
    case DJ_TYPE_TRI:
        return "BOOL";
    case DJ_TYPE_INT:
        return "N";
    case DJ_TYPE_LIST:
        return "FLAG";
    case DJ_TYPE_DIM3:
        return "X[,Y,Z]";
    case DJ_TYPE_STRING:
        break;
    }
    return "TEXT";
}

struct argp *cli_compile_argp(void)
{
    compile_group *const group = cli_alloc(1, sizeof *group);
    memcpy(group->options, compile_fixed_options, sizeof compile_fixed_options);
    size_t count = FIXED_COUNT;
    bool cuda_begun = false;
    const dj_option *row;
    for (size_t i = 0; i < TABLE_LIMIT && (row = dj_option_at(i)) != NULL; i++) {
        const bool cuda = row->scope == DJ_SCOPE_CUDA_COMPILE;
        if ((row->scope != DJ_SCOPE_COMPILE && !cuda) || strlen(row->name) >= NAME_LIMIT) {
            continue;
        }
        if (cuda && !cuda_begun) {
            group->options[count++] =
                (struct argp_option){.doc = "How to compile for CUDA:", .group = 7};
            cuda_begun = true;
        }
        char *const name = group->names[i];
        for (size_t k = 0; row->name[k] != '\0'; k++) {
            name[k] = row->name[k];
            if (name[k] == '_') {
                name[k] = '-';
            }
        }
        /* --flags and --extra-flags are easily taken for --flag: they work and are not shown. */
        const int how = row->type == DJ_TYPE_TRI    ? OPTION_ARG_OPTIONAL
                        : row->type == DJ_TYPE_LIST ? OPTION_HIDDEN | OPTION_NO_USAGE
                                                    : 0;
        group->options[count++] = (struct argp_option){name, KEY_TABLE + (int)i, row_argument(row),
                                                       how,  row->doc,           cuda ? 7 : 0};
    }
    group->children[0] = (struct argp_child){&cli_runtime_argp, 0, NULL, 0};
    group->argp = (struct argp){
        .options = group->options, .parser = compile_parse, .children = group->children};
    return &group->argp;
}

void cli_compile_init(cli_compile_options *options)
{
    *options = (cli_compile_options){.options = DJ_COMPILE_OPTIONS_INIT,
                                     .cuda = DJ_CUDA_COMPILE_OPTIONS_INIT};
    options->options.cuda = &options->cuda;
}

void cli_compile_fini(cli_compile_options *options)
{
    cli_strings_fini(&options->include_dirs);
    cli_strings_fini(&options->prefixes);
    cli_strings_fini(&options->flags);
    cli_strings_fini(&options->extra_flags);
}

void cli_set_option(const struct argp_state *state, dj_option_scope scope, const char *name,
                    const char *text, void *options)
{
    const dj_option *row;
    for (size_t i = 0; (row = dj_option_at(i)) != NULL; i++) {
        if (row->scope == scope && strcmp(row->name, name) == 0) {
            dj_error err = DJ_ERROR_INIT;
            if (dj_option_parse(row, text, options, &err) != DJ_OK) {
                argp_error(state, "%s", err.message);
            }
            return;
        }
    }
    argp_error(state, "this library has no option '%s'", name);
}

char *cli_tag_from_file(const char *file)
{
    if (strcmp(file, "-") == 0) {
        return cli_format("stdin");
    }
    const char *const slash = strrchr(file, '/');
    char *const tag = cli_format("%s", slash != NULL ? slash + 1 : file);
    char *const dot = strrchr(tag, '.');
    if (dot != NULL && dot != tag) {
        *dot = '\0';
    }
    for (char *c = tag; *c != '\0'; c++) {
        *c = is_tag_character(*c) ? *c : '_';
    }
    if (strlen(tag) > TAG_LIMIT) {
        tag[TAG_LIMIT] = '\0';
    }
    return tag;
}
