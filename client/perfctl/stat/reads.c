/*
 * What comes are counts since the counters were added, of each CPU at the multiples of the interval; so a difference is
 * never lost, only late: a CPU that misses a report is in the next one.
 */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/stat/stat.h"

/* A counter that shared its hardware counted for a part of the time: it is scaled up as perf-stat(1) does it. */
static void add_difference(StatCounter *counter, size_t cpu, perfd_read_value *last, const perfd_read_value *v) {
        uint64_t enabled = v->enabled - last->enabled, running = v->running - last->running;
        bool is_part = counter->n_shares == 1 && running > 0 && running < enabled;
        double value = (double)(v->value - last->value) * (is_part ? (double)enabled / (double)running : 1);
        StatCount *const both[] = { &counter->sum, stat_counter_reach(counter, cpu) };

        for (size_t i = 0; i < 2; i++) {
                both[i]->is_there = true;
                both[i]->value += value;
                both[i]->enabled += enabled;
                both[i]->running += running;
        }
        *last = *v;
}

/* What a CPU said last; it is 0 at first, for that is what the counters began with. */
static perfd_read_value *find_last(StatEvent *e, uint32_t cpu) {
        size_t n = (size_t)cpu + 1;

        if (n > e->n_cpus) {
                e->last = must_have(reallocarray(e->last, n * e->n, sizeof(*e->last)));
                memset(&e->last[e->n_cpus * e->n], 0, (n - e->n_cpus) * e->n * sizeof(*e->last));
                e->times = must_have(reallocarray(e->times, n, sizeof(*e->times)));
                memset(&e->times[e->n_cpus], 0, (n - e->n_cpus) * sizeof(*e->times));
                e->skipped = must_have(reallocarray(e->skipped, n * e->n, sizeof(*e->skipped)));
                e->skipped_times = must_have(reallocarray(e->skipped_times, n, sizeof(*e->skipped_times)));
                memset(&e->skipped_times[e->n_cpus], 0, (n - e->n_cpus) * sizeof(*e->skipped_times));
                e->n_cpus = n;
        }
        return &e->last[cpu * e->n];
}

/* From the CPU that was read first to the one that was read last. */
static uint64_t times_apart(const StatEvent *e) {
        uint64_t first = UINT64_MAX, last = 0;

        for (size_t i = 0; i < e->n_cpus; i++) {
                if (e->times[i] > 0 && e->times[i] < first)
                        first = e->times[i];
                if (e->times[i] > last)
                        last = e->times[i];
        }
        return last > first ? last - first : 0;
}

uint64_t stat_counters_time(const StatCounters *c, const perfd_item *item) {
        const perfd_event *event = perfd_item_event(item);
        const StatEvent *e = event ? stat_counters_find(c, event->id) : NULL;
        uint32_t cpu = perfd_item_cpu(item);

        return e && cpu < e->n_cpus ? e->times[cpu] : 0;
}

/* The event whose counters this item reads; NULL: it is none of these reads. */
static StatEvent *find_read(const StatCounters *c, const perfd_item *item, const perfd_read_value **ret_values) {
        const perfd_event *event = perfd_item_event(item);
        StatEvent *e = event ? stat_counters_find(c, event->id) : NULL;

        if (!e || e->n == 0 || perfd_item_record(item) != PERFD_READ || perfd_item_tid(item) != 0 ||
            perfd_item_read(item, ret_values) != e->n)
                return NULL;
        return e;
}

static void take_read(StatCounters *c, StatEvent *e, uint32_t cpu, uint64_t time, const perfd_read_value *values) {
        perfd_read_value *last = find_last(e, cpu);

        e->times[cpu] = time;
        for (size_t i = 0; i < e->n; i++) {
                add_difference(&c->list[e->first + i], cpu, &last[i], &values[i]);
                c->list[e->first + i].apart = e->apart + times_apart(e);
        }
}

bool stat_counters_take_item(StatCounters *c, const perfd_item *item) {
        const perfd_read_value *values;
        StatEvent *e = find_read(c, item, &values);

        if (e)
                take_read(c, e, perfd_item_cpu(item), perfd_item_time(item), values);
        return e;
}

void stat_counters_skip_item(StatCounters *c, const perfd_item *item) {
        uint32_t cpu = perfd_item_cpu(item);
        const perfd_read_value *values;
        StatEvent *e = find_read(c, item, &values);

        if (!e)
                return;
        (void)find_last(e, cpu);
        memcpy(&e->skipped[cpu * e->n], values, e->n * sizeof(*values));
        e->skipped_times[cpu] = perfd_item_time(item);
}

/* No read will come that has what was skipped. */
void stat_counters_set_removed(StatCounters *c, StatEvent *e, uint64_t began, uint64_t now) {
        uint64_t last = 0;

        for (size_t i = 0; i < e->n_cpus; i++) {
                if (e->skipped_times[i] > e->times[i])
                        take_read(c, e, (uint32_t)i, e->skipped_times[i], &e->skipped[i * e->n]);
                last = e->times[i] > last ? e->times[i] : last;
        }
        now = last > 0 ? last : now;
        e->n_expected = 0;
        e->is_removed = true;
        for (size_t i = 0; i < (e->n > 0 ? e->n : 1); i++) {
                c->list[e->first + i].is_removed = true;
                c->list[e->first + i].removed = now > began ? now - began : 0;
        }
}

static void count_reset(StatCount *count, bool has_begun) {
        if (has_begun) {
                count->reported.value += count->value;
                count->reported.enabled += count->enabled;
                count->reported.running += count->running;
        }
        count->value = 0;
        count->enabled = count->running = 0;
}

void stat_counters_reset(StatCounters *c, bool has_begun) {
        for (size_t i = 0; i < c->n; i++) {
                count_reset(&c->list[i].sum, has_begun);
                for (size_t k = 0; k < c->list[i].n_cpus; k++)
                        count_reset(&c->list[i].cpus[k], has_begun);
        }
        for (size_t i = 0; i < c->n_events; i++)
                c->events[i].apart = times_apart(&c->events[i]);
}

static void count_take_whole(StatCount *count) {
        count->value = count->reported.value;
        count->enabled = count->reported.enabled;
        count->running = count->reported.running;
}

void stat_counters_take_whole(StatCounters *c) {
        for (size_t i = 0; i < c->n; i++) {
                count_take_whole(&c->list[i].sum);
                for (size_t k = 0; k < c->list[i].n_cpus; k++)
                        count_take_whole(&c->list[i].cpus[k]);
        }
}
