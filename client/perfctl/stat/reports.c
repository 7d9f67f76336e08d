/*
 * CPUs read at the multiples of an interval of the daemon's clock, which begins somewhere. So they are asked to read more often, and
 * of these reads one in so many makes a report: the first report begins at one of them, in a moment, and all are equally long. What
 * is left out is in the next read that is not, because counts only grow.
 */
#include "client/perfctl/stat/reports.h"

#define PATIENCE 200000000 /* ns that a report waits for the last CPU, or half of the interval */
#define READS 100000000    /* the longest time between two reads: the first report begins within it */

void stat_reports_init(StatReports *r, Perfctl *p, const StatStyle *style, StatCounters *counters, uint64_t interval) {
        uint64_t n = (interval + READS - 1) / READS;

        *r = (StatReports){ .p = p, .style = style, .counters = counters, .n_reads = n, .every = n > 0 ? interval / n : READS };
}

uint64_t stat_reports_wait(const StatReports *r, uint64_t now) {
        return r->is_of_command && r->n_reads > 0 ? r->every - now % r->every : 0;
}

/* Of a command's first interval the end is the multiple that is closest. */
void stat_reports_begin(StatReports *r, uint64_t now) {
        r->began = r->reported = now;
        r->has_begun = r->is_of_command;
        r->next = r->is_of_command ? (now + r->every / 2) / r->every + r->n_reads : now / r->every + 1;
}

static void make(StatReports *r) {
        uint64_t end = r->next * r->every + r->lateness / r->n_items;

        r->n_items = r->lateness = 0;
        r->next += r->n_reads;
        if (!r->has_begun)
                r->began = end;
        else if (end > r->reported) {
                stat_print(r->p, r->style, r->counters, end - r->began, end - r->reported);
                r->n_made++;
        }
        stat_counters_reset(r->counters, r->has_begun);
        r->has_begun = true;
        r->reported = end;
}

/* Nobody said anything at the multiples that were meant. */
static void skip_to(StatReports *r, uint64_t multiple) {
        if (r->n_items > 0)
                make(r);
        if (!r->has_begun)
                r->next = multiple;
        else if (multiple > r->next)
                r->next += (multiple - r->next) / r->n_reads * r->n_reads;
}

static void note(StatReports *r, uint64_t late, uint64_t now) {
        uint64_t patience = r->every * r->n_reads / 2;

        if (r->n_items == 0)
                r->deadline = now + (patience < PATIENCE ? patience : PATIENCE);
        r->n_items++;
        r->lateness += late;
}

/* A CPU that did not read at the multiple is in the report with the read behind it. */
void stat_reports_take(StatReports *r, const perfd_item *item, uint64_t now) {
        uint64_t time = perfd_item_time(item), multiple = time / r->every;

        if (r->n_reads == 0 || r->is_ending) {
                if (stat_counters_take_item(r->counters, item) && r->is_ending && time > r->reported)
                        note(r, time - r->reported, now);
                return;
        }
        if (multiple < r->next) {
                stat_counters_skip_item(r->counters, item);
                return;
        }
        if (multiple >= r->next + r->n_reads)
                skip_to(r, multiple);
        if (multiple < r->next || stat_counters_time(r->counters, item) >= r->next * r->every ||
            !stat_counters_take_item(r->counters, item))
                return;
        note(r, time - r->next * r->every, now);
        if (r->n_items == stat_counters_expected(r->counters))
                make(r);
}

void stat_reports_make_late(StatReports *r, uint64_t now) {
        if (!r->is_ending && r->n_items > 0 && now >= r->deadline)
                make(r);
}

uint64_t stat_reports_deadline(const StatReports *r) {
        return !r->is_ending && r->n_items > 0 ? r->deadline : UINT64_MAX;
}

/* If it has not begun, all that was counted is in the last report. */
void stat_reports_end(StatReports *r) {
        if (r->n_items > 0 && r->has_begun)
                make(r);
        r->n_items = r->lateness = 0;
        r->is_ending = true;
}

void stat_reports_make_last(StatReports *r, uint64_t end) {
        if (end == 0)
                end = r->reported + (r->n_items > 0 ? r->lateness / r->n_items : 0);
        if (r->n_reads == 0 || end <= r->reported)
                return;
        stat_print(r->p, r->style, r->counters, end - r->began, end - r->reported);
        stat_counters_reset(r->counters, true);
        r->reported = end;
        r->n_made++;
}
