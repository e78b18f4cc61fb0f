/* SPDX-License-Identifier: MIT */
/* Single flight: one leader, results and errors shared, cancellation, fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/thread.h"
#include "compile/flight.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static const char key_a[33] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char key_b[33] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

typedef struct flight_result {
    _Atomic int refs;
} flight_result;

static void result_retain(void *result)
{
    ((flight_result *)result)->refs++;
}

static void result_release(void *result)
{
    ((flight_result *)result)->refs--;
}

static dj__flights *new_flights(void)
{
    dj__flights *flights = NULL;
    assert_int_equal(dj__flights_create(result_retain, result_release, &flights, NULL), DJ_OK);
    return flights;
}

/*
 * ---- followers ----
 * Whether a thread that was started waits already cannot be seen from outside. Landing tells how
 * many did, and who came too late leads a flight itself. So tests that need a waiting follower
 * repeat until there was one.
 */

enum { FOLLOWERS = 8 };

typedef struct flight_follower {
    dj__flights *flights;
    dj_cancel *cancel;
    pthread_t thread;
    _Atomic bool done;
    dj__flight *flight;
    bool lead;
    void *result;
    dj_status status;
    dj_error err;
} flight_follower;

static void *follow(void *arg)
{
    flight_follower *self = arg;
    self->status = dj__flight_join(self->flights, key_a, self->cancel, &self->flight, &self->lead,
                                   &self->result, &self->err);
    self->done = true;
    return NULL;
}

static void start(flight_follower *follower, dj__flights *flights, dj_cancel *cancel)
{
    memset(follower, 0, sizeof(*follower));
    follower->flights = flights;
    follower->cancel = cancel;
    assert_int_equal(pthread_create(&follower->thread, NULL, follow, follower), 0);
}

static void finish(flight_follower *follower)
{
    assert_int_equal(pthread_join(follower->thread, NULL), 0);
}

static dj__flight *lead(dj__flights *flights, const char *key)
{
    dj__flight *flight = NULL;
    bool leading = false;
    void *result = &flight;
    assert_int_equal(dj__flight_join(flights, key, NULL, &flight, &leading, &result, NULL), DJ_OK);
    assert_true(leading);
    assert_non_null(flight);
    assert_null(result);
    return flight;
}

static unsigned land_ok(dj__flights *flights, dj__flight *flight, flight_result *result)
{
    unsigned waiters = 99;
    dj__flight_land(flights, flight, DJ_OK, result, NULL, &waiters);
    return waiters;
}

/* ---- tests ---- */

static void a_flight_alone(void **state)
{
    (void)state;
    dj__flights *flights = new_flights();
    flight_result result = {1};
    assert_int_equal(land_ok(flights, lead(flights, key_a), &result), 0);
    assert_int_equal(result.refs, 1);

    /* Nothing is remembered, neither a result nor an error; keys do not meet. */
    dj__flight *a = lead(flights, key_a);
    dj__flight *b = lead(flights, key_b);
    dj__flight_land(flights, a, DJ_IO, NULL, NULL, NULL);
    dj__flight_land(flights, lead(flights, key_a), DJ_CANCELLED, NULL, NULL, NULL);
    assert_int_equal(land_ok(flights, b, &result), 0);
    dj__flights_destroy(flights);
    dj__flights_destroy(NULL);
}

/* Threads that come too late for the landing lead themselves and say so; those who waited have
 * the result, each with a reference. */
static void followers_share_the_result(void **state)
{
    (void)state;
    dj__flights *flights = new_flights();
    unsigned shared = 0;
    while (shared == 0) {
        flight_follower followers[FOLLOWERS];
        flight_result result = {1};
        flight_result late = {1};
        dj__flight *flight = lead(flights, key_a);
        for (int i = 0; i < FOLLOWERS; i++) {
            start(&followers[i], flights, NULL);
        }
        sched_yield();
        const unsigned waiters = land_ok(flights, flight, &result);
        assert_int_equal(result.refs, 1 + (int)waiters); /* before land returns */
        unsigned got = 0;
        unsigned open = FOLLOWERS;
        while (open > 0) { /* land what the late ones lead */
            for (int i = 0; i < FOLLOWERS; i++) {
                flight_follower *f = &followers[i];
                if (f->flights == NULL || !f->done) {
                    continue;
                }
                finish(f);
                f->flights = NULL;
                open--;
                assert_int_equal(f->status, DJ_OK);
                if (f->lead) {
                    (void)land_ok(flights, f->flight, &late);
                } else {
                    got += f->result == &result;
                    assert_true(f->result == &result || f->result == &late);
                }
            }
            sched_yield();
        }
        assert_int_equal(got, waiters);
        shared = waiters;
    }
    dj__flights_destroy(flights);
}

static void followers_share_the_error(void **state)
{
    (void)state;
    dj__flights *flights = new_flights();
    unsigned shared = 0;
    while (shared == 0) {
        flight_follower follower;
        dj_error err = DJ_ERROR_INIT;
        dj__flight *flight = lead(flights, key_a);
        start(&follower, flights, NULL);
        sched_yield();
        dj__fail(&err, DJ_COMPILE, "line 3: no");
        dj__flight_land(flights, flight, DJ_COMPILE, NULL, &err, &shared);
        finish(&follower);
        if (follower.lead) {
            assert_int_equal(shared, 0);
            dj__flight_land(flights, follower.flight, DJ_OK, &follower, NULL, NULL);
            continue;
        }
        assert_int_equal(shared, 1);
        assert_int_equal(follower.status, DJ_COMPILE);
        assert_int_equal(follower.err.status, DJ_COMPILE);
        assert_string_equal(follower.err.message, "line 3: no");
        assert_null(follower.result);
    }
    dj__flights_destroy(flights);
}

static void an_error_without_text_gets_one(void **state)
{
    (void)state;
    dj__flights *flights = new_flights();
    unsigned shared = 0;
    while (shared == 0) {
        flight_follower follower;
        dj__flight *flight = lead(flights, key_a);
        start(&follower, flights, NULL);
        sched_yield();
        dj__flight_land(flights, flight, DJ_TIMEOUT, NULL, NULL, &shared);
        finish(&follower);
        if (follower.lead) {
            dj__flight_land(flights, follower.flight, DJ_OK, &follower, NULL, NULL);
        } else {
            assert_int_equal(follower.status, DJ_TIMEOUT);
            assert_int_equal(follower.err.status, DJ_TIMEOUT);
            assert_non_null(strstr(follower.err.message, "timed out"));
        }
    }
    dj__flights_destroy(flights);
}

static void a_cancelled_leader_is_replaced(void **state)
{
    (void)state;
    dj__flights *flights = new_flights();
    flight_follower followers[FOLLOWERS];
    flight_result result = {1};
    dj_error err = DJ_ERROR_INIT;
    dj__flight *flight = lead(flights, key_a);
    for (int i = 0; i < FOLLOWERS; i++) {
        start(&followers[i], flights, NULL);
    }
    sched_yield();
    dj__fail(&err, DJ_CANCELLED, "cancelled");
    unsigned waiters = 99;
    dj__flight_land(flights, flight, DJ_CANCELLED, NULL, &err, &waiters);
    assert_int_equal(waiters, 0);
    int leaders = 0;
    for (int open = FOLLOWERS; open > 0;) {
        for (int i = 0; i < FOLLOWERS; i++) {
            flight_follower *f = &followers[i];
            if (f->flights == NULL || !f->done) {
                continue;
            }
            finish(f);
            f->flights = NULL;
            open--;
            assert_int_equal(f->status, DJ_OK);
            assert_int_equal(f->err.status, DJ_OK);
            if (f->lead) {
                leaders++;
                (void)land_ok(flights, f->flight, &result);
            } else {
                assert_ptr_equal(f->result, &result);
            }
        }
        sched_yield();
    }
    assert_true(leaders >= 1);
    assert_int_equal(result.refs, 1 + FOLLOWERS - leaders);
    dj__flights_destroy(flights);
}

static void a_follower_can_be_cancelled(void **state)
{
    (void)state;
    dj__flights *flights = new_flights();
    dj_cancel *cancel = NULL;
    assert_int_equal(dj_cancel_create(&cancel, NULL), DJ_OK);
    flight_result result = {1};
    flight_follower follower;
    dj__flight *flight = lead(flights, key_a);
    start(&follower, flights, cancel);
    sched_yield();
    dj_cancel_request(cancel);
    finish(&follower); /* although nobody lands */
    assert_int_equal(follower.status, DJ_CANCELLED);
    assert_int_equal(follower.err.status, DJ_CANCELLED);
    assert_false(follower.lead);
    assert_null(follower.result);

    /* Cancelled before it comes: the same. */
    start(&follower, flights, cancel);
    finish(&follower);
    assert_int_equal(follower.status, DJ_CANCELLED);

    assert_int_equal(land_ok(flights, flight, &result), 0);
    assert_int_equal(result.refs, 1);
    dj_cancel_release(cancel);
    dj__flights_destroy(flights);
}

/* A cancelled follower that finds a result there gives its reference back. */
static dj_cancel *cancel_at_landing;

static void result_retain_and_cancel(void *result)
{
    result_retain(result);
    dj_cancel_request(cancel_at_landing);
}

static void a_follower_cancelled_at_the_landing_keeps_nothing(void **state)
{
    (void)state;
    dj__flights *flights = NULL;
    assert_int_equal(dj__flights_create(result_retain_and_cancel, result_release, &flights, NULL),
                     DJ_OK);
    unsigned waiters = 0;
    while (waiters == 0) {
        assert_int_equal(dj_cancel_create(&cancel_at_landing, NULL), DJ_OK);
        flight_result result = {1};
        flight_follower follower;
        dj__flight *flight = lead(flights, key_a);
        start(&follower, flights, cancel_at_landing);
        sched_yield();
        waiters = land_ok(flights, flight, &result);
        finish(&follower);
        if (follower.lead) {
            (void)land_ok(flights, follower.flight, &result);
        } else {
            assert_int_equal(follower.status, DJ_CANCELLED);
            assert_null(follower.result);
        }
        assert_int_equal(result.refs, 1);
        dj_cancel_release(cancel_at_landing);
    }
    dj__flights_destroy(flights);
}

static void after_a_fork_flights_are_forgotten(void **state)
{
    (void)state;
    dj__flights *flights = new_flights();
    flight_result result = {1};
    dj__flight *mine = lead(flights, key_a);
    dj__flights_after_fork(flights);
    /* The other's flight is not waited for, and ours can still land. */
    dj__flight *again = lead(flights, key_a);
    assert_int_equal(land_ok(flights, mine, &result), 0);
    assert_int_equal(land_ok(flights, again, &result), 0);
    assert_int_equal(result.refs, 1);
    dj__flights_destroy(flights);
}

/* ---- many threads ---- */

enum { CROWD = 8, CROWD_ROUNDS = 2000 };

static _Atomic int crowd_active[2];
static _Atomic int crowd_wrong;
static _Atomic int crowd_led;
static flight_result crowd_results[2];

static void *crowd_run(void *arg)
{
    dj__flights *flights = arg;
    for (int i = 0; i < CROWD_ROUNDS; i++) {
        const int which = i / 3 % 2;
        dj__flight *flight;
        bool leading;
        void *result;
        const dj_status status =
            dj__flight_join(flights, which ? key_b : key_a, NULL, &flight, &leading, &result, NULL);
        if (leading) {
            crowd_led++;
            crowd_wrong += crowd_active[which]++ != 0; /* never two at once */
            sched_yield();
            crowd_active[which]--;
            const dj_status end = i % 5 == 0 ? DJ_CANCELLED : i % 7 == 0 ? DJ_COMPILE : DJ_OK;
            dj__flight_land(flights, flight, end, &crowd_results[which], NULL, NULL);
        } else if (status == DJ_OK) {
            crowd_wrong += result != &crowd_results[which];
            result_release(result);
        } else {
            crowd_wrong += status != DJ_COMPILE;
        }
    }
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    dj__flights *flights = new_flights();
    pthread_t threads[CROWD];
    for (int i = 0; i < CROWD; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, flights), 0);
    }
    for (int i = 0; i < CROWD; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(crowd_wrong, 0);
    assert_true(crowd_led > 0);
    assert_int_equal(crowd_results[0].refs, 0);
    assert_int_equal(crowd_results[1].refs, 0);
    dj__flights_destroy(flights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flight_alone),
        cmocka_unit_test(followers_share_the_result),
        cmocka_unit_test(followers_share_the_error),
        cmocka_unit_test(an_error_without_text_gets_one),
        cmocka_unit_test(a_cancelled_leader_is_replaced),
        cmocka_unit_test(a_follower_can_be_cancelled),
        cmocka_unit_test(a_follower_cancelled_at_the_landing_keeps_nothing),
        cmocka_unit_test(after_a_fork_flights_are_forgotten),
        cmocka_unit_test(many_threads),
    };
    return cmocka_run_group_tests_name("flight", tests, NULL, NULL);
}
