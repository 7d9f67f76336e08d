/*
 * As perf-stat(1) prints: what was counted, its unit, what it means beside the others, and for what part of the time it
 * really counted if that was not all of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/perfctl/stat.h"
#include "client/perfctl/text.h"

#define EVENT_WIDTH 32

/* "1234", "12.34 msec", "0.51 Joules" in two columns. */
static void put_value(Output *o, const StatCounter *c) {
        if (strcmp(c->unit, "ns") == 0)
                output_print(o, "%18.2f %-6s ", stat_counter_value(c) / 1e6, "msec");
        else if (strcmp(c->unit, "events") == 0 && c->scale == 1)
                output_print(o, "%18.0f %-6s ", stat_counter_value(c), "");
        else {
                output_print(o, "%18.2f ", stat_counter_value(c));
                text_put(o, c->unit, strlen(c->unit));
                output_print(o, "%*s ", strlen(c->unit) < 6 ? (int)(6 - strlen(c->unit)) : 0, "");
        }
}

/* Each part is padded only if another one follows. */
static void put_line(Output *o, const StatStyle *style, const StatLine *l) {
        const StatCounter *c = l->counter;
        StatState state = stat_counter_state(c);
        bool is_part = state == STAT_COUNTED && stat_counter_confidence(c) < 1;
        bool is_mean = style->is_repeated && state == STAT_COUNTED, is_more = is_part || is_mean;
        size_t width = strlen(c->event) + (c->place ? 1 + strlen(c->place) : 0);

        if (l->cpu >= 0)
                output_print(o, "CPU%-5zd", l->cpu);
        if (state == STAT_COUNTED)
                put_value(o, c);
        else
                output_print(o, "%18s %-6s ", state == STAT_NOT_COUNTED ? "<not counted>" : "<not supported>", "");
        text_put(o, c->event, strlen(c->event));
        if (c->place) {
                output_put_char(o, ' ');
                text_put(o, c->place, strlen(c->place));
        }
        if (l->metric.unit || is_more)
                output_print(o, "%*s", width < EVENT_WIDTH ? (int)(EVENT_WIDTH - width) : 1, "");
        if (l->metric.unit)
                output_print(o, " # %8.3f %-*s", l->metric.value, is_more ? 20 : 0, l->metric.unit);
        else if (is_more)
                output_print(o, "%*s", EVENT_WIDTH, "");
        if (is_mean)
                output_print(o, "  ( +-%6.2f%% )", stat_spread_percentage(&c->sum.spread));
        if (is_part)
                output_print(o, " (%.2f%%)", 100 * stat_counter_confidence(c));
        output_put_char(o, '\n');
}

static void put(Perfctl *p, const StatStyle *style, const StatLine *l) {
        if (p->json)
                stat_put_json(&p->out, style, l);
        else if (style->separator)
                stat_put_fields(&p->out, style, l);
        else {
                if (l->has_time)
                        output_print(&p->out, "%6" PRIu64 ".%09" PRIu64 "%s", l->time / 1000000000, l->time % 1000000000,
                                     l->cpu >= 0 ? " " : "");
                put_line(&p->out, style, l);
        }
}

static size_t count_cpus(const StatCounters *c) {
        size_t n = 0;

        for (size_t i = 0; i < c->n; i++)
                n = c->list[i].n_cpus > n ? c->list[i].n_cpus : n;
        return n;
}

/* Of any counter. */
static bool is_there(const StatCounters *c, size_t cpu) {
        for (size_t i = 0; i < c->n; i++)
                if (cpu < c->list[i].n_cpus && c->list[i].cpus[cpu].is_there)
                        return true;
        return false;
}

/* What cannot be counted has a line for each CPU that others were counted on. */
static void put_cpus(Perfctl *p, const StatStyle *style, const StatCounters *all, const StatCounter *c, StatLine *l) {
        for (size_t cpu = 0, n = count_cpus(all); cpu < n; cpu++) {
                StatCounter on = *c;

                if (!is_there(all, cpu) || (!stat_counter_on(c, cpu, &on) && !c->is_missing))
                        continue;
                l->counter = &on;
                l->cpu = (ssize_t)cpu;
                l->metric = stat_metric_of(&on, all, l->cpu, l->duration);
                put(p, style, l);
        }
}

static void put_all(Perfctl *p, const StatStyle *style, const StatCounters *c, StatLine l) {
        for (size_t i = 0; i < c->n; i++) {
                if (style->per_cpu) {
                        put_cpus(p, style, c, &c->list[i], &l);
                        continue;
                }
                l.counter = &c->list[i];
                l.cpu = -1;
                l.metric = stat_metric_of(l.counter, c, -1, l.duration);
                put(p, style, &l);
        }
}

void stat_print_heading(Perfctl *p, const StatStyle *style) {
        if (!p->json && !style->separator)
                output_print(&p->out, "#           time %s            counts unit   events\n", style->per_cpu ? "CPU      " : "");
}

void stat_print(Perfctl *p, const StatStyle *style, const StatCounters *c, uint64_t time, uint64_t duration) {
        put_all(p, style, c, (StatLine){ .time = time, .duration = duration, .has_time = true });
}

static void put_time(Output *o, const StatStyle *style, const StatSpread *time, const char *what) {
        output_print(o, "%18.9f ", time->mean / 1e9);
        if (style->is_repeated)
                output_print(o, "+- %.9f ", stat_spread_deviation(time) / 1e9);
        output_print(o, "seconds %s", what);
        if (style->is_repeated)
                output_print(o, "  ( +-%6.2f%% )", stat_spread_percentage(time));
        output_put_char(o, '\n');
}

void stat_print_total(Perfctl *p, const StatStyle *style, const StatRuns *runs, char *const *command) {
        uint64_t elapsed = (uint64_t)runs->elapsed.mean;
        StatLine line = { .time = elapsed, .duration = elapsed };
        Output *o = &p->out;

        if (p->json || style->separator) {
                put_all(p, style, &runs->total, line);
                return;
        }
        output_print(o, "\n Performance counter stats for '");
        for (size_t i = 0; command[i]; i++) {
                output_put_string(o, i > 0 ? " " : "");
                text_put(o, command[i], strlen(command[i]));
        }
        output_put_string(o, "'");
        if (style->is_repeated)
                output_print(o, " (%" PRIu64 " runs)", runs->elapsed.n);
        output_print(o, ":\n\n");
        put_all(p, style, &runs->total, line);
        output_put_char(o, '\n');
        put_time(o, style, &runs->elapsed, "time elapsed");
        output_put_char(o, '\n');
        put_time(o, style, &runs->user, "user");
        put_time(o, style, &runs->sys, "sys");
        output_put_char(o, '\n');
}
