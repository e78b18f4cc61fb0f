/* SPDX-License-Identifier: MIT */
/* deepjit inspect: the kernels of a binary, read without device and without loading it. */
#include "cli.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INSPECT_LIMIT ((size_t)1 << 30)

/* How back ends call the binaries in their entries; other files are told by their suffix. */
static const struct {
    const char *binary, *suffix, *backend;
} inspect_names[] = {{"kernel.cubin", ".cubin", "cuda"}, {"kernel.so", ".so", "host"}};
enum { INSPECT_NAMES = sizeof inspect_names / sizeof inspect_names[0] };

typedef struct inspect_options {
    cli_runtime_options runtime;
    cli_strings targets;
    bool json;
} inspect_options;

static const struct argp_option inspect_argp_options[] = {
    {"json", 'j', NULL, 0, "JSON instead of text", 0},
    {0},
};

static error_t inspect_parse(int key, char *arg, struct argp_state *state)
{
    inspect_options *const options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->runtime;
        return 0;
    case 'j':
        options->json = true;
        return 0;
    case ARGP_KEY_ARG:
        cli_strings_add(&options->targets, arg);
        return 0;
    case ARGP_KEY_END:
        if (options->targets.count == 0) {
            argp_error(state, "no ENTRY or FILE");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char inspect_doc[] =
    "Shows the kernels of binaries: registers, memory, limits and parameters, read from the "
    "binary itself without device and driver. ENTRY is a cache entry, given by its path, its name "
    "or the beginning of its name or digest; FILE is a binary, '-' standard input."
    "\v"
    "The back end is the entry's, or the one that the file's name tells; --backend\n"
    "names it for other files. Binaries of the host back end hold nothing to show.\n"
    "\n"
    "Examples:\n"
    "  deepjit inspect gemm.3f9a\n"
    "  deepjit inspect --json \"$(deepjit build --backend=cuda gemm.cu)\"\n"
    "  deepjit inspect build/*.cubin\n";

/* ---- What is meant ---- */

/* A binary to read, and who made it. */
typedef struct inspect_target {
    char *path;
    const dj_backend *backend;
} inspect_target;

static const char *backend_of_file(const char *path)
{
    const size_t length = strlen(path);
    for (size_t i = 0; i < INSPECT_NAMES; i++) {
        const size_t suffix = strlen(inspect_names[i].suffix);
        if (length > suffix && strcmp(path + length - suffix, inspect_names[i].suffix) == 0) {
            return inspect_names[i].backend;
        }
    }
    return NULL;
}

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Sets the target to the binary in an entry's directory. */
static int find_binary(const char *directory, inspect_target *target)
{
    for (size_t i = 0; i < INSPECT_NAMES; i++) {
        char *const path = cli_format("%s/%s", directory, inspect_names[i].binary);
        if (is_file(path)) {
            target->path = path;
            return CLI_DONE;
        }
        free(path);
    }
    cli_error("%s holds no binary; looked for kernel.cubin and kernel.so", directory);
    return CLI_FAILURE;
}

static int find_in_cache(const inspect_options *options, const char *name, inspect_target *target)
{
    cli_runtime_options where = options->runtime;
    where.backend = NULL; /* the roots are the same for all */
    dj_runtime *runtime = NULL;
    cli_entry entry = {0};
    int status = cli_open_runtime(&where, NULL, &runtime);
    if (status == CLI_DONE) {
        status = cli_find_entry(runtime, name, &entry);
    }
    if (status == CLI_DONE) {
        status = find_binary(entry.path, target);
    }
    cli_entry_fini(&entry);
    dj_runtime_release(runtime);
    return status;
}

static int find_target(const inspect_options *options, const char *name, inspect_target *target)
{
    struct stat info;
    int status = CLI_DONE;
    *target = (inspect_target){.path = NULL};
    if (strcmp(name, "-") == 0) {
        target->path = cli_format("-");
    } else if (stat(name, &info) != 0) {
        if (strchr(name, '/') != NULL || backend_of_file(name) != NULL) {
            cli_error("cannot open %s: %s", name, strerror(errno));
            return CLI_FAILURE;
        }
        status = find_in_cache(options, name, target);
    } else if (S_ISDIR(info.st_mode)) {
        status = find_binary(name, target);
    } else {
        target->path = cli_format("%s", name);
    }
    if (status != CLI_DONE) {
        return status;
    }
    const char *backend = options->runtime.backend;
    if (backend == NULL) {
        backend = backend_of_file(target->path);
    }
    if (backend == NULL) {
        cli_error("the name of %s does not tell which back end made it; name it with --backend",
                  strcmp(name, "-") == 0 ? "standard input" : name);
        return CLI_FAILURE;
    }
    return cli_find_backend(backend, &target->backend);
}

/* ---- Text ---- */

/* Names come from the binary; what could steer a terminal is shown as \xNN. */
static void put_name(const char *name)
{
    const bool plain = cli_is_plain_text(name, strlen(name));
    for (const char *at = name; *at != '\0'; at++) {
        const unsigned char byte = (unsigned char)*at;
        if (byte < 0x20 || byte == 0x7f || (!plain && byte >= 0x80)) {
            printf("\\x%02x", byte);
        } else {
            putchar(byte);
        }
    }
}

static void put_number(const char *what, int64_t value, const char *unit)
{
    if (value < 0) {
        printf("  %-13s unknown\n", what);
    } else {
        printf("  %-13s %" PRId64 " %s\n", what, value, unit);
    }
}

static void put_params(const dj_kernel_info *kernel)
{
    if (kernel->num_params == 0) {
        printf("  %-13s none\n", "parameters");
        return;
    }
    printf("  parameter     offset    size   align\n");
    for (size_t i = 0; i < kernel->num_params; i++) {
        const dj_param_info *const param = &kernel->params[i];
        printf("  %9zu %10u %7u %7u", i, param->offset, param->size, param->align);
        if (param->type[0] != '\0') {
            printf("  ");
            put_name(param->type);
        }
        if (param->name[0] != '\0') {
            printf("  ");
            put_name(param->name);
        }
        putchar('\n');
    }
}

static void put_kernel(const dj_kernel_info *kernel)
{
    const uint32_t *const cluster = kernel->cluster;
    printf("kernel ");
    put_name(kernel->name);
    putchar('\n');
    put_number("registers", kernel->registers, "per thread");
    put_number("shared memory", kernel->shared_bytes, "bytes per block, static");
    put_number("local memory", kernel->local_bytes, "bytes per thread");
    if (kernel->max_threads != 0) {
        put_number("block", kernel->max_threads, "threads at most");
    }
    if (cluster[0] != 0) {
        printf("  %-13s %u x %u x %u blocks\n", "cluster", cluster[0], cluster[1], cluster[2]);
    }
    put_params(kernel);
}

/* ---- JSON ---- */

static json_t *number_json(int64_t value)
{
    return value < 0 ? json_null() : json_integer((json_int_t)value);
}

static json_t *params_json(const dj_kernel_info *kernel)
{
    json_t *const array = json_array();
    for (size_t i = 0; i < kernel->num_params; i++) {
        const dj_param_info *const param = &kernel->params[i];
        json_t *const object = json_object();
        cli_json_set(object, "name", cli_json_text(param->name));
        cli_json_set(object, "type", cli_json_text(param->type));
        cli_json_set(object, "offset", json_integer((json_int_t)param->offset));
        cli_json_set(object, "size", json_integer((json_int_t)param->size));
        cli_json_set(object, "align", json_integer((json_int_t)param->align));
        cli_json_append(array, object);
    }
    return array;
}

static json_t *kernel_json(const dj_kernel_info *kernel)
{
    json_t *const object = json_object();
    json_t *cluster = json_null();
    if (kernel->cluster[0] != 0) {
        cluster = json_array();
        for (size_t i = 0; i < 3; i++) {
            cli_json_append(cluster, json_integer((json_int_t)kernel->cluster[i]));
        }
    }
    cli_json_set(object, "name", cli_json_text(kernel->name));
    cli_json_set(object, "registers", number_json(kernel->registers));
    cli_json_set(object, "shared_bytes", number_json(kernel->shared_bytes));
    cli_json_set(object, "local_bytes", number_json(kernel->local_bytes));
    cli_json_set(object, "max_threads",
                 number_json(kernel->max_threads != 0 ? kernel->max_threads : -1));
    cli_json_set(object, "cluster", cluster);
    cli_json_set(object, "params", params_json(kernel));
    return object;
}

/* ---- The command ---- */

typedef struct inspect_output {
    const inspect_target *target;
    json_t *array; /* NULL: text */
    bool follows;  /* another one was printed */
} inspect_output;

static void inspect_visit(void *user, const dj_binary_info *info)
{
    inspect_output *const output = user;
    const char *const backend = dj_backend_name(output->target->backend);
    if (output->array == NULL) {
        printf("%s%s\n  %s, architecture %s, %zu kernel%s\n", output->follows ? "\n" : "",
               output->target->path, backend, info->arch, info->num_kernels,
               info->num_kernels == 1 ? "" : "s");
        for (size_t i = 0; i < info->num_kernels; i++) {
            put_kernel(&info->kernels[i]);
        }
        output->follows = true;
        return;
    }
    json_t *const object = json_object();
    json_t *const kernels = json_array();
    cli_json_set(object, "path", cli_json_text(output->target->path));
    cli_json_set(object, "backend", cli_json_text(backend));
    cli_json_set(object, "arch", cli_json_text(info->arch));
    for (size_t i = 0; i < info->num_kernels; i++) {
        cli_json_append(kernels, kernel_json(&info->kernels[i]));
    }
    cli_json_set(object, "kernels", kernels);
    cli_json_append(output->array, object);
}

static int inspect_one(const inspect_options *options, const char *name, inspect_output *output)
{
    inspect_target target;
    cli_buffer binary = {0};
    dj_error err = DJ_ERROR_INIT;
    int status = find_target(options, name, &target);
    if (status == CLI_DONE && !cli_read_file(target.path, INSPECT_LIMIT, &binary)) {
        status = CLI_FAILURE;
    }
    output->target = &target;
    if (status == CLI_DONE && dj_inspect(target.backend, binary.data, binary.size, inspect_visit,
                                         output, &err) != DJ_OK) {
        char *const message = cli_format(
            "%s: %s", strcmp(target.path, "-") == 0 ? "standard input" : target.path, err.message);
        (void)snprintf(err.message, sizeof err.message, "%s", message);
        free(message);
        status = cli_fail(&err);
    }
    cli_buffer_fini(&binary);
    free(target.path);
    return status;
}

int cli_cmd_inspect(int argc, char **argv)
{
    inspect_options options = {.json = false};
    static const struct argp_child children[] = {{&cli_runtime_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {.options = inspect_argp_options,
                                     .parser = inspect_parse,
                                     .args_doc = "ENTRY|FILE...",
                                     .doc = inspect_doc,
                                     .children = children};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    inspect_output output = {.array = options.json ? json_array() : NULL};
    int result = CLI_DONE;
    for (size_t i = 0; i < options.targets.count; i++) {
        const int status = inspect_one(&options, options.targets.items[i], &output);
        result = result == CLI_DONE ? status : result;
    }
    if (options.json) {
        cli_json_print(output.array);
    }
    cli_strings_fini(&options.targets);
    return result;
}
