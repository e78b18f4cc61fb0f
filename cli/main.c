/* SPDX-License-Identifier: MIT */
/*
 * The deepjit command: finds the sub-command and hands over. Each lives in its own cmd_*.c.
 */
#include "cli.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct main_command {
    const char *name;
    int (*run)(int argc, char **argv);
} main_command;

static const main_command main_commands[] = {
    {"demo", cli_cmd_demo},       {"run", cli_cmd_run},         {"build", cli_cmd_build},
    {"cache", cli_cmd_cache},     {"explain", cli_cmd_explain}, {"inspect", cli_cmd_inspect},
    {"doctor", cli_cmd_doctor},   {"env", cli_cmd_env},         {"bench", cli_cmd_bench},
    {"version", cli_cmd_version},
};
enum { MAIN_COUNT = sizeof main_commands / sizeof main_commands[0] };

typedef struct main_choice {
    const main_command *command;
    int index; /* of its name in argv */
} main_choice;

static error_t main_parse(int key, char *arg, struct argp_state *state)
{
    main_choice *const choice = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        for (size_t i = 0; i < MAIN_COUNT; i++) {
            if (strcmp(arg, main_commands[i].name) == 0) {
                choice->command = &main_commands[i];
                choice->index = state->next - 1;
                state->next = state->argc;
                return 0;
            }
        }
        argp_error(state, "unknown command '%s'", arg);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp main_argp = {
    .parser = main_parse,
    .args_doc = "COMMAND [ARG...]",
    .doc = "Compiles kernels at run time, keeps the binaries, loads and launches them."
           "\v"
           "Commands:\n"
           "  demo      compile, load, launch and check a kernel; show the caches at work\n"
           "  run       compile a kernel file, launch it, show or save the results\n"
           "  build     compile a file and print the path of its cache entry\n"
           "  cache     list, show, verify or clear cache entries\n"
           "  explain   show what the cache key of a file is made of\n"
           "  inspect   show registers, memory and parameters of a binary's kernels\n"
           "  doctor    show what was found on this machine and what is missing\n"
           "  env       list the settings and their values\n"
           "  bench     measure this build on this machine\n"
           "  version   print versions\n"
           "\n"
           "'deepjit COMMAND --help' explains a command; deepjit(1) is the manual.\n"
           "Exit status: 0 done, 1 failure, 2 usage, 3 something needed is unavailable,\n"
           "4 the source does not compile.",
};

static void main_print_version(FILE *stream, struct argp_state *state)
{
    (void)state;
    fprintf(stream, "deepjit %s\n", dj_version());
}

/* Without this, the first file we open would become standard output, say. Reading and writing
 * the wrong way round keeps the errors that a closed descriptor should give. */
static void main_fill_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) {
            _exit(CLI_FAILURE);
        }
    }
}

static void main_ignore(int number)
{
    (void)number;
}

int main(int argc, char **argv)
{
    main_fill_descriptors();
    cli_watch_stdout();
    (void)signal(SIGCHLD, SIG_DFL); /* an ignored one, inherited, would cost us exit statuses */
    /* A closed pipe is reported as a failed write. A handler, not SIG_IGN, because programs that
     * we start inherit what is ignored. */
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = main_ignore, .sa_flags = SA_RESTART},
              NULL);
    argp_err_exit_status = CLI_USAGE;
    argp_program_version_hook = main_print_version;

    char name[] = "deepjit";
    char *no_arguments[] = {name, NULL};
    if (argc < 1) {
        argc = 1;
        argv = no_arguments;
    }
    argv[0] = name;
    main_choice choice = {0};
    const error_t failed = argp_parse(&main_argp, argc, argv, ARGP_IN_ORDER, NULL, &choice);
    if (failed != 0 || choice.command == NULL) {
        return CLI_USAGE;
    }
    argp_program_version_hook = NULL;
    char *const full_name = cli_format("deepjit %s", choice.command->name);
    argv[choice.index] = full_name;
    const int status = choice.command->run(argc - choice.index, argv + choice.index);
    free(full_name);
    return status;
}
