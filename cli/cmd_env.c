/* SPDX-License-Identifier: MIT */
/* deepjit env: the settings, from the library's option table, with the values in force here.
 * --markdown is docs/environment.md. */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_PREFIX = 0x100 };

typedef struct env_options {
    const char *env_prefix;
    bool markdown;
    bool json;
} env_options;

static const struct argp_option env_argp_options[] = {
    {"env-prefix", KEY_PREFIX, "NAME", 0, "Settings of a library with this prefix", 0},
    {"json", 'j', NULL, 0, "JSON instead of text", 0},
    {"markdown", 'm', NULL, 0, "The documentation page, without values", 0},
    {0},
};

static error_t env_parse(int key, char *arg, struct argp_state *state)
{
    env_options *const options = state->input;
    switch (key) {
    case KEY_PREFIX:
        options->env_prefix = arg;
        return 0;
    case 'j':
        options->json = true;
        return 0;
    case 'm':
        options->markdown = true;
        return 0;
    default:
        return cli_parse_other(key, state);
    }
}

static const char env_doc[] =
    "Lists the settings that the environment can give, their values and where these come from."
    "\v"
    "A setting NAME is read from <PREFIX>_NAME, where PREFIX is that of the library\n"
    "that embeds DeepJIT, then from DJ_NAME. Without a value, the variable to set is\n"
    "shown. Values that the library refuses are marked; the status is 1 then.\n\n"
    "Examples:\n"
    "  deepjit env\n"
    "  deepjit env --env-prefix MYLIB --json\n";

/* ---- Which values the library refuses ---- */

typedef struct env_problems {
    char **items; /* by row of the option table; NULL: none */
    size_t count;
} env_problems;

/* What dj_runtime_create says about an environment; NULL: nothing. With a back end it looks for no
 * device. */
static char *env_refusal(const env_options *options, const dj_backend *backend, char **variables)
{
    char **const own = environ;
    dj_config config = DJ_CONFIG_INIT;
    dj_error err = DJ_ERROR_INIT;
    dj_runtime *runtime = NULL;
    config.env_prefix = options->env_prefix;
    environ = variables;
    const bool ok = dj_runtime_create(backend, &config, &runtime, &err) == DJ_OK;
    environ = own;
    dj_runtime_release(runtime);
    return ok ? NULL : cli_format("%s", err.message);
}

static bool env_is_setting(const char *variable, const char *prefix)
{
    const size_t length = prefix != NULL ? strlen(prefix) : 0;
    return length > 0 && strncmp(variable, prefix, length) == 0 && variable[length] == '_';
}

/* The library stops at the first malformed value, so it is shown one setting at a time. False:
 * the prefix itself is refused; reported. */
static bool env_find_problems(const env_options *options, env_problems *problems)
{
    size_t others = 0;
    size_t all = 0;
    while (environ[all] != NULL) {
        all++;
    }
    char **const variables = cli_alloc(all + 2, sizeof *variables);
    for (size_t i = 0; i < all; i++) {
        if (!env_is_setting(environ[i], "DJ") && !env_is_setting(environ[i], options->env_prefix)) {
            variables[others++] = environ[i];
        }
    }
    while (dj_option_at(problems->count) != NULL) {
        problems->count++;
    }
    problems->items = cli_alloc(problems->count, sizeof *problems->items);
    char *const refused = env_refusal(options, dj_backend_at(0), variables);
    for (size_t i = 0; i < problems->count && refused == NULL; i++) {
        char *name = NULL;
        const char *const suffix = dj_option_at(i)->env;
        const char *const value =
            suffix != NULL ? cli_setting(options->env_prefix, suffix, &name) : NULL;
        if (value != NULL) {
            const bool chooses = strcmp(suffix, "JIT_BACKEND") == 0;
            variables[others] = cli_format("%s=%s", name, value);
            problems->items[i] = env_refusal(options, chooses ? NULL : dj_backend_at(0), variables);
            free(variables[others]);
            variables[others] = NULL;
        }
        free(name);
    }
    free(variables);
    if (refused != NULL) {
        cli_error("%s", refused);
    }
    const bool ok = refused == NULL;
    free(refused);
    return ok;
}

static void env_problems_fini(env_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        free(problems->items[i]);
    }
    free(problems->items);
}

static const char *type_name(dj_option_type type)
{
    switch (type) {
    case DJ_TYPE_TRI:
        return "boolean";
    case DJ_TYPE_INT:
        return "integer";
    case DJ_TYPE_STRING:
        return "text";
    case DJ_TYPE_LIST:
        return "list";
    case DJ_TYPE_DIM3:
        return "X[,Y,Z]";
    }
    return "?";
}

static void env_print_text(const env_options *options, const env_problems *problems)
{
    printf("%-34s %-29s %s\n", "VARIABLE", "VALUE", "FROM");
    const dj_option *row;
    for (size_t i = 0; (row = dj_option_at(i)) != NULL; i++) {
        if (row->env == NULL) {
            continue;
        }
        char *name = NULL;
        const char *const value = cli_setting(options->env_prefix, row->env, &name);
        const char *const problem = problems->items[i];
        printf("%-34s %-29s %s%s\n", name, value != NULL ? value : row->default_text,
               value == NULL     ? "default"
               : problem != NULL ? "MALFORMED: "
                                 : "environment",
               problem != NULL ? problem : "");
        free(name);
    }
}

static void env_print_json(const env_options *options, const env_problems *problems)
{
    json_t *const array = json_array();
    const dj_option *row;
    for (size_t i = 0; (row = dj_option_at(i)) != NULL; i++) {
        if (row->env == NULL) {
            continue;
        }
        char *name = NULL;
        const char *const value = cli_setting(options->env_prefix, row->env, &name);
        const char *const problem = problems->items[i];
        json_t *const object = json_object();
        cli_json_set(object, "variable", cli_json_text(name));
        cli_json_set(object, "value", value != NULL ? cli_json_text(value) : json_null());
        cli_json_set(object, "problem", problem != NULL ? cli_json_text(problem) : json_null());
        cli_json_set(object, "default", cli_json_text(row->default_text));
        cli_json_set(object, "type", json_string(type_name(row->type)));
        cli_json_set(object, "keyed", json_boolean(row->keyed));
        cli_json_set(object, "doc", cli_json_text(row->doc));
        cli_json_append(array, object);
        free(name);
    }
    cli_json_print(array);
}

/* Text inside a table cell. */
static void markdown_cell(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|' || *text == '<' || *text == '>' || *text == '*' || *text == '_') {
            putchar('\\');
        }
        putchar(*text);
    }
}

static void markdown_code(const char *text)
{
    if (text[0] != '\0') {
        printf("`%s`", text);
    }
}

static void markdown_environment(void)
{
    puts(
        "## Environment\n\n"
        "Read once, when a runtime is created. Each name below is looked for as\n"
        "`<PREFIX>_NAME`, with the prefix of the library that embeds DeepJIT, then as `DJ_NAME`.\n"
        "A malformed value is an error that names the variable.\n\n"
        "Booleans are `true`, `false`, `yes`, `no` in any case or an integer. Lists are separated\n"
        "by colons and have no empty elements.\n\n"
        "| Name | Type | Default | Keyed | Meaning |\n"
        "| --- | --- | --- | --- | --- |");
    const dj_option *row;
    for (size_t i = 0; (row = dj_option_at(i)) != NULL; i++) {
        if (row->env == NULL) {
            continue;
        }
        printf("| `%s` | %s | ", row->env, type_name(row->type));
        markdown_code(row->default_text);
        printf(" | %s | ", row->keyed ? "yes" : "no");
        markdown_cell(row->doc);
        puts(" |");
    }
}

static void markdown_options(const char *title, dj_option_scope scope, const char *struct_name)
{
    printf("\n## %s\n\nFields of `%s`.\n\n"
           "| Field | Type | Default | Environment | Keyed | Meaning |\n"
           "| --- | --- | --- | --- | --- | --- |\n",
           title, struct_name);
    const dj_option *row;
    for (size_t i = 0; (row = dj_option_at(i)) != NULL; i++) {
        if (row->scope != scope) {
            continue;
        }
        printf("| `%s` | %s | ", row->name, type_name(row->type));
        markdown_code(row->default_text);
        printf(" | ");
        markdown_code(row->env != NULL ? row->env : "");
        printf(" | %s | ", row->keyed ? "yes" : "no");
        markdown_cell(row->doc);
        puts(" |");
    }
}

static void env_print_markdown(void)
{
    puts("<!-- Generated by `deepjit env --markdown` from the option table. Do not edit. -->\n"
         "# Settings and options\n\n"
         "Everything that can be set, from the one table in the library. What is *keyed* makes\n"
         "another cache entry when it differs. A call's options win over the runtime's defaults,\n"
         "these over the environment, and that over the built-in default.\n");
    markdown_environment();
    markdown_options("Compile options", DJ_SCOPE_COMPILE, "dj_compile_options");
    markdown_options("Compile options of the CUDA back end", DJ_SCOPE_CUDA_COMPILE,
                     "dj_cuda_compile_options");
    markdown_options("Launch options", DJ_SCOPE_LAUNCH, "dj_launch_options");
    markdown_options("Launch options of the host back end", DJ_SCOPE_HOST_LAUNCH,
                     "dj_host_launch_options");
    markdown_options("Launch options of the CUDA back end", DJ_SCOPE_CUDA_LAUNCH,
                     "dj_cuda_launch_options");
}

int cli_cmd_env(int argc, char **argv)
{
    env_options options = {.json = false};
    static const struct argp argp = {
        .options = env_argp_options, .parser = env_parse, .doc = env_doc};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    if (options.markdown) {
        env_print_markdown();
        return CLI_DONE;
    }
    env_problems problems = {NULL, 0};
    bool ok = env_find_problems(&options, &problems);
    if (ok && options.json) {
        env_print_json(&options, &problems);
    } else if (ok) {
        env_print_text(&options, &problems);
    }
    for (size_t i = 0; i < problems.count; i++) {
        ok = ok && problems.items[i] == NULL;
    }
    env_problems_fini(&problems);
    return ok ? CLI_DONE : CLI_FAILURE;
}
