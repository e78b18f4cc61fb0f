/* SPDX-License-Identifier: MIT */
/* Asks compilers for their parts: gcc and clang both answer -print-prog-name. */
#include "backend/cc_parts.h"
#include "backend/tool_env.h"
#include "base/error.h"
#include "base/process.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CC_OUTPUT_LIMIT ((size_t)1 << 20)
#define CC_QUERY_TIMEOUT_MS 60000

/* A question is short work, but never longer than a compilation may take. */
static int64_t cc_query_timeout(const dj__env *env)
{
    int64_t seconds = 0;
    (void)dj__env_int(env, "JIT_COMPILE_TIMEOUT", 0, INT32_MAX, &seconds, NULL);
    return seconds > 0 && seconds * 1000 < CC_QUERY_TIMEOUT_MS ? seconds * 1000
                                                               : CC_QUERY_TIMEOUT_MS;
}

dj_status dj__tool_run(const dj__cc *cc, const char *first, const char *second, const char *extra,
                       dj__strbuf *output, dj__process_result *result, dj_error *err)
{
    dj__strlist env;
    dj__strlist_init(&env);
    dj__strbuf_clear(output);
    dj_status status = dj__tool_env(cc->env, cc->keyed, &env, err);
    if (status == DJ_OK && extra != NULL) {
        dj__strlist_add(&env, extra);
        status = dj__strlist_ok(&env, err);
    }
    if (status == DJ_OK) {
        const char *const argv[] = {cc->program, first, second, NULL};
        const dj__process process = {
            .argv = argv,
            .envp = dj__strlist_items(&env),
            .dir = "/",
            .timeout_ms = cc_query_timeout(cc->env),
            .output_limit = CC_OUTPUT_LIMIT,
        };
        status = dj__process_run(&process, output, result, err);
    }
    if (status == DJ_OK) {
        status = dj__strbuf_ok(output, err);
    } else {
        dj__error_prefix(err, "cannot ask %s what it is", cc->program);
    }
    dj__strlist_fini(&env);
    return status;
}

dj_status dj__tool_query(const dj__cc *cc, const char *first, const char *second, const char *extra,
                         dj__strbuf *output, dj_error *err)
{
    dj__process_result result = {0};
    const dj_status status = dj__tool_run(cc, first, second, extra, output, &result, err);
    if (status == DJ_OK && result.exit_code != 0) {
        dj__strbuf_clear(output);
    }
    return status;
}

dj_status dj__add_tool_file(const char *path, dj__strlist *files, dj_error *err)
{
    struct stat part;
    struct stat other;
    if (stat(path, &part) != 0) {
        return dj__fail_errno(err, errno, "cannot resolve %s", path);
    }
    for (size_t i = 0; i < files->count; i++) {
        if (stat(files->items[i], &other) == 0 && other.st_dev == part.st_dev &&
            other.st_ino == part.st_ino) {
            return DJ_OK;
        }
    }
    dj__strlist_add(files, path);
    return dj__strlist_ok(files, err);
}

dj_status dj__cc_part(const dj__cc *cc, const char *name, bool on_path, char **out, dj_error *err)
{
    dj__strbuf output;
    *out = NULL;
    dj__strbuf_init(&output, CC_OUTPUT_LIMIT);
    char *query = dj__format("-print-prog-name=%s", name);
    dj_status status =
        query != NULL ? dj__tool_query(cc, query, NULL, NULL, &output, err) : dj__fail_memory(err);
    if (status == DJ_OK) {
        const char *text = dj__strbuf_str(&output);
        char *answer = dj__format("%.*s", (int)strcspn(text, "\n"), text);
        if (answer == NULL) {
            status = dj__fail_memory(err);
        } else if (answer[0] == '/' || on_path) {
            *out = dj__find_program(answer, dj__env_raw(cc->env, "PATH"));
        }
        free(answer);
    }
    free(query);
    dj__strbuf_fini(&output);
    return status;
}

/* Adds the shared objects that hold clang's code generator: asks the dynamic loader, which lists
 * "name => path (address)" and does not start the program. */
static dj_status cc_add_libraries(const dj__cc *cc, dj__strlist *files, dj_error *err)
{
    dj__strbuf output;
    dj__strbuf_init(&output, CC_OUTPUT_LIMIT);
    dj_status status =
        dj__tool_query(cc, "--version", NULL, "LD_TRACE_LOADED_OBJECTS=1", &output, err);
    for (char *line = output.data; status == DJ_OK && line != NULL && *line != '\0';) {
        char *next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        line += strspn(line, " \t");
        char *path = strstr(line, " => /");
        char *end = strrchr(line, '(');
        if ((strncmp(line, "libLLVM", 7) == 0 || strncmp(line, "libclang", 8) == 0) &&
            path != NULL && end != NULL && end > path && end[-1] == ' ') {
            end[-1] = '\0';
            status = dj__add_tool_file(path + 4, files, err);
        }
        line = next;
    }
    dj__strbuf_fini(&output);
    return status;
}

dj_status dj__cc_add_generator(const dj__cc *cc, const char *front, dj__strlist *files,
                               dj_error *err)
{
    char *part = NULL;
    dj_status status = dj__cc_part(cc, front, false, &part, err);
    if (status == DJ_OK && part != NULL) {
        status = dj__add_tool_file(part, files, err);
        free(part);
        return status;
    }
    if (status == DJ_OK) {
        status = dj__cc_part(cc, "clang", false, &part, err);
    }
    if (status == DJ_OK && part != NULL) {
        status = dj__add_tool_file(part, files, err);
    }
    if (status == DJ_OK) {
        const dj__cc real = {cc->env, cc->keyed, part != NULL ? part : cc->program};
        status = cc_add_libraries(&real, files, err);
    }
    free(part);
    return status;
}
