/* SPDX-License-Identifier: MIT */
/*
 * Parameters from source text; see cli_params.h. First comments, literals and preprocessor lines
 * are blanked out in a copy, then the copy is searched for definitions of the kernel.
 */
#include "cli_params.h"
#include <stdlib.h>
#include <string.h>

enum { PARAMS_LIMIT = 4096 };

/* A piece of the cleaned text. */
typedef struct params_text {
    const char *at;
    size_t size;
} params_text;

static bool params_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool params_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---- Cleaning ---- */

/* The end of a raw string whose opening quote is at `at`. */
static size_t clean_raw(const char *text, size_t size, size_t at)
{
    const size_t start = at + 1;
    size_t open = start;
    while (open < size && open - start <= 16 && text[open] != '(') {
        open++;
    }
    const size_t length = open - start;
    for (size_t i = open; i + length + 1 < size; i++) {
        if (text[i] == ')' && memcmp(text + i + 1, text + start, length) == 0 &&
            text[i + 1 + length] == '"') {
            return i + length + 2;
        }
    }
    return size;
}

/* The end of the literal whose opening quote is at `at`; at the end of a line at the latest. */
static size_t clean_quoted(const char *text, size_t size, size_t at)
{
    const char quote = text[at];
    for (size_t i = at + 1; i < size && text[i] != '\n'; i++) {
        if (text[i] == quote) {
            return i + 1;
        }
        i += text[i] == '\\';
    }
    const char *const end = memchr(text + at, '\n', size - at);
    return end != NULL ? (size_t)(end - text) : size;
}

static size_t clean_comment(const char *text, size_t size, size_t at)
{
    if (text[at + 1] == '/') {
        const char *const end = memchr(text + at, '\n', size - at);
        return end != NULL ? (size_t)(end - text) : size;
    }
    for (size_t i = at + 2; i + 1 < size; i++) {
        if (text[i] == '*' && text[i + 1] == '/') {
            return i + 2;
        }
    }
    return size;
}

/* Joins continued lines and replaces NUL bytes. Fresh memory; NULL: none. */
static char *clean_join(const char *source, size_t *size)
{
    char *const text = malloc(*size + 1);
    size_t used = 0;
    for (size_t i = 0; text != NULL && i < *size; i++) {
        const bool carriage = i + 2 < *size && source[i + 1] == '\r' && source[i + 2] == '\n';
        if (source[i] == '\\' && (carriage || (i + 1 < *size && source[i + 1] == '\n'))) {
            i += carriage ? 2 : 1;
        } else {
            text[used++] = source[i] != '\0' ? source[i] : ' ';
        }
    }
    *size = used;
    return text;
}

/* True if the ' after these bytes separates digits. */
static bool clean_in_number(const char *text, size_t size)
{
    size_t start = size;
    while (start > 0 && size - start < 64 &&
           (params_is_word(text[start - 1]) || text[start - 1] == '\'')) {
        start--;
    }
    return start < size && text[start] >= '0' && text[start] <= '9';
}

/* Blanks what is no code, in place; returns the new size. A comment leaves a blank and a literal a
 * quote, so that nothing grows together. */
static size_t clean_text(char *text, size_t size)
{
    size_t used = 0;
    bool line_start = true;
    bool directive = false;
    for (size_t i = 0; i < size;) {
        const char c = text[i];
        const bool comment = c == '/' && i + 1 < size && (text[i + 1] == '/' || text[i + 1] == '*');
        char put = c;
        if (comment) {
            i = clean_comment(text, size, i);
            put = ' ';
        } else if (c == '"' && used > 0 && text[used - 1] == 'R') {
            i = clean_raw(text, size, i);
        } else if (c == '"' || (c == '\'' && !clean_in_number(text, used))) {
            i = clean_quoted(text, size, i);
            put = '"';
        } else {
            i++;
            directive = (directive && c != '\n') || (line_start && c == '#');
        }
        line_start = put == '\n' || (line_start && params_is_blank(put));
        if (!directive) {
            text[used++] = put;
        }
    }
    return used;
}

/* ---- Tokens ---- */

static size_t params_skip_blanks(params_text text, size_t at)
{
    while (at < text.size && params_is_blank(text.at[at])) {
        at++;
    }
    return at;
}

static size_t params_word_end(params_text text, size_t at)
{
    while (at < text.size && params_is_word(text.at[at])) {
        at++;
    }
    return at;
}

static bool params_same(params_text text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.at, word, text.size) == 0;
}

static params_text params_trim(params_text text)
{
    while (text.size > 0 && params_is_blank(text.at[0])) {
        text.at++;
        text.size--;
    }
    while (text.size > 0 && params_is_blank(text.at[text.size - 1])) {
        text.size--;
    }
    return text;
}

/* `at` is behind an opening bracket; gets behind its closing one. False: there is none. */
static bool params_close(params_text text, size_t *at)
{
    size_t depth = 1;
    for (size_t i = *at; i < text.size; i++) {
        if (strchr("([{", text.at[i]) != NULL) {
            depth++;
        } else if (strchr(")]}", text.at[i]) != NULL && --depth == 0) {
            *at = i + 1;
            return true;
        }
    }
    return false;
}

/* Takes the text up to the next comma outside of brackets off `rest`; with `angles`, < and > are
 * brackets, too. False: nothing is left. */
static bool params_split(params_text *rest, bool angles, params_text *item)
{
    if (rest->at == NULL) {
        return false;
    }
    size_t depth = 0;
    size_t i = 0;
    for (; i < rest->size && (depth > 0 || rest->at[i] != ','); i++) {
        const char c = rest->at[i];
        if (strchr("([{", c) != NULL || (angles && c == '<')) {
            depth++;
        } else if (depth > 0 && (strchr(")]}", c) != NULL || (angles && c == '>'))) {
            depth--;
        }
    }
    *item = params_trim((params_text){rest->at, i});
    *rest = i < rest->size ? (params_text){rest->at + i + 1, rest->size - i - 1}
                           : (params_text){NULL, 0};
    return true;
}

/* ---- One parameter ---- */

static bool params_in(params_text word, const char *const *words)
{
    while (*words != NULL && !params_same(word, *words)) {
        words++;
    }
    return *words != NULL;
}

/* Words that cannot be a parameter's name. */
static const char *const params_type_words[] = {"void",     "bool",  "char",   "short", "int",
                                                "long",     "float", "double", "auto",  "signed",
                                                "unsigned", "_Bool", NULL};
/* Words that are no type alone. */
static const char *const params_qualifiers[] = {"const", "volatile", "struct",   "class",
                                                "enum",  "union",    "typename", NULL};
/* Words that say nothing about the type. */
static const char *const params_noise[] = {"restrict",          "__restrict", "__restrict__",
                                           "__grid_constant__", "register",   NULL};

/* Copies a type with single blanks, without noise. NULL: no memory. */
static char *params_copy_type(params_text text, const char *end)
{
    const size_t more = strlen(end);
    char *const copy = malloc(2 * text.size + more + 1);
    size_t used = 0;
    for (size_t i = 0; copy != NULL && i < text.size;) {
        const size_t word = params_word_end(text, i);
        const bool is_word = word > i;
        const params_text token = {text.at + i, is_word ? word - i : 1};
        i += token.size;
        if (params_is_blank(token.at[0]) || params_in(token, params_noise)) {
            continue;
        }
        const bool blank = used > 0 && ((is_word && params_is_word(copy[used - 1])) ||
                                        (is_word && strchr("*&>", copy[used - 1]) != NULL) ||
                                        (token.at[0] == '*' && copy[used - 1] != '*'));
        if (blank) {
            copy[used++] = ' ';
        }
        memcpy(copy + used, token.at, token.size);
        used += token.size;
    }
    if (copy != NULL) {
        memcpy(copy + used, end, more + 1);
    }
    return copy;
}

static bool params_add(cli_source_params *out, params_text type, const char *end, params_text name)
{
    if (out->count == PARAMS_LIMIT) {
        return false;
    }
    if ((out->count & (out->count - 1)) == 0) {
        const size_t capacity = out->count > 0 ? 2 * out->count : 1;
        cli_source_param *const grown = realloc(out->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        out->items = grown;
    }
    cli_source_param *const param = &out->items[out->count];
    param->type = params_copy_type(type, type.size > 0 ? end : "");
    param->name = strndup(name.at != NULL ? name.at : "", name.size);
    if (param->type == NULL || param->name == NULL) {
        free(param->type);
        free(param->name);
        return false;
    }
    out->count++;
    return true;
}

/* True if something in the text can be a type. */
static bool params_has_type(params_text text)
{
    for (size_t i = 0; i < text.size;) {
        const size_t end = params_word_end(text, i);
        const params_text word = {text.at + i, end - i};
        if (word.size > 0 && !params_in(word, params_qualifiers) &&
            !params_in(word, params_noise)) {
            return true;
        }
        i = end > i ? end : i + 1;
    }
    return false;
}

/* Splits "const float *in" into type and name; a name that is not there is empty. */
static void params_split_name(params_text text, params_text *type, params_text *name)
{
    size_t start = text.size;
    while (start > 0 && params_is_word(text.at[start - 1])) {
        start--;
    }
    const params_text last = {text.at + start, text.size - start};
    const params_text before = params_trim((params_text){text.at, start});
    const bool named = last.size > 0 && !(last.at[0] >= '0' && last.at[0] <= '9') &&
                       params_has_type(before) && before.at[before.size - 1] != ':' &&
                       !params_in(last, params_type_words) && !params_in(last, params_qualifiers) &&
                       !params_in(last, params_noise);
    *type = named ? before : text;
    *name = named ? last : (params_text){NULL, 0};
}

/* One parameter of a function; what is no simple declarator is added as unknown. */
static bool params_add_declared(cli_source_params *out, params_text text)
{
    static const params_text nothing = {NULL, 0};
    const char *const equals = memchr(text.at, '=', text.size);
    if (equals != NULL) {
        text = params_trim((params_text){text.at, (size_t)(equals - text.at)});
    }
    const char *end = "";
    const char *const bracket = memchr(text.at, '[', text.size);
    if (bracket != NULL && bracket > text.at) {
        params_text array = {text.at, text.size};
        size_t close = (size_t)(bracket - text.at) + 1;
        if (!params_close(array, &close) || close != text.size) {
            return params_add(out, nothing, "", nothing);
        }
        text = params_trim((params_text){text.at, (size_t)(bracket - text.at)});
        end = " *";
    }
    for (size_t i = 0; i < text.size; i++) {
        if (strchr("()[]{}\".", text.at[i]) != NULL) {
            return params_add(out, nothing, "", nothing);
        }
    }
    params_text type;
    params_text name;
    params_split_name(text, &type, &name);
    return params_has_type(type) && params_add(out, type, end, name);
}

/* ---- Definitions ---- */

/* The kernel's own name in the text of a definition; size 0 if it cannot be told. */
static params_text params_plain_name(const char *kernel)
{
    params_text name = {kernel, strlen(kernel)};
    if (strncmp(kernel, "_Z", 2) != 0) {
        return name;
    }
    const char *at = kernel + 2;
    const bool nested = *at == 'N';
    at += nested;
    name.size = 0;
    for (at += *at == 'L'; *at >= '1' && *at <= '9'; at += name.size, at += nested && *at == 'L') {
        size_t length = 0;
        while (*at >= '0' && *at <= '9' && length < 10000) {
            length = 10 * length + (size_t)(*at++ - '0');
        }
        name = (params_text){at, length};
        if (length > strlen(at)) {
            return (params_text){at, 0};
        }
        if (!nested) {
            at += length;
            break;
        }
    }
    /* I: a template. Nested names end with E. */
    const bool plain = nested ? *at == 'E' : *at != 'I';
    return plain ? name : (params_text){at, 0};
}

/* "(name, (type, name), ...)" of the macros, from behind the opening parenthesis. */
static bool params_read_macro(params_text inside, params_text kernel, cli_source_params *out)
{
    params_text rest = inside;
    params_text item;
    if (!params_split(&rest, false, &item) || item.size != kernel.size ||
        memcmp(item.at, kernel.at, item.size) != 0) {
        return false;
    }
    while (params_split(&rest, false, &item)) {
        if (item.size < 2 || item.at[0] != '(' || item.at[item.size - 1] != ')') {
            return false;
        }
        params_text pair = {item.at + 1, item.size - 2};
        params_text type = {NULL, 0};
        params_text name = {NULL, 0};
        if (!params_split(&pair, false, &type) || !params_split(&pair, false, &name) ||
            pair.at != NULL || !params_has_type(type) || name.size == 0 ||
            params_word_end(name, 0) != name.size || !params_add(out, type, "", name)) {
            return false;
        }
    }
    return true;
}

/* The parameters of a function, from between its parentheses. */
static bool params_read_list(params_text inside, cli_source_params *out)
{
    params_text rest = params_trim(inside);
    params_text item;
    if (rest.size == 0 || params_same(rest, "void")) {
        return true;
    }
    while (params_split(&rest, true, &item)) {
        if (item.size == 0 || !params_add_declared(out, item)) {
            return false;
        }
    }
    return true;
}

/* From behind "__global__": finds "name (" past return type and attributes. `at` gets behind the
 * parenthesis. */
static bool params_find_name(params_text text, params_text kernel, size_t *at)
{
    while ((*at = params_skip_blanks(text, *at)) < text.size) {
        const size_t end = params_word_end(text, *at);
        const params_text word = {text.at + *at, end - *at};
        if (word.size == 0) {
            const char c = text.at[*at];
            if (strchr("[*&:\"", c) == NULL || (++*at, c == '[' && !params_close(text, at))) {
                return false;
            }
            continue;
        }
        *at = params_skip_blanks(text, end);
        if (*at < text.size && text.at[*at] == '(') {
            ++*at;
            if (word.size == kernel.size && memcmp(word.at, kernel.at, word.size) == 0) {
                return true;
            }
            if (!params_close(text, at)) {
                return false;
            }
        }
    }
    return false;
}

void cli_params_fini(cli_source_params *params)
{
    for (size_t i = 0; i < params->count; i++) {
        free(params->items[i].name);
        free(params->items[i].type);
    }
    free(params->items);
    *params = (cli_source_params){NULL, 0};
}

static bool params_equal(const cli_source_params *left, const cli_source_params *right)
{
    for (size_t i = 0; left->count == right->count && i < left->count; i++) {
        if (strcmp(left->items[i].name, right->items[i].name) != 0 ||
            strcmp(left->items[i].type, right->items[i].type) != 0) {
            return false;
        }
    }
    return left->count == right->count;
}

typedef enum params_found { PARAMS_NONE, PARAMS_ONE, PARAMS_UNCLEAR } params_found;

/* What stands behind a word at `at`, if that begins a definition of the kernel. Declarations are
 * passed over: their names may be others. */
static params_found params_read(params_text text, params_text word, size_t at, params_text kernel,
                                cli_source_params *out)
{
    const bool macro = params_same(word, "DJ_KERNEL") || params_same(word, "DJ_BLOCK_KERNEL");
    if (!macro && !params_same(word, "__global__")) {
        return PARAMS_NONE;
    }
    if (macro) {
        at = params_skip_blanks(text, at);
        if (at == text.size || text.at[at++] != '(') {
            return PARAMS_NONE;
        }
    } else if (!params_find_name(text, kernel, &at)) {
        return PARAMS_NONE;
    }
    const size_t start = at;
    if (!params_close(text, &at)) {
        return PARAMS_NONE;
    }
    const params_text inside = {text.at + start, at - start - 1};
    if (macro) {
        params_text rest = inside;
        params_text name = {NULL, 0};
        (void)params_split(&rest, false, &name);
        if (name.size != kernel.size || memcmp(name.at, kernel.at, name.size) != 0) {
            return PARAMS_NONE;
        }
        return params_read_macro(inside, kernel, out) ? PARAMS_ONE : PARAMS_UNCLEAR;
    }
    at = params_skip_blanks(text, at);
    if (at == text.size || text.at[at] == ';') {
        return PARAMS_NONE;
    }
    return params_read_list(inside, out) ? PARAMS_ONE : PARAMS_UNCLEAR;
}

static bool params_search(params_text text, params_text kernel, cli_source_params *out)
{
    params_found found = PARAMS_NONE;
    for (size_t i = 0; i < text.size && found != PARAMS_UNCLEAR;) {
        const size_t end = params_word_end(text, i);
        if (end == i) {
            i++;
            continue;
        }
        cli_source_params one = {NULL, 0};
        const params_found now =
            params_read(text, (params_text){text.at + i, end - i}, end, kernel, &one);
        i = end;
        if (now == PARAMS_ONE && found == PARAMS_NONE) {
            *out = one;
            found = PARAMS_ONE;
            continue;
        }
        /* Several definitions, as in branches of #if, must agree. */
        if (now == PARAMS_UNCLEAR || (now == PARAMS_ONE && !params_equal(out, &one))) {
            found = PARAMS_UNCLEAR;
        }
        cli_params_fini(&one);
    }
    if (found != PARAMS_ONE) {
        cli_params_fini(out);
    }
    return found == PARAMS_ONE;
}

bool cli_params_find(const char *source, size_t size, const char *kernel, cli_source_params *out)
{
    *out = (cli_source_params){NULL, 0};
    const params_text name = params_plain_name(kernel);
    char *const text = name.size > 0 ? clean_join(source, &size) : NULL;
    if (text == NULL) {
        return false;
    }
    const params_text clean = {text, clean_text(text, size)};
    const bool found = params_search(clean, name, out);
    free(text);
    return found;
}
