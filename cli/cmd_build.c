/* SPDX-License-Identifier: MIT */
/* deepjit build: compile a file and print where its cache entry is. Scripts rely on the output
 * being exactly that path. */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>

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

static int build_finish(const cli_job *job, const dj_artifact *artifact)
{
    cli_job_show_log(job);
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
