/* SPDX-License-Identifier: MIT */
/*
 * nvcc's command line. What is not among the flags does not change the code:
 *   --keep                    fixed names for the intermediate files, which binaries with debug
 *                             information record, instead of ones with a process id
 *   -Xcicc --orig_src_path_name  what cicc hashes into the names of static functions and
 *                             variables, by default the source's absolute path, another one each
 *                             time. Not documented; an nvcc without it is called without it.
 */
#include "backend/cuda/cuda_nvcc.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/process.h"
#include <string.h>

#define NVCC_OUTPUT_LIMIT ((size_t)1 << 20)

/* Neither the source's name nor one that a source could have: it is in no message. */
static const char *const nvcc_name_options[] = {"-Xcicc", "--orig_src_path_name=deepjit"};

static dj_status nvcc_command(const dj__cuda_run *run, const char *nvcc, const char *host,
                              const char *phase, const char *output, bool named, dj__strlist *argv,
                              dj_error *err)
{
    const dj_compile_job *job = run->job;
    dj__strlist_add(argv, nvcc);
    dj__strlist_add(argv, phase);
    dj__strlist_add(argv, "--output-file");
    dj__strlist_add(argv, output);
    dj__strlist_add_all(argv, job->flags, job->num_flags);
    for (size_t i = 0; i < run->workdir->includes.count; i++) {
        dj__strlist_add(argv, "--include-path");
        dj__strlist_add(argv, run->workdir->includes.items[i]);
    }
    if (host != NULL) {
        dj__strlist_add(argv, "-ccbin");
        dj__strlist_add(argv, host);
    }
    dj__strlist_add(argv, "--keep");
    dj__strlist_add(argv, "--keep-dir");
    dj__strlist_add(argv, DJ__CUDA_TMP);
    if (named) {
        dj__strlist_add_all(argv, nvcc_name_options, 2);
    }
    dj__strlist_add(argv, job->source);
    return dj__strlist_ok(argv, err);
}

dj_status dj__cuda_tool(const dj__cuda_run *run, const char *name, const char *const *argv,
                        size_t limit, dj__strbuf *output, dj_error *err)
{
    const dj__process process = {
        .argv = argv,
        .envp = dj__strlist_items(&run->workdir->env),
        .dir = run->workdir->path,
        .timeout_ms = run->job->timeout_ms,
        .cancel = run->job->cancel,
        .output_limit = limit,
    };
    dj__process_result result;
    const dj_status status = dj__process_check(&process, output, &result, err);
    if (status == DJ_TIMEOUT) {
        char setting[256];
        dj__env_name(run->env, "JIT_COMPILE_TIMEOUT", setting);
        dj__error_prefix(err, "%s took longer than %s allows", name, setting);
    }
    return status;
}

static dj_status nvcc_try(const dj__cuda_run *run, const char *phase, const char *output,
                          bool named, dj__strbuf *log, dj_error *err)
{
    dj__strlist argv;
    dj__strlist_init(&argv);
    dj_status status =
        nvcc_command(run, run->workdir->nvcc, run->workdir->host, phase, output, named, &argv, err);
    if (status == DJ_OK) {
        status = dj__cuda_tool(run, "NVCC", dj__strlist_items(&argv), NVCC_OUTPUT_LIMIT, log, err);
    }
    dj__strlist_fini(&argv);
    return status;
}

dj_status dj__cuda_nvcc(const dj__cuda_run *run, const char *phase, const char *output,
                        dj__strbuf *command, dj__strbuf *log, dj_error *err)
{
    dj__strlist shown;
    dj__strbuf text;
    dj__strlist_init(&shown);
    dj__strbuf_init(&text, NVCC_OUTPUT_LIMIT * 2);
    /* For people: the programs by their own names instead of links. */
    dj_status status = nvcc_command(run, run->toolkit->nvcc,
                                    run->workdir->host != NULL ? run->toolkit->host : NULL, phase,
                                    output, true, &shown, err);
    if (status == DJ_OK && command != NULL) {
        dj__command_text(dj__strlist_items(&shown), command);
    }
    if (status == DJ_OK) {
        status = nvcc_try(run, phase, output, true, &text, err);
    }
    if (status == DJ_COMPILE && strstr(dj__strbuf_str(&text), "nvcc fatal") != NULL &&
        strstr(dj__strbuf_str(&text), "-Xcicc") != NULL) {
        dj__strbuf_clear(&text);
        status = nvcc_try(run, phase, output, false, &text, err);
    }
    if (log != NULL) {
        dj__strbuf_append(log, dj__strbuf_str(&text), text.size);
    }
    dj__strbuf_fini(&text);
    dj__strlist_fini(&shown);
    return status;
}

dj_status dj__cuda_keep(const dj__cuda_run *run, const char *name, const void *data, size_t size,
                        dj_error *err)
{
    const int dir = dj__open_dir(run->job->dir);
    const int error = dir < 0 ? -dir : dj__write_new_at(dir, name, data, size, 0600, false);
    if (dir >= 0) {
        dj__close(dir);
    }
    return error == 0 ? DJ_OK : dj__fail_errno(err, error, "%s/%s", run->job->dir, name);
}
