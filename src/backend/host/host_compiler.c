/* SPDX-License-Identifier: MIT */
/*
 * The host compiler: the system's C compiler, gcc or clang or a wrapper of one, run with the
 * environment of tool_env.h. It is called by the name it was found under, since some compilers
 * behave by name; what identifies it are the contents of the real files behind.
 */
#include "backend/cc_parts.h"
#include "backend/host/host_backend.h"
#include "backend/tool_env.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/process.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define COMPILER_SOURCE "kernel.c"
#define COMPILER_BINARY "kernel.so"
#define COMPILER_ASSEMBLY "kernel.s"
#define COMPILER_OUTPUT_LIMIT ((size_t)1 << 20)
#define COMPILER_MAX_LEVEL 8 /* characters after -O */

struct dj_compiler {
    const dj__env *env;
    char machine[sizeof(((struct utsname *)NULL)->machine)];
};

/* Read by gcc, clang, their preprocessors and linkers. */
static const char *const compiler_keyed_env[] = {
    "CPATH",        "C_INCLUDE_PATH",  "COMPILER_PATH",
    "LIBRARY_PATH", "GCC_EXEC_PREFIX", "SOURCE_DATE_EPOCH",
    NULL,
};

static dj_status compiler_open(const dj_backend_context *context, dj_compiler **out, dj_error *err)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL) {
        return dj__fail_memory(err);
    }
    struct utsname machine;
    (*out)->env = context->env;
    if (uname(&machine) == 0) {
        memcpy((*out)->machine, machine.machine, sizeof(*out)->machine);
    }
    return DJ_OK;
}

static void compiler_close(dj_compiler *compiler)
{
    free(compiler);
}

/* ---- which compiler ---- */

/* The program the settings name; `source` gets who named it. */
static const char *compiler_choice(const dj_compiler *compiler, char source[256])
{
    const char *program = dj__env_setting(compiler->env, "JIT_HOST_COMPILER", source);
    if (program == NULL || program[0] == '\0') {
        program = dj__env_raw(compiler->env, "CC");
        memcpy(source, "CC", sizeof "CC");
    }
    if (program == NULL || program[0] == '\0') {
        program = "cc";
        memcpy(source, "default", sizeof "default");
    }
    return program;
}

static dj_status compiler_find(const dj_compiler *compiler, char **out, dj_error *err)
{
    char source[256];
    char setting[256];
    const char *program = compiler_choice(compiler, source);
    const char *path = dj__env_raw(compiler->env, "PATH");
    const bool has_slash = strchr(program, '/') != NULL;
    *out = NULL;
    if (has_slash && program[0] != '/') {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid value for %s: %s (expected an absolute path, or a name without "
                        "'/' that is looked up on PATH)",
                        source, program);
    }
    *out = dj__find_program(program, path);
    if (*out != NULL) {
        return DJ_OK;
    }
    dj__env_name(compiler->env, "JIT_HOST_COMPILER", setting);
    if (has_slash) {
        return dj__fail(err, DJ_UNAVAILABLE,
                        "no C compiler: %s (from %s) is not an executable file; set %s to a C "
                        "compiler",
                        program, source, setting);
    }
    return dj__fail(err, DJ_UNAVAILABLE,
                    "no C compiler: found no program '%s' (from %s) in PATH (%s); install one, or "
                    "set %s to a C compiler's name or absolute path, without arguments",
                    program, source, path != NULL ? path : "not set", setting);
}

static dj_status compiler_locate(dj_compiler *compiler, dj__strlist *programs, dj_error *err)
{
    char *program = NULL;
    dj_status status = compiler_find(compiler, &program, err);
    if (status == DJ_OK) {
        dj__strlist_add(programs, program);
        status = dj__strlist_ok(programs, err);
    }
    free(program);
    return status;
}

/* ---- what it consists of ---- */

/* The compiler itself, under its real name. */
static dj_status compiler_add_real(const char *path, dj__strlist *files, dj_error *err)
{
    char *real = realpath(path, NULL);
    if (real == NULL) {
        return dj__fail_errno(err, errno, "cannot resolve %s", path);
    }
    dj__strlist_add(files, real);
    free(real);
    return dj__strlist_ok(files, err);
}

static dj_status compiler_describe(dj_compiler *compiler, dj__strlist *files, dj__strbuf *version,
                                   dj_error *err)
{
    static const char *const helpers[] = {"as", "ld"};
    char *program = NULL;
    dj__strbuf output;
    dj__strbuf_init(&output, COMPILER_OUTPUT_LIMIT);
    dj_status status = compiler_find(compiler, &program, err);
    const dj__cc cc = {compiler->env, compiler_keyed_env, program};
    if (status == DJ_OK) {
        status = compiler_add_real(program, files, err);
    }
    if (status == DJ_OK) {
        status = dj__cc_add_generator(&cc, "cc1", files, err);
    }
    for (size_t i = 0; i < 2 && status == DJ_OK; i++) {
        char *part = NULL;
        status = dj__cc_part(&cc, helpers[i], true, &part, err);
        if (status == DJ_OK && part != NULL) {
            status = dj__add_tool_file(part, files, err);
        }
        free(part);
    }
    if (status == DJ_OK) {
        status = dj__tool_query(&cc, "--version", NULL, NULL, &output, err);
    }
    if (status == DJ_OK) {
        const char *text = dj__strbuf_str(&output);
        dj__strbuf_append(version, text, strcspn(text, "\n"));
        status = dj__strbuf_ok(version, err);
    }
    dj__strbuf_fini(&output);
    free(program);
    return status;
}

/* ---- flags ---- */

/* "=native" as a whole word, whatever option but a definition it is given to. */
static bool compiler_is_native(const char *flag)
{
    if (strncmp(flag, "-D", 2) == 0) {
        return false;
    }
    for (const char *at = strstr(flag, "=native"); at != NULL; at = strstr(at + 1, "=native")) {
        const char after = at[strlen("=native")];
        if (after == '\0' || after == '+' || after == ',') {
            return true;
        }
    }
    return false;
}

/* Files of flags, for the driver or one of its tools. */
static bool compiler_is_flag_file(const char *flag)
{
    return flag[0] == '@' || strstr(flag, ",@") != NULL || strncmp(flag, "-specs", 6) == 0 ||
           strncmp(flag, "--specs", 7) == 0;
}

/* Refuses flags that mean something that the key cannot see. */
static dj_status compiler_check_flags(const dj__strlist *flags, dj_error *err)
{
    for (size_t i = 0; i < flags->count; i++) {
        const char *flag = flags->items[i];
        if (compiler_is_native(flag)) {
            return dj__fail(err, DJ_INVALID_ARGUMENT,
                            "compiler flag %s: native names another processor on every machine, "
                            "so its binaries cannot be shared; name the architecture, for "
                            "example x86-64-v3",
                            flag);
        }
        if (compiler_is_flag_file(flag)) {
            return dj__fail(err, DJ_INVALID_ARGUMENT,
                            "compiler flag %s: files of flags are not part of the key; give the "
                            "flags themselves",
                            flag);
        }
    }
    return DJ_OK;
}

static dj_status compiler_flags(dj_compiler *compiler, const dj_compile_options *options,
                                const char *arch, dj__strlist *out, dj_error *err)
{
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-";
    const char *level = options->optimize_level;
    const size_t level_size = strlen(level);
    if (level_size > COMPILER_MAX_LEVEL || level_size == 0 || level[strspn(level, lower)] != '\0') {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid optimize_level: %s (expected what follows -O: 0, 1, 2, 3, s, g, "
                        "fast)",
                        level);
    }
    if (arch[0] == '\0' || arch[strspn(arch, word)] != '\0') {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "invalid arch: %s (expected what follows -march=, such as x86-64-v3 or "
                        "armv8-a+sve)",
                        arch);
    }
    dj__strlist_addf(out, "-O%s", level);
    if (options->debug_info == DJ_ON) {
        dj__strlist_add(out, "-g");
    }
    if (options->fast_math == DJ_ON) {
        dj__strlist_add(out, "-ffast-math");
    }
    if (strcmp(arch, compiler->machine) != 0) {
        dj__strlist_addf(out, "-march=%s", arch);
    }
    dj__strlist_add_all(out, options->flags, options->num_flags);
    dj__strlist_add_all(out, options->extra_flags, options->num_extra_flags);
    dj_status status = dj__strlist_ok(out, err);
    return status == DJ_OK ? compiler_check_flags(out, err) : status;
}

/* ---- running it ---- */

/* The command that makes `output`, either the binary or the assembly text. */
static dj_status compiler_command(const char *program, const dj_compile_job *job,
                                  const char *output, dj__strlist *argv, dj_error *err)
{
    const bool assembly = strcmp(output, COMPILER_ASSEMBLY) == 0;
    dj__strlist_add(argv, program);
    for (size_t i = 0; i < job->num_flags; i++) {
        if (!assembly || strcmp(job->flags[i], "-shared") != 0) {
            dj__strlist_add(argv, job->flags[i]);
        }
    }
    if (job->debug_dir != NULL) {
        dj__strlist_addf(argv, "-fdebug-prefix-map=%s=%s", job->dir, job->debug_dir);
    }
    for (size_t i = 0; i < job->num_includes; i++) {
        dj__strlist_add(argv, "-I");
        dj__strlist_add(argv, job->includes[i]);
    }
    if (assembly) {
        dj__strlist_add(argv, "-S");
    }
    dj__strlist_add(argv, "-o");
    dj__strlist_add(argv, output);
    dj__strlist_add(argv, job->source);
    if (!assembly) {
        /* A kernel's own functions are its own, whatever the process calls by the same name; and
         * what it calls must exist. */
        dj__strlist_add(argv, "-Wl,-Bsymbolic");
        dj__strlist_add(argv, "-Wl,-z,defs");
        /* The hosting process may be without libm; kernels that do not call it do not need it. */
        dj__strlist_add(argv, "-Wl,--as-needed");
        dj__strlist_add(argv, "-lm");
    }
    return dj__strlist_ok(argv, err);
}

static dj_status compiler_run(const dj_compiler *compiler, const dj_compile_job *job,
                              const dj__strlist *argv, dj__strbuf *log, dj_error *err)
{
    dj__strlist env;
    dj__strlist_init(&env);
    dj_status status = dj__tool_env(compiler->env, compiler_keyed_env, &env, err);
    if (status == DJ_OK) {
        const dj__process process = {
            .argv = dj__strlist_items(argv),
            .envp = dj__strlist_items(&env),
            .dir = job->dir,
            .timeout_ms = job->timeout_ms,
            .cancel = job->cancel,
            .output_limit = COMPILER_OUTPUT_LIMIT,
        };
        dj__process_result result;
        status = dj__process_check(&process, log, &result, err);
        if (status == DJ_TIMEOUT) {
            char setting[256];
            dj__env_name(compiler->env, "JIT_COMPILE_TIMEOUT", setting);
            dj__error_prefix(err, "host compiler took longer than %s allows", setting);
        }
    }
    dj__strlist_fini(&env);
    return status;
}

/* NULL if the binary is a shared object, else what is wrong with it. */
static const char *compiler_binary_fault(const char *dir)
{
    enum { TYPE_AT = 16, TYPE_SHARED = 3, HEAD = 18 }; /* e_type, ET_DYN */
    unsigned char head[HEAD];
    char *path = dj__path_join(dir, COMPILER_BINARY);
    const int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    free(path);
    if (fd < 0) {
        return "is missing";
    }
    const ssize_t size = read(fd, head, sizeof head);
    (void)close(fd);
    if (size <= 0) {
        return "is empty";
    }
    if (size < 4 || memcmp(head, "\177ELF", 4) != 0) {
        return "is not an ELF file";
    }
    const bool typed = size == (ssize_t)sizeof head;
    return typed && head[TYPE_AT] + head[TYPE_AT + 1] != TYPE_SHARED ? "is no shared object" : NULL;
}

static dj_status compiler_dump(const dj_compiler *compiler, const dj_compile_job *job,
                               const char *program, dj_error *err)
{
    dj__strlist argv;
    dj__strlist_init(&argv);
    dj_status status = compiler_command(program, job, COMPILER_ASSEMBLY, &argv, err);
    if (status == DJ_OK) {
        status = compiler_run(compiler, job, &argv, NULL, err); /* the log has its warnings */
    }
    dj__strlist_fini(&argv);
    return status;
}

static dj_status compiler_compile(dj_compiler *compiler, const dj_compile_job *job, dj_error *err)
{
    char *program = NULL;
    dj__strlist argv;
    dj__strlist_init(&argv);
    dj_status status = compiler_find(compiler, &program, err);
    if (status == DJ_OK) {
        status = compiler_command(program, job, COMPILER_BINARY, &argv, err);
    }
    if (status == DJ_OK) {
        dj__command_text(dj__strlist_items(&argv), job->command);
        status = compiler_run(compiler, job, &argv, job->log, err);
    }
    if (status == DJ_OK) {
        const char *fault = compiler_binary_fault(job->dir);
        if (fault != NULL) {
            status = dj__fail(err, DJ_COMPILE,
                              "host compiler did not produce a valid shared object: "
                              "%s %s, although it reported success:\n%s\n%s",
                              COMPILER_BINARY, fault, dj__strbuf_str(job->command),
                              dj__strbuf_str(job->log));
        }
    }
    if (status == DJ_OK && job->options->dump_asm == DJ_ON) {
        status = compiler_dump(compiler, job, program, err);
    }
    dj__strlist_fini(&argv);
    free(program);
    return status;
}

static const char *const compiler_default_flags[] = {"-fPIC", "-shared", "-std=c11", NULL};

const dj_compiler_ops dj__host_compiler_ops = {
    .size = sizeof(dj_compiler_ops),
    .source_name = COMPILER_SOURCE,
    .binary_name = COMPILER_BINARY,
    .default_flags = compiler_default_flags,
    .default_optimize_level = "3",
    .keyed_env = compiler_keyed_env,
    .open = compiler_open,
    .close = compiler_close,
    .locate = compiler_locate,
    .describe = compiler_describe,
    .flags = compiler_flags,
    .compile = compiler_compile,
};
