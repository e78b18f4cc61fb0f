/* SPDX-License-Identifier: MIT */
/* deepjit explain: the fields that a key is hashed from. Comparing two outputs tells why two
 * builds do not share an entry. */
#include "cli.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXPLAIN_SHORT = 200 };

typedef struct explain_options {
    cli_compile_options compile;
    bool full;
    bool json;
} explain_options;

static const struct argp_option explain_argp_options[] = {
    {NULL, 0, NULL, 0, "What to show:", 1},
    {"full", 'f', NULL, 0, "Show long and binary values completely", 0},
    {"json", 'j', NULL, 0, "JSON instead of text", 0},
    {0},
};

static error_t explain_parse(int key, char *arg, struct argp_state *state)
{
    explain_options *const options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->compile;
        return 0;
    case 'f':
        options->full = true;
        return 0;
    case 'j':
        options->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->compile.file != NULL) {
            argp_error(state, "more than one FILE");
        }
        options->compile.file = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->compile.file == NULL) {
            argp_error(state, "no FILE");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char explain_doc[] =
    "Shows what the cache key of FILE ('-': standard input) is made of, and the key. Compiles "
    "nothing."
    "\v"
    "Long and binary values are shown as their size and a 64-bit FNV-1a hash,\n"
    "enough to compare them.\n\n"
    "Examples:\n"
    "  deepjit explain scale.c\n"
    "  diff <(deepjit explain scale.c) <(ssh node7 deepjit explain scale.c)\n";

typedef struct explain_output {
    const explain_options *options;
    json_t *fields; /* NULL: text */
} explain_output;

/* Not the library's hash, which has no public function; it only has to tell values apart. */
static uint64_t explain_hash(const unsigned char *data, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ data[i]) * 0x100000001b3u;
    }
    return hash;
}

static void explain_text(const explain_options *options, const char *field,
                         const unsigned char *value, size_t size)
{
    const bool plain = cli_is_plain_text(value, size);
    printf("%-20s ", field);
    if (!options->full && (!plain || size > EXPLAIN_SHORT)) {
        printf("(%zu bytes, fnv1a64 %016" PRIx64 ")\n", size, explain_hash(value, size));
        return;
    }
    for (size_t i = 0; i < size; i++) {
        if (value[i] == '\\') {
            fputs("\\\\", stdout);
        } else if (value[i] == '\n') {
            fputs("\\n", stdout);
        } else if (value[i] < 0x20 || value[i] == 0x7f || (!plain && value[i] >= 0x80)) {
            printf("\\x%02x", value[i]);
        } else {
            putchar(value[i]);
        }
    }
    putchar('\n');
}

static json_t *explain_json(const explain_options *options, const char *field,
                            const unsigned char *value, size_t size)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, explain_hash(value, size));
    json_t *const object = json_object();
    cli_json_set(object, "field", cli_json_text(field));
    cli_json_set(object, "size", json_integer((json_int_t)size));
    cli_json_set(object, "fnv1a64", json_string(hash));
    if (options->full || (size <= EXPLAIN_SHORT && cli_is_plain_text(value, size))) {
        cli_json_set(object, "value", cli_json_bytes(value, size));
    }
    return object;
}

static void explain_visit(void *user, const char *field, const void *value, size_t size)
{
    const explain_output *const output = user;
    if (output->fields != NULL) {
        cli_json_append(output->fields, explain_json(output->options, field, value, size));
    } else {
        explain_text(output->options, field, value, size);
    }
}

static int explain_file(explain_options *options)
{
    cli_job job;
    int result = cli_job_init(&job, &options->compile);
    if (result == CLI_DONE) {
        char key[33] = "";
        dj_error err = DJ_ERROR_INIT;
        explain_output output = {options, options->json ? json_array() : NULL};
        job.options.cancel = cli_guard_begin();
        const dj_status status = dj_explain(job.runtime, job.tag, job.source.data, job.source.size,
                                            &job.options, explain_visit, &output, key, &err);
        cli_guard_end();
        if (cli_guard_interrupted()) {
            result = cli_guard_status(CLI_FAILURE);
            json_decref(output.fields);
        } else if (status != DJ_OK) {
            result = cli_job_fail(&job, &err);
            json_decref(output.fields);
        } else if (options->json) {
            json_t *const object = json_object();
            cli_json_set(object, "key", json_string(key));
            cli_json_set(object, "tag", cli_json_text(job.tag));
            cli_json_set(object, "fields", output.fields);
            cli_json_print(object);
        } else {
            printf("%-20s %s\n", "key", key);
        }
    }
    cli_job_fini(&job);
    return result;
}

int cli_cmd_explain(int argc, char **argv)
{
    explain_options options = {.json = false};
    cli_compile_init(&options.compile);
    struct argp *const group = cli_compile_argp();
    const struct argp_child children[] = {{group, 0, NULL, 0}, {0}};
    const struct argp argp = {.options = explain_argp_options,
                              .parser = explain_parse,
                              .args_doc = "FILE",
                              .doc = explain_doc,
                              .children = children};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    const int status = explain_file(&options);
    cli_compile_fini(&options.compile);
    free(group);
    return status;
}
