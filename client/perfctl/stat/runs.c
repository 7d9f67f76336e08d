/* Means and deviations of several runs, as perf-stat(1) -r has them: of one run there is no deviation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/stat/stat.h"

void stat_spread_add(StatSpread *s, double value) {
        double difference = value - s->mean;

        s->n++;
        s->mean += difference / (double)s->n;
        s->squares += difference * (value - s->mean);
}

double stat_spread_deviation(const StatSpread *s) {
        return s->n > 1 ? sqrt(s->squares / (double)(s->n - 1) / (double)s->n) : 0;
}

double stat_spread_percentage(const StatSpread *s) {
        return s->mean > 0 ? 100 * stat_spread_deviation(s) / s->mean : 0;
}

static bool is_alike(const StatCounters *a, const StatCounters *b) {
        for (size_t i = 0; a->n == b->n && i < a->n; i++)
                if (strcmp(a->list[i].event, b->list[i].event) != 0)
                        return false;
        return a->n == b->n;
}

static void take_counter(StatCounter *total, const StatCounter *run) {
        if (run->is_removed) {
                total->is_removed = true;
                total->removed = run->removed;
        }
        if (stat_counter_state(run) != STAT_COUNTED)
                return;
        stat_spread_add(&total->sum.spread, stat_counter_value(run));
        for (size_t i = 0; i < run->n_cpus; i++) {
                StatCounter on;

                if (stat_counter_on(run, i, &on))
                        stat_spread_add(&stat_counter_reach(total, i)->spread, stat_counter_value(&on));
        }
        if (total == run)
                return;
        total->sum.enabled += run->sum.enabled;
        total->sum.running += run->sum.running;
        for (size_t i = 0; i < run->n_cpus; i++) {
                total->cpus[i].is_there |= run->cpus[i].is_there;
                total->cpus[i].enabled += run->cpus[i].enabled;
                total->cpus[i].running += run->cpus[i].running;
        }
}

bool stat_runs_add(StatRuns *r, StatCounters *counters, const StatTimes *times) {
        bool is_first = r->elapsed.n == 0;

        if (!is_first && !is_alike(&r->total, counters))
                return false;
        stat_spread_add(&r->elapsed, (double)times->elapsed);
        stat_spread_add(&r->user, (double)times->user);
        stat_spread_add(&r->sys, (double)times->sys);
        if (is_first) {
                r->total = *counters;
                *counters = (StatCounters){ .list = NULL };
        }
        for (size_t i = 0; i < r->total.n; i++)
                take_counter(&r->total.list[i], is_first ? &r->total.list[i] : &counters->list[i]);
        stat_counters_deinit(counters);
        return true;
}

static void make_mean(StatCount *count) {
        uint64_t n = count->spread.n;

        count->enabled /= n > 0 ? n : 1;
        count->running /= n > 0 ? n : 1;
}

/* The value as it is shown is the mean: what was shared is in it already. */
void stat_runs_finish(StatRuns *r) {
        for (size_t i = 0; i < r->total.n; i++) {
                StatCounter *c = &r->total.list[i];
                double shared;

                make_mean(&c->sum);
                shared = c->n_shares > 1 ? stat_counter_confidence(c) : 1;
                c->sum.value = c->sum.spread.mean / c->scale * shared;
                for (size_t k = 0; k < c->n_cpus; k++) {
                        make_mean(&c->cpus[k]);
                        c->cpus[k].value = c->cpus[k].spread.mean / c->scale * shared;
                }
        }
}

void stat_runs_deinit(StatRuns *r) {
        stat_counters_deinit(&r->total);
        *r = (StatRuns){ .elapsed = { .n = 0 } };
}
