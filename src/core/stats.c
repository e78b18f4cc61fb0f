/* SPDX-License-Identifier: MIT */
/* Gathering a runtime's counters. */
#include "base/error.h"
#include "core/core.h"

static uint64_t stats_read(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

dj_status dj_runtime_stats(dj_runtime *runtime, dj_stats *out, dj_error *err)
{
    if (runtime == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "runtime must not be NULL");
    }
    if (out == NULL || out->size != sizeof(*out)) {
        return dj__fail(err, DJ_INVALID_ARGUMENT,
                        "dj_runtime_stats: out must be a dj_stats set to DJ_STATS_INIT");
    }
    const dj__counters *counters = &runtime->counters;
    const dj__store_counters *store = &runtime->store_counters;
    *out = (dj_stats){
        .size = sizeof(*out),
        .memory_hits = dj__memory_hits(runtime->memory) + stats_read(&counters->key_hits),
        .disk_hits = stats_read(&counters->disk_hits),
        .misses = stats_read(&counters->misses),
        .compiles = stats_read(&counters->compiles),
        .compile_failures = stats_read(&counters->compile_failures),
        .waits = stats_read(&counters->waits),
        .lost_races = stats_read(&store->lost_races),
        .healed = stats_read(&store->healed),
        .unpublished = stats_read(&store->unpublished),
        .evictions = dj__memory_evictions(runtime->memory),
        .loads = stats_read(&counters->loads),
        .compile_ns = stats_read(&counters->compile_ns),
        .load_ns = stats_read(&counters->load_ns),
        .bytes_read = stats_read(&store->bytes_read),
        .bytes_written = stats_read(&store->bytes_written),
    };
    return DJ_OK;
}
