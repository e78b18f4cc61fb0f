/* SPDX-License-Identifier: MIT */
/*
 * Single flight between threads: of those that want the same thing at the same time, one does
 * the work and all get its result or its error. Nothing is remembered afterwards.
 */
#ifndef DJ_COMPILE_FLIGHT_H
#define DJ_COMPILE_FLIGHT_H

#include <deepjit/base.h>

typedef struct dj__flights dj__flights;
typedef struct dj__flight dj__flight;

/* How a follower gets its own reference to the leader's result. */
typedef void (*dj__flight_retain_fn)(void *result);
typedef void (*dj__flight_release_fn)(void *result);

dj_status dj__flights_create(dj__flight_retain_fn retain, dj__flight_release_fn release,
                             dj__flights **out, dj_error *err);
void dj__flights_destroy(dj__flights *flights);
/* In a forked child: leaders do not exist here, so their flights are forgotten. */
void dj__flights_after_fork(dj__flights *flights);

/*
 * Joins the flight for `key`. *lead true: the caller must do the work and call dj__flight_land
 * exactly once. *lead false: the flight is over; *result (with a reference) or the leader's
 * error, as the returned status says. Waiting ends early with CANCELLED if `cancel` is
 * requested; a leader's CANCELLED is not passed on: one of the followers leads next.
 */
dj_status dj__flight_join(dj__flights *flights, const char key[33], dj_cancel *cancel,
                          dj__flight **flight, bool *lead, void **result, dj_error *err);
/* `result` (not NULL with OK) is borrowed: it is retained for the followers before this returns.
 * `waiters` (may be NULL) gets how many shared it. */
void dj__flight_land(dj__flights *flights, dj__flight *flight, dj_status status, void *result,
                     const dj_error *err, unsigned *waiters);

#endif
