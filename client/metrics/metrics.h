/*
 * What monitoring reads: perfd's own state, its ledger and the counts of its events, as metrics. By the public part of libperfd
 * alone, so that whoever has a connection can serve them.
 */
#pragma once

#include <stdio.h>

#include "client/perfd.h"

#define METRICS_SERIES_MAX ((size_t)20000) /* by default: what is above it is counted in perfd_omitted_series */

typedef enum MetricsForm {
        METRICS_PROMETHEUS,  /* the text format of Prometheus, 0.0.4 */
        METRICS_OPENMETRICS, /* OpenMetrics 1.0: a family of counters has its name without _total, and the text ends with # EOF */
} MetricsForm;

/* One that the caller knows. Those of one name stand together; `name` is without perfd_ and _total. */
typedef struct MetricsNumber {
        const char *name, *help;
        bool is_counter;
        const char *label, *label_value; /* NULL: without */
        uint64_t value;
        bool is_nsec;                    /* written in seconds */
} MetricsNumber;

typedef struct MetricsSource {
        const perfd_result *status, *list, *ledger; /* of perfd_status(), perfd_list(), perfd_ledger(); all NULL: perfd did not answer */
        const MetricsNumber *numbers;
        size_t n_numbers;
} MetricsSource;

/* Writes at most `most` series, those of perfd itself first. Errors of writing are the stream's: ferror(3). */
void metrics_write(FILE *f, const MetricsSource *source, MetricsForm form, size_t most);
