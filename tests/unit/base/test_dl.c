/* SPDX-License-Identifier: MIT */
/* Loading shared objects from memory: identity, damage, and hosts that refuse memory files. */
#include "base/dl.h"

#include "base/fs.h"
#include "base/process.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct test_dl_object {
    char *data;
    size_t size;
    char path[512];
} test_dl_object;

#define TEST_DL_SOURCE(n)                                                                          \
    "static int calls;\n"                                                                          \
    "int value(void) { return " n "; }\n"                                                          \
    "int calls_so_far(void) { return calls++; }\n"                                                 \
    "int only_in_" n "(void) { return 1; }\n"

static char test_dl_dir[256];
static test_dl_object test_dl_one;
static test_dl_object test_dl_two;
static bool test_dl_have_cc;

/* POSIX's way from dlsym's void * to a function. */
static int test_dl_call(void *handle, const char *name)
{
    int (*function)(void);
    void *symbol = dj__dl_symbol(handle, name);
    assert_non_null(symbol);
    memcpy(&function, &symbol, sizeof(function));
    return function();
}

/* Compiles `text` to <name>.so. */
static bool test_dl_build(const char *name, const char *text, test_dl_object *object)
{
    char source[512];
    snprintf(source, sizeof(source), "%s.c", name);
    const int dir = dj__open_dir(test_dl_dir);
    assert_int_equal(dj__write_new_at(dir, source, text, strlen(text), 0600, false), 0);
    close(dir);
    snprintf(source, sizeof(source), "%s/%s.c", test_dl_dir, name);
    snprintf(object->path, sizeof(object->path), "%s/%s.so", test_dl_dir, name);
    char *cc = dj__find_program("cc", getenv("PATH"));
    const char *const argv[] = {cc, "-shared", "-fPIC", "-o", object->path, source, NULL};
    const char *const envp[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};
    const dj__process process = {.argv = argv, .envp = envp};
    dj__process_result result;
    const bool built = cc != NULL && dj__process_check(&process, NULL, &result, NULL) == DJ_OK &&
                       dj__read_file(object->path, 1 << 24, &object->data, &object->size) == 0;
    free(cc);
    return built;
}

static void test_dl_need_cc(void)
{
    if (!test_dl_have_cc) {
        print_message("skipped: no working cc on PATH\n");
        skip();
    }
}

static size_t test_dl_count_fds(void)
{
    dj__strlist names;
    dj__strlist_init(&names);
    const int dir = dj__open_dir("/proc/self/fd");
    assert_true(dir >= 0);
    assert_int_equal(dj__list_dir(dir, &names), 0);
    close(dir);
    const size_t count = names.count;
    dj__strlist_fini(&names);
    return count;
}

static void *test_dl_load(const test_dl_object *object)
{
    void *handle = NULL;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj__dl_load(object->data, object->size, NULL, &handle, &err), DJ_OK);
    assert_non_null(handle);
    return handle;
}

static void test_dl_interleaved(void **state)
{
    (void)state;
    test_dl_need_cc();
    const size_t before = test_dl_count_fds();
    for (int i = 0; i < 50; i++) {
        void *one = test_dl_load(&test_dl_one);
        void *two = test_dl_load(&test_dl_two);
        assert_int_equal(test_dl_call(one, "value"), 1);
        assert_int_equal(test_dl_call(two, "value"), 2);
        dj__dl_unload(i % 2 == 0 ? one : two);
        void *three = test_dl_load(i % 2 == 0 ? &test_dl_two : &test_dl_one);
        assert_int_equal(test_dl_call(three, "value"), i % 2 == 0 ? 2 : 1);
        assert_int_equal(test_dl_call(i % 2 == 0 ? two : one, "value"), i % 2 == 0 ? 2 : 1);
        dj__dl_unload(i % 2 == 0 ? two : one);
        dj__dl_unload(three);
    }
    assert_int_equal(test_dl_count_fds(), before);
    dj__dl_unload(NULL);
}

/* The same bytes twice are two libraries with their own data. */
static void test_dl_twice(void **state)
{
    (void)state;
    test_dl_need_cc();
    void *a = test_dl_load(&test_dl_one);
    void *b = test_dl_load(&test_dl_one);
    assert_ptr_not_equal(a, b);
    assert_int_equal(test_dl_call(a, "calls_so_far"), 0);
    assert_int_equal(test_dl_call(a, "calls_so_far"), 1);
    assert_int_equal(test_dl_call(b, "calls_so_far"), 0);
    assert_null(dj__dl_symbol(a, "no_such_symbol"));
    assert_null(dlsym(RTLD_DEFAULT, "only_in_1")); /* nothing of it becomes global */
    dj__dl_unload(a);
    dj__dl_unload(b);
}

static void test_dl_refuse(const void *data, size_t size)
{
    void *handle = &handle;
    dj_error err = DJ_ERROR_INIT;
    assert_int_equal(dj__dl_load(data, size, NULL, &handle, &err), DJ_INCOMPATIBLE);
    assert_null(handle);
    assert_memory_equal(err.message, "cannot load the binary: ", 24);
    assert_true(strlen(err.message) > 24);
}

static void test_dl_garbage(void **state)
{
    (void)state;
    unsigned char bytes[4096];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * 7);
    }
    test_dl_refuse(bytes, sizeof(bytes));
    test_dl_refuse(bytes, 0);
    test_dl_refuse("\177ELF", 4);
    memcpy(bytes, "\177ELF", 4);
    test_dl_refuse(bytes, sizeof(bytes));
    test_dl_refuse("#!/bin/sh\n", 10);
}

/* Cut anywhere: refused, or nothing that is mapped is missing. Never SIGBUS. */
static void test_dl_truncated(void **state)
{
    (void)state;
    test_dl_need_cc();
    size_t refused = 0;
    for (size_t size = 0; size < test_dl_one.size; size += 61) {
        char *part = malloc(size + 1); /* so that a sanitizer sees a read beyond it */
        assert_non_null(part);
        memcpy(part, test_dl_one.data, size);
        void *handle = NULL;
        const dj_status status = dj__dl_load(part, size, NULL, &handle, NULL);
        if (status == DJ_OK) {
            assert_int_equal(test_dl_call(handle, "value"), 1);
            dj__dl_unload(handle);
        } else {
            assert_int_equal(status, DJ_INCOMPATIBLE);
            refused++;
        }
        free(part);
    }
    assert_true(refused > test_dl_one.size / 61 / 2);
}

static void test_dl_damaged_headers(void **state)
{
    (void)state;
    test_dl_need_cc();
    char *copy = malloc(test_dl_one.size);
    assert_non_null(copy);
    ElfW(Ehdr) good;
    memcpy(&good, test_dl_one.data, sizeof(good));
    for (int i = 0; i < 9; i++) {
        ElfW(Ehdr) bad = good;
        ElfW(Phdr) segment;
        memcpy(copy, test_dl_one.data, test_dl_one.size);
        memcpy(&segment, copy + good.e_phoff, sizeof(segment));
        switch (i) {
        case 0:
            bad.e_ident[EI_CLASS] = sizeof(void *) == 8 ? ELFCLASS32 : ELFCLASS64;
            break;
        case 1:
            bad.e_ident[EI_DATA] = bad.e_ident[EI_DATA] == ELFDATA2LSB ? ELFDATA2MSB : ELFDATA2LSB;
            break;
        case 2:
            bad.e_type = ET_REL;
            break;
        case 3:
            bad.e_phoff = SIZE_MAX - 8;
            break;
        case 4:
            bad.e_phnum = UINT16_MAX;
            break;
        case 5:
            bad.e_phentsize = 1;
            break;
        case 6:
            bad.e_phnum = 0;
            break;
        case 7:
            segment.p_offset = SIZE_MAX - 100; /* offset + size wraps */
            segment.p_filesz = 200;
            break;
        default:
            segment.p_filesz = test_dl_one.size + 1;
            break;
        }
        memcpy(copy, &bad, sizeof(bad));
        memcpy(copy + good.e_phoff, &segment, sizeof(segment));
        test_dl_refuse(copy, test_dl_one.size);
    }
    free(copy);
}

/* The loader's reason is passed on, without our path. */
static void test_dl_missing_symbol(void **state)
{
    (void)state;
    test_dl_need_cc();
    test_dl_object object;
    void *handle;
    dj_error err = DJ_ERROR_INIT;
    assert_true(test_dl_build(
        "undefined", "int nowhere(void);\nint value(void) { return nowhere(); }\n", &object));
    assert_int_equal(dj__dl_load(object.data, object.size, NULL, &handle, &err), DJ_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "nowhere"));
    assert_null(strstr(err.message, "/proc/"));
    free(object.data);
}

/* From here on this process gets EPERM for memfd_create and, if asked, for mapping code. */
static bool test_dl_forbid(bool mapping)
{
    const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, mapping ? SYS_mmap : 0xFFFFFFFFU, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    const struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
                                       .filter = (struct sock_filter *)(uintptr_t)filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { TEST_DL_SKIPPED = 77 };

static int test_dl_in_child(int (*body)(const char *tmpdir))
{
    char tmpdir[300];
    snprintf(tmpdir, sizeof(tmpdir), "%s/tmp with blanks", test_dl_dir);
    assert_int_equal(dj__make_dirs(tmpdir, 0700), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(body(tmpdir));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == TEST_DL_SKIPPED) {
        print_message("skipped: no seccomp filters here\n");
        skip();
    }
    dj__strlist names;
    dj__strlist_init(&names);
    const int dir = dj__open_dir(tmpdir);
    assert_int_equal(dj__list_dir(dir, &names), 0);
    assert_int_equal(names.count, 0); /* nothing stays */
    dj__strlist_fini(&names);
    close(dir);
    return WEXITSTATUS(status);
}

static int test_dl_body_without_memfd(const char *tmpdir)
{
    void *one;
    void *two;
    dj_error err = DJ_ERROR_INIT;
    if (!test_dl_forbid(false)) {
        return TEST_DL_SKIPPED;
    }
    if (dj__dl_load(test_dl_one.data, test_dl_one.size, tmpdir, &one, &err) != DJ_OK ||
        dj__dl_load(test_dl_two.data, test_dl_two.size, tmpdir, &two, &err) != DJ_OK) {
        return 1;
    }
    int (*value_one)(void);
    int (*value_two)(void);
    void *symbols[2] = {dj__dl_symbol(one, "value"), dj__dl_symbol(two, "value")};
    memcpy(&value_one, &symbols[0], sizeof(value_one));
    memcpy(&value_two, &symbols[1], sizeof(value_two));
    if (value_one() != 1 || value_two() != 2) {
        return 2;
    }
    dj__dl_unload(one);
    dj__dl_unload(two);
    if (dj__dl_load(test_dl_one.data, test_dl_one.size, "/no/such/dir", &one, &err) !=
            DJ_NOT_FOUND ||
        strstr(err.message, "/no/such/dir") == NULL || strstr(err.message, "TMPDIR") == NULL) {
        return 3;
    }
    return 0;
}

static void test_dl_without_memfd(void **state)
{
    (void)state;
    test_dl_need_cc();
    assert_int_equal(test_dl_in_child(test_dl_body_without_memfd), 0);
}

static int test_dl_body_noexec(const char *tmpdir)
{
    void *handle;
    dj_error err = DJ_ERROR_INIT;
    if (!test_dl_forbid(true)) {
        return TEST_DL_SKIPPED;
    }
    if (dj__dl_load(test_dl_one.data, test_dl_one.size, tmpdir, &handle, &err) != DJ_PERMISSION) {
        return 1;
    }
    return handle == NULL && strstr(err.message, "noexec") != NULL &&
                   strstr(err.message, "TMPDIR") != NULL
               ? 0
               : 2;
}

static void test_dl_nothing_executable(void **state)
{
    (void)state;
    test_dl_need_cc();
    assert_int_equal(test_dl_in_child(test_dl_body_noexec), 0);
}

static void test_dl_global(void **state)
{
    (void)state;
    assert_non_null(dj__dl_global_symbol("malloc"));
    assert_null(dj__dl_global_symbol("dj_no_such_symbol"));
    test_dl_need_cc();
    assert_null(dj__dl_global_symbol("only_in_1"));
    void *handle = dlopen(test_dl_one.path, RTLD_NOW | RTLD_LOCAL); /* as Python imports */
    assert_non_null(handle);
    assert_null(dlsym(RTLD_DEFAULT, "only_in_1"));
    assert_ptr_equal(dj__dl_global_symbol("only_in_1"), dlsym(handle, "only_in_1"));
    dlclose(handle);
    assert_null(dj__dl_global_symbol("only_in_1")); /* the look-up keeps nothing loaded */
}

static int test_dl_set_up(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(test_dl_dir, sizeof(test_dl_dir), "%s/dj-dl-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(test_dl_dir) == NULL) {
        return -1;
    }
    test_dl_have_cc = test_dl_build("one", TEST_DL_SOURCE("1"), &test_dl_one) &&
                      test_dl_build("two", TEST_DL_SOURCE("2"), &test_dl_two);
    return 0;
}

static int test_dl_tear_down(void **state)
{
    (void)state;
    free(test_dl_one.data);
    free(test_dl_two.data);
    return dj__remove_tree(test_dl_dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dl_interleaved),     cmocka_unit_test(test_dl_twice),
        cmocka_unit_test(test_dl_garbage),         cmocka_unit_test(test_dl_truncated),
        cmocka_unit_test(test_dl_damaged_headers), cmocka_unit_test(test_dl_missing_symbol),
        cmocka_unit_test(test_dl_without_memfd),   cmocka_unit_test(test_dl_nothing_executable),
        cmocka_unit_test(test_dl_global),
    };
    return cmocka_run_group_tests(tests, test_dl_set_up, test_dl_tear_down);
}
