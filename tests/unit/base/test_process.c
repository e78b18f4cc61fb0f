/* SPDX-License-Identifier: MIT */
/* Running programs: output, exit status, deadlines, cancellation, and what must not be left. */
#include "base/process.h"

#include "base/fs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEST_PROCESS_LIMIT = 1 << 20, TEST_PROCESS_PIDFD_OPEN = 434 };

static char test_process_dir[256];
static dj_cancel *test_process_cancel;

typedef struct test_process_case {
    dj__strbuf output;
    dj__process_result result;
    dj_error err;
} test_process_case;

static dj_status test_process_shell(test_process_case *run, const char *script, dj__process process)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    process.argv = argv;
    process.envp = envp;
    dj__strbuf_init(&run->output, TEST_PROCESS_LIMIT * 4);
    memset(&run->err, 0, sizeof(run->err));
    return dj__process_run(&process, &run->output, &run->result, &run->err);
}

static dj_status test_process_checked(test_process_case *run, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const dj__process process = {.argv = argv};
    dj__strbuf_init(&run->output, TEST_PROCESS_LIMIT);
    memset(&run->err, 0, sizeof(run->err));
    return dj__process_check(&process, &run->output, &run->result, &run->err);
}

static size_t test_process_count_fds(void)
{
    dj__strlist names;
    dj__strlist_init(&names);
    const int dir = dj__open_dir("/proc/self/fd");
    assert_true(dir >= 0);
    assert_int_equal(dj__list_dir(dir, &names), 0);
    close(dir);
    const size_t count = names.count;
    dj__strlist_fini(&names);
    return count;
}

static void test_process_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* True once the process is dead; whoever adopted it may not have reaped it. */
static bool test_process_is_dead(pid_t pid)
{
    char path[64];
    char *text;
    size_t size;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (dj__read_file(path, 4096, &text, &size) != 0) {
        return true;
    }
    const char *state = strrchr(text, ')');
    const bool dead = state == NULL || strchr("ZX", state[2]) != NULL;
    free(text);
    return dead;
}

static void test_process_expect_dead(const char *pid_text)
{
    const pid_t pid = (pid_t)strtol(pid_text, NULL, 10);
    assert_true(pid > 1);
    for (int i = 0; i < 10000 && !test_process_is_dead(pid); i++) {
        poll(NULL, 0, 1); /* SIGKILL is on its way */
    }
    assert_true(test_process_is_dead(pid));
}

/* A file in the test's directory; its path in `path`. */
static void test_process_write(const char *name, const char *text, mode_t mode, char path[512])
{
    const int dir = dj__open_dir(test_process_dir);
    assert_true(dir >= 0);
    assert_int_equal(dj__write_new_at(dir, name, text, strlen(text), mode, false), 0);
    close(dir);
    snprintf(path, 512, "%s/%s", test_process_dir, name);
}

static void test_process_merges_output(void **state)
{
    (void)state;
    test_process_case run;
    assert_int_equal(
        test_process_shell(&run, "printf stdout; printf stderr >&2", (dj__process){.dir = NULL}),
        DJ_OK);
    assert_string_equal(dj__strbuf_str(&run.output), "stdoutstderr");
    assert_int_equal(run.result.exit_code, 0);
    assert_int_equal(run.result.signal, 0);
    assert_true(run.result.wall_ns > 0);
    dj__strbuf_fini(&run.output);
}

static void test_process_keeps_nul(void **state)
{
    (void)state;
    test_process_case run;
    assert_int_equal(test_process_shell(&run, "printf 'a\\0b\\0'", (dj__process){.dir = NULL}),
                     DJ_OK);
    assert_int_equal(run.output.size, 4);
    assert_memory_equal(run.output.data, "a\0b\0", 4);
    dj__strbuf_fini(&run.output);
}

static void test_process_output_may_be_dropped(void **state)
{
    (void)state;
    const char *const argv[] = {"/bin/sh", "-c", "echo text; exit 5", NULL};
    const dj__process process = {.argv = argv};
    dj__process_result result;
    assert_int_equal(dj__process_run(&process, NULL, &result, NULL), DJ_OK);
    assert_int_equal(result.exit_code, 5);
    assert_int_equal(dj__process_check(&process, NULL, &result, NULL), DJ_COMPILE);
}

static void test_process_flood(void **state)
{
    (void)state;
    test_process_case run;
    assert_int_equal(test_process_shell(&run,
                                        "printf HEAD; head -c 100000000 /dev/zero | tr '\\0' x; "
                                        "printf TAIL",
                                        (dj__process){.output_limit = 1000}),
                     DJ_OK);
    const char note[] = "\n... (99999008 bytes left out) ...\n";
    const char *text = dj__strbuf_str(&run.output);
    assert_int_equal(run.output.size, 1000 + strlen(note));
    assert_memory_equal(text, "HEADxxxx", 8);
    assert_memory_equal(text + 500, note, strlen(note));
    assert_string_equal(text + run.output.size - 8, "xxxxTAIL");
    dj__strbuf_fini(&run.output);
}

/* Around the limit: nothing is lost before it, and the note counts exactly. */
static void test_process_output_limit(void **state)
{
    (void)state;
    static const struct {
        size_t limit;
        const char *text;
    } cases[] = {
        {10, "0123456789"},
        {11, "0123456789"},
        {9, "0123\n... (1 bytes left out) ...\n56789"},
        {2, "0\n... (8 bytes left out) ...\n9"},
        {1, "\n... (9 bytes left out) ...\n9"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_process_case run;
        assert_int_equal(test_process_shell(&run, "printf 012; printf 3456; printf 789",
                                            (dj__process){.output_limit = cases[i].limit}),
                         DJ_OK);
        assert_string_equal(dj__strbuf_str(&run.output), cases[i].text);
        dj__strbuf_fini(&run.output);
    }
}

static void test_process_exit_and_signal(void **state)
{
    (void)state;
    test_process_case run;
    assert_int_equal(test_process_checked(&run, "exit 7"), DJ_COMPILE);
    assert_int_equal(run.result.exit_code, 7);
    assert_int_equal(run.err.native, 7);
    assert_string_equal(run.err.origin, "compiler");
    assert_string_equal(run.err.message,
                        "command failed with exit code 7:\n/bin/sh -c 'exit 7'\n(no output)");
    dj__strbuf_fini(&run.output);

    assert_int_equal(test_process_checked(&run, "kill -TERM $$"), DJ_COMPILE);
    assert_int_equal(run.result.exit_code, 143);
    assert_int_equal(run.result.signal, SIGTERM);
    assert_non_null(
        strstr(run.err.message, "command failed with exit code 143 (killed by signal 15):\n"));
    dj__strbuf_fini(&run.output);

    assert_int_equal(test_process_checked(&run, "kill -SEGV $$"), DJ_COMPILE);
    assert_int_equal(run.result.exit_code, 128 + SIGSEGV);
    dj__strbuf_fini(&run.output);

    assert_int_equal(test_process_checked(&run, "exit 0"), DJ_OK);
    dj__strbuf_fini(&run.output);
}

static void test_process_first_error_line(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        const char *line;
    } cases[] = {
        {"printf 'In file x:\\nx.c:1:2: error: bad\\nx.c:9: error: later\\n'; exit 1",
         "x.c:1:2: error: bad\n"},
        {"printf 'x.c:1: fatal error: y.h: No such file\\ncompilation terminated.\\n'; exit 1",
         "x.c:1: fatal error: y.h: No such file\n"},
        {"printf 'x.s:3: Error: no such instruction\\n more\\n'; exit 1",
         "x.s:3: Error: no such instruction\n"},
        {"printf 'warning: w\\nptxas fatal   : Unresolved f\\nbye\\n'; exit 1",
         "ptxas fatal   : Unresolved f\n"},
        {"printf 'ptxas error   : first\\nx.cu(1): error: second\\n'; exit 1",
         "x.cu(1): error: second\n"},
        {"printf 'Fatal error in pass\\nx: error #20-D: later\\n'; exit 1",
         "Fatal error in pass\n"},
        {"printf 'one\\ntwo\\r\\n\\n'; exit 1", "two\n"},
        {"printf 'a\\0b error: c'; exit 1", "a b error: c\n"},
        {"printf 'errors were found\\nlast words'; exit 1", "last words\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_process_case run;
        assert_int_equal(test_process_checked(&run, cases[i].script), DJ_COMPILE);
        const size_t length = strlen(cases[i].line);
        char line[256];
        snprintf(line, sizeof(line), "%.*s", (int)length, run.err.message);
        assert_string_equal(line, cases[i].line);
        const char next[] = "command failed with exit code 1:\n/bin/sh -c ";
        assert_memory_equal(run.err.message + length, next, strlen(next));
        dj__strbuf_fini(&run.output);
    }
}

/* Earlier text in the caller's buffer is not taken for this command's. */
static void test_process_appends(void **state)
{
    (void)state;
    const char *const argv[] = {"/bin/sh", "-c", "echo new; exit 1", NULL};
    const dj__process process = {.argv = argv};
    dj__strbuf output;
    dj__process_result result;
    dj_error err = DJ_ERROR_INIT;
    dj__strbuf_init(&output, TEST_PROCESS_LIMIT);
    dj__strbuf_puts(&output, "old error: x\n");
    assert_int_equal(dj__process_check(&process, &output, &result, &err), DJ_COMPILE);
    assert_string_equal(dj__strbuf_str(&output), "old error: x\nnew\n");
    assert_memory_equal(err.message, "new\ncommand failed", strlen("new\ncommand failed"));
    dj__strbuf_fini(&output);
}

static void test_process_output_buffer_full(void **state)
{
    (void)state;
    const char *const argv[] = {"/bin/sh", "-c", "echo more than four", NULL};
    const dj__process process = {.argv = argv};
    dj__strbuf output;
    dj__process_result result;
    dj__strbuf_init(&output, 4);
    assert_int_equal(dj__process_run(&process, &output, &result, NULL), DJ_INVALID_ARGUMENT);
    dj__strbuf_fini(&output);
}

static void test_process_cannot_start(void **state)
{
    (void)state;
    char path[512];
    const char *argv[] = {"/no/such/program", NULL};
    const dj__process process = {.argv = argv};
    dj__process_result result;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj__process_run(&process, NULL, &result, &err), DJ_NOT_FOUND);
    assert_int_equal(err.native, ENOENT);
    assert_non_null(strstr(err.message, "/no/such/program"));

    test_process_write("not-executable", "#!/bin/sh\n", 0644, path);
    argv[0] = path;
    assert_int_equal(dj__process_run(&process, NULL, &result, &err), DJ_PERMISSION);
    assert_non_null(strstr(err.message, path));

    test_process_write("no-interpreter", "#!/no/such/interpreter\n", 0755, path);
    assert_int_equal(dj__process_run(&process, NULL, &result, &err), DJ_NOT_FOUND);
    assert_non_null(strstr(err.message, "interpreter"));

    test_process_write("no-shebang", "echo hello\n", 0755, path);
    assert_int_equal(dj__process_run(&process, NULL, &result, &err), DJ_IO);
    assert_int_equal(err.native, ENOEXEC);
    assert_non_null(strstr(err.message, "#!"));

    argv[0] = "sh";
    assert_int_equal(dj__process_run(&process, NULL, &result, &err), DJ_INVALID_ARGUMENT);
    argv[0] = NULL;
    assert_int_equal(dj__process_run(&process, NULL, &result, &err), DJ_INVALID_ARGUMENT);
    test_process_no_children();
}

static void test_process_directory(void **state)
{
    (void)state;
    char dir[512];
    test_process_case run;
    snprintf(dir, sizeof(dir), "%s/a b'\n$(x)", test_process_dir);
    assert_int_equal(dj__make_dirs(dir, 0755), 0);
    assert_int_equal(test_process_shell(&run, "pwd -P | tail -n 1; test -d ../*\"\n\"*",
                                        (dj__process){.dir = dir}),
                     DJ_OK);
    assert_string_equal(dj__strbuf_str(&run.output), "$(x)\n");
    assert_int_equal(run.result.exit_code, 0);
    dj__strbuf_fini(&run.output);

    assert_int_equal(test_process_shell(&run, "true", (dj__process){.dir = "/no/such/dir"}),
                     DJ_NOT_FOUND);
    assert_non_null(strstr(run.err.message, "/no/such/dir"));
    dj__strbuf_fini(&run.output);
}

static void test_process_environment(void **state)
{
    (void)state;
    char *env = dj__find_program("env", "/usr/bin:/bin");
    assert_non_null(env);
    const char *const argv[] = {env, NULL};
    const char *const envp[] = {"A=1", "B=two words", NULL};
    dj__process process = {.argv = argv, .envp = envp};
    dj__process_result result;
    dj__strbuf output;
    dj__strbuf_init(&output, TEST_PROCESS_LIMIT);
    assert_int_equal(dj__process_run(&process, &output, &result, NULL), DJ_OK);
    assert_string_equal(dj__strbuf_str(&output), "A=1\nB=two words\n");
    dj__strbuf_clear(&output);
    process.envp = NULL;
    assert_int_equal(dj__process_run(&process, &output, &result, NULL), DJ_OK);
    assert_string_equal(dj__strbuf_str(&output), "");
    dj__strbuf_fini(&output);
    free(env);
}

static void test_process_stdin_and_descriptors(void **state)
{
    (void)state;
    test_process_case run;
    const int leaky = fcntl(STDOUT_FILENO, F_DUPFD, 100); /* a host without O_CLOEXEC */
    assert_true(leaky >= 100);
    assert_int_equal(test_process_shell(&run,
                                        "cat; readlink /proc/self/fd/0; "
                                        "test -e /proc/$$/fd/100 && echo leaked; exit 0",
                                        (dj__process){.dir = NULL}),
                     DJ_OK);
    close(leaky);
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
    assert_string_equal(dj__strbuf_str(&run.output), "/dev/null\n");
#else
    assert_memory_equal(dj__strbuf_str(&run.output), "/dev/null\n", 10);
#endif
    dj__strbuf_fini(&run.output);
}

static void test_process_closed_stdio(void **state)
{
    (void)state;
    test_process_case run;
    int saved[3];
    for (int fd = 0; fd < 3; fd++) {
        saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
        close(fd);
    }
    const dj_status status =
        test_process_shell(&run, "cat; echo out; echo err >&2", (dj__process){.dir = NULL});
    for (int fd = 0; fd < 3; fd++) {
        if (saved[fd] >= 0) {
            dup2(saved[fd], fd);
            close(saved[fd]);
        }
    }
    assert_int_equal(status, DJ_OK);
    assert_string_equal(dj__strbuf_str(&run.output), "out\nerr\n");
    dj__strbuf_fini(&run.output);
}

static unsigned long long test_process_mask(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    assert_non_null(line);
    return strtoull(line + strlen(name), NULL, 16);
}

static void test_process_signals_are_reset(void **state)
{
    (void)state;
    test_process_case run;
    sigset_t block;
    sigset_t old;
    sigemptyset(&block);
    sigaddset(&block, SIGTERM);
    sigaddset(&block, SIGCHLD);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &block, &old), 0);
    void (*old_pipe)(int) = signal(SIGPIPE, SIG_IGN);
    void (*old_int)(int) = signal(SIGINT, SIG_IGN);
    const dj_status status =
        test_process_shell(&run, "exec cat /proc/self/status", (dj__process){.dir = NULL});
    signal(SIGPIPE, old_pipe);
    signal(SIGINT, old_int);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
    assert_int_equal(status, DJ_OK);
    assert_int_equal(run.result.exit_code, 0);
    const char *text = dj__strbuf_str(&run.output);
    assert_int_equal(test_process_mask(text, "SigBlk:"), 0);
    const unsigned long long ignored = test_process_mask(text, "SigIgn:");
    assert_int_equal(ignored & (1ULL << (SIGPIPE - 1)), 0);
    assert_int_equal(ignored & (1ULL << (SIGINT - 1)), 0);
    dj__strbuf_fini(&run.output);
}

static void test_process_deadline(void **state)
{
    (void)state;
    test_process_case run;
    /* The shell and its child ignore SIGTERM; the child holds the pipe. */
    assert_int_equal(test_process_shell(&run, "trap '' TERM; echo $$; while :; do sleep 1000; done",
                                        (dj__process){.timeout_ms = 200}),
                     DJ_TIMEOUT);
    assert_non_null(strstr(run.err.message, "/bin/sh did not end within 200 ms"));
    test_process_expect_dead(dj__strbuf_str(&run.output));
    dj__strbuf_fini(&run.output);

    /* Output without end cannot keep the deadline away, nor can a closed pipe. */
    assert_int_equal(
        test_process_shell(&run, "while :; do echo x; done", (dj__process){.timeout_ms = 100}),
        DJ_TIMEOUT);
    dj__strbuf_fini(&run.output);
    assert_int_equal(test_process_shell(&run, "exec >&- 2>&-; while :; do :; done",
                                        (dj__process){.timeout_ms = 100}),
                     DJ_TIMEOUT);
    dj__strbuf_fini(&run.output);
    test_process_no_children();
}

static void test_process_stopped_child(void **state)
{
    (void)state;
    test_process_case run;
    assert_int_equal(test_process_shell(&run, "kill -STOP $$", (dj__process){.timeout_ms = 100}),
                     DJ_TIMEOUT);
    dj__strbuf_fini(&run.output);
    test_process_no_children();
}

static void test_process_handle_usr1(int signal)
{
    (void)signal;
    dj_cancel_request(test_process_cancel);
}

/* The program itself makes us cancel it: no timing, and the request comes from a handler. */
static void test_process_cancelled(void **state)
{
    (void)state;
    test_process_case run;
    struct sigaction action = {.sa_handler = test_process_handle_usr1};
    struct sigaction old;
    assert_int_equal(dj_cancel_create(&test_process_cancel, NULL), DJ_OK);
    assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
    const dj__process process = {.cancel = test_process_cancel};
    assert_int_equal(test_process_shell(&run,
                                        "sleep 1000 & echo $!; kill -USR1 $PPID; "
                                        "trap '' TERM; while :; do sleep 1000; done",
                                        process),
                     DJ_CANCELLED);
    assert_non_null(strstr(run.err.message, "/bin/sh"));
    test_process_expect_dead(dj__strbuf_str(&run.output));
    dj__strbuf_fini(&run.output);

    /* A cancelled object stays cancelled: nothing is started. */
    assert_int_equal(test_process_shell(&run, "echo started", process), DJ_CANCELLED);
    assert_int_equal(run.output.size, 0);
    dj__strbuf_fini(&run.output);
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
    dj_cancel_release(test_process_cancel);
    test_process_no_children();
}

static void test_process_grandchild_keeps_pipe(void **state)
{
    (void)state;
    test_process_case run;
    assert_int_equal(
        test_process_shell(&run, "sleep 1000 & echo $!; exit 3", (dj__process){.dir = NULL}),
        DJ_OK);
    assert_int_equal(run.result.exit_code, 3);
    test_process_expect_dead(dj__strbuf_str(&run.output));
    dj__strbuf_fini(&run.output);

    /* Neither can one that left the group hold us, nor one that writes without end. */
    assert_int_equal(test_process_shell(&run, "setsid yes & echo $!", (dj__process){.dir = NULL}),
                     DJ_OK);
    const char *pid = dj__strbuf_str(&run.output);
    while (*pid != '\0' && !isdigit((unsigned char)*pid)) {
        pid++;
    }
    assert_true(isdigit((unsigned char)*pid));
    kill((pid_t)strtol(pid, NULL, 10), SIGKILL);
    test_process_expect_dead(pid);
    dj__strbuf_fini(&run.output);
}

static void test_process_sigchld_ignored(void **state)
{
    (void)state;
    test_process_case run;
    void (*old)(int) = signal(SIGCHLD, SIG_IGN);
    const dj_status status =
        test_process_shell(&run, "echo text; exit 0", (dj__process){.dir = NULL});
    signal(SIGCHLD, old);
    assert_int_equal(status, DJ_INTERNAL);
    assert_non_null(strstr(run.err.message, "set SIGCHLD to SIG_DFL"));
    assert_string_equal(dj__strbuf_str(&run.output), "text\n");
    dj__strbuf_fini(&run.output);

    assert_int_equal(test_process_shell(&run, "exit 4", (dj__process){.dir = NULL}), DJ_OK);
    assert_int_equal(run.result.exit_code, 4);
    dj__strbuf_fini(&run.output);
}

static void test_process_reap_any(int signal)
{
    (void)signal;
    const int saved = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    errno = saved;
}

/* The handler runs before our poll returns, so it wins, unless the child ends just while we look at
 * it, outside of poll: then its status is known after all. */
static dj_status test_process_steal(void)
{
    test_process_case run;
    struct sigaction action = {.sa_handler = test_process_reap_any};
    struct sigaction old;
    assert_int_equal(sigaction(SIGCHLD, &action, &old), 0);
    const dj_status status =
        test_process_shell(&run, "sleep 1000 & echo $!; exit 3", (dj__process){.dir = NULL});
    assert_int_equal(sigaction(SIGCHLD, &old, NULL), 0);
    if (status == DJ_OK) {
        assert_int_equal(run.result.exit_code, 3);
    } else {
        assert_int_equal(status, DJ_INTERNAL);
        assert_non_null(strstr(run.err.message, "wait for child processes by their number"));
    }
    test_process_expect_dead(dj__strbuf_str(&run.output));
    dj__strbuf_fini(&run.output);
    return status;
}

static void test_process_status_stolen(void **state)
{
    (void)state;
    int tries = 0;
    while (test_process_steal() == DJ_OK) {
        assert_true(++tries < 100);
    }
}

static void *test_process_many(void *arg)
{
    const int first = *(const int *)arg;
    for (int i = 0; i < 25; i++) {
        test_process_case run;
        char script[64];
        char expected[64];
        snprintf(script, sizeof(script), "echo %d; exit %d", first + i, i);
        snprintf(expected, sizeof(expected), "%d\n", first + i);
        if (test_process_shell(&run, script, (dj__process){.timeout_ms = 60000}) != DJ_OK ||
            run.result.exit_code != i || strcmp(dj__strbuf_str(&run.output), expected) != 0) {
            dj__strbuf_fini(&run.output);
            return arg;
        }
        dj__strbuf_fini(&run.output);
    }
    return NULL;
}

static void test_process_from_many_threads(void **state)
{
    (void)state;
    pthread_t threads[8];
    int first[8];
    for (int i = 0; i < 8; i++) {
        first[i] = 1000 * i;
        assert_int_equal(pthread_create(&threads[i], NULL, test_process_many, &first[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    test_process_no_children();
}

static void test_process_leaves_nothing(void **state)
{
    (void)state;
    const char *const good[] = {"/bin/sh", "-c", ":", NULL};
    const char *const bad[] = {"/no/such/program", NULL};
    const size_t before = test_process_count_fds();
    for (int i = 0; i < 1000; i++) {
        dj__process process = {.argv = good};
        dj__process_result result;
        assert_int_equal(dj__process_run(&process, NULL, &result, NULL), DJ_OK);
        process.argv = bad;
        assert_int_equal(dj__process_run(&process, NULL, &result, NULL), DJ_NOT_FOUND);
    }
    assert_int_equal(test_process_count_fds(), before);
    test_process_no_children();
}

static void test_process_find_program(void **state)
{
    (void)state;
    char path[512];
    char search[2048];
    char sub[512];
    snprintf(sub, sizeof(sub), "%s/bin", test_process_dir);
    assert_int_equal(dj__make_dirs(sub, 0755), 0);
    test_process_write("bin/tool", "#!/bin/sh\n", 0755, path);
    char plain[512];
    test_process_write("tool", "#!/bin/sh\n", 0644, plain);

    /* Relative and empty elements, directories and files without x are passed over. */
    assert_int_equal(chdir(sub), 0);
    assert_null(dj__find_program("tool", ".::bin:"));
    assert_null(dj__find_program("bin", test_process_dir));
    snprintf(search, sizeof(search), ":.:/no/such:%s:%s", test_process_dir, sub);
    char *found = dj__find_program("tool", search);
    assert_int_equal(chdir("/"), 0);
    assert_non_null(found);
    assert_string_equal(found, path);
    free(found);

    found = dj__find_program(path, NULL);
    assert_string_equal(found, path);
    free(found);
    assert_null(dj__find_program(plain, NULL));
    assert_null(dj__find_program("./bin/tool", test_process_dir));
    assert_null(dj__find_program("tool", NULL));
    assert_null(dj__find_program("tool", ""));
    assert_null(dj__find_program("", sub));
    assert_null(dj__find_program(NULL, sub));
}

static void test_process_command_text(void **state)
{
    (void)state;
    const char *const argv[] = {"/usr/bin/cc", "-DX=a b", "it's", "", "-c", NULL};
    dj__strbuf text;
    dj__strbuf_init(&text, 1024);
    dj__command_text(argv, &text);
    assert_string_equal(dj__strbuf_str(&text), "/usr/bin/cc '-DX=a b' 'it'\\''s' '' -c");
    dj__strbuf_fini(&text);
}

static int test_process_set_up(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(test_process_dir, sizeof(test_process_dir), "%s/dj-process-XXXXXX",
             tmp != NULL ? tmp : "/tmp");
    return mkdtemp(test_process_dir) == NULL ? -1 : 0;
}

static int test_process_tear_down(void **state)
{
    (void)state;
    return dj__remove_tree(test_process_dir);
}

/* For older kernels: from here on this process has no pidfd_open. */
static bool test_process_forbid_pidfd(void)
{
    const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TEST_PROCESS_PIDFD_OPEN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
                                       .filter = (struct sock_filter *)(uintptr_t)filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_process_merges_output),
        cmocka_unit_test(test_process_keeps_nul),
        cmocka_unit_test(test_process_output_may_be_dropped),
        cmocka_unit_test(test_process_flood),
        cmocka_unit_test(test_process_output_limit),
        cmocka_unit_test(test_process_exit_and_signal),
        cmocka_unit_test(test_process_first_error_line),
        cmocka_unit_test(test_process_appends),
        cmocka_unit_test(test_process_output_buffer_full),
        cmocka_unit_test(test_process_cannot_start),
        cmocka_unit_test(test_process_directory),
        cmocka_unit_test(test_process_environment),
        cmocka_unit_test(test_process_stdin_and_descriptors),
        cmocka_unit_test(test_process_closed_stdio),
        cmocka_unit_test(test_process_signals_are_reset),
        cmocka_unit_test(test_process_deadline),
        cmocka_unit_test(test_process_stopped_child),
        cmocka_unit_test(test_process_cancelled),
        cmocka_unit_test(test_process_grandchild_keeps_pipe),
        cmocka_unit_test(test_process_sigchld_ignored),
        cmocka_unit_test(test_process_status_stolen),
        cmocka_unit_test(test_process_from_many_threads),
        cmocka_unit_test(test_process_leaves_nothing),
        cmocka_unit_test(test_process_find_program),
        cmocka_unit_test(test_process_command_text),
    };
    int failed =
        cmocka_run_group_tests_name("process", tests, test_process_set_up, test_process_tear_down);
    if (!test_process_forbid_pidfd()) {
        print_message("skipped: no seccomp filters here, so nothing runs without pidfd\n");
        return failed;
    }
    failed += cmocka_run_group_tests_name("process without pidfd", tests, test_process_set_up,
                                          test_process_tear_down);
    return failed;
}
