/* SPDX-License-Identifier: MIT */
/* Growable byte strings and lists of strings. Sizes are checked before they are added. */
#include "base/strbuf.h"

#include "base/error.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRBUF_FIRST_CAPACITY = 64, STRLIST_FIRST_CAPACITY = 16 };

void dj__strbuf_init(dj__strbuf *buf, size_t limit)
{
    *buf = (dj__strbuf){.limit = limit};
}

void dj__strbuf_fini(dj__strbuf *buf)
{
    free(buf->data);
    dj__strbuf_init(buf, buf->limit);
}

/* Makes room for `extra` more bytes and a NUL. */
static bool strbuf_reserve(dj__strbuf *buf, size_t extra)
{
    if (buf->status != DJ_OK) {
        return false;
    }
    if (extra > buf->limit - buf->size) {
        buf->status = DJ_INVALID_ARGUMENT;
        return false;
    }
    if (extra < buf->capacity - buf->size) {
        return true;
    }
    if (extra >= SIZE_MAX - buf->size) {
        buf->status = DJ_NO_MEMORY;
        return false;
    }
    const size_t need = buf->size + extra + 1;
    size_t capacity = buf->capacity <= SIZE_MAX / 2 ? buf->capacity * 2 : need;
    if (capacity < STRBUF_FIRST_CAPACITY) {
        capacity = STRBUF_FIRST_CAPACITY;
    }
    if (capacity < need) {
        capacity = need;
    }
    char *data = realloc(buf->data, capacity);
    if (data == NULL) {
        buf->status = DJ_NO_MEMORY;
        return false;
    }
    if (buf->data == NULL) {
        data[0] = '\0';
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void dj__strbuf_append(dj__strbuf *buf, const void *data, size_t size)
{
    if (!strbuf_reserve(buf, size)) {
        return;
    }
    if (size > 0) {
        memcpy(buf->data + buf->size, data, size);
    }
    buf->size += size;
    buf->data[buf->size] = '\0';
}

void dj__strbuf_puts(dj__strbuf *buf, const char *text)
{
    dj__strbuf_append(buf, text, strlen(text));
}

void dj__strbuf_putc(dj__strbuf *buf, char c)
{
    dj__strbuf_append(buf, &c, 1);
}

void dj__strbuf_printf(dj__strbuf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dj__strbuf_vprintf(buf, format, args);
    va_end(args);
}

void dj__strbuf_vprintf(dj__strbuf *buf, const char *format, va_list args)
{
    va_list measured;
    va_copy(measured, args);
    const int length = vsnprintf(NULL, 0, format, measured);
    va_end(measured);
    if (length < 0) {
        if (buf->status == DJ_OK) {
            buf->status = DJ_NO_MEMORY;
        }
        return;
    }
    if (strbuf_reserve(buf, (size_t)length)) {
        vsnprintf(buf->data + buf->size, (size_t)length + 1, format, args);
        buf->size += (size_t)length;
    }
}

void dj__strbuf_put_quoted(dj__strbuf *buf, const char *arg)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_@%+=:,./-";
    if (arg[0] != '\0' && arg[strspn(arg, plain)] == '\0') {
        dj__strbuf_puts(buf, arg);
        return;
    }
    dj__strbuf_putc(buf, '\'');
    for (;;) {
        const size_t run = strcspn(arg, "'");
        dj__strbuf_append(buf, arg, run);
        if (arg[run] == '\0') {
            break;
        }
        dj__strbuf_puts(buf, "'\\''");
        arg += run + 1;
    }
    dj__strbuf_putc(buf, '\'');
}

void dj__strbuf_clear(dj__strbuf *buf)
{
    buf->size = 0;
    buf->status = DJ_OK;
    if (buf->data != NULL) {
        buf->data[0] = '\0';
    }
}

dj_status dj__strbuf_ok(const dj__strbuf *buf, dj_error *err)
{
    if (buf->status == DJ_OK) {
        return DJ_OK;
    }
    if (buf->status == DJ_NO_MEMORY) {
        return dj__fail_memory(err);
    }
    return dj__fail(err, buf->status, "longer than %zu bytes", buf->limit);
}

const char *dj__strbuf_str(const dj__strbuf *buf)
{
    return buf->data != NULL ? buf->data : "";
}

char *dj__strbuf_steal(dj__strbuf *buf)
{
    if (!strbuf_reserve(buf, 0)) {
        return NULL;
    }
    char *data = buf->data;
    dj__strbuf_init(buf, buf->limit);
    return data;
}

void dj__strlist_init(dj__strlist *list)
{
    *list = (dj__strlist){0};
}

void dj__strlist_fini(dj__strlist *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    dj__strlist_init(list);
}

/* Makes room for one more item and the NULL after it. */
static bool strlist_reserve(dj__strlist *list)
{
    if (list->count + 1 < list->capacity) {
        return true;
    }
    if (list->capacity > SIZE_MAX / 2 / sizeof(*list->items)) {
        return false;
    }
    const size_t capacity = list->capacity > 0 ? list->capacity * 2 : STRLIST_FIRST_CAPACITY;
    char **items = realloc(list->items, capacity * sizeof(*items));
    if (items == NULL) {
        return false;
    }
    items[list->count] = NULL;
    list->items = items;
    list->capacity = capacity;
    return true;
}

/* Takes `item`; NULL stands for a failed allocation. */
static void strlist_take(dj__strlist *list, char *item)
{
    if (list->status == DJ_OK && (item == NULL || !strlist_reserve(list))) {
        list->status = DJ_NO_MEMORY;
    }
    if (list->status != DJ_OK) {
        free(item);
        return;
    }
    list->items[list->count++] = item;
    list->items[list->count] = NULL;
}

void dj__strlist_add(dj__strlist *list, const char *item)
{
    dj__strlist_addn(list, item, strlen(item));
}

void dj__strlist_addn(dj__strlist *list, const char *item, size_t size)
{
    if (list->status != DJ_OK) {
        return;
    }
    char *copy = size < SIZE_MAX ? malloc(size + 1) : NULL;
    if (copy != NULL) {
        if (size > 0) {
            memcpy(copy, item, size);
        }
        copy[size] = '\0';
    }
    strlist_take(list, copy);
}

void dj__strlist_add_joined(dj__strlist *list, const char *first, const char *second)
{
    if (list->status == DJ_OK) {
        strlist_take(list, dj__concat((const char *const[]){first, second, NULL}));
    }
}

static char *strbuf_vformat(const char *format, va_list args)
{
    dj__strbuf buf;
    dj__strbuf_init(&buf, SIZE_MAX);
    dj__strbuf_vprintf(&buf, format, args);
    char *text = dj__strbuf_steal(&buf);
    dj__strbuf_fini(&buf);
    return text;
}

void dj__strlist_addf(dj__strlist *list, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    strlist_take(list, strbuf_vformat(format, args));
    va_end(args);
}

void dj__strlist_add_all(dj__strlist *list, const char *const *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dj__strlist_add(list, items[i]);
    }
}

dj_status dj__strlist_ok(const dj__strlist *list, dj_error *err)
{
    return list->status == DJ_OK ? DJ_OK : dj__fail_memory(err);
}

const char *const *dj__strlist_items(const dj__strlist *list)
{
    return list->count > 0 ? (const char *const *)list->items : NULL;
}

char *dj__format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = strbuf_vformat(format, args);
    va_end(args);
    return text;
}

char *dj__concat(const char *const *parts)
{
    size_t size = 1;
    for (const char *const *part = parts; *part != NULL; part++) {
        size += strlen(*part);
    }
    char *text = malloc(size);
    if (text == NULL) {
        return NULL;
    }
    char *end = text;
    for (const char *const *part = parts; *part != NULL; part++) {
        end = stpcpy(end, *part);
    }
    *end = '\0';
    return text;
}

void dj__mark_cut(char *text, size_t size)
{
    static const char mark[] = "...";
    size_t end = size - sizeof(mark);
    /* A sequence has at most three bytes after its first; more of them are no UTF-8. */
    for (int i = 0; i < 3 && end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80; i++) {
        end--;
    }
    memcpy(text + end, mark, sizeof(mark));
}

static char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool dj__equal_nocase(const char *a, const char *b)
{
    while (*a != '\0' && ascii_lower(*a) == ascii_lower(*b)) {
        a++;
        b++;
    }
    return *a == '\0' && *b == '\0';
}
