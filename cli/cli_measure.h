/* SPDX-License-Identifier: MIT */
/*
 * cli_measure.h: samples, medians and how measurements are printed. A measurement that is judged
 * against another was taken in turns with it, so that both see the same machine.
 */
#ifndef DJ_CLI_MEASURE_H
#define DJ_CLI_MEASURE_H

#include "cli.h"
#include <stdio.h>

typedef struct cli_samples {
    double *items;
    size_t count;
    size_t capacity;
} cli_samples;
void cli_samples_add(cli_samples *samples, double value);
void cli_samples_fini(cli_samples *samples);
/* The value below which `part` (0 to 1) of the samples lie; sorts them. Needs one at least. */
double cli_quantile(cli_samples *samples, double part);

/* What is judged: `value` must be at most `limit`, or at least if `at_least`. */
typedef struct cli_verdict {
    const char *what;    /* "ratio", "difference", "median" */
    const char *against; /* name of the other measurement, or NULL */
    double value;
    double limit; /* 0: none, only reported */
    bool at_least;
} cli_verdict;

/* Where measurements go: JSON lines to `json`, a table to `table`; either may be NULL. */
typedef struct cli_report {
    FILE *json;
    FILE *table;
    size_t missed; /* limits not met */
} cli_report;
void cli_report_begin(cli_report *report);
/* One line; `verdict` may be NULL. Units: "ns" or "ops/s". */
void cli_report_add(cli_report *report, const char *name, const char *unit, cli_samples *samples,
                    const cli_verdict *verdict);

#endif
