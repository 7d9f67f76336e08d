/* What perfd and the relay say of themselves, as answers of HTTP. Thread: THREAD_METRICS; collector_interrupt() is of any. */
#pragma once

#include <microhttpd.h>
#include <pthread.h>

#include "client/metrics/metrics.h"
#include "client/relay/relay-counters.h"
#include "daemon/base/clock.h"

/* What the server of metrics counts of itself. */
typedef struct HttpCounters {
        uint64_t n_served, n_refused;           /* requests, by 200 and by another status */
        uint64_t n_overloads, n_timeouts;       /* connections */
        uint64_t n_collections, n_collections_failed;
        nsec_t collection_time;                 /* of the last one */
} HttpCounters;

typedef struct Collector {
        const char *stream; /* the socket of perfd; the caller's */
        size_t n_series_max;
        const RelayCounters *relay;
        HttpCounters http;
        nsec_t at; /* when perfd was asked last, CLOCK_MONOTONIC; 0: never */
        perfd_result *status, *list, *ledger; /* what it has said; NULL: nothing */
        struct MHD_Response *answers[2];      /* of that, by MetricsForm; NULL: nobody has wanted it yet */
        bool is_up;                      /* what the log has said of perfd last */
        bool has_been_asked;
        pthread_mutex_t lock; /* of the two below */
        int perfd_fd;         /* while perfd is asked; -1: it is not */
        bool is_interrupted;
} Collector;

void collector_init(Collector *c, const char *stream, size_t n_series_max, const RelayCounters *relay);
void collector_deinit(Collector *c);
/* The answer of this moment, the collector's own; it is at most a second old. NULL: no memory, or interrupted. */
struct MHD_Response *collector_get(Collector *c, MetricsForm form);
/* From now on there are no answers, and nobody waits for perfd. */
void collector_interrupt(Collector *c);
