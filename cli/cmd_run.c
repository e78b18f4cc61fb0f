/* SPDX-License-Identifier: MIT */
/* deepjit run: compile any kernel file, launch it once, show or save what it wrote. */
#include "cli_params.h"
#include "cli_value.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_GRID = 0x100,
    KEY_BLOCK,
    KEY_SHARED,
    KEY_SAVE,
    KEY_PRINT,
    KEY_CLUSTER,
    KEY_COOPERATIVE,
    KEY_PDL,
    KEY_NONPORTABLE
};

typedef struct run_options {
    cli_compile_options compile;
    dj_launch_options launch;
    dj_cuda_launch_options cuda;
    cli_strings args;
    cli_strings saves;  /* "INDEX=FILE" or "NAME=FILE" */
    cli_strings prints; /* "INDEX" or "NAME" */
    bool quiet;
} run_options;

static const struct argp_option run_argp_options[] = {
    {NULL, 0, NULL, 0, "How to launch:", 1},
    {"grid", KEY_GRID, "X[,Y,Z]", 0, "Blocks (needed)", 0},
    {"block", KEY_BLOCK, "X[,Y,Z]", 0, "Threads in a block (needed)", 0},
    {"shared", KEY_SHARED, "BYTES", 0, "Dynamic shared memory of a block", 0},
    {"cluster", KEY_CLUSTER, "X", 0, "Blocks of a cluster (CUDA)", 0},
    {"cooperative", KEY_COOPERATIVE, NULL, 0, "All blocks run at once (CUDA)", 0},
    {"pdl", KEY_PDL, NULL, 0, "Programmatic dependent launch (CUDA)", 0},
    {"nonportable-cluster", KEY_NONPORTABLE, NULL, 0, "Clusters of more than 8 blocks (CUDA)", 0},
    {NULL, 0, NULL, 0, "What to show (ARRAY: its position from 0, or its name):", 2},
    {"print", KEY_PRINT, "ARRAY", 0, "Print all elements of an array; may be repeated", 0},
    {"save", KEY_SAVE, "ARRAY=FILE", 0,
     "Save an array, as .npy if FILE ends so, else raw; may be repeated", 0},
    {"quiet", 'q', NULL, 0, "No summary of the arrays that the kernel may write", 0},
    {0},
};

static error_t run_parse(int key, char *arg, struct argp_state *state)
{
    run_options *const options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->compile;
        return 0;
    case KEY_GRID:
        cli_set_option(state, DJ_SCOPE_LAUNCH, "grid", arg, &options->launch);
        return 0;
    case KEY_BLOCK:
        cli_set_option(state, DJ_SCOPE_LAUNCH, "block", arg, &options->launch);
        return 0;
    case KEY_SHARED:
        cli_set_option(state, DJ_SCOPE_LAUNCH, "shared_bytes", arg, &options->launch);
        return 0;
    case KEY_CLUSTER:
        cli_set_option(state, DJ_SCOPE_CUDA_LAUNCH, "cluster", arg, &options->cuda);
        return 0;
    case KEY_COOPERATIVE:
        options->cuda.cooperative = DJ_ON;
        return 0;
    case KEY_PDL:
        options->cuda.enable_pdl = DJ_ON;
        return 0;
    case KEY_NONPORTABLE:
        options->cuda.nonportable_cluster = DJ_ON;
        return 0;
    case KEY_PRINT:
        cli_strings_add(&options->prints, arg);
        return 0;
    case KEY_SAVE: {
        const char *const equals = strchr(arg, '=');
        if (equals == NULL || equals == arg || equals[1] == '\0') {
            argp_error(state, "--save needs ARRAY=FILE, not '%s'", arg);
        }
        cli_strings_add(&options->saves, arg);
        return 0;
    }
    case 'q':
        options->quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->compile.file == NULL) {
            options->compile.file = arg;
        } else {
            cli_strings_add(&options->args, arg);
        }
        return 0;
    case ARGP_KEY_END:
        if (options->compile.file == NULL) {
            argp_error(state, "no FILE");
        }
        if (options->launch.grid.x == 0 || options->launch.block.x == 0) {
            argp_error(state, "--grid and --block are needed");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char run_doc[] =
    "Compiles FILE, which holds one kernel ('-': standard input), launches it once and shows what "
    "it wrote."
    "\v"
    "Each ARG is one parameter of the kernel:\n"
    "  1.5                  a number of the parameter's own type\n"
    "  f32:1.5  i64:-3      a number of this type\n"
    "  f32[1024]            an array of zeros; more dimensions as f32[4,256]\n"
    "  f32[1024]=FILL       zeros, ones, iota, random, random:SEED or a number\n"
    "  @in.npy              the array in a .npy file\n"
    "  f32@in.bin           a raw file, elements in memory order\n"
    "  null                 a null pointer\n"
    "  bytes:0f00           the parameter's bytes, for structures\n"
    "Types: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 bool. Write -- before the first\n"
    "ARG if one begins with a dash.\n"
    "\n"
    "Examples:\n"
    "  deepjit run scale.c --grid 4 --block 256 'f32[1024]' \\\n"
    "      'f32[1024]=iota' 3 1024\n"
    "  deepjit run blur.c --grid 8,8 --block 16,16 --save out=out.npy \\\n"
    "      'f32[128,128]' @in.npy 128 128\n";

typedef struct run_state {
    cli_job job;
    dj_kernel *kernel;
    cli_param *params;        /* of the kernel */
    cli_source_params source; /* what the source says about them, where the binary does not */
    cli_value *values;
    bool *writable;
    size_t count;
} run_state;

static int run_parse_values(run_state *run, const run_options *options)
{
    run->values = cli_alloc(options->args.count, sizeof *run->values);
    run->writable = cli_alloc(options->args.count, sizeof *run->writable);
    for (size_t i = 0; i < options->args.count; i++) {
        int status = CLI_DONE;
        run->count = i + 1;
        if (!cli_value_parse(options->args.items[i], &run->values[i], &status)) {
            return status;
        }
    }
    return CLI_DONE;
}

static int run_compile(run_state *run)
{
    dj_error err = DJ_ERROR_INIT;
    cli_job *const job = &run->job;
    job->options.cancel = cli_guard_begin();
    const dj_status status = dj_compile(job->runtime, job->tag, job->source.data, job->source.size,
                                        &job->options, &run->kernel, &err);
    job->options.cancel = NULL;
    cli_guard_end();
    if (status != DJ_OK) {
        return cli_guard_status(cli_guard_interrupted() ? CLI_FAILURE : cli_job_fail(job, &err));
    }
    cli_job_show_log(job);
    return cli_guard_status(CLI_DONE);
}

/* True if the source's type can be that of a parameter of this size. */
static bool run_type_fits(const char *type, size_t size)
{
    cli_elem elem;
    if (strchr(type, '*') != NULL) {
        return size == sizeof(void *);
    }
    return !cli_elem_from_c(type, strlen(type), &elem) || cli_elem_size(elem) == size;
}

/* Cubins hold only sizes. What the source says counts if all of it agrees with these: otherwise
 * it is about something else. */
static void run_read_source(run_state *run, size_t count)
{
    const cli_buffer *const text = &run->job.source;
    bool fits =
        cli_params_find(text->data, text->size, dj_kernel_name(run->kernel), &run->source) &&
        run->source.count == count;
    for (size_t i = 0; i < count && fits; i++) {
        fits = run_type_fits(run->source.items[i].type, run->params[i].size);
    }
    for (size_t i = 0; i < count && fits; i++) {
        run->params[i].name = run->source.items[i].name;
        run->params[i].type = run->source.items[i].type;
    }
}

static int run_read_params(run_state *run)
{
    const size_t count = dj_kernel_num_params(run->kernel);
    bool known = false;
    run->params = cli_alloc(count, sizeof *run->params);
    for (size_t i = 0; i < count; i++) {
        cli_param *const param = &run->params[i];
        dj_error err = DJ_ERROR_INIT;
        param->index = i;
        if (dj_kernel_param(run->kernel, i, &param->size, NULL, &param->name, &param->type, &err) !=
            DJ_OK) {
            return cli_fail(&err);
        }
        known = known || param->name[0] != '\0' || param->type[0] != '\0';
    }
    if (!known) {
        run_read_source(run, count);
    }
    return CLI_DONE;
}

static int run_bind(run_state *run)
{
    const size_t wanted = dj_kernel_num_params(run->kernel);
    if (run->count != wanted) {
        cli_error("kernel %s has %zu parameters, got %zu arguments", dj_kernel_name(run->kernel),
                  wanted, run->count);
        for (size_t i = 0; i < wanted; i++) {
            const cli_param *const param = &run->params[i];
            fprintf(stderr, "  %zu: %s%s%s%s(%zu bytes)\n", i, param->type,
                    param->type[0] != '\0' ? " " : "", param->name,
                    param->name[0] != '\0' ? " " : "", param->size);
        }
        return CLI_USAGE;
    }
    for (size_t i = 0; i < wanted; i++) {
        if (!cli_value_bind(&run->values[i], &run->params[i], &run->writable[i])) {
            return CLI_USAGE;
        }
    }
    return CLI_DONE;
}

/* The array that "INDEX" or "NAME" (the first `length` bytes of `text`) means, or NULL after a
 * message. */
static cli_value *run_find_array(run_state *run, const char *text, size_t length)
{
    bool named = false;
    for (size_t i = 0; i < run->count; i++) {
        char index[32];
        const char *const name = run->params[i].name;
        named = named || name[0] != '\0';
        snprintf(index, sizeof index, "%zu", i);
        const bool found = (strlen(index) == length && memcmp(index, text, length) == 0) ||
                           (strlen(name) == length && memcmp(name, text, length) == 0);
        if (found && run->values[i].kind == CLI_VALUE_ARRAY) {
            return &run->values[i];
        }
    }
    cli_error("no array '%.*s' among the arguments%s", (int)length, text,
              named ? ""
                    : "; the names of the parameters are not known, as the binary has none and "
                      "the source could not be read for them: give the array's position, "
                      "counted from 0");
    return NULL;
}

/* Finds mistakes in --print and --save before anything runs. */
static int run_check_outputs(run_state *run, const run_options *options)
{
    for (size_t i = 0; i < options->prints.count; i++) {
        const char *const text = options->prints.items[i];
        if (run_find_array(run, text, strlen(text)) == NULL) {
            return CLI_USAGE;
        }
    }
    for (size_t i = 0; i < options->saves.count; i++) {
        const char *const text = options->saves.items[i];
        if (run_find_array(run, text, strcspn(text, "=")) == NULL) {
            return CLI_USAGE;
        }
    }
    return CLI_DONE;
}

static dj_status run_upload(run_state *run, dj_error *err)
{
    dj_runtime *const runtime = run->job.runtime;
    for (size_t i = 0; i < run->count; i++) {
        cli_value *const value = &run->values[i];
        if (value->kind != CLI_VALUE_ARRAY) {
            continue;
        }
        const size_t size = value->size > 0 ? value->size : 1;
        dj_status status = dj_mem_alloc(runtime, size, &value->device, err);
        if (status == DJ_OK) {
            status = dj_mem_copy(runtime, value->device, value->data, value->size, err);
        }
        if (status != DJ_OK) {
            return status;
        }
    }
    return DJ_OK;
}

static dj_status run_launch(run_state *run, const dj_launch_options *launch, dj_error *err)
{
    dj_arg *const args = cli_alloc(run->count, sizeof *args);
    for (size_t i = 0; i < run->count; i++) {
        args[i] = cli_value_arg(&run->values[i]);
    }
    dj_status status = dj_launch(run->kernel, launch, args, run->count, err);
    if (status == DJ_OK) {
        status = dj_synchronize(run->job.runtime, err);
    }
    free(args);
    return status;
}

static dj_status run_download(run_state *run, dj_error *err)
{
    for (size_t i = 0; i < run->count; i++) {
        cli_value *const value = &run->values[i];
        if (!run->writable[i]) {
            continue;
        }
        const dj_status status =
            dj_mem_copy(run->job.runtime, value->data, value->device, value->size, err);
        if (status != DJ_OK) {
            return status;
        }
    }
    return DJ_OK;
}

static int run_show(run_state *run, const run_options *options)
{
    for (size_t i = 0; i < run->count && !options->quiet; i++) {
        const char *const name = run->params[i].name;
        char position[32];
        if (run->writable[i]) {
            snprintf(position, sizeof position, "%zu", i);
            cli_value_summarise(&run->values[i], name[0] != '\0' ? name : position);
        }
    }
    for (size_t i = 0; i < options->prints.count; i++) {
        const char *const text = options->prints.items[i];
        cli_value_print(run_find_array(run, text, strlen(text)));
    }
    for (size_t i = 0; i < options->saves.count; i++) {
        const char *const text = options->saves.items[i];
        const size_t length = strcspn(text, "=");
        if (!cli_value_save(run_find_array(run, text, length), text + length + 1)) {
            return CLI_FAILURE;
        }
    }
    return CLI_DONE;
}

static int run_all(run_state *run, run_options *options)
{
    int status = run_parse_values(run, options);
    if (status == CLI_DONE) {
        status = cli_job_init(&run->job, &options->compile);
    }
    if (status == CLI_DONE) {
        status = run_compile(run);
    }
    if (status == CLI_DONE) {
        status = run_read_params(run);
    }
    if (status == CLI_DONE) {
        status = run_bind(run);
    }
    if (status == CLI_DONE) {
        status = run_check_outputs(run, options);
    }
    if (status != CLI_DONE) {
        return status;
    }
    dj_error err = DJ_ERROR_INIT;
    if (run_upload(run, &err) != DJ_OK || run_launch(run, &options->launch, &err) != DJ_OK ||
        run_download(run, &err) != DJ_OK) {
        return cli_fail(&err);
    }
    return run_show(run, options);
}

int cli_cmd_run(int argc, char **argv)
{
    run_options options = {.launch = DJ_LAUNCH_OPTIONS_INIT, .cuda = DJ_CUDA_LAUNCH_OPTIONS_INIT};
    options.launch.cuda = &options.cuda;
    cli_compile_init(&options.compile);
    struct argp *const group = cli_compile_argp();
    const struct argp_child children[] = {{group, 0, NULL, 0}, {0}};
    const struct argp argp = {.options = run_argp_options,
                              .parser = run_parse,
                              .args_doc = "FILE [ARG...]",
                              .doc = run_doc,
                              .children = children};
    argp_parse(&argp, argc, argv, 0, NULL, &options);

    run_state run = {0};
    const int status = run_all(&run, &options);
    for (size_t i = 0; i < run.count; i++) {
        if (run.values[i].device != NULL) {
            dj_mem_free(run.job.runtime, run.values[i].device, NULL);
        }
        cli_value_fini(&run.values[i]);
    }
    free(run.values);
    free(run.writable);
    free(run.params);
    cli_params_fini(&run.source);
    dj_kernel_release(run.kernel);
    cli_job_fini(&run.job);
    cli_strings_fini(&options.args);
    cli_strings_fini(&options.saves);
    cli_strings_fini(&options.prints);
    cli_compile_fini(&options.compile);
    free(group);
    return status;
}
