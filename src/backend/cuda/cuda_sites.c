/* SPDX-License-Identifier: MIT */
/* Directories are only listed and looked at. What cannot be read is no place to search. */
#include "backend/cuda/cuda_sites.h"
#include "base/error.h"
#include "base/fs.h"
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void sites_add(dj__strlist *sites, const char *path)
{
    for (size_t i = 0; i < sites->count; i++) {
        if (strcmp(sites->items[i], path) == 0) {
            return;
        }
    }
    dj__strlist_add(sites, path);
}

/* The names in a directory that start with `prefix`; sorted. */
static void sites_list(const char *path, const char *prefix, dj__strlist *names)
{
    dj__strlist all;
    dj__strlist_init(&all);
    const int dir = dj__open_dir(path);
    if (dir >= 0 && dj__list_dir(dir, &all) == 0) {
        for (size_t i = 0; i < all.count; i++) {
            if (strncmp(all.items[i], prefix, strlen(prefix)) == 0) {
                dj__strlist_add(names, all.items[i]);
            }
        }
    }
    if (dir >= 0) {
        dj__close(dir);
    }
    dj__strlist_fini(&all);
}

/* <base>/lib/python3.<n>/site-packages of every Python in an environment. */
static void sites_add_environment(const char *base, dj__strlist *sites)
{
    dj__strlist names;
    if (base == NULL || base[0] != '/') {
        return;
    }
    dj__strlist_init(&names);
    char *lib = dj__path_join(base, "lib");
    if (lib != NULL) {
        sites_list(lib, "python3", &names);
    }
    for (size_t i = 0; i < names.count; i++) {
        char *site = dj__format("%s/%s/site-packages", lib, names.items[i]);
        if (site != NULL && access(site, X_OK) == 0) {
            sites_add(sites, site);
        }
        free(site);
    }
    free(lib);
    dj__strlist_fini(&names);
}

static void sites_add_python_path(const char *list, dj__strlist *sites)
{
    for (const char *at = list; at != NULL;) {
        const size_t size = strcspn(at, ":");
        char *element = size > 0 && at[0] == '/' ? strndup(at, size) : NULL;
        char *path = element != NULL ? dj__path_normalize(element) : NULL;
        if (path != NULL) {
            sites_add(sites, path);
        }
        free(path);
        free(element);
        at = at[size] != '\0' ? at + size + 1 : NULL;
    }
}

/* A library in <site>/<package>/... leads to <site>; so do the toolkit's own libraries when they
 * were installed elsewhere (pip --target). */
static int sites_add_library(struct dl_phdr_info *info, size_t size, void *user)
{
    static const char *const marks[] = {"/site-packages/", "/dist-packages/", "/nvidia/cu"};
    dj__strlist *sites = user;
    (void)size;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0] && info->dlpi_name[0] == '/'; i++) {
        const char *at = strstr(info->dlpi_name, marks[i]);
        if (at != NULL) {
            const size_t kept = i < 2 ? strlen(marks[i]) - 1 : 0;
            char *site = strndup(info->dlpi_name, (size_t)(at - info->dlpi_name) + kept);
            if (site != NULL) {
                sites_add(sites, site);
            }
            free(site);
            return 0;
        }
    }
    return 0;
}

dj_status dj__cuda_sites(const dj__env *env, dj__strlist *sites, dj_error *err)
{
    sites_add_environment(dj__env_raw(env, "VIRTUAL_ENV"), sites);
    sites_add_environment(dj__env_raw(env, "CONDA_PREFIX"), sites);
    sites_add_python_path(dj__env_raw(env, "PYTHONPATH"), sites);
    (void)dl_iterate_phdr(sites_add_library, sites);
    return dj__strlist_ok(sites, err);
}

/* The number in "cu13"; 0 for other names. */
static unsigned long sites_version(const char *name)
{
    const char *digits = name + strlen("cu");
    const size_t size = strspn(digits, "0123456789");
    return size > 0 && size < 6 && digits[size] == '\0' ? strtoul(digits, NULL, 10) : 0;
}

char *dj__cuda_site_nvcc(const char *site)
{
    char *found = NULL;
    unsigned long newest = 0;
    dj__strlist names;
    dj__strlist_init(&names);
    char *nvidia = dj__path_join(site, "nvidia");
    if (nvidia != NULL) {
        sites_list(nvidia, "cu", &names);
    }
    for (size_t i = 0; i < names.count; i++) {
        const bool older = strcmp(names.items[i], "cuda_nvcc") == 0;
        const unsigned long version = older ? 1 : sites_version(names.items[i]);
        char *nvcc = version > newest ? dj__format("%s/%s/bin/nvcc", nvidia, names.items[i]) : NULL;
        if (nvcc != NULL && access(nvcc, F_OK) == 0) {
            free(found);
            found = nvcc;
            newest = version;
        } else {
            free(nvcc);
        }
    }
    free(nvidia);
    dj__strlist_fini(&names);
    return found;
}
