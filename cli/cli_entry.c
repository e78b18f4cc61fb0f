/* SPDX-License-Identifier: MIT */
/* Finding a cache entry by what people type: a path, a name, the beginning of a name or digest. */
#include "cli.h"
#include <stdlib.h>
#include <string.h>

const char *cli_entry_state(dj_entry_state state)
{
    return state == DJ_ENTRY_GOOD ? "good" : state == DJ_ENTRY_DAMAGED ? "damaged" : "foreign";
}

json_t *cli_entry_json(const dj_cache_entry *entry)
{
    json_t *const object = json_object();
    cli_json_set(object, "path", cli_json_text(entry->path));
    cli_json_set(object, "root", cli_json_text(entry->root));
    cli_json_set(object, "tag", cli_json_text(entry->tag));
    cli_json_set(object, "digest", cli_json_text(entry->digest));
    cli_json_set(object, "backend", cli_json_text(entry->backend));
    cli_json_set(object, "arch", cli_json_text(entry->arch));
    cli_json_set(object, "state", json_string(cli_entry_state(entry->state)));
    cli_json_set(object, "problem", cli_json_text(entry->problem));
    cli_json_set(object, "files", json_integer((json_int_t)entry->files));
    cli_json_set(object, "bytes", json_integer((json_int_t)entry->bytes));
    cli_json_set(object, "used", json_integer((json_int_t)entry->used));
    return object;
}

const char *cli_entry_base(const dj_cache_entry *entry)
{
    const char *const slash = strrchr(entry->path, '/');
    return slash != NULL ? slash + 1 : entry->path;
}

/* What is kept of a match, as the visitor's strings do not last. */
typedef struct entry_match {
    const char *name;
    size_t count;
    bool exact;
    char *names; /* of all matches, for the message */
    cli_entry entry;
} entry_match;

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool match_visit(void *user, const dj_cache_entry *entry)
{
    entry_match *const match = user;
    const char *const base = cli_entry_base(entry);
    const bool exact = strcmp(entry->path, match->name) == 0 || strcmp(base, match->name) == 0;
    if (!exact && !begins(base, match->name) && !begins(entry->digest, match->name)) {
        return true;
    }
    if (match->count == 0 || exact) {
        cli_entry_fini(&match->entry);
        match->entry = (cli_entry){cli_entry_json(entry), cli_format("%s", entry->path)};
    }
    char *const names =
        cli_format("%s\n  %s", match->names != NULL ? match->names : "", entry->path);
    free(match->names);
    match->names = names;
    match->count++;
    match->exact = exact;
    return !exact;
}

int cli_find_entry(dj_runtime *runtime, const char *name, cli_entry *out)
{
    char *const word = cli_format("%s", name);
    for (size_t length = strlen(word); length > 1 && word[length - 1] == '/'; length--) {
        word[length - 1] = '\0';
    }
    entry_match match = {.name = word};
    dj_error err = DJ_ERROR_INIT;
    int result = CLI_FAILURE;
    if (dj_cache_list(runtime, match_visit, &match, &err) != DJ_OK) {
        result = cli_fail(&err);
    } else if (match.count == 0) {
        cli_error("no cache entry is called '%s'; 'deepjit cache ls' lists them", word);
    } else if (match.count > 1 && !match.exact) {
        cli_error("'%s' means several entries:%s", word, match.names);
    } else {
        result = CLI_DONE;
    }
    *out = result == CLI_DONE ? match.entry : (cli_entry){0};
    if (result != CLI_DONE) {
        cli_entry_fini(&match.entry);
    }
    free(match.names);
    free(word);
    return result;
}

void cli_entry_fini(cli_entry *entry)
{
    json_decref(entry->info);
    free(entry->path);
    *entry = (cli_entry){0};
}
