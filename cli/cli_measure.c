/* SPDX-License-Identifier: MIT */
/* Samples and their report; see cli_measure.h. */
#include "cli_measure.h"
#include <stdlib.h>
#include <string.h>

void cli_samples_add(cli_samples *samples, double value)
{
    if (samples->count == samples->capacity) {
        const size_t capacity = samples->capacity > 0 ? 2 * samples->capacity : 64;
        double *const items = cli_alloc(capacity, sizeof *items);
        if (samples->count > 0) {
            memcpy(items, samples->items, samples->count * sizeof *items);
        }
        free(samples->items);
        samples->items = items;
        samples->capacity = capacity;
    }
    samples->items[samples->count++] = value;
}

void cli_samples_fini(cli_samples *samples)
{
    free(samples->items);
    *samples = (cli_samples){0};
}

static int compare_samples(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

double cli_quantile(cli_samples *samples, double part)
{
    qsort(samples->items, samples->count, sizeof *samples->items, compare_samples);
    const double at = part * (double)(samples->count - 1);
    const size_t below = (size_t)at;
    const size_t above = below + 1 < samples->count ? below + 1 : below;
    const double share = at - (double)below;
    return samples->items[below] * (1 - share) + samples->items[above] * share;
}

void cli_report_begin(cli_report *report)
{
    if (report->table != NULL) {
        fprintf(report->table, "%-26s %12s %12s %12s %5s  %s\n", "measurement", "median", "min",
                "IQR", "n", "judged");
    }
}

static const char *report_value(double value, const char *unit, char out[32])
{
    if (strcmp(unit, "ns") == 0) {
        return cli_duration(value, out);
    }
    snprintf(out, 32, "%.3g %s", value, unit);
    return out;
}

static bool verdict_met(const cli_verdict *verdict)
{
    return verdict->limit == 0 || (verdict->at_least ? verdict->value >= verdict->limit
                                                     : verdict->value <= verdict->limit);
}

static void report_table(FILE *table, const char *name, const char *unit, cli_samples *samples,
                         const cli_verdict *verdict)
{
    char median[32];
    char smallest[32];
    char range[32];
    const double iqr = cli_quantile(samples, 0.75) - cli_quantile(samples, 0.25);
    fprintf(table, "%-26s %12s %12s %12s %5zu", name,
            report_value(cli_quantile(samples, 0.5), unit, median),
            report_value(samples->items[0], unit, smallest), report_value(iqr, unit, range),
            samples->count);
    if (verdict != NULL) {
        fprintf(table, "  %s %.3g", verdict->what, verdict->value);
        if (verdict->against != NULL) {
            fprintf(table, " against %s", verdict->against);
        }
        if (verdict->limit != 0) {
            fprintf(table, ", %s %.3g: %s", verdict->at_least ? "at least" : "at most",
                    verdict->limit, verdict_met(verdict) ? "ok" : "MISSED");
        }
    }
    fputc('\n', table);
    fflush(table);
}

static json_t *report_json(const char *name, const char *unit, cli_samples *samples,
                           const cli_verdict *verdict)
{
    json_t *const object = json_object();
    cli_json_set(object, "name", json_string(name));
    cli_json_set(object, "unit", json_string(unit));
    cli_json_set(object, "median", json_real(cli_quantile(samples, 0.5)));
    cli_json_set(object, "min", json_real(samples->items[0]));
    cli_json_set(object, "iqr",
                 json_real(cli_quantile(samples, 0.75) - cli_quantile(samples, 0.25)));
    cli_json_set(object, "n", json_integer((json_int_t)samples->count));
    if (verdict != NULL) {
        cli_json_set(object, verdict->what, json_real(verdict->value));
        if (verdict->against != NULL) {
            cli_json_set(object, "against", json_string(verdict->against));
        }
        if (verdict->limit != 0) {
            cli_json_set(object, verdict->at_least ? "at_least" : "at_most",
                         json_real(verdict->limit));
            cli_json_set(object, "ok", json_boolean(verdict_met(verdict)));
        }
    }
    return object;
}

void cli_report_add(cli_report *report, const char *name, const char *unit, cli_samples *samples,
                    const cli_verdict *verdict)
{
    if (verdict != NULL && !verdict_met(verdict)) {
        report->missed++;
    }
    if (report->table != NULL) {
        report_table(report->table, name, unit, samples, verdict);
    }
    if (report->json != NULL) {
        json_t *const object = report_json(name, unit, samples, verdict);
        json_dumpf(object, report->json, JSON_REAL_PRECISION(6));
        fputc('\n', report->json);
        fflush(report->json);
        json_decref(object);
    }
}
