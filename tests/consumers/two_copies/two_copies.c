/* SPDX-License-Identifier: MIT */
/*
 * two_copies <embedder.so> <embedder.so>: two shared objects, each with its own build of the
 * library inside, both loaded with global symbols, work in one process: one after the other, at
 * the same time, and the second after the first was unloaded.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct embedder {
    void *handle;
    int (*run)(void);
    const char *(*version)(void);
} embedder;

static int embedder_load(const char *path, embedder *out)
{
    out->handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (out->handle == NULL) {
        fprintf(stderr, "two_copies: %s\n", dlerror());
        return 1;
    }
    *(void **)&out->run = dlsym(out->handle, "consumer_run");
    *(void **)&out->version = dlsym(out->handle, "consumer_library_version");
    return out->run == NULL || out->version == NULL;
}

static void *run_many(void *arg)
{
    const embedder *one = arg;
    int failed = 0;
    for (int i = 0; i < 8; i++) {
        failed |= one->run();
    }
    return failed ? arg : NULL;
}

int main(int argc, char **argv)
{
    embedder copies[2];
    if (argc != 3 || embedder_load(argv[1], &copies[0]) || embedder_load(argv[2], &copies[1])) {
        return 2;
    }
    printf("copies %s and %s\n", copies[0].version(), copies[1].version());
    if (strcmp(copies[0].version(), copies[1].version()) == 0) {
        fprintf(stderr, "two_copies: one copy answers for both\n");
        return 1;
    }
    int failed = copies[0].run() | copies[1].run();

    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, run_many, &copies[i]) != 0) {
            return 2;
        }
    }
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(threads[i], &result);
        failed |= result != NULL;
    }

    dlclose(copies[0].handle);
    failed |= copies[1].run();
    dlclose(copies[1].handle);
    return failed;
}
