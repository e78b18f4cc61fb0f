/* SPDX-License-Identifier: MIT */
/* deepjit cache: look at cache roots and clear them. */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct cache_options {
    cli_runtime_options runtime;
    const char *action;
    const char *name; /* of an entry (show) or tag (clear) */
    bool json;
} cache_options;

static const struct argp_option cache_argp_options[] = {
    {"json", 'j', NULL, 0, "JSON instead of text (ls, show, verify)", 0},
    {0},
};

static error_t cache_parse(int key, char *arg, struct argp_state *state)
{
    cache_options *const options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->runtime;
        return 0;
    case 'j':
        options->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->action == NULL) {
            options->action = arg;
        } else if (options->name == NULL && (strcmp(options->action, "show") == 0 ||
                                             strcmp(options->action, "clear") == 0)) {
            options->name = arg;
        } else {
            argp_error(state, "too many arguments");
        }
        return 0;
    case ARGP_KEY_END:
        if (options->action == NULL) {
            argp_error(state, "expected ls, show, verify or clear");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char cache_doc[] =
    "Lists, shows, verifies or clears the entries of the cache roots."
    "\v"
    "  ls            list the entries of all roots\n"
    "  show ENTRY    everything about one entry, given by its path, its name or the\n"
    "                beginning of its name or digest\n"
    "  verify        read every file of every entry; status 1 if one is damaged\n"
    "  clear [TAG]   remove the entries of TAG, or all, from the first root, and the\n"
    "                sources that were kept for debuggers\n"
    "\n"
    "Examples:\n"
    "  deepjit cache ls\n"
    "  deepjit cache show gemm.3f9a\n"
    "  DJ_JIT_CACHE_DIR=/shared/cache deepjit cache verify --json\n";

/* "2026-05-01 14:00" in local time. */
static const char *entry_time(int64_t seconds, char out[32])
{
    const time_t time = (time_t)seconds;
    struct tm parts;
    if (localtime_r(&time, &parts) == NULL || strftime(out, 32, "%F %H:%M", &parts) == 0) {
        snprintf(out, 32, "?");
    }
    return out;
}

/* ---- ls, verify ---- */

typedef struct cache_listing {
    json_t *array; /* NULL: text */
    char *root;    /* of the previous entry */
    bool only_problems;
    uint64_t count[3]; /* by dj_entry_state */
    uint64_t bytes;
} cache_listing;

static bool listing_visit(void *user, const dj_cache_entry *entry)
{
    cache_listing *const listing = user;
    char size[32];
    char used[32];
    listing->count[entry->state]++;
    listing->bytes += entry->bytes;
    if (listing->array != NULL) {
        cli_json_append(listing->array, cli_entry_json(entry));
        return true;
    }
    if (listing->only_problems && entry->state == DJ_ENTRY_GOOD) {
        return true;
    }
    if (listing->root == NULL || strcmp(listing->root, entry->root) != 0) {
        free(listing->root);
        listing->root = cli_format("%s", entry->root);
        printf("%s\n", entry->root);
    }
    printf("  %-50s %-6s %-12s %10s  %s", cli_entry_base(entry), entry->backend, entry->arch,
           cli_bytes(entry->bytes, size), entry_time(entry->used, used));
    if (entry->state != DJ_ENTRY_GOOD) {
        printf("  %s: %s", cli_entry_state(entry->state), entry->problem);
    }
    putchar('\n');
    return true;
}

static void listing_total(const cache_listing *listing, bool verified)
{
    char size[32];
    const uint64_t *const count = listing->count;
    const uint64_t all = count[DJ_ENTRY_GOOD] + count[DJ_ENTRY_DAMAGED] + count[DJ_ENTRY_FOREIGN];
    printf("%llu %s, %s", (unsigned long long)all, all == 1 ? "entry" : "entries",
           cli_bytes(listing->bytes, size));
    if (verified || count[DJ_ENTRY_DAMAGED] > 0) {
        printf(", %llu damaged", (unsigned long long)count[DJ_ENTRY_DAMAGED]);
    }
    if (count[DJ_ENTRY_FOREIGN] > 0) {
        printf(", %llu of other programs or versions", (unsigned long long)count[DJ_ENTRY_FOREIGN]);
    }
    putchar('\n');
}

static int cache_list(dj_runtime *runtime, const cache_options *options, bool verify)
{
    cache_listing listing = {.array = options->json ? json_array() : NULL, .only_problems = verify};
    dj_error err = DJ_ERROR_INIT;
    const dj_status status = verify ? dj_cache_verify(runtime, listing_visit, &listing, &err)
                                    : dj_cache_list(runtime, listing_visit, &listing, &err);
    free(listing.root);
    if (status != DJ_OK) {
        json_decref(listing.array);
        return cli_fail(&err);
    }
    if (options->json) {
        cli_json_print(listing.array);
    } else {
        listing_total(&listing, verify);
    }
    return verify && listing.count[DJ_ENTRY_DAMAGED] > 0 ? CLI_FAILURE : CLI_DONE;
}

/* ---- show ---- */

static json_t *files_json(const cli_file *files, size_t count)
{
    json_t *const array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *const object = json_object();
        cli_json_set(object, "name", cli_json_text(files[i].name));
        cli_json_set(object, "bytes", json_integer((json_int_t)files[i].size));
        cli_json_append(array, object);
    }
    return array;
}

static void show_text(const json_t *entry, const cli_file *files, size_t count,
                      const cli_buffer *meta)
{
    static const char *const rows[] = {"path", "tag",   "digest",  "backend",
                                       "arch", "state", "problem", NULL};
    char text[32];
    for (size_t i = 0; rows[i] != NULL; i++) {
        const char *const value = json_string_value(json_object_get(entry, rows[i]));
        if (value[0] != '\0') {
            printf("%-8s %s\n", rows[i], value);
        }
    }
    printf("%-8s %s\n", "used",
           entry_time(json_integer_value(json_object_get(entry, "used")), text));
    printf("files\n");
    for (size_t i = 0; i < count; i++) {
        printf("  %-24s %10s\n", files[i].name, cli_bytes(files[i].size, text));
    }
    if (meta->size > 0) {
        printf("meta.json\n");
        json_t *const parsed = json_loadb(meta->data, meta->size, 0, NULL);
        if (parsed != NULL) {
            cli_json_print(parsed);
        } else {
            fwrite(meta->data, 1, meta->size, stdout);
        }
    }
}

static int show_entry(const cli_entry *match, bool json)
{
    cli_file *files = NULL;
    size_t count = 0;
    if (!cli_list_files(match->path, &files, &count)) {
        return CLI_FAILURE;
    }
    cli_buffer meta = {0};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(files[i].name, "meta.json") == 0) {
            char *const path = cli_format("%s/meta.json", match->path);
            cli_read_file(path, (size_t)16 << 20, &meta);
            free(path);
        }
    }
    if (json) {
        json_t *const object = json_deep_copy(match->info);
        cli_json_set(object, "files", files_json(files, count));
        json_t *const parsed = meta.size > 0 ? json_loadb(meta.data, meta.size, 0, NULL) : NULL;
        cli_json_set(object, "meta", parsed != NULL ? parsed : json_null());
        cli_json_print(object);
    } else {
        show_text(match->info, files, count, &meta);
    }
    cli_buffer_fini(&meta);
    cli_files_free(files, count);
    return CLI_DONE;
}

static int cache_show(dj_runtime *runtime, const cache_options *options)
{
    cli_entry entry = {0};
    int result = cli_find_entry(runtime, options->name, &entry);
    if (result == CLI_DONE) {
        result = show_entry(&entry, options->json);
    }
    cli_entry_fini(&entry);
    return result;
}

/* ---- clear ---- */

static int cache_clear(dj_runtime *runtime, const cache_options *options)
{
    size_t removed = 0;
    dj_error err = DJ_ERROR_INIT;
    if (dj_cache_clear(runtime, options->name, &removed, &err) != DJ_OK) {
        return cli_fail(&err);
    }
    printf("removed %zu %s\n", removed, removed == 1 ? "entry" : "entries");
    return CLI_DONE;
}

static int cache_act(dj_runtime *runtime, const cache_options *options)
{
    const char *const action = options->action;
    if (strcmp(action, "ls") == 0) {
        return cache_list(runtime, options, false);
    }
    if (strcmp(action, "verify") == 0) {
        return cache_list(runtime, options, true);
    }
    return strcmp(action, "show") == 0 ? cache_show(runtime, options)
                                       : cache_clear(runtime, options);
}

static bool cache_usage_ok(const cache_options *options)
{
    static const char *const actions[] = {"ls", "show", "verify", "clear"};
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(options->action, actions[i]) == 0) {
            if (i == 1 && options->name == NULL) {
                cli_error("cache show needs the name of an entry");
                return false;
            }
            if (i == 3 && options->json) {
                cli_error("cache clear knows no --json");
                return false;
            }
            return true;
        }
    }
    cli_error("unknown action 'cache %s'; expected ls, show, verify or clear", options->action);
    return false;
}

int cli_cmd_cache(int argc, char **argv)
{
    cache_options options = {.json = false};
    static const struct argp_child children[] = {{&cli_runtime_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {.options = cache_argp_options,
                                     .parser = cache_parse,
                                     .args_doc = "ls\nshow ENTRY\nverify\nclear [TAG]",
                                     .doc = cache_doc,
                                     .children = children};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    if (!cache_usage_ok(&options)) {
        return CLI_USAGE;
    }
    dj_runtime *runtime = NULL;
    int status = cli_open_runtime(&options.runtime, NULL, &runtime);
    if (status == CLI_DONE) {
        status = cache_act(runtime, &options);
    }
    dj_runtime_release(runtime);
    return status;
}
