/* SPDX-License-Identifier: MIT */
/*
 * Running programs. Invariants:
 *   - Only our own child is waited for, never any child: the host process has its own.
 *   - The child is first looked at (WNOWAIT) and reaped last. Until then its number cannot be
 *     given to another process, so signals to its group reach only that group.
 *   - Nothing waits without a bound: not for EOF, since a grandchild can hold the pipe open, and
 *     not for a killed child, since one in an uninterruptible system call stays.
 */
#include "base/process.h"

#include "base/error.h"
#include "base/fs.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
#define PROCESS_HAVE_CLOSEFROM 1
#endif
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* the same on every architecture */
#endif

#define PROCESS_MS INT64_C(1000000)
#define PROCESS_GRACE_NS (200 * PROCESS_MS)  /* between SIGTERM and SIGKILL */
#define PROCESS_DRAIN_NS (200 * PROCESS_MS)  /* for EOF once the group has been killed */
#define PROCESS_KILL_NS (10000 * PROCESS_MS) /* for the end of a child after SIGKILL */

enum {
    PROCESS_CHUNK = 64 * 1024,
    PROCESS_DEFAULT_LIMIT = 1024 * 1024,
    PROCESS_LOOK_MS = 10 /* where the kernel has no pidfd */
};

/* The first half of the limit goes straight to `output`, the rest through a ring. */
typedef struct process_sink {
    dj__strbuf *output; /* NULL: everything is dropped */
    size_t head_left;
    char *ring;
    size_t ring_capacity;
    size_t ring_used;
    size_t ring_at; /* where the next byte goes */
    uint64_t left_out;
} process_sink;

typedef enum process_phase {
    PROCESS_RUNNING,
    PROCESS_TERMINATED, /* SIGTERM sent */
    PROCESS_KILLED,     /* SIGKILL sent */
    PROCESS_ENDED       /* exited, lost, or given up */
} process_phase;

typedef struct process_child {
    pid_t pid;
    int pipe;  /* -1 after EOF */
    int pidfd; /* -1 if the kernel has none, or the child is gone already */
    process_phase phase;
    int64_t deadline_ns; /* of the phase; INT64_MAX: none */
    dj_status why;       /* OK, TIMEOUT, CANCELLED; INTERNAL: the status was lost */
    siginfo_t exit;
    bool exited; /* `exit` is valid */
    process_sink sink;
} process_child;

static void process_sink_ring(process_sink *sink, const char *data, size_t size)
{
    if (sink->ring == NULL) {
        sink->ring = malloc(sink->ring_capacity);
        if (sink->ring == NULL) {
            sink->output->status = DJ_NO_MEMORY; /* the child is still drained */
            sink->output = NULL;
            return;
        }
    }
    if (size > sink->ring_capacity) {
        sink->left_out += size - sink->ring_capacity;
        data += size - sink->ring_capacity;
        size = sink->ring_capacity;
    }
    const size_t room = sink->ring_capacity - sink->ring_used;
    sink->left_out += size > room ? size - room : 0;
    sink->ring_used += size > room ? room : size;
    const size_t to_end = sink->ring_capacity - sink->ring_at;
    const size_t first = size < to_end ? size : to_end;
    memcpy(sink->ring + sink->ring_at, data, first);
    memcpy(sink->ring, data + first, size - first);
    sink->ring_at = (sink->ring_at + size) % sink->ring_capacity;
}

static void process_sink_add(process_sink *sink, const char *data, size_t size)
{
    if (sink->output == NULL) {
        return;
    }
    const size_t head = size < sink->head_left ? size : sink->head_left;
    dj__strbuf_append(sink->output, data, head);
    sink->head_left -= head;
    if (size > head) {
        process_sink_ring(sink, data + head, size - head);
    }
}

static void process_sink_fini(process_sink *sink)
{
    if (sink->output != NULL && sink->ring_used > 0) {
        if (sink->left_out > 0) {
            dj__strbuf_printf(sink->output, "\n... (%llu bytes left out) ...\n",
                              (unsigned long long)sink->left_out);
        }
        const size_t start =
            (sink->ring_at + sink->ring_capacity - sink->ring_used) % sink->ring_capacity;
        const size_t to_end = sink->ring_capacity - start;
        const size_t first = sink->ring_used < to_end ? sink->ring_used : to_end;
        dj__strbuf_append(sink->output, sink->ring + start, first);
        dj__strbuf_append(sink->output, sink->ring, sink->ring_used - first);
    }
    free(sink->ring);
}

static void process_close(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* Descriptors 0 to 2 are targets of the spawn actions: in a host that closed its own, ours must
 * not lie there. */
static int process_above_stdio(int *fd)
{
    if (*fd > STDERR_FILENO) {
        return 0;
    }
    const int higher = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = higher < 0 ? errno : 0;
    process_close(fd);
    *fd = higher;
    return error;
}

static int process_open_pipe(int fds[2])
{
    if (pipe2(fds, O_CLOEXEC) != 0) {
        fds[0] = fds[1] = -1;
        return errno;
    }
    int error = process_above_stdio(&fds[0]);
    error = error != 0 ? error : process_above_stdio(&fds[1]);
    if (error == 0 && fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) {
        error = errno;
    }
    return error;
}

static int process_set_actions(posix_spawn_file_actions_t *actions, const char *dir, int null_fd,
                               int pipe_fd)
{
    int error = posix_spawn_file_actions_adddup2(actions, null_fd, STDIN_FILENO);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(actions, pipe_fd, STDOUT_FILENO);
    }
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(actions, pipe_fd, STDERR_FILENO);
    }
#ifdef PROCESS_HAVE_CLOSEFROM
    if (error == 0) {
        error = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
    }
#endif
    if (error == 0 && dir != NULL) {
        error = posix_spawn_file_actions_addchdir_np(actions, dir);
    }
    return error;
}

/* A host may block or ignore any signal; programs expect none of that. */
static int process_set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (error == 0) {
        error = posix_spawnattr_setpgroup(attributes, 0);
    }
    if (error == 0) {
        error = posix_spawnattr_setsigmask(attributes, &none);
    }
    if (error == 0) {
        error = posix_spawnattr_setsigdefault(attributes, &all);
    }
    return error;
}

static int process_spawn_with(const dj__process *process, int null_fd, int pipe_fd, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    static const char *const no_environment[] = {NULL};
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    error = process_set_attributes(&attributes);
    if (error == 0) {
        error = process_set_actions(&actions, process->dir, null_fd, pipe_fd);
    }
    if (error == 0) {
        /* The casts: posix_spawn takes but does not change what it is given. */
        error = posix_spawn(
            pid, process->argv[0], &actions, &attributes, (char *const *)(uintptr_t)process->argv,
            (char *const *)(uintptr_t)(process->envp != NULL ? process->envp : no_environment));
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* 0 or an errno value. */
static int process_spawn(const dj__process *process, process_child *child)
{
    int pipe_fds[2] = {-1, -1};
    int null_fd = -1;
    int error = process_open_pipe(pipe_fds);
    if (error != 0) {
        goto out;
    }
    null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd < 0) {
        error = errno == ENOENT ? EIO : errno; /* not the program is missing */
        goto out;
    }
    error = process_above_stdio(&null_fd);
    if (error != 0) {
        goto out;
    }
    error = process_spawn_with(process, null_fd, pipe_fds[1], &child->pid);
    if (error != 0) {
        goto out;
    }
    child->pipe = pipe_fds[0];
    pipe_fds[0] = -1;
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
out:
    process_close(&null_fd);
    process_close(&pipe_fds[0]);
    process_close(&pipe_fds[1]);
    return error;
}

static dj_status process_spawn_failed(const dj__process *process, int error, dj_error *err)
{
    const char *program = process->argv[0];
    struct stat st;
    if (process->dir != NULL && (stat(process->dir, &st) != 0 || !S_ISDIR(st.st_mode))) {
        return dj__fail_errno(err, error, "cannot run %s in directory %s", program, process->dir);
    }
    if (error == ENOENT && stat(program, &st) == 0) {
        return dj__fail_errno(err, error,
                              "cannot run %s: it exists, but the interpreter in its first line or "
                              "its loader does not",
                              program);
    }
    if (error == ENOEXEC) {
        return dj__fail_errno(err, error,
                              "cannot run %s: neither a program for this machine nor a script "
                              "that starts with #!",
                              program);
    }
    return dj__fail_errno(err, error, "cannot run %s", program);
}

/* Reads once; more is left to the next round, so that a flood cannot keep a deadline away. */
static void process_drain(process_child *child, char *chunk)
{
    const ssize_t got = read(child->pipe, chunk, PROCESS_CHUNK);
    if (got > 0) {
        process_sink_add(&child->sink, chunk, (size_t)got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        process_close(&child->pipe);
    }
}

static void process_kill(const process_child *child, int signal)
{
    kill(-child->pid, signal);
}

/* Looks whether the child has ended, and leaves it unreaped. */
static void process_look(process_child *child)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
        if (info.si_pid == child->pid) {
            child->exit = info;
            child->exited = true;
            child->phase = PROCESS_ENDED;
        }
    } else if (errno == ECHILD) {
        child->why = child->why == DJ_OK ? DJ_INTERNAL : child->why;
        child->phase = PROCESS_ENDED;
    }
}

static void process_advance(process_child *child, const dj_cancel *cancel, bool cancelled)
{
    const int64_t now = dj__now_ns();
    switch (child->phase) {
    case PROCESS_RUNNING:
        cancelled = cancelled || dj_cancel_requested(cancel);
        if (cancelled || now >= child->deadline_ns) {
            child->why = cancelled ? DJ_CANCELLED : DJ_TIMEOUT;
            process_kill(child, SIGTERM);
            child->phase = PROCESS_TERMINATED;
            child->deadline_ns = now + PROCESS_GRACE_NS;
        }
        break;
    case PROCESS_TERMINATED:
        if (now >= child->deadline_ns) {
            process_kill(child, SIGKILL);
            child->phase = PROCESS_KILLED;
            child->deadline_ns = now + PROCESS_KILL_NS;
        }
        break;
    case PROCESS_KILLED:
        if (now >= child->deadline_ns) {
            child->phase = PROCESS_ENDED;
        }
        break;
    case PROCESS_ENDED:
        break;
    }
}

/* Milliseconds until `deadline`, rounded up, for poll; -1 for never. */
static int process_poll_ms(int64_t deadline_ns)
{
    if (deadline_ns == INT64_MAX) {
        return -1;
    }
    const int64_t left = deadline_ns - dj__now_ns();
    if (left <= 0) {
        return 0;
    }
    const int64_t ms = (left + PROCESS_MS - 1) / PROCESS_MS;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

/* Until the child has ended, or was given up. */
static void process_wait(process_child *child, const dj_cancel *cancel, char *chunk)
{
    while (child->phase != PROCESS_ENDED) {
        struct pollfd fds[3] = {
            {.fd = child->pipe, .events = POLLIN},
            {.fd = child->pidfd, .events = POLLIN},
            {.fd = cancel != NULL && child->phase == PROCESS_RUNNING ? dj__cancel_fd(cancel) : -1,
             .events = POLLIN},
        };
        int timeout = process_poll_ms(child->deadline_ns);
        const int look = child->pipe >= 0 ? PROCESS_LOOK_MS : 1; /* after EOF the end is near */
        if (child->pidfd < 0 && (timeout < 0 || timeout > look)) {
            timeout = look;
        }
        const int ready = poll(fds, 3, timeout);
        if (ready > 0 && fds[0].revents != 0) {
            process_drain(child, chunk);
        }
        if (child->pidfd < 0 || ready < 0 || fds[1].revents != 0) {
            process_look(child);
        }
        process_advance(child, cancel, ready > 0 && fds[2].revents != 0);
    }
}

/* Ends what is left of the group, takes the output that is still in the pipe, and reaps. EOF
 * also tells that the group's members are gone; one that left the group may keep it away. */
static void process_finish(process_child *child, char *chunk)
{
    process_kill(child, SIGKILL);
    const int64_t deadline_ns = dj__now_ns() + PROCESS_DRAIN_NS;
    while (child->pipe >= 0 && dj__now_ns() < deadline_ns) {
        struct pollfd fd = {.fd = child->pipe, .events = POLLIN};
        if (poll(&fd, 1, process_poll_ms(deadline_ns)) > 0) {
            process_drain(child, chunk);
        }
    }
    if (child->exited) {
        siginfo_t info;
        while (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG) != 0 && errno == EINTR) {
        }
    }
    process_close(&child->pipe);
    process_close(&child->pidfd);
    process_sink_fini(&child->sink);
}

static dj_status process_outcome(const dj__process *process, const process_child *child,
                                 dj__process_result *result, dj_error *err)
{
    const char *program = process->argv[0];
    switch (child->why) {
    case DJ_TIMEOUT:
        return dj__fail(err, DJ_TIMEOUT, "%s did not end within %lld ms and was killed%s", program,
                        (long long)process->timeout_ms,
                        child->phase == PROCESS_ENDED && child->exited
                            ? ""
                            : " (it has not reacted to SIGKILL yet)");
    case DJ_CANCELLED:
        return dj__fail(err, DJ_CANCELLED, "cancelled while %s was running", program);
    case DJ_OK:
        break;
    default:
        return dj__fail(err, DJ_INTERNAL,
                        "the exit status of %s was lost: this process ignores SIGCHLD or waits "
                        "for any child; set SIGCHLD to SIG_DFL while kernels are compiled, and "
                        "wait for child processes by their number",
                        program);
    }
    if (child->exit.si_code == CLD_EXITED) {
        result->exit_code = child->exit.si_status;
    } else {
        result->signal = child->exit.si_status;
        result->exit_code = 128 + result->signal;
    }
    return DJ_OK;
}

dj_status dj__process_run(const dj__process *process, dj__strbuf *output,
                          dj__process_result *result, dj_error *err)
{
    *result = (dj__process_result){.exit_code = 0};
    if (process->argv == NULL || process->argv[0] == NULL || process->argv[0][0] != '/') {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "a command must start with the absolute path of a program");
    }
    if (dj_cancel_requested(process->cancel)) {
        return dj__fail(err, DJ_CANCELLED, "cancelled before %s was started", process->argv[0]);
    }
    char *chunk = malloc(PROCESS_CHUNK);
    if (chunk == NULL) {
        return dj__fail_memory(err);
    }
    const size_t limit = process->output_limit != 0 ? process->output_limit : PROCESS_DEFAULT_LIMIT;
    process_child child = {
        .pipe = -1,
        .pidfd = -1,
        .phase = PROCESS_RUNNING,
        .deadline_ns = INT64_MAX,
        .why = DJ_OK,
        .sink = {.output = output, .head_left = limit / 2, .ring_capacity = limit - limit / 2},
    };
    const int64_t start_ns = dj__now_ns();
    if (process->timeout_ms > 0 && process->timeout_ms < (INT64_MAX - start_ns) / PROCESS_MS) {
        child.deadline_ns = start_ns + process->timeout_ms * PROCESS_MS;
    }
    dj_status status;
    const int error = process_spawn(process, &child);
    if (error != 0) {
        status = process_spawn_failed(process, error, err);
        goto out;
    }
    process_wait(&child, process->cancel, chunk);
    process_finish(&child, chunk);
    result->wall_ns = dj__now_ns() - start_ns;
    status = process_outcome(process, &child, result, err);
    if (status == DJ_OK && output != NULL) {
        status = dj__strbuf_ok(output, err);
    }
out:
    free(chunk);
    return status;
}

/* How much a line looks like a compiler's error: 3 "error:", 2 "fatal error", 1 "error" or
 * "fatal" before blanks and a colon ("ptxas fatal   : ...") or before a number, else 0. */
static int process_rank_line(const char *line, size_t size)
{
    int rank = 0;
    for (size_t i = 0; i + 5 <= size; i++) {
        const bool is_error = strncasecmp(line + i, "error", 5) == 0;
        if (!is_error && strncasecmp(line + i, "fatal", 5) != 0) {
            continue;
        }
        size_t next = i + 5;
        if (is_error && next < size && line[next] == ':') {
            return 3;
        }
        const size_t blanks = next;
        while (next < size && line[next] == ' ') {
            next++;
        }
        if (!is_error && size - next >= 5 && strncasecmp(line + next, "error", 5) == 0) {
            rank = 2;
        } else if (rank == 0 && next < size &&
                   (line[next] == ':' || (next > blanks && line[next] == '#'))) {
            rank = 1;
        }
    }
    return rank;
}

/* The line that tells best what went wrong: the first of the highest rank, else the last that
 * is not empty. */
static const char *process_error_line(const char *text, size_t size, size_t *length)
{
    const char *best = text;
    int best_rank = 0;
    *length = 0;
    for (size_t at = 0; at < size;) {
        const char *line = text + at;
        const char *end = memchr(line, '\n', size - at);
        size_t line_size = end != NULL ? (size_t)(end - line) : size - at;
        at += line_size + 1;
        while (line_size > 0 && (line[line_size - 1] == '\r' || line[line_size - 1] == ' ')) {
            line_size--;
        }
        const int rank = process_rank_line(line, line_size);
        if (line_size > 0 && (rank > best_rank || (rank == 0 && best_rank == 0))) {
            best = line;
            best_rank = rank;
            *length = line_size;
        }
    }
    return best;
}

/* Copies what fits as a C string; NUL bytes become blanks. */
static void process_copy_text(char *out, size_t capacity, const char *text, size_t size)
{
    const size_t used = size < capacity - 1 ? size : capacity - 1;
    for (size_t i = 0; i < used; i++) {
        out[i] = text[i] != '\0' ? text[i] : ' ';
    }
    out[used] = '\0';
}

static dj_status process_exit_failed(const dj__process *process, const char *text, size_t size,
                                     const dj__process_result *result, dj_error *err)
{
    char line[sizeof(err->message) / 2];
    char excerpt[sizeof(err->message)];
    dj__strbuf signal;
    dj__strbuf command;
    size_t length;
    const char *first = process_error_line(text, size, &length);
    process_copy_text(line, sizeof(line), first, length);
    process_copy_text(excerpt, sizeof(excerpt), text, size);
    dj__strbuf_init(&signal, 64);
    if (result->signal != 0) {
        dj__strbuf_printf(&signal, " (killed by signal %d)", result->signal);
    }
    dj__strbuf_init(&command, SIZE_MAX / 2);
    dj__command_text(process->argv, &command);
    const dj_status status =
        dj__fail_native(err, DJ_COMPILE, "compiler", result->exit_code,
                        "%s%scommand failed with exit code %d%s:\n%s\n%s", line,
                        length > 0 ? "\n" : "", result->exit_code, dj__strbuf_str(&signal),
                        dj__strbuf_str(&command), size > 0 ? excerpt : "(no output)");
    dj__strbuf_fini(&command);
    dj__strbuf_fini(&signal);
    return status;
}

dj_status dj__process_check(const dj__process *process, dj__strbuf *output,
                            dj__process_result *result, dj_error *err)
{
    dj__strbuf own;
    dj__strbuf_init(&own, SIZE_MAX / 2);
    if (output == NULL) {
        output = &own;
    }
    const size_t start = output->size;
    dj_status status = dj__process_run(process, output, result, err);
    if (status == DJ_OK && result->exit_code != 0) {
        status = process_exit_failed(process, dj__strbuf_str(output) + start, output->size - start,
                                     result, err);
    }
    dj__strbuf_fini(&own);
    return status;
}

char *dj__find_program(const char *program, const char *path)
{
    if (program == NULL || program[0] == '\0') {
        return NULL;
    }
    if (strchr(program, '/') != NULL) {
        return program[0] == '/' && dj__is_executable(program) ? strdup(program) : NULL;
    }
    while (path != NULL && *path != '\0') {
        const size_t length = strcspn(path, ":");
        if (path[0] == '/') {
            char *candidate = dj__format("%.*s/%s", (int)length, path, program);
            if (candidate == NULL || dj__is_executable(candidate)) {
                return candidate;
            }
            free(candidate);
        }
        path += length;
        path += *path == ':';
    }
    return NULL;
}

void dj__command_text(const char *const *argv, dj__strbuf *out)
{
    for (size_t i = 0; argv[i] != NULL; i++) {
        if (i > 0) {
            dj__strbuf_putc(out, ' ');
        }
        dj__strbuf_put_quoted(out, argv[i]);
    }
}
