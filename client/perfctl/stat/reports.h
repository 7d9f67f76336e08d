/*
 * For `stat`: what is read, put together as the reports of intervals. Each is of the reads of one moment, one of each CPU and event, and
 * lasts from those of the one before.
 */
#pragma once

#include "client/perfctl/stat/stat.h"

typedef struct StatReports {
        Perfctl *p;
        const StatStyle *style;
        StatCounters *counters;
        uint64_t every;    /* ns between two reads of a counter, at the multiples of it */
        uint64_t n_reads;  /* from one report to the next; 0: there are none before the end */
        bool is_of_command; /* the first report is from where the command began, and not from the first reads on */

        /* of the stream's clock, ns */
        uint64_t began;    /* the first report did */
        uint64_t reported; /* up to here */

        bool has_begun;
        bool is_ending;    /* no read is left out any more */
        uint64_t next;     /* which multiple ends the next report, or begins the first one */
        uint64_t n_items;  /* of that one, */
        uint64_t lateness; /* the sum of how long behind the multiple they are, */
        uint64_t deadline; /* and when it is made without the rest: CLOCK_MONOTONIC */
        uint64_t n_made;
} StatReports;

/* interval: of reports; 0: one at the end. */
void stat_reports_init(StatReports *r, Perfctl *p, const StatStyle *style, StatCounters *counters, uint64_t interval);
/* How long a command waits, so that it begins where counters are read. */
uint64_t stat_reports_wait(const StatReports *r, uint64_t now);
/* The counters count, or the command begins now. */
void stat_reports_begin(StatReports *r, uint64_t now);
/* now: CLOCK_MONOTONIC, also where it is made because that is behind the deadline. */
void stat_reports_take(StatReports *r, const perfd_item *item, uint64_t now);
void stat_reports_make_late(StatReports *r, uint64_t now);
/* UINT64_MAX: nothing is waited for. */
uint64_t stat_reports_deadline(const StatReports *r);
/* Before the counters are disabled: what comes until the end of the stream belongs to the last report, all of it. */
void stat_reports_end(StatReports *r);
/* That one, unless there are none of intervals. end: where it does; 0: at its own reads. */
void stat_reports_make_last(StatReports *r, uint64_t end);
