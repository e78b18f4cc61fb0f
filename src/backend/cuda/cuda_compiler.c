/* SPDX-License-Identifier: MIT */
/*
 * The CUDA compiler: nvcc, from CUDA C++ to one cubin.
 *
 *   cuda_toolkit.c  which nvcc and host compiler     cuda_flags.c    which flags, in which order
 *   cuda_sites.c    toolkits that pip installed      cuda_rules.c    which flags are refused
 *   cuda_parts.c    their files and version          cuda_options.c  what nvcc's options do
 *   cuda_nvcc.c     running it                       cuda_words.c    what other tools' do
 *   cuda_dump.c     PTX and SASS                     cuda_workdir.c  where nvcc may work
 */
#include "backend/cuda/cubin.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_flags.h"
#include "backend/cuda/cuda_nvcc.h"
#include "backend/cuda/cuda_report.h"
#include "backend/tool_env.h"
#include "base/error.h"
#include "base/fs.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define NVCC_BINARY_LIMIT ((size_t)1 << 30)

struct dj_compiler {
    const dj__env *env;
    /* and found good; the snapshot does not change. [1]: also by a check that reads warnings */
    _Atomic bool env_checked[2];
};

/* What nvcc, cicc, ptxas and the preprocessor read and that changes the result. NVCC_CCBIN is not
 * among them: it chooses the host compiler, whose content is part of the toolchain's identity and
 * which is passed as -ccbin. C_INCLUDE_PATH is not read for C++. */
static const char *const nvcc_keyed_env[] = {
    "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS",
    /* nvcc.profile appends to them */
    "INCLUDES", "SYSTEM_INCLUDES", "CUDAFE_FLAGS", "PTXAS_FLAGS", "NVVM_FLAGS", "OCG_FLAGS",
    /* cicc */
    "NV_NVVM_VERSION",
    /* gcc and clang */
    "CPATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "SOURCE_DATE_EPOCH", NULL};

static dj_status nvcc_open(const dj_backend_context *context, dj_compiler **out, dj_error *err)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL) {
        return dj__fail_memory(err);
    }
    (*out)->env = context->env;
    atomic_init(&(*out)->env_checked[0], false);
    atomic_init(&(*out)->env_checked[1], false);
    return DJ_OK;
}

static void nvcc_close(dj_compiler *compiler)
{
    free(compiler);
}

/* ---- options ---- */

static void nvcc_complete(const dj_compile_options *common, void *vendor)
{
    dj_cuda_compile_options *cuda = vendor;
    dj_tri *const switches[] = {&cuda->ptxas_verbose, &cuda->check_no_spills,
                                &cuda->check_no_local_memory, &cuda->with_line_info};
    dj_tri *const dumps[] = {&cuda->dump_ptx, &cuda->dump_sass};
    if (cuda->cpp_standard == NULL) {
        cuda->cpp_standard = "20";
    }
    if (cuda->ptxas_register_usage_level == NULL) {
        cuda->ptxas_register_usage_level = "10";
    }
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        *switches[i] = *switches[i] == DJ_DEFAULT ? DJ_OFF : *switches[i];
    }
    for (size_t i = 0; i < sizeof dumps / sizeof dumps[0]; i++) {
        if (*dumps[i] == DJ_DEFAULT) {
            *dumps[i] = common->dump_asm == DJ_ON ? DJ_ON : DJ_OFF;
        }
    }
}

static bool nvcc_names_source(const dj_compile_options *options)
{
    return options->debug_info == DJ_ON || options->cuda->with_line_info == DJ_ON ||
           dj__cuda_flags_have_lines(options->flags, options->num_flags) ||
           dj__cuda_flags_have_lines(options->extra_flags, options->num_extra_flags);
}

/* What nvcc reads from its environment goes through its shell like any flag. */
static dj_status nvcc_check_env(dj_compiler *compiler, const char *loud, dj_error *err)
{
    _Atomic bool *checked = &compiler->env_checked[loud != NULL];
    if (atomic_load_explicit(checked, memory_order_relaxed)) {
        return DJ_OK;
    }
    dj__strlist env;
    dj__strlist_init(&env);
    dj_status status = dj__tool_env_keyed(compiler->env, nvcc_keyed_env, &env, err);
    if (status == DJ_OK) {
        status = dj__cuda_check_env(&env, loud, err);
    }
    dj__strlist_fini(&env);
    atomic_store_explicit(checked, status == DJ_OK, memory_order_relaxed);
    return status;
}

static dj_status nvcc_flags(dj_compiler *compiler, const dj_compile_options *options,
                            const char *arch, dj__strlist *out, dj_error *err)
{
    const dj_status status = nvcc_check_env(compiler, dj__cuda_flags_loud(options->cuda), err);
    return status == DJ_OK
               ? dj__cuda_flags(options, arch, dj__cuda_host_is_clang(compiler->env), out, err)
               : status;
}

/* ---- identity ---- */

/* The host compiler counts as a program, too: so a recorded identity holds only for the one that
 * would be found now. */
static dj_status nvcc_locate(dj_compiler *compiler, dj__strlist *programs, dj_error *err)
{
    dj__cuda_toolkit toolkit;
    dj_status status = dj__cuda_toolkit_find(compiler->env, &toolkit, err);
    if (status == DJ_OK) {
        dj__strlist_add(programs, toolkit.nvcc);
        dj__strlist_add(programs, toolkit.host);
        status = dj__strlist_ok(programs, err);
        dj__cuda_toolkit_fini(&toolkit);
    }
    return status;
}

static dj_status nvcc_describe(dj_compiler *compiler, dj__strlist *files, dj__strbuf *version,
                               dj_error *err)
{
    dj__cuda_toolkit toolkit;
    dj_status status = nvcc_check_env(compiler, NULL, err);
    if (status == DJ_OK) {
        status = dj__cuda_toolkit_find(compiler->env, &toolkit, err);
    }
    if (status == DJ_OK) {
        status =
            dj__cuda_toolkit_describe(compiler->env, nvcc_keyed_env, &toolkit, files, version, err);
        dj__cuda_toolkit_fini(&toolkit);
    }
    return status;
}

/* ---- checks of what nvcc made and said ---- */

/* Other flags, or a wrapper of nvcc, may have chosen another architecture. A suffix
 * that the cubin does not tell is not missed: in new ones no field of the header has it. */
static dj_status nvcc_check_arch(const dj__cubin *cubin, const char *wanted, dj_error *fault)
{
    const char *suffix = wanted + strspn(wanted, "0123456789");
    const char *has = cubin->info.arch + strspn(cubin->info.arch, "0123456789");
    const bool same =
        strtol(wanted, NULL, 10) == cubin->sm && (*has == '\0' || strcmp(suffix, has) == 0);
    return same ? DJ_OK
                : dj__fail(fault, DJ_INVALID_ARGUMENT,
                           "it is for architecture %s, but %s was asked for", cubin->info.arch,
                           wanted);
}

/* The value of the flag that nvcc_flags begins with. */
static const char *nvcc_wanted_arch(const dj_compile_job *job)
{
    static const char name[] = "--gpu-architecture=sm_";
    for (size_t i = 0; i < job->num_flags; i++) {
        if (strncmp(job->flags[i], name, sizeof name - 1) == 0) {
            return job->flags[i] + sizeof name - 1;
        }
    }
    return NULL;
}

/* OK if the bytes are a cubin that can be loaded, whole and with any number of kernels. */
static dj_status nvcc_check_binary(const dj_compile_job *job, const char *data, size_t size,
                                   dj_error *fault)
{
    const char *wanted = nvcc_wanted_arch(job);
    dj__cubin cubin;
    dj_status status = dj__cubin_read(data, size, &cubin, fault);
    if (status != DJ_OK) {
        return status;
    }
    if (wanted != NULL) {
        status = nvcc_check_arch(&cubin, wanted, fault);
    }
    if (status == DJ_OK && cubin.relocatable) {
        status = dj__fail(fault, DJ_INVALID_ARGUMENT,
                          "it is relocatable code, which would have to be linked");
    }
    dj__cubin_fini(&cubin);
    return status;
}

/* `text` with any number of blanks for each of its own, in any case. */
static bool nvcc_matches(const char *line, size_t size, const char *text)
{
    for (size_t start = 0; start < size; start++) {
        size_t at = start;
        const char *want = text;
        while (*want != '\0' && at < size) {
            if (*want == ' ' && (line[at] == ' ' || line[at] == '\t')) {
                at += strspn(line + at, " \t");
            } else if (*want != ' ' && (line[at] | 0x20) == *want) {
                at++;
            } else {
                break;
            }
            want++;
        }
        if (*want == '\0' && at <= size) {
            return true;
        }
    }
    return false;
}

/* The first line of ptxas that says so; NULL if there is none. Sources can make nvcc print any
 * text, but not at the start of a line with this name. */
static const char *nvcc_find_report(const char *log, const char *text, size_t *size)
{
    for (const char *line = log; *line != '\0';) {
        *size = strcspn(line, "\r\n");
        if (strncmp(line, "ptxas", 5) == 0 && nvcc_matches(line, *size, text)) {
            return line;
        }
        line += *size + (line[*size] != '\0');
    }
    return NULL;
}

static dj_status nvcc_check_report(const dj_compile_job *job, const char *log, dj_error *err)
{
    const dj_cuda_compile_options *cuda = job->options->cuda;
    const struct {
        dj_tri wanted;
        const char *text;
        const char *what;
    } checks[] = {
        {cuda->check_no_spills, "spilled to local memory", "register spills"},
        {cuda->check_no_local_memory, "local memory used", "local memory usage"},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        size_t size = 0;
        const char *line =
            checks[i].wanted == DJ_ON ? nvcc_find_report(log, checks[i].text, &size) : NULL;
        if (line != NULL) {
            return dj__fail(err, DJ_COMPILE, "%s: %.*s", checks[i].what,
                            size > 400 ? 400 : (int)size, line);
        }
    }
    return DJ_OK;
}

static dj_status nvcc_take_binary(const dj__cuda_run *run, const char *log, dj_error *err)
{
    char *data = NULL;
    size_t size = 0;
    const int error =
        dj__read_at(run->workdir->fd, DJ__CUDA_BINARY, NVCC_BINARY_LIMIT, &data, &size);
    dj_error fault = DJ_ERROR_INIT;
    dj_status status = error == 0
                           ? nvcc_check_binary(run->job, data, size, &fault)
                           : dj__fail_errno(&fault, error, "it reported success, but left no file");
    if (status == DJ_NO_MEMORY) {
        status = dj__fail_memory(err);
    } else if (status != DJ_OK) {
        status = dj__fail(err, DJ_COMPILE, "NVCC did not produce a valid CUBIN: %s: %s\n%s\n%s",
                          DJ__CUDA_BINARY, fault.message, dj__strbuf_str(run->job->command), log);
    }
    if (status == DJ_OK) {
        status = nvcc_check_report(run->job, log, err);
    }
    if (status == DJ_OK) {
        status = dj__cuda_dump(run, err);
    }
    if (status == DJ_OK) {
        status = dj__cuda_keep(run, DJ__CUDA_BINARY, data, size, err);
    }
    free(data);
    return status;
}

/* ---- compiling ---- */

static dj_status nvcc_run(const dj__cuda_run *run, dj_error *err)
{
    const size_t start = run->job->log->size;
    dj_status status = dj__cuda_dump_check(run, err);
    if (status == DJ_OK) {
        status =
            dj__cuda_nvcc(run, "--cubin", DJ__CUDA_BINARY, run->job->command, run->job->log, err);
    }
    if (status == DJ_OK) {
        status = dj__strbuf_ok(run->job->log, err);
    }
    if (status == DJ_OK) {
        /* A copy: the dumps append to the log. */
        char *log = strdup(dj__strbuf_str(run->job->log) + start);
        status = log != NULL ? nvcc_take_binary(run, log, err) : dj__fail_memory(err);
        free(log);
    }
    return status;
}

static dj_status nvcc_compile(dj_compiler *compiler, const dj_compile_job *job, dj_error *err)
{
    dj__cuda_toolkit toolkit;
    dj__cuda_workdir workdir;
    dj_status status = nvcc_check_env(compiler, dj__cuda_flags_loud(job->options->cuda), err);
    if (status == DJ_OK) {
        status = dj__cuda_check_shell(job->flags, job->num_flags, err);
    }
    if (status == DJ_OK) {
        status = dj__cuda_toolkit_find(compiler->env, &toolkit, err);
    }
    if (status != DJ_OK) {
        return status;
    }
    status = dj__cuda_workdir_open(compiler->env, nvcc_keyed_env, &toolkit, job, &workdir, err);
    if (status == DJ_OK) {
        const dj__cuda_run run = {compiler->env, &toolkit, &workdir, job};
        status = nvcc_run(&run, err);
        dj__cuda_workdir_close(&workdir);
    }
    dj__cuda_toolkit_fini(&toolkit);
    return status;
}

/* ---- reading binaries ---- */

static dj_status nvcc_inspect(const dj_binary *binary, dj_inspect_fn visit, void *user,
                              dj_error *err)
{
    dj__cubin cubin;
    const dj_status status = dj__cubin_read(binary->data, binary->size, &cubin, err);
    if (status == DJ_OK) {
        visit(user, &cubin.info);
        dj__cubin_fini(&cubin);
    }
    return status;
}

static void nvcc_report(dj_compiler *compiler, dj_report_fn visit, void *user)
{
    dj__cuda_report_toolkit(compiler->env, visit, user);
}

/* -fconcepts is left out for clang, see cuda_flags.c. */
static const char *const nvcc_default_flags[] = {
    "--compiler-options=-fPIC",
    "--compiler-options=-fconcepts",
    "--expt-relaxed-constexpr",
    "--expt-extended-lambda",
    NULL,
};

const dj_compiler_ops dj__cuda_compiler_ops = {
    .size = sizeof(dj_compiler_ops),
    .source_name = DJ__CUDA_SOURCE,
    .binary_name = DJ__CUDA_BINARY,
    .default_flags = nvcc_default_flags,
    .default_optimize_level = "3",
    .keyed_env = nvcc_keyed_env,
    .vendor_scope = DJ_SCOPE_CUDA_COMPILE,
    .complete = nvcc_complete,
    .names_source = nvcc_names_source,
    .open = nvcc_open,
    .close = nvcc_close,
    .locate = nvcc_locate,
    .describe = nvcc_describe,
    .flags = nvcc_flags,
    .compile = nvcc_compile,
    .inspect = nvcc_inspect,
    .report = nvcc_report,
};
