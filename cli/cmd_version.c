/* SPDX-License-Identifier: MIT */
/* deepjit version: versions of the library and the back ends in this build. */
#include "cli.h"
#include <stdio.h>

static const struct argp_option version_options[] = {
    {"json", 'j', NULL, 0, "JSON instead of text", 0},
    {0},
};

static error_t version_parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    switch (key) {
    case 'j':
        *(bool *)state->input = true;
        return 0;
    default:
        return cli_parse_other(key, state);
    }
}

int cli_cmd_version(int argc, char **argv)
{
    bool json = false;
    static const struct argp argp = {
        .options = version_options,
        .parser = version_parse,
        .doc = "Prints the version of the library and the back ends of this build.",
    };
    argp_parse(&argp, argc, argv, 0, NULL, &json);
    if (!json) {
        printf("deepjit %s\nback ends:", dj_version());
        for (size_t i = 0; dj_backend_at(i) != NULL; i++) {
            printf(" %s", dj_backend_name(dj_backend_at(i)));
        }
        putchar('\n');
        return CLI_DONE;
    }
    json_t *const backends = json_array();
    for (size_t i = 0; dj_backend_at(i) != NULL; i++) {
        cli_json_append(backends, cli_json_text(dj_backend_name(dj_backend_at(i))));
    }
    json_t *const object = json_object();
    cli_json_set(object, "version", cli_json_text(dj_version()));
    cli_json_set(object, "backends", backends);
    cli_json_print(object);
    return CLI_DONE;
}
