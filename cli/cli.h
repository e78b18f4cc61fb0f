/* SPDX-License-Identifier: MIT */
/*
 * cli.h: what the commands share: exit statuses, messages, memory and files that cannot fail
 * quietly, signals, option groups, JSON. The command uses the library's public headers only.
 */
#ifndef DJ_CLI_H
#define DJ_CLI_H

#include <argp.h>
#include <deepjit/deepjit.h>
#include <jansson.h>

/* Exit statuses; 128 + signal when a signal ended the work. */
enum { CLI_DONE = 0, CLI_FAILURE = 1, CLI_USAGE = 2, CLI_UNAVAILABLE = 3, CLI_COMPILE = 4 };

/* ---- Commands (cmd_*.c). argv[0] is "deepjit <command>". ---- */
int cli_cmd_bench(int argc, char **argv);
int cli_cmd_build(int argc, char **argv);
int cli_cmd_cache(int argc, char **argv);
int cli_cmd_demo(int argc, char **argv);
int cli_cmd_doctor(int argc, char **argv);
int cli_cmd_env(int argc, char **argv);
int cli_cmd_explain(int argc, char **argv);
int cli_cmd_inspect(int argc, char **argv);
int cli_cmd_run(int argc, char **argv);
int cli_cmd_version(int argc, char **argv);

/* ---- Messages, memory, files (cli_util.c) ---- */

/* "deepjit: <message>" and a newline on stderr. */
void cli_error(const char *format, ...) DJ_PRINTF(1, 2);
/* Reports `err` and returns the exit status that belongs to it. */
int cli_fail(const dj_error *err);
/* Registers the check at exit that everything written to stdout arrived. */
void cli_watch_stdout(void);

/* A growing piece of memory; zeroed is empty. Memory that cannot be had ends the program. */
typedef struct cli_buffer {
    char *data; /* NUL-terminated once something was appended */
    size_t size;
    size_t capacity;
} cli_buffer;
void cli_buffer_append(cli_buffer *buffer, const void *data, size_t size);
void cli_buffer_printf(cli_buffer *buffer, const char *format, ...) DJ_PRINTF(2, 3);
void cli_buffer_fini(cli_buffer *buffer);

typedef struct cli_strings {
    const char **items;
    size_t count;
} cli_strings;
void cli_strings_add(cli_strings *strings, const char *text); /* borrows `text` */
void cli_strings_fini(cli_strings *strings);

void *cli_alloc(size_t count, size_t size); /* zeroed */
char *cli_format(const char *format, ...) DJ_PRINTF(1, 2);

#define CLI_SOURCE_LIMIT ((size_t)64 << 20)
/* Reads a file, or standard input for "-". False: reported. */
bool cli_read_file(const char *path, size_t limit, cli_buffer *out);
bool cli_write_file(const char *path, const void *data, size_t size);
/* `path` made absolute by putting the working directory in front. NULL: reported. */
char *cli_absolute(const char *path);
/* A new private directory under TMPDIR, else /tmp. NULL: reported. */
char *cli_make_temp_dir(const char *name);
/* Removes a directory tree without following links. */
void cli_remove_tree(const char *path);

/* A regular file of a directory. */
typedef struct cli_file {
    char *name;
    uint64_t size;
} cli_file;
/* The regular files of a directory sorted by name. False: reported. */
bool cli_list_files(const char *path, cli_file **files, size_t *count);
void cli_files_free(cli_file *files, size_t count);

/* Runs this program with these arguments (NULL-terminated, without the program's name) and its
 * output thrown away; `wall_ns` gets the time until it ended. Returns its exit status, or -1:
 * reported. */
int cli_run_self(const char *const *arguments, int64_t *wall_ns);

int64_t cli_now_ns(void);
/* "12.3 ms", "417 ns": four significant digits at most. */
const char *cli_duration(double ns, char out[32]);
const char *cli_bytes(uint64_t bytes, char out[32]);

/* ---- Ctrl-C and SIGTERM (cli_signal.c) ---- */

/* From here on SIGINT, SIGTERM and SIGHUP request the returned cancellation instead of ending
 * the process, so that compilers and private directories are cleaned up. */
dj_cancel *cli_guard_begin(void);
/* Puts the old handling back. */
void cli_guard_end(void);
/* `status`, unless a signal arrived under guard: then 128 + its number, after a message. */
int cli_guard_status(int status);
bool cli_guard_interrupted(void);

/* ---- Cache entries (cli_entry.c) ---- */

typedef struct cli_entry {
    json_t *info; /* as cli_entry_json makes it */
    char *path;
} cli_entry;
/* The entry of any root that `name` means: its path, its name, or the only one whose name or
 * digest begins so. Reports and returns the exit status otherwise. */
int cli_find_entry(dj_runtime *runtime, const char *name, cli_entry *out);
void cli_entry_fini(cli_entry *entry);
json_t *cli_entry_json(const dj_cache_entry *entry);
const char *cli_entry_base(const dj_cache_entry *entry); /* "<tag>.<digest>" */
const char *cli_entry_state(dj_entry_state state);

/* ---- Option groups (cli_options.c) ---- */

/* What a parser answers to keys that are not its own, if its command takes no arguments. */
error_t cli_parse_other(int key, struct argp_state *state);

/* Options of every command that needs a runtime. */
typedef struct cli_runtime_options {
    const char *backend;    /* NULL: the first that is available */
    const char *env_prefix; /* NULL: DJ_ only */
    const char *cache_dir;  /* NULL: from the environment */
} cli_runtime_options;
extern const struct argp cli_runtime_argp; /* input: cli_runtime_options * */

/* The setting <env_prefix>_<suffix>, else DJ_<suffix>, or NULL, as the library looks for it. `name`
 * (may be NULL) gets the variable that has it, else the one to set; free it. */
const char *cli_setting(const char *env_prefix, const char *suffix, char **name);

/* The back end of this name. Reports and returns the exit status if this build has none. */
int cli_find_backend(const char *name, const dj_backend **out);
/* Reports and returns the exit status if JIT_BACKEND names a back end that this build lacks. */
int cli_check_backend_setting(const cli_runtime_options *options);

/* Creates the runtime; `config` (may be NULL) without env_prefix. Otherwise reports and returns
 * the exit status. */
int cli_open_runtime(const cli_runtime_options *options, dj_config *config, dj_runtime **out);

/* Options of every command that compiles a file; most come from the library's option table. */
typedef struct cli_compile_options {
    cli_runtime_options runtime;
    const char *file;
    const char *tag; /* NULL: from the file's name */
    const char *library_root;
    const char *signature;
    cli_strings include_dirs;
    cli_strings prefixes;
    cli_strings flags;
    cli_strings extra_flags;
    bool verbose;
    dj_compile_options options;
    dj_cuda_compile_options cuda;
} cli_compile_options;

/* The argp of this group, made from the option table; input: cli_compile_options *. Its first
 * child is cli_runtime_argp. Free with free(3). */
struct argp *cli_compile_argp(void);
void cli_compile_init(cli_compile_options *options);
void cli_compile_fini(cli_compile_options *options);

/* Sets a dim3, integer or other field through the option table. Exits with usage on failure. */
void cli_set_option(const struct argp_state *state, dj_option_scope scope, const char *name,
                    const char *text, void *options);

/* The tag of a file whose user gives none; free it. */
char *cli_tag_from_file(const char *file);

/* ---- Compiling a file (cli_job.c) ---- */

/* Everything that a command needs for compiling one file. */
typedef struct cli_job {
    dj_runtime *runtime;
    const char *file; /* as it is called in messages */
    const char *env_prefix;
    bool backend_open; /* neither option, setting nor suffix named the back end */
    char *tag;
    cli_buffer source;
    cli_buffer log; /* the compiler's output so far */
    dj_compile_options options;
    cli_strings include_dirs;
    char *library_root;
    bool verbose;
} cli_job;
/* Reads the file, makes the runtime. Reports and returns the exit status otherwise. Call
 * cli_job_fini in any case. */
int cli_job_init(cli_job *job, cli_compile_options *options);
void cli_job_fini(cli_job *job);
/* With --verbose: the compiler's output on stderr. */
void cli_job_show_log(const cli_job *job);
/* Reports a failed compilation with the compiler's whole output, in which the source has the name
 * of the user's file; returns the exit status. */
int cli_job_fail(const cli_job *job, const dj_error *err);

/* ---- JSON (cli_json.c) ---- */

/* A string of any bytes; what is not UTF-8 becomes U+FFFD. */
json_t *cli_json_text(const char *text);
json_t *cli_json_bytes(const void *data, size_t size);
/* Takes `value`; NULL (no memory) ends the program. */
void cli_json_set(json_t *object, const char *key, json_t *value);
void cli_json_append(json_t *array, json_t *value);
/* Writes it indented to stdout and frees it. */
void cli_json_print(json_t *value);
/* The same on one line. */
void cli_json_print_line(json_t *value);
/* True if the bytes are valid UTF-8 without control characters other than tab. */
bool cli_is_plain_text(const void *data, size_t size);

#endif
