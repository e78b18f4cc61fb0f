/* SPDX-License-Identifier: MIT */
/*
 * Single flight: a list of flights under one mutex. There are at most as many as threads that
 * compile, so a list is enough.
 *
 * A flight is in the list from its leader's join to its landing; who joins later starts a new
 * one. It is freed by whoever leaves last, the leader or a follower.
 */
#include "compile/flight.h"

#include "base/error.h"
#include "base/thread.h"
#include <stdlib.h>
#include <string.h>

/* dj_cancel_request may run in a signal handler and so cannot signal a condition variable. */
#define CANCEL_POLL_NS (50 * INT64_C(1000000))

struct dj__flight {
    dj__flight *next;
    char key[33];
    bool landed;
    unsigned followers; /* still inside join */
    pthread_cond_t done;
    /* What landed; `result` has one reference for each follower. */
    dj_status status;
    void *result;
    dj_error error;
};

struct dj__flights {
    pthread_mutex_t lock;
    dj__flight *flying;
    dj__flight_retain_fn retain;
    dj__flight_release_fn release;
};

dj_status dj__flights_create(dj__flight_retain_fn retain, dj__flight_release_fn release,
                             dj__flights **out, dj_error *err)
{
    *out = NULL;
    dj__flights *flights = calloc(1, sizeof(*flights));
    if (flights == NULL) {
        return dj__fail_memory(err);
    }
    dj__mutex_init(&flights->lock);
    flights->retain = retain;
    flights->release = release;
    *out = flights;
    return DJ_OK;
}

void dj__flights_destroy(dj__flights *flights)
{
    if (flights == NULL) {
        return;
    }
    pthread_mutex_destroy(&flights->lock);
    free(flights);
}

/* Forgets what flies. A flight that this thread leads is freed when it lands; memory of the
 * others is lost to the child, since whoever would free it does not exist here. The list is read
 * as it was at the fork, perhaps in the middle of a change: `next` is set before a flight is
 * linked and kept until it is freed, so every state can be walked. */
void dj__flights_after_fork(dj__flights *flights)
{
    dj__mutex_init(&flights->lock);
    for (dj__flight *flight = flights->flying; flight != NULL; flight = flight->next) {
        flight->followers = 0;
        dj__cond_init(&flight->done);
    }
    flights->flying = NULL;
}

static dj__flight *flight_find(dj__flights *flights, const char *key)
{
    dj__flight *flight = flights->flying;
    while (flight != NULL && strcmp(flight->key, key) != 0) {
        flight = flight->next;
    }
    return flight;
}

static dj__flight *flight_start(dj__flights *flights, const char *key)
{
    dj__flight *flight = calloc(1, sizeof(*flight));
    if (flight == NULL) {
        return NULL;
    }
    memcpy(flight->key, key, sizeof(flight->key));
    dj__cond_init(&flight->done);
    flight->next = flights->flying;
    flights->flying = flight;
    return flight;
}

/* Not linked any more after a fork. */
static void flight_unlink(dj__flights *flights, const dj__flight *flight)
{
    for (dj__flight **link = &flights->flying; *link != NULL; link = &(*link)->next) {
        if (*link == flight) {
            *link = flight->next;
            return;
        }
    }
}

static void flight_free(dj__flight *flight)
{
    pthread_cond_destroy(&flight->done);
    free(flight);
}

static bool flight_cancelled(const dj_cancel *cancel)
{
    return cancel != NULL && dj_cancel_requested(cancel);
}

/* Waits, with the lock, until the flight is over or the wait is cancelled, and leaves. */
static dj_status flight_follow(dj__flights *flights, dj__flight *flight, const dj_cancel *cancel,
                               void **result, dj_error *err)
{
    flight->followers++;
    while (!flight->landed && !flight_cancelled(cancel)) {
        if (cancel == NULL) {
            pthread_cond_wait(&flight->done, &flights->lock);
        } else {
            (void)dj__cond_wait_until(&flight->done, &flights->lock, dj__now_ns() + CANCEL_POLL_NS);
        }
    }
    flight->followers--;
    if (!flight->landed) {
        return DJ_CANCELLED;
    }
    const dj_status status = flight->status;
    *result = flight->result;
    if (status != DJ_OK && status != DJ_CANCELLED && err != NULL) {
        *err = flight->error;
    }
    if (flight->followers == 0) {
        flight_free(flight);
    }
    return status;
}

dj_status dj__flight_join(dj__flights *flights, const char key[33], dj_cancel *cancel,
                          dj__flight **flight, bool *lead, void **result, dj_error *err)
{
    *flight = NULL;
    *lead = false;
    *result = NULL;

    dj_status status;
    pthread_mutex_lock(&flights->lock);
    /* After a flight that was cancelled, the first to get here leads the next one. */
    do {
        dj__flight *found = flight_find(flights, key);
        if (found == NULL) {
            *flight = flight_start(flights, key);
            *lead = *flight != NULL;
            status = *lead ? DJ_OK : dj__fail_memory(err);
        } else {
            status = flight_follow(flights, found, cancel, result, err);
        }
    } while (status == DJ_CANCELLED && !flight_cancelled(cancel));
    pthread_mutex_unlock(&flights->lock);

    if (status == DJ_OK && !*lead && flight_cancelled(cancel)) {
        flights->release(*result);
        *result = NULL;
        status = DJ_CANCELLED;
    }
    if (status == DJ_CANCELLED) {
        return dj__fail(err, DJ_CANCELLED, "cancelled while waiting for another thread's build");
    }
    return status;
}

/* What followers get of a failure without a text. */
static void flight_set_error(dj__flight *flight, dj_status status, const dj_error *err)
{
    if (err != NULL && err->status == (int32_t)status) {
        flight->error = *err;
    } else {
        (void)dj__fail(&flight->error, status, "the build that was shared failed: %s",
                       dj_status_text(status));
    }
}

void dj__flight_land(dj__flights *flights, dj__flight *flight, dj_status status, void *result,
                     const dj_error *err, unsigned *waiters)
{
    pthread_mutex_lock(&flights->lock);
    flight_unlink(flights, flight);
    const unsigned followers = flight->followers;
    flight->landed = true;
    flight->status = status;
    if (status == DJ_OK) {
        flight->result = result;
        for (unsigned i = 0; i < followers; i++) {
            flights->retain(result);
        }
    } else {
        flight_set_error(flight, status, err);
    }
    if (followers > 0) {
        pthread_cond_broadcast(&flight->done);
    } else {
        flight_free(flight);
    }
    pthread_mutex_unlock(&flights->lock);
    if (waiters != NULL) {
        *waiters = status == DJ_CANCELLED ? 0 : followers;
    }
}
