/* SPDX-License-Identifier: MIT */
/* Levels, the callback, and what arrives at stderr: one write per message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct seen {
    unsigned count;
    dj_log_level level;
    char text[2 * PIPE_BUF];
} seen;

static void remember(void *user, dj_log_level level, const char *message)
{
    seen *last = user;
    last->count++;
    last->level = level;
    strncpy(last->text, message, sizeof(last->text) - 1);
    errno = EXDEV; /* a callback may do anything */
}

static void levels_filter(void **state)
{
    (void)state;
    for (int shown = DJ_LOG_OFF; shown <= DJ_LOG_DEBUG; shown++) {
        const dj__log log = {.level = (dj_log_level)shown};
        for (int level = DJ_LOG_OFF; level <= DJ_LOG_DEBUG; level++) {
            assert_int_equal(dj__log_on(&log, (dj_log_level)level),
                             level != DJ_LOG_OFF && level <= shown);
        }
        assert_false(dj__log_on(&log, (dj_log_level)(DJ_LOG_DEBUG + 1)));
    }
    assert_false(dj__log_on(NULL, DJ_LOG_ERROR));
    dj__log_write(NULL, DJ_LOG_ERROR, "nobody sees this");
}

static void callback_gets_the_text_alone(void **state)
{
    (void)state;
    seen last = {0};
    dj__log log = {.fn = remember, .user = &last, .level = DJ_LOG_INFO};
    errno = ENOENT;
    dj__log_write(&log, DJ_LOG_INFO, "built %s in %d ms", "k", 3);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(last.count, 1);
    assert_int_equal(last.level, DJ_LOG_INFO);
    assert_string_equal(last.text, "built k in 3 ms");

    dj__log_write(&log, DJ_LOG_DEBUG, "hidden");
    assert_int_equal(last.count, 1);
    dj__log_write(&log, DJ_LOG_ERROR, "%s", "");
    assert_int_equal(last.count, 2);
    assert_string_equal(last.text, "");
}

static void callback_gets_long_texts_whole(void **state)
{
    (void)state;
    seen last = {0};
    dj__log log = {.fn = remember, .user = &last, .level = DJ_LOG_DEBUG};
    /* Around the size of the buffer on the stack. */
    for (size_t size = PIPE_BUF - 40; size < PIPE_BUF + 40; size++) {
        char text[PIPE_BUF + 40];
        memset(text, 'm', size);
        text[size - 1] = 'z';
        text[size] = '\0';
        dj__log_write(&log, DJ_LOG_DEBUG, "%s", text);
        assert_string_equal(last.text, text);
    }
}

/* A socket that keeps the borders of writes stands in for stderr. */
static void capture_begin(int sockets[2], int *saved)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    *saved = dup(STDERR_FILENO);
    assert_true(*saved >= 0);
    assert_int_equal(dup2(sockets[1], STDERR_FILENO), STDERR_FILENO);
}

static void capture_end(int sockets[2], int saved)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(sockets[0]);
    close(sockets[1]);
}

static void stderr_gets_one_write_per_message(void **state)
{
    (void)state;
    static const struct {
        dj_log_level level;
        const char *line;
    } cases[] = {
        {DJ_LOG_ERROR, "deepjit: error: two\nlines\n"},
        {DJ_LOG_WARN, "deepjit: warning: two\nlines\n"},
        {DJ_LOG_INFO, "deepjit: info: two\nlines\n"},
        {DJ_LOG_DEBUG, "deepjit: debug: two\nlines\n"},
    };
    dj__log log = {.level = DJ_LOG_DEBUG};
    int sockets[2];
    int saved;
    capture_begin(sockets, &saved);
    char got[4][64] = {{0}};
    for (size_t i = 0; i < 4; i++) {
        dj__log_write(&log, cases[i].level, "two\n%s", "lines");
        if (recv(sockets[0], got[i], sizeof(got[i]) - 1, MSG_DONTWAIT) < 0) {
            break;
        }
    }
    capture_end(sockets, saved);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(got[i], cases[i].line);
    }
}

static void long_message_is_one_write_too(void **state)
{
    (void)state;
    enum { SIZE = 3 * PIPE_BUF };
    char *text = malloc(SIZE + 1);
    char *got = calloc(1, 2 * SIZE);
    assert_non_null(text);
    assert_non_null(got);
    memset(text, 'm', SIZE);
    text[SIZE] = '\0';
    dj__log log = {.level = DJ_LOG_WARN};
    int sockets[2];
    int saved;
    capture_begin(sockets, &saved);
    dj__log_write(&log, DJ_LOG_WARN, "%s", text);
    const ssize_t size = recv(sockets[0], got, 2 * SIZE, MSG_DONTWAIT);
    capture_end(sockets, saved);
    const size_t start = strlen("deepjit: warning: ");
    assert_int_equal(size, start + SIZE + 1);
    assert_memory_equal(got + start, text, SIZE);
    assert_int_equal(got[size - 1], '\n');
    free(got);
    free(text);
}

static void closed_stderr_is_no_problem(void **state)
{
    (void)state;
    dj__log log = {.level = DJ_LOG_WARN};
    const int saved = dup(STDERR_FILENO);
    assert_true(saved >= 0);
    close(STDERR_FILENO);
    errno = ENOENT;
    dj__log_write(&log, DJ_LOG_WARN, "lost");
    const int after = errno;
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_int_equal(after, ENOENT);
}

static void level_words(void **state)
{
    (void)state;
    static const char *const words[] = {"off", "error", "warn", "info", "debug"};
    dj_log_level level;
    for (int i = 0; i < 5; i++) {
        level = DJ_LOG_OFF;
        assert_true(dj__log_parse_level(words[i], &level));
        assert_int_equal(level, i);
    }
    assert_true(dj__log_parse_level("InFo", &level));
    assert_int_equal(level, DJ_LOG_INFO);
    static const char *const wrong[] = {"", "warning", "war", "3", " info", "info "};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(dj__log_parse_level(wrong[i], &level));
        assert_int_equal(level, DJ_LOG_INFO);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_filter),
        cmocka_unit_test(callback_gets_the_text_alone),
        cmocka_unit_test(callback_gets_long_texts_whole),
        cmocka_unit_test(stderr_gets_one_write_per_message),
        cmocka_unit_test(long_message_is_one_write_too),
        cmocka_unit_test(closed_stderr_is_no_problem),
        cmocka_unit_test(level_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
