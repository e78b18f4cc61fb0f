/* SPDX-License-Identifier: MIT */
/* What the commands that compile a file share: the runtime for it, and what compilers say about it.
 */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void job_log(void *user, const char *text, size_t size)
{
    cli_buffer_append(user, text, size);
}

/* Which back end is meant: that of --backend, else of JIT_BACKEND, else, for a .cu file, CUDA. */
static const char *job_backend(cli_job *job, const cli_compile_options *options)
{
    const size_t length = strlen(options->file);
    if (options->runtime.backend == NULL &&
        cli_setting(options->runtime.env_prefix, "JIT_BACKEND", NULL) == NULL) {
        job->backend_open = length <= 3 || strcmp(options->file + length - 3, ".cu") != 0;
        return job->backend_open ? NULL : "cuda";
    }
    return options->runtime.backend;
}

static int job_open_runtime(cli_job *job, cli_compile_options *options)
{
    dj_config config = DJ_CONFIG_INIT;
    for (size_t i = 0; i < options->include_dirs.count; i++) {
        char *const dir = cli_absolute(options->include_dirs.items[i]);
        if (dir == NULL) {
            return CLI_FAILURE;
        }
        cli_strings_add(&job->include_dirs, dir);
    }
    if (options->library_root != NULL) {
        job->library_root = cli_absolute(options->library_root);
        if (job->library_root == NULL) {
            return CLI_FAILURE;
        }
    }
    config.include_dirs = job->include_dirs.items;
    config.num_include_dirs = job->include_dirs.count;
    config.include_prefixes = options->prefixes.items;
    config.num_include_prefixes = options->prefixes.count;
    config.library_root = job->library_root;
    config.extra_signature = options->signature;
    config.extra_signature_size = options->signature != NULL ? strlen(options->signature) : 0;
    cli_runtime_options runtime = options->runtime;
    runtime.backend = job_backend(job, options);
    return cli_open_runtime(&runtime, &config, &job->runtime);
}

int cli_job_init(cli_job *job, cli_compile_options *options)
{
    *job = (cli_job){.verbose = options->verbose,
                     .file = strcmp(options->file, "-") == 0 ? "<stdin>" : options->file,
                     .env_prefix = options->runtime.env_prefix};
    if (!cli_read_file(options->file, CLI_SOURCE_LIMIT, &job->source)) {
        return CLI_FAILURE;
    }
    const int status = job_open_runtime(job, options);
    if (status != CLI_DONE) {
        return status;
    }
    job->tag =
        options->tag != NULL ? cli_format("%s", options->tag) : cli_tag_from_file(options->file);
    job->options = options->options;
    job->options.flags = options->flags.items;
    job->options.num_flags = options->flags.count;
    job->options.extra_flags = options->extra_flags.items;
    job->options.num_extra_flags = options->extra_flags.count;
    job->options.on_log = job_log;
    job->options.on_log_user = &job->log;
    return CLI_DONE;
}

void cli_job_fini(cli_job *job)
{
    for (size_t i = 0; i < job->include_dirs.count; i++) {
        free((char *)(uintptr_t)job->include_dirs.items[i]);
    }
    cli_strings_fini(&job->include_dirs);
    dj_runtime_release(job->runtime);
    cli_buffer_fini(&job->source);
    cli_buffer_fini(&job->log);
    free(job->library_root);
    free(job->tag);
    *job = (cli_job){0};
}

/* ---- What compilers say ---- */

/* The length of the source's name if the compiler's line, from `at` on, begins with it. */
static size_t job_name_at(const char *at, size_t size)
{
    static const char *const names[] = {"kernel.cu", "kernel.c", "<source>"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t length = strlen(names[i]);
        if (size > length && memcmp(at, names[i], length) == 0 &&
            (at[length] == ':' || at[length] == '(')) {
            return length;
        }
    }
    return 0;
}

/* Appends text of a compiler, which sees the source under a name of ours, with the user's name. */
static void job_rename(const cli_job *job, const char *text, size_t size, cli_buffer *out)
{
    static const char *const before[] = {"In file included from ", "                 from "};
    for (size_t at = 0; at < size;) {
        const char *const newline = memchr(text + at, '\n', size - at);
        const size_t end = newline != NULL ? (size_t)(newline - text) + 1 : size;
        size_t lead = 0;
        for (size_t i = 0; i < 2; i++) {
            const size_t length = strlen(before[i]);
            if (end - at > length && memcmp(text + at, before[i], length) == 0) {
                lead = length;
            }
        }
        const size_t name = job_name_at(text + at + lead, end - at - lead);
        cli_buffer_append(out, text + at, lead);
        if (name > 0) {
            cli_buffer_append(out, job->file, strlen(job->file));
        }
        cli_buffer_append(out, text + at + lead + name, end - at - lead - name);
        at = end;
    }
}

static void job_put_log(const cli_job *job)
{
    cli_buffer text = {0};
    job_rename(job, job->log.data, job->log.size, &text);
    fwrite(text.data, 1, text.size, stderr);
    cli_buffer_fini(&text);
}

void cli_job_show_log(const cli_job *job)
{
    if (job->verbose && job->log.size > 0) {
        job_put_log(job);
    }
}

/* How much of a message that was cut says what the compiler's output does not: the first error,
 * the command and its exit code. */
static size_t job_message_head(const char *message)
{
    const char *const failed = strstr(message, "command failed with exit code ");
    if (failed == NULL || (failed != message && failed[-1] != '\n')) {
        return strcspn(message, "\n");
    }
    const size_t line = (size_t)(failed - message) + strcspn(failed, "\n");
    return message[line] == '\0' ? line : line + 1 + strcspn(message + line + 1, "\n");
}

/* Whoever named no back end may not know that there was a choice. */
static void job_explain_choice(const cli_job *job)
{
    const dj_backend *const used = dj_runtime_backend(job->runtime);
    const dj_backend *other;
    for (size_t i = 0; job->backend_open && (other = dj_backend_at(i)) != NULL && other != used;
         i++) {
        dj_config config = DJ_CONFIG_INIT;
        config.env_prefix = job->env_prefix;
        dj_runtime *runtime = NULL;
        dj_device device = DJ_DEVICE_INIT;
        dj_error err = DJ_ERROR_INIT;
        if (dj_runtime_create(other, &config, &runtime, &err) == DJ_OK &&
            dj_device_info(runtime, &device, &err) != DJ_OK) {
            cli_error("compiled for the %s because %s is not available (%.*s); to compile for it "
                      "all the same, use --backend %s",
                      dj_backend_name(used), dj_backend_name(other),
                      (int)strcspn(err.message, "\n"), err.message, dj_backend_name(other));
        }
        dj_runtime_release(runtime);
    }
}

static bool job_is_bad_arch(const cli_job *job, const dj_error *err)
{
    return err->status == DJ_INVALID_ARGUMENT && job->options.arch != NULL &&
           (strncmp(err->message, "invalid arch", 12) == 0 ||
            strncmp(err->message, "CUDA architecture", 17) == 0);
}

int cli_job_fail(const cli_job *job, const dj_error *err)
{
    if (err->status != DJ_COMPILE) {
        const int status = cli_fail(err);
        return job_is_bad_arch(job, err) ? CLI_USAGE : status;
    }
    size_t length = strlen(err->message);
    const bool cut = length >= 3 && strcmp(err->message + length - 3, "...") == 0;
    length = cut ? job_message_head(err->message) : length;
    while (length > 0 && err->message[length - 1] == '\n') {
        length--;
    }
    cli_buffer text = {0};
    job_rename(job, err->message, length, &text);
    cli_error("%s", text.size > 0 ? text.data : dj_status_text(DJ_COMPILE));
    cli_buffer_fini(&text);
    if (cut) {
        fputs("the compiler's whole output:\n", stderr);
        job_put_log(job);
    }
    job_explain_choice(job);
    return CLI_COMPILE;
}
