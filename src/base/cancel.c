/* SPDX-License-Identifier: MIT */
/*
 * Cancellation: a flag for those who ask now and then, an eventfd for those who sleep in poll.
 * The eventfd is never read, so it stays readable and every waiter wakes.
 */
#include "base/error.h"
#include "base/process.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct dj_cancel {
    atomic_uint references;
    atomic_bool requested;
    int fd;
};

/* A signal handler may use only lock-free atomics. */
static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "dj_cancel_request must be async-signal-safe");

dj_status dj_cancel_create(dj_cancel **out, dj_error *err)
{
    if (out == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "dj_cancel_create: out must not be NULL");
    }
    *out = NULL;
    dj_cancel *cancel = malloc(sizeof(*cancel));
    if (cancel == NULL) {
        return dj__fail_memory(err);
    }
    atomic_init(&cancel->references, 1);
    atomic_init(&cancel->requested, false);
    cancel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (cancel->fd < 0) {
        const int error = errno;
        free(cancel);
        return dj__fail_errno(err, error, "cannot create a cancellation descriptor");
    }
    *out = cancel;
    return DJ_OK;
}

dj_cancel *dj_cancel_retain(dj_cancel *cancel)
{
    if (cancel != NULL) {
        atomic_fetch_add_explicit(&cancel->references, 1, memory_order_relaxed);
    }
    return cancel;
}

void dj_cancel_release(dj_cancel *cancel)
{
    if (cancel == NULL ||
        atomic_fetch_sub_explicit(&cancel->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    close(cancel->fd);
    free(cancel);
}

void dj_cancel_request(dj_cancel *cancel)
{
    if (cancel == NULL) {
        return;
    }
    const int saved = errno;
    atomic_store(&cancel->requested, true);
    const uint64_t one = 1;
    ssize_t written;
    do {
        written = write(cancel->fd, &one, sizeof(one));
    } while (written < 0 && errno == EINTR); /* EAGAIN: the counter is full, thus readable */
    errno = saved;
}

bool dj_cancel_requested(const dj_cancel *cancel)
{
    return cancel != NULL && atomic_load(&cancel->requested);
}

int dj__cancel_fd(const dj_cancel *cancel)
{
    return cancel->fd;
}
