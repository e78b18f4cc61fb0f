/* SPDX-License-Identifier: MIT */
/* The include scanner on any source, with a small include directory that is made once. */
#include "base/fs.h"
#include "compile/include_scan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char include_dir[4096];

static void remove_dir(void)
{
    (void)dj__remove_tree(include_dir);
}

static void make_file(int dir, const char *name, const char *text)
{
    if (dj__write_new_at(dir, name, text, strlen(text), 0600, false) != 0) {
        abort();
    }
}

static void make_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(include_dir, sizeof(include_dir), "%s/dj_fuzz_XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(include_dir) == NULL) {
        abort();
    }
    atexit(remove_dir);
    const int dir = dj__open_dir(include_dir);
    if (dir < 0) {
        abort();
    }
    make_file(dir, "a", "#include <b>\n#include <c>\n");
    make_file(dir, "b", "#include <c>");
    make_file(dir, "c", "");
    make_file(dir, "x", "#include <y>\n");
    make_file(dir, "y", "#include <x>\n");
    (void)dj__close(dir);
}

static void check_visit(void *user, const char *name, const char *path, const void *data,
                        size_t size)
{
    unsigned *visits = user;
    if (name[0] == '\0' || strncmp(path, include_dir, strlen(include_dir)) != 0 || data == NULL ||
        size > 64) {
        abort();
    }
    ++*visits;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (include_dir[0] == '\0') {
        make_dir();
    }
    const char *const dirs[] = {include_dir};
    const char *const prefixes[] = {""};
    const dj__scan_config config = {dirs, 1, prefixes, 1};
    unsigned visits = 0;
    dj_error err = DJ_ERROR_INIT;
    const dj_status status =
        dj__include_scan(&config, (const char *)data, size, check_visit, &visits, &err);
    if ((status == DJ_OK) != (err.status == DJ_OK) || (status != DJ_OK && err.message[0] == '\0')) {
        abort();
    }
    return 0;
}
