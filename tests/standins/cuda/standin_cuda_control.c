/* SPDX-License-Identifier: MIT */
/* The stand-in driver's gate, which every call passes, and the controls of standin_cuda.h. */
#include "standin_cuda_state.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef STANDIN_CUDA_DEFAULT_VERSION
#define STANDIN_CUDA_DEFAULT_VERSION 13000
#endif

enum { MAX_RULES = 32, MAX_NAMES = 128 };

typedef struct rule {
    char name[64];
    unsigned left; /* calls to go; 0: each */
    int code;
    bool spent;
} rule;

static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t control_once = PTHREAD_ONCE_INIT;
/* The process that initialised the driver: 0 before, another one's after a fork. */
static _Atomic(pid_t) control_pid;

static struct {
    rule rules[MAX_RULES];
    size_t num_rules;
    struct {
        char name[64];
        size_t count;
    } calls[MAX_NAMES];
    size_t num_calls;
    size_t fired;
    char fired_name[64];
    size_t refused;
    char refused_name[64];
    int refused_code;
    size_t launches;
    standin_cuda_launch launch;
    int devices;
    int major[STANDIN_DEVICES];
    int minor[STANDIN_DEVICES];
    int version;
    bool trace;
} control;

static _Thread_local const char *control_call; /* NULL: the lock is not held */
static _Thread_local bool control_injected;
_Thread_local int standin_capture_mode; /* 0: GLOBAL */

const void *standin_thread(void)
{
    return &standin_capture_mode;
}

static void add_rule(const char *name, unsigned nth, int code)
{
    if (control.num_rules < MAX_RULES) {
        rule *one = &control.rules[control.num_rules++];
        (void)snprintf(one->name, sizeof one->name, "%s", name);
        one->left = nth;
        one->code = code;
        one->spent = false;
    }
}

static void read_rules(const char *text)
{
    for (const char *at = text; at != NULL && *at != '\0';) {
        char name[64];
        unsigned nth = 0;
        int code = 0;
        if (sscanf(at, "%63[^:,]:%u:%d", name, &nth, &code) == 3) {
            add_rule(name, nth, code);
        } else {
            (void)fprintf(stderr, "stand-in driver: STANDIN_CUDA_FAIL is not understood: %s\n", at);
        }
        at = strchr(at, ',');
        at = at != NULL ? at + 1 : NULL;
    }
}

static int number_of(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text != NULL && *text != '\0' ? atoi(text) : otherwise;
}

static void set_defaults(void)
{
    const int arch = number_of("STANDIN_CUDA_ARCH", 90);
    const int devices = number_of("STANDIN_CUDA_DEVICES", STANDIN_DEVICES);
    memset(&control, 0, sizeof control);
    control.devices = devices < STANDIN_DEVICES ? devices : STANDIN_DEVICES;
    control.version = number_of("STANDIN_CUDA_VERSION", STANDIN_CUDA_DEFAULT_VERSION);
    control.trace = number_of("STANDIN_CUDA_TRACE", 0) != 0;
    for (int i = 0; i < STANDIN_DEVICES; i++) {
        control.major[i] = arch / 10;
        control.minor[i] = arch % 10;
    }
}

static void read_environment(void)
{
    set_defaults();
    read_rules(getenv("STANDIN_CUDA_FAIL"));
}

void standin_lock(void)
{
    pthread_once(&control_once, read_environment);
    pthread_mutex_lock(&control_lock);
}

void standin_unlock(void)
{
    pthread_mutex_unlock(&control_lock);
}

/* "cuMemFree" also means cuMemFree_v2. */
static bool same_call(const char *rule_name, const char *call)
{
    const size_t length = strlen(rule_name);
    return strncmp(rule_name, call, length) == 0 &&
           (call[length] == '\0' || strncmp(call + length, "_v", 2) == 0);
}

static void count_call(const char *name)
{
    size_t i = 0;
    while (i < control.num_calls && strcmp(control.calls[i].name, name) != 0) {
        i++;
    }
    if (i == control.num_calls && i < MAX_NAMES) {
        (void)snprintf(control.calls[i].name, sizeof control.calls[i].name, "%s", name);
        control.num_calls++;
    }
    if (i < MAX_NAMES) {
        control.calls[i].count++;
    }
}

static int struck(const char *name)
{
    int code = 0;
    for (size_t i = 0; i < control.num_rules; i++) {
        rule *one = &control.rules[i];
        if (one->spent || (strcmp(one->name, "*") != 0 && !same_call(one->name, name))) {
            continue;
        }
        if (one->left <= 1) {
            one->spent = one->left == 1;
            control.fired++;
            (void)snprintf(control.fired_name, sizeof control.fired_name, "%s", name);
            code = code == 0 ? one->code : code;
        } else {
            one->left--;
        }
    }
    return code;
}

static bool is_sticky(int code)
{
    return code == 700 || code == 702 || code == 710 || (code >= 714 && code <= 719);
}

dj__cu_result standin_enter(const char *name, standin_need need)
{
    const pid_t owner = atomic_load(&control_pid);
    if (owner != 0 && owner != getpid()) {
        return DJ__CU_NOT_INITIALIZED; /* and no lock, which a thread of the parent may hold */
    }
    standin_lock();
    control_call = name;
    count_call(name);
    const int code = struck(name);
    control_injected = code != 0;
    if (code != 0) {
        if (is_sticky(code)) {
            standin_lose(code);
        }
        return code;
    }
    if (need >= STANDIN_NEEDS_INIT && owner == 0) {
        return DJ__CU_NOT_INITIALIZED;
    }
    return need == STANDIN_NEEDS_CONTEXT ? standin_check_context(standin_current())
                                         : DJ__CU_SUCCESS;
}

dj__cu_result standin_leave(dj__cu_result result)
{
    if (control_call == NULL) {
        return result;
    }
    if (result != DJ__CU_SUCCESS && !control_injected) {
        control.refused++;
        control.refused_code = result;
        (void)snprintf(control.refused_name, sizeof control.refused_name, "%s", control_call);
    }
    if (result != DJ__CU_SUCCESS && control.trace) {
        (void)fprintf(stderr, "stand-in driver: %s: %d%s\n", control_call, result,
                      control_injected ? " (as asked)" : "");
    }
    control_call = NULL;
    standin_unlock();
    return result;
}

void standin_mark_initialised(void)
{
    atomic_store(&control_pid, getpid());
}

int standin_device_count(void)
{
    return control.devices;
}

int standin_version(void)
{
    return control.version;
}

void standin_arch(int device, int *major, int *minor)
{
    *major = control.major[device];
    *minor = control.minor[device];
}

void standin_record(const standin_cuda_launch *launch)
{
    control.launch = *launch;
    control.launches++;
}

STANDIN_EXPORT void standin_cuda_fail(const char *name, unsigned nth, int code);
void standin_cuda_fail(const char *name, unsigned nth, int code)
{
    standin_lock();
    add_rule(name, nth, code);
    standin_unlock();
}

STANDIN_EXPORT size_t standin_cuda_calls(const char *name);
size_t standin_cuda_calls(const char *name)
{
    size_t count = 0;
    standin_lock();
    for (size_t i = 0; i < control.num_calls; i++) {
        const bool any = strcmp(name, "*") == 0;
        count += any || same_call(name, control.calls[i].name) ? control.calls[i].count : 0;
    }
    standin_unlock();
    return count;
}

STANDIN_EXPORT size_t standin_cuda_fired(char name[64]);
size_t standin_cuda_fired(char name[64])
{
    standin_lock();
    const size_t fired = control.fired;
    if (name != NULL) {
        memcpy(name, control.fired_name, sizeof control.fired_name);
    }
    standin_unlock();
    return fired;
}

STANDIN_EXPORT size_t standin_cuda_refused(char name[64], int *code);
size_t standin_cuda_refused(char name[64], int *code)
{
    standin_lock();
    const size_t refused = control.refused;
    if (name != NULL) {
        memcpy(name, control.refused_name, sizeof control.refused_name);
    }
    if (code != NULL) {
        *code = control.refused_code;
    }
    standin_unlock();
    return refused;
}

STANDIN_EXPORT int standin_cuda_last_launch(standin_cuda_launch *out);
int standin_cuda_last_launch(standin_cuda_launch *out)
{
    standin_lock();
    const int any = control.launches > 0;
    *out = control.launch;
    standin_unlock();
    return any;
}

STANDIN_EXPORT size_t standin_cuda_launches(void);
size_t standin_cuda_launches(void)
{
    standin_lock();
    const size_t launches = control.launches;
    standin_unlock();
    return launches;
}

STANDIN_EXPORT void standin_cuda_live_now(standin_cuda_live *out);
void standin_cuda_live_now(standin_cuda_live *out)
{
    standin_lock();
    out->libraries = standin_live_libraries();
    out->allocations = standin_live_allocations(&out->bytes);
    out->streams = standin_live_streams();
    out->graphs = standin_live_graphs();
    out->contexts = standin_live_contexts();
    standin_unlock();
}

STANDIN_EXPORT void standin_cuda_set_devices(int count);
void standin_cuda_set_devices(int count)
{
    standin_lock();
    control.devices = count < STANDIN_DEVICES ? count : STANDIN_DEVICES;
    standin_unlock();
}

STANDIN_EXPORT void standin_cuda_set_arch(int device, int major, int minor);
void standin_cuda_set_arch(int device, int major, int minor)
{
    standin_lock();
    control.major[device] = major;
    control.minor[device] = minor;
    standin_unlock();
}

STANDIN_EXPORT void standin_cuda_set_version(int version);
void standin_cuda_set_version(int version)
{
    standin_lock();
    control.version = version;
    standin_unlock();
}

STANDIN_EXPORT void standin_cuda_reset(void);
void standin_cuda_reset(void)
{
    standin_lock();
    set_defaults();
    standin_find_again();
    standin_unlock();
}
