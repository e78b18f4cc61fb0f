/* SPDX-License-Identifier: MIT */
/*
 * Growable byte strings with a limit, and lists of strings.
 *
 * Failures (no memory, limit reached) are remembered in the object; later appends do nothing.
 * So code appends freely and checks once at the end with dj__strbuf_ok / dj__strlist_ok.
 */
#ifndef DJ_BASE_STRBUF_H
#define DJ_BASE_STRBUF_H

#include <deepjit/base.h>
#include <stdarg.h>

typedef struct dj__strbuf {
    char *data;  /* NUL-terminated once anything was appended; else NULL */
    size_t size; /* without the NUL */
    size_t capacity;
    size_t limit; /* largest size */
    dj_status status;
} dj__strbuf;

void dj__strbuf_init(dj__strbuf *buf, size_t limit);
void dj__strbuf_fini(dj__strbuf *buf);
void dj__strbuf_append(dj__strbuf *buf, const void *data, size_t size);
void dj__strbuf_puts(dj__strbuf *buf, const char *text);
void dj__strbuf_putc(dj__strbuf *buf, char c);
void dj__strbuf_printf(dj__strbuf *buf, const char *format, ...) DJ_PRINTF(2, 3);
void dj__strbuf_vprintf(dj__strbuf *buf, const char *format, va_list args);
/* Appends an argument so that people, and a POSIX shell, can read it back: plain words as they
 * are, others in single quotes. For messages and meta.json only; we run no shell. */
void dj__strbuf_put_quoted(dj__strbuf *buf, const char *arg);
/* Back to empty; keeps memory, forgets a failure. */
void dj__strbuf_clear(dj__strbuf *buf);
/* OK, or NO_MEMORY / INVALID_ARGUMENT ("longer than N bytes") written to err. */
dj_status dj__strbuf_ok(const dj__strbuf *buf, dj_error *err);
/* The text, never NULL. */
const char *dj__strbuf_str(const dj__strbuf *buf);
/* Hands the memory to the caller (free(3)) and leaves the buffer empty. NULL after a failure,
 * which dj__strbuf_ok still reports. */
char *dj__strbuf_steal(dj__strbuf *buf);

typedef struct dj__strlist {
    char **items; /* NULL-terminated once anything was appended: usable as argv; else NULL */
    size_t count;
    size_t capacity;
    dj_status status;
} dj__strlist;

void dj__strlist_init(dj__strlist *list);
void dj__strlist_fini(dj__strlist *list);
void dj__strlist_add(dj__strlist *list, const char *item); /* copies */
void dj__strlist_addn(dj__strlist *list, const char *item, size_t size);
void dj__strlist_addf(dj__strlist *list, const char *format, ...) DJ_PRINTF(2, 3);
void dj__strlist_add_joined(dj__strlist *list, const char *first, const char *second);
void dj__strlist_add_all(dj__strlist *list, const char *const *items, size_t count);
dj_status dj__strlist_ok(const dj__strlist *list, dj_error *err);
/* As a const array; NULL if empty. */
const char *const *dj__strlist_items(const dj__strlist *list);

/* "<format>" in fresh memory, NULL without memory. */
char *dj__format(const char *format, ...) DJ_PRINTF(1, 2);
/* The parts up to NULL one after the other in fresh memory, NULL without memory. */
char *dj__concat(const char *const *parts);
/* Puts "..." at the end of a text that fills `text[size]` because it was cut there; never leaves
 * a part of a UTF-8 sequence. */
void dj__mark_cut(char *text, size_t size);
/* Equal but for the case of ASCII letters, whatever the locale. */
bool dj__equal_nocase(const char *a, const char *b);

#endif
