/*
 * As perf-stat(1) prints: what was counted, its unit, what it means beside the others, and for what part of the time it
 * really counted if that was not all of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/perfctl/stat/stat.h"
#include "client/perfctl/base/text.h"

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
static void put_cpus(Perfctl *p, const StatStyle *style, const StatCounters *all, const StatCounter *c, StatLine l) {
        uint64_t duration = l.duration;

        for (size_t cpu = 0, n = count_cpus(all); cpu < n; cpu++) {
                StatCounter on = *c;

                if (!is_there(all, cpu) || (!stat_counter_on(c, cpu, &on) && !c->is_missing && !c->is_uncounted))
                        continue;
                l.counter = &on;
                l.cpu = (ssize_t)cpu;
                l.duration = stat_counter_duration(&on, duration);
                l.metric = stat_metric_of(&on, all, l.cpu, l.duration);
                put(p, style, &l);
        }
}

static void put_all(Perfctl *p, const StatStyle *style, const StatCounters *c, StatLine l) {
        uint64_t duration = l.duration;

        for (size_t i = 0; i < c->n; i++) {
                if (style->per_cpu) {
                        put_cpus(p, style, c, &c->list[i], l);
                        continue;
                }
                l.counter = &c->list[i];
                l.cpu = -1;
                l.duration = stat_counter_duration(l.counter, duration);
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

static void put_names(Output *o, const char *separator, const char *const *names, size_t n) {
        for (size_t i = 0; i < n; i++) {
                output_put_string(o, i > 0 ? separator : "");
                text_put(o, names[i], strlen(names[i]));
        }
}

static void put_ids(Output *o, const char *what, const uint32_t *ids, size_t n, bool has_children) {
        for (size_t i = 0; i < n; i++)
                output_print(o, "%s%s%" PRIu32, i > 0 ? "," : what, i > 0 ? "" : " id '", ids[i]);
        output_put_string(o, n > 0 ? "'" : "");
        if (has_children && n > 0)
                output_put_string(o, n > 1 ? " and their children" : " and its children");
}

/* As perf-stat(1) calls it, which has no containers and units, and of processes no children that are there already. */
static void put_target(Output *o, const perfd_event_spec *t) {
        if (t->target || t->cpus) {
                output_put_string(o, t->target ? "target '" : "CPU(s) '");
                output_put_string(o, t->target ? t->target : t->cpus);
                output_put_char(o, '\'');
        } else if (t->n_cgroups + t->n_containers + t->n_units > 0) {
                output_put_char(o, '\'');
                put_names(o, ",", t->cgroups, t->n_cgroups);
                output_put_string(o, t->n_cgroups > 0 && t->n_containers + t->n_units > 0 ? "," : "");
                put_names(o, ",", t->containers, t->n_containers);
                output_put_string(o, t->n_containers > 0 && t->n_units > 0 ? "," : "");
                put_names(o, ",", t->units, t->n_units);
                output_put_char(o, '\'');
        } else if (t->n_pids + t->n_tids > 0) {
                put_ids(o, "process", t->pids, t->n_pids, !t->no_inherit);
                output_put_string(o, t->n_pids > 0 && t->n_tids > 0 ? ", " : "");
                put_ids(o, "thread", t->tids, t->n_tids, !t->no_inherit);
        } else
                output_put_string(o, "'system wide'");
}

static void put_title(Output *o, const StatOptions *options, uint64_t n_runs) {
        char *const *command = options->command;
        size_t n = 0;

        output_put_string(o, "\n Performance counter stats for ");
        if (!command || options->is_beside)
                put_target(o, &options->asked.target);
        if (command) {
                while (command[n])
                        n++;
                output_put_string(o, options->is_beside ? " during '" : "'");
                put_names(o, " ", (const char *const *)command, n);
                output_put_char(o, '\'');
        }
        if (options->style.is_repeated)
                output_print(o, " (%" PRIu64 " runs)", n_runs);
        output_put_string(o, ":\n\n");
}

void stat_print_total(Perfctl *p, const StatRuns *runs, const StatOptions *options) {
        const StatStyle *style = &options->style;
        uint64_t elapsed = (uint64_t)runs->elapsed.mean;
        StatLine line = { .time = elapsed, .duration = elapsed };
        Output *o = &p->out;

        if (p->json || style->separator) {
                put_all(p, style, &runs->total, line);
                return;
        }
        put_title(o, options, runs->elapsed.n);
        put_all(p, style, &runs->total, line);
        output_put_char(o, '\n');
        put_time(o, style, &runs->elapsed, "time elapsed");
        output_put_char(o, '\n');
        if (!options->command)
                return;
        put_time(o, style, &runs->user, "user");
        put_time(o, style, &runs->sys, "sys");
        output_put_char(o, '\n');
}
