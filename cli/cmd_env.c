/* SPDX-License-Identifier: MIT */
/* deepjit env: the settings, from the library's option table, with the values in force here.
 * --markdown is docs/environment.md. */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    "that embeds DeepJIT, then from DJ_NAME.\n\n"
    "Examples:\n"
    "  deepjit env\n"
    "  deepjit env --env-prefix MYLIB --json\n";

/* The value of a setting and, in `name`, the variable that gives it or would. */
static const char *env_value(const env_options *options, const dj_option *row, char **name)
{
    if (options->env_prefix != NULL) {
        *name = cli_format("%s_%s", options->env_prefix, row->env);
        const char *const value = getenv(*name);
        if (value != NULL) {
            return value;
        }
        free(*name);
    }
    *name = cli_format("DJ_%s", row->env);
    return getenv(*name);
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

static void env_print_text(const env_options *options)
{
    printf("%-34s %-24s %s\n", "VARIABLE", "VALUE", "FROM");
    const dj_option *row;
    for (size_t i = 0; (row = dj_option_at(i)) != NULL; i++) {
        if (row->env == NULL) {
            continue;
        }
        char *name = NULL;
        const char *const value = env_value(options, row, &name);
        printf("%-34s %-24s %s\n", name, value != NULL ? value : row->default_text,
               value != NULL ? "environment" : "default");
        free(name);
    }
}

static void env_print_json(const env_options *options)
{
    json_t *const array = json_array();
    const dj_option *row;
    for (size_t i = 0; (row = dj_option_at(i)) != NULL; i++) {
        if (row->env == NULL) {
            continue;
        }
        char *name = NULL;
        const char *const value = env_value(options, row, &name);
        json_t *const object = json_object();
        cli_json_set(object, "variable", cli_json_text(name));
        cli_json_set(object, "value", value != NULL ? cli_json_text(value) : json_null());
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
    } else if (options.json) {
        env_print_json(&options);
    } else {
        env_print_text(&options);
    }
    return CLI_DONE;
}
