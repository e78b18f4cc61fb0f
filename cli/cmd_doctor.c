/* SPDX-License-Identifier: MIT */
/* deepjit doctor: what was found on this machine, where it was looked for, what to set. */
#include "cli.h"
#include <stdio.h>
#include <string.h>

enum { DOCTOR_INDENT = 2 + 7 + 1 + 19 + 1 }; /* of the text behind the columns */

typedef struct doctor_options {
    cli_runtime_options runtime;
    bool json;
} doctor_options;

static const struct argp_option doctor_argp_options[] = {
    {"json", 'j', NULL, 0, "JSON instead of text", 0},
    {0},
};

static error_t doctor_parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    doctor_options *const options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->runtime;
        return 0;
    case 'j':
        options->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char doctor_doc[] =
    "Shows what the library needs and what it finds on this machine. Status 0 if everything that "
    "one back end needs is there, else 3. What is shown as 'none' is missing, but not needed."
    "\v"
    "Examples:\n"
    "  deepjit doctor\n"
    "  deepjit doctor --backend host --json\n";

typedef struct doctor_report {
    json_t *findings; /* NULL: text */
    bool complete;
} doctor_report;

static void doctor_visit(void *user, const dj_finding *finding)
{
    doctor_report *const report = user;
    report->complete = report->complete && (finding->found || !finding->needed);
    if (report->findings != NULL) {
        json_t *const object = json_object();
        cli_json_set(object, "what", cli_json_text(finding->what));
        cli_json_set(object, "found", json_boolean(finding->found));
        cli_json_set(object, "needed", json_boolean(finding->needed));
        cli_json_set(object, "detail", cli_json_text(finding->detail));
        cli_json_append(report->findings, object);
        return;
    }
    printf("  %-7s %-19s",
           finding->found    ? "ok"
           : finding->needed ? "MISSING"
                             : "none",
           finding->what);
    for (const char *line = finding->detail; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        printf("%*s%.*s\n", line == finding->detail ? 1 : DOCTOR_INDENT, "", (int)length, line);
        line += length;
        line += *line == '\n';
    }
    if (finding->detail[0] == '\0') {
        putchar('\n');
    }
}

/* Reports on one back end. Returns the exit status; `all` (may be NULL) gets the JSON. */
static int doctor_backend(const doctor_options *options, const char *name, json_t *all)
{
    cli_runtime_options runtime_options = options->runtime;
    runtime_options.backend = name;
    dj_runtime *runtime = NULL;
    const int opened = cli_open_runtime(&runtime_options, NULL, &runtime);
    if (opened != CLI_DONE) {
        return opened;
    }
    doctor_report report = {all != NULL ? json_array() : NULL, true};
    if (all == NULL) {
        printf("%s\n", dj_backend_name(dj_runtime_backend(runtime)));
    }
    dj_error err = DJ_ERROR_INIT;
    int result = CLI_DONE;
    if (dj_doctor(runtime, doctor_visit, &report, &err) != DJ_OK) {
        result = cli_fail(&err);
        json_decref(report.findings);
    } else {
        if (all != NULL) {
            json_t *const object = json_object();
            cli_json_set(object, "backend", cli_json_text(name));
            cli_json_set(object, "complete", json_boolean(report.complete));
            cli_json_set(object, "findings", report.findings);
            cli_json_append(all, object);
        }
        result = report.complete ? CLI_DONE : CLI_UNAVAILABLE;
    }
    dj_runtime_release(runtime);
    return result;
}

int cli_cmd_doctor(int argc, char **argv)
{
    doctor_options options = {.json = false};
    static const struct argp_child children[] = {{&cli_runtime_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {.options = doctor_argp_options,
                                     .parser = doctor_parse,
                                     .doc = doctor_doc,
                                     .children = children};
    argp_parse(&argp, argc, argv, 0, NULL, &options);

    json_t *const all = options.json ? json_array() : NULL;
    /* The report comes all the same, but no program that names no back end will work. */
    const int setting =
        options.runtime.backend == NULL ? cli_check_backend_setting(&options.runtime) : CLI_DONE;
    int result = CLI_UNAVAILABLE;
    if (options.runtime.backend != NULL) {
        result = doctor_backend(&options, options.runtime.backend, all);
    }
    for (size_t i = 0; options.runtime.backend == NULL && dj_backend_at(i) != NULL; i++) {
        const int status = doctor_backend(&options, dj_backend_name(dj_backend_at(i)), all);
        result = status == CLI_UNAVAILABLE || result == CLI_DONE ? result : status;
    }
    if (all != NULL) {
        cli_json_print(all);
    }
    return setting != CLI_DONE ? setting : result;
}
