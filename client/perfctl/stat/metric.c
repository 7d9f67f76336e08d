/* What perf-stat(1) says of a count beside others: of the same CPU, and of the same cgroup. */
#include <string.h>

#include "client/perfctl/stat/stat.h"

typedef struct Scope {
        const StatCounters *all;
        const char *place;
        ssize_t cpu;
} Scope;

StatState stat_counter_state(const StatCounter *c) {
        if (c->is_missing)
                return STAT_NOT_SUPPORTED;
        if (c->is_uncounted || (c->is_removed && c->sum.enabled == 0))
                return STAT_NOT_COUNTED;
        return stat_counter_confidence(c) == 0 ? STAT_NOT_COUNTED : STAT_COUNTED;
}

static bool is_called(const StatCounter *c, const char *name, const char *alias) {
        size_t n = strcspn(c->event, ":"); /* modifiers do not change what it is */

        return (strlen(name) == n && memcmp(c->event, name, n) == 0) ||
               (alias && strlen(alias) == n && memcmp(c->event, alias, n) == 0);
}

static bool is_same_place(const char *a, const char *b) {
        return a == b || (a && b && strcmp(a, b) == 0);
}

/* 0: there is none, or it has counted nothing. */
static double find(const Scope *s, const char *name, const char *alias) {
        for (size_t i = 0; i < s->all->n; i++) {
                StatCounter counter = s->all->list[i];

                if (counter.is_removed || !is_called(&counter, name, alias) || !is_same_place(counter.place, s->place))
                        continue;
                if (s->cpu >= 0 && !stat_counter_on(&s->all->list[i], (size_t)s->cpu, &counter))
                        continue;
                if (stat_counter_state(&counter) == STAT_COUNTED && stat_counter_value(&counter) > 0)
                        return stat_counter_value(&counter);
        }
        return 0;
}

/* The time that ran on the CPUs: what rates are taken by. */
static double find_clock(const Scope *s) {
        double clock = find(s, "task-clock", NULL);

        return clock > 0 ? clock : find(s, "cpu-clock", NULL);
}

static StatMetric rate_of(const StatCounter *c, double clock) {
        double rate = stat_counter_value(c) * 1e9 / clock;

        if (rate >= 1e9)
                return (StatMetric){ rate / 1e9, "G/sec" };
        if (rate >= 1e6)
                return (StatMetric){ rate / 1e6, "M/sec" };
        if (rate >= 1e3)
                return (StatMetric){ rate / 1e3, "K/sec" };
        return (StatMetric){ rate, "/sec" };
}

StatMetric stat_metric_of(const StatCounter *c, const StatCounters *all, ssize_t cpu, uint64_t duration) {
        const Scope s = { .all = all, .place = c->place, .cpu = cpu };
        double clock = find_clock(&s), value, other;

        if (c->is_removed)
                return (StatMetric){ (double)c->removed / 1e9, "seconds until it was removed" };
        if (stat_counter_state(c) != STAT_COUNTED)
                return (StatMetric){ .unit = NULL };
        value = stat_counter_value(c);
        if (is_called(c, "task-clock", "cpu-clock") && duration > 0)
                return (StatMetric){ value / (double)duration, "CPUs utilized" };
        if (is_called(c, "instructions", NULL) && (other = find(&s, "cycles", "cpu-cycles")) > 0)
                return (StatMetric){ value / other, "insn per cycle" };
        if (is_called(c, "branch-misses", NULL) && (other = find(&s, "branches", "branch-instructions")) > 0)
                return (StatMetric){ 100 * value / other, "% of all branches" };
        if (is_called(c, "cache-misses", NULL) && (other = find(&s, "cache-references", NULL)) > 0)
                return (StatMetric){ 100 * value / other, "% of all cache refs" };
        if (is_called(c, "cycles", "cpu-cycles") && clock > 0)
                return (StatMetric){ value / clock, "GHz" };
        if (strcmp(c->unit, "events") != 0 || clock == 0)
                return (StatMetric){ .unit = NULL };
        return rate_of(c, clock);
}
