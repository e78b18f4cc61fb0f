/* SPDX-License-Identifier: MIT */
/* deepjit build: compile a file and print where its cache entry is. Scripts rely on the output
 * being exactly that path. */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static error_t build_parse(int key, char *arg, struct argp_state *state)
{
    cli_compile_options *const options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = options;
        return 0;
    case ARGP_KEY_ARG:
        if (options->file != NULL) {
            argp_error(state, "more than one FILE");
        }
        options->file = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->file == NULL) {
            argp_error(state, "no FILE");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char build_doc[] =
    "Compiles FILE ('-': standard input), unless a cache has it already, and prints the path of "
    "its cache entry and nothing else."
    "\v"
    "Examples:\n"
    "  deepjit build scale.c\n"
    "  deepjit build --tag gemm --arch x86-64-v3 -I include --track mylib/ \\\n"
    "      --flag=-DTILE=32 gemm.c\n"
    "  objdump -d \"$(deepjit build scale.c)/kernel.so\"\n";

/* True if a dump is asked for, by option, by environment, or by `otherwise`. */
static bool build_wants(const cli_job *job, dj_option_scope scope, const char *name, dj_tri given,
                        dj_tri otherwise)
{
    const dj_option *row;
    for (size_t i = 0; given == DJ_DEFAULT && (row = dj_option_at(i)) != NULL; i++) {
        const char *const text = row->scope == scope && strcmp(row->name, name) == 0
                                     ? cli_setting(job->env_prefix, row->env, NULL)
                                     : NULL;
        dj_compile_options common = DJ_COMPILE_OPTIONS_INIT;
        dj_cuda_compile_options cuda = DJ_CUDA_COMPILE_OPTIONS_INIT;
        char *const into = scope == DJ_SCOPE_COMPILE ? (char *)&common : (char *)&cuda;
        if (text != NULL && dj_option_parse(row, text, into, NULL) == DJ_OK) {
            memcpy(&given, into + row->offset, sizeof given);
        }
    }
    return (given != DJ_DEFAULT ? given : otherwise) == DJ_ON;
}

/* Notes a dump that is wanted and not there; one that could not be made says so in the log. */
static void build_check_dump(const cli_job *job, const dj_artifact *artifact, const char *file,
                             cli_buffer *missing)
{
    char *const path = cli_format("%s/%s", dj_artifact_path(artifact), file);
    char *const reason = cli_format("no %s: ", file);
    const char *const logged = job->log.size > 0 ? strstr(job->log.data, reason) : NULL;
    if (access(path, F_OK) != 0 && logged != NULL) {
        cli_error("%.*s", (int)strcspn(logged, "\n"), logged);
    } else if (access(path, F_OK) != 0) {
        cli_buffer_printf(missing, "%s%s", missing->size > 0 ? " and " : "", file);
    }
    free(path);
    free(reason);
}

/* Dumps are not in the key: an entry that exists may lack those that are asked for. */
static void build_check_dumps(const cli_job *job, const dj_artifact *artifact)
{
    const dj_compile_options *const options = &job->options;
    const dj_cuda_compile_options *const cuda = options->cuda;
    const bool is_cuda = strcmp(dj_backend_name(dj_runtime_backend(job->runtime)), "cuda") == 0;
    const bool all = build_wants(job, DJ_SCOPE_COMPILE, "dump_asm", options->dump_asm, DJ_OFF);
    const dj_tri rest = all ? DJ_ON : DJ_OFF;
    cli_buffer missing = {0};
    if (all && !is_cuda) {
        build_check_dump(job, artifact, "kernel.s", &missing);
    }
    if (is_cuda && build_wants(job, DJ_SCOPE_CUDA_COMPILE, "dump_ptx", cuda->dump_ptx, rest)) {
        build_check_dump(job, artifact, "kernel.ptx", &missing);
    }
    if (is_cuda && build_wants(job, DJ_SCOPE_CUDA_COMPILE, "dump_sass", cuda->dump_sass, rest)) {
        build_check_dump(job, artifact, "kernel.sass", &missing);
    }
    if (missing.size > 0) {
        cli_error("no %s: this entry was made without, and dumps are written when something is "
                  "compiled; to get them, build with --cache-dir=DIR of an empty directory, or "
                  "after 'deepjit cache clear %s'",
                  missing.data, job->tag);
    }
    cli_buffer_fini(&missing);
}

static int build_finish(const cli_job *job, const dj_artifact *artifact)
{
    cli_job_show_log(job);
    if (dj_artifact_is_hit(artifact)) {
        build_check_dumps(job, artifact);
    }
    if (dj_artifact_is_private(artifact)) {
        cli_error("%s compiles, but no cache entry could be made: %s", job->tag,
                  dj_artifact_reason(artifact));
        return CLI_FAILURE;
    }
    puts(dj_artifact_path(artifact));
    return CLI_DONE;
}

static int build_file(cli_compile_options *options)
{
    cli_job job;
    dj_artifact *artifact = NULL;
    int result = cli_job_init(&job, options);
    if (result == CLI_DONE) {
        dj_error err = DJ_ERROR_INIT;
        job.options.cancel = cli_guard_begin();
        const dj_status status = dj_build(job.runtime, job.tag, job.source.data, job.source.size,
                                          &job.options, &artifact, &err);
        if (status == DJ_OK) {
            result = cli_guard_interrupted() ? CLI_FAILURE : build_finish(&job, artifact);
        } else {
            result = cli_guard_interrupted() ? CLI_FAILURE : cli_job_fail(&job, &err);
        }
        /* Still under guard: a private directory goes with its artifact. */
        dj_artifact_release(artifact);
        cli_guard_end();
        result = cli_guard_status(result);
    }
    cli_job_fini(&job);
    return result;
}

int cli_cmd_build(int argc, char **argv)
{
    cli_compile_options options;
    cli_compile_init(&options);
    struct argp *const group = cli_compile_argp();
    const struct argp_child children[] = {{group, 0, NULL, 0}, {0}};
    const struct argp argp = {
        .parser = build_parse, .args_doc = "FILE", .doc = build_doc, .children = children};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    const int status = build_file(&options);
    cli_compile_fini(&options);
    free(group);
    return status;
}
