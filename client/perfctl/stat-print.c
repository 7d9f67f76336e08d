/*
 * As perf-stat(1) prints: what was counted, its unit, what it means beside the others, and for what part of the time it
 * really counted if that was not all of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/perfctl/json.h"
#include "client/perfctl/quantity.h"
#include "client/perfctl/stat.h"
#include "client/perfctl/text.h"

typedef enum StatState {
        STAT_COUNTED,
        STAT_NOT_COUNTED,   /* it was there, but its hardware always counted something else */
        STAT_NOT_SUPPORTED, /* by this machine */
} StatState;

static StatState state_of(const StatCounter *c) {
        if (c->is_missing)
                return STAT_NOT_SUPPORTED;
        return stat_counter_confidence(c) == 0 ? STAT_NOT_COUNTED : STAT_COUNTED;
}

/* What a value says beside another one. */
typedef struct StatMeaning {
        double value;
        const char *unit; /* NULL: nothing */
} StatMeaning;

static bool is_called(const StatCounter *c, const char *name, const char *alias) {
        size_t n = strcspn(c->event, ":"); /* modifiers do not change what it is */

        return (strlen(name) == n && memcmp(c->event, name, n) == 0) ||
               (alias && strlen(alias) == n && memcmp(c->event, alias, n) == 0);
}

static const StatCounter *find(const StatCounters *all, const char *name, const char *alias) {
        for (size_t i = 0; i < all->n; i++)
                if (is_called(&all->list[i], name, alias) && state_of(&all->list[i]) == STAT_COUNTED &&
                    stat_counter_value(&all->list[i]) > 0)
                        return &all->list[i];
        return NULL;
}

/* The time that ran on the CPUs: what rates are taken by. */
static const StatCounter *find_clock(const StatCounters *all) {
        const StatCounter *clock = find(all, "task-clock", NULL);

        return clock ? clock : find(all, "cpu-clock", NULL);
}

static StatMeaning rate_of(const StatCounter *c, const StatCounter *clock) {
        double rate = stat_counter_value(c) * 1e9 / stat_counter_value(clock);

        if (rate >= 1e9)
                return (StatMeaning){ rate / 1e9, "G/sec" };
        if (rate >= 1e6)
                return (StatMeaning){ rate / 1e6, "M/sec" };
        if (rate >= 1e3)
                return (StatMeaning){ rate / 1e3, "K/sec" };
        return (StatMeaning){ rate, "/sec" };
}

static StatMeaning meaning_of(const StatCounter *c, const StatCounters *all, uint64_t duration) {
        const StatCounter *clock = find_clock(all), *other;

        if (state_of(c) != STAT_COUNTED)
                return (StatMeaning){ .unit = NULL };
        if (is_called(c, "task-clock", "cpu-clock") && duration > 0)
                return (StatMeaning){ stat_counter_value(c) / (double)duration, "CPUs utilized" };
        if (is_called(c, "instructions", NULL) && (other = find(all, "cycles", "cpu-cycles")))
                return (StatMeaning){ stat_counter_value(c) / stat_counter_value(other), "insn per cycle" };
        if (is_called(c, "branch-misses", NULL) && (other = find(all, "branches", "branch-instructions")))
                return (StatMeaning){ 100 * stat_counter_value(c) / stat_counter_value(other), "% of all branches" };
        if (is_called(c, "cache-misses", NULL) && (other = find(all, "cache-references", NULL)))
                return (StatMeaning){ 100 * stat_counter_value(c) / stat_counter_value(other), "% of all cache refs" };
        if (is_called(c, "cycles", "cpu-cycles") && clock)
                return (StatMeaning){ stat_counter_value(c) / stat_counter_value(clock), "GHz" };
        if (strcmp(c->unit, "events") != 0 || !clock)
                return (StatMeaning){ .unit = NULL };
        return rate_of(c, clock);
}

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

static void put_line(Output *o, const StatCounter *c, const StatCounters *all, uint64_t duration) {
        StatMeaning meaning = meaning_of(c, all, duration);
        StatState state = state_of(c);
        bool is_part = state == STAT_COUNTED && stat_counter_confidence(c) < 1;

        if (state == STAT_COUNTED)
                put_value(o, c);
        else
                output_print(o, "%18s %-6s ", state == STAT_NOT_COUNTED ? "<not counted>" : "<not supported>", "");
        text_put(o, c->event, strlen(c->event));
        if (meaning.unit || is_part)
                output_print(o, "%*s", strlen(c->event) < 32 ? (int)(32 - strlen(c->event)) : 1, "");
        if (meaning.unit)
                output_print(o, " # %8.3f %-*s", meaning.value, is_part ? 20 : 0, meaning.unit);
        if (is_part)
                output_print(o, "%*s (%.2f%%)", meaning.unit ? 0 : 32, "", 100 * stat_counter_confidence(c));
        output_put_char(o, '\n');
}

static void put_json(Perfctl *p, const StatCounter *c, const StatCounters *all, uint64_t time, uint64_t duration) {
        static const char *const states[] = { "counted", "not-counted", "not-supported" };
        StatMeaning meaning = meaning_of(c, all, duration);
        Json j = json_of(&p->out);

        json_begin(&j, '{');
        JSON_NUMBER(&j, "time", time);
        JSON_NUMBER(&j, "duration", duration);
        JSON_STRING(&j, "event", c->event);
        JSON_STRING(&j, "state", states[state_of(c)]);
        json_put_name(&j, "value");
        if (state_of(c) != STAT_COUNTED)
                json_put_null(&j);
        else if (c->scale == 1)
                json_put_number(&j, (uint64_t)(stat_counter_value(c) + 0.5));
        else
                json_put_real(&j, stat_counter_value(c));
        JSON_STRING(&j, "unit", c->unit);
        JSON_NUMBER(&j, "enabled", c->enabled);
        JSON_NUMBER(&j, "running", c->running);
        json_put_name(&j, "confidence");
        json_put_real(&j, state_of(c) == STAT_COUNTED ? stat_counter_confidence(c) : 0);
        if (meaning.unit) {
                json_put_name(&j, "metric");
                json_put_real(&j, meaning.value);
                JSON_STRING(&j, "metric_unit", meaning.unit);
        }
        json_end(&j, '}');
        json_end_line(&j);
}

void stat_print_heading(Perfctl *p) {
        if (!p->json)
                output_print(&p->out, "#           time             counts unit   events\n");
}

void stat_print(Perfctl *p, const StatCounters *c, uint64_t time, uint64_t duration) {
        for (size_t i = 0; i < c->n; i++) {
                if (p->json) {
                        put_json(p, &c->list[i], c, time, duration);
                        continue;
                }
                output_print(&p->out, "%6" PRIu64 ".%09" PRIu64, time / 1000000000, time % 1000000000);
                put_line(&p->out, &c->list[i], c, duration);
        }
}

void stat_print_total(Perfctl *p, const StatCounters *c, char *const *command, const StatTimes *times) {
        Output *o = &p->out;

        if (p->json) {
                stat_print(p, c, times->elapsed, times->elapsed);
                return;
        }
        output_print(o, "\n Performance counter stats for '");
        for (size_t i = 0; command[i]; i++) {
                output_put_string(o, i > 0 ? " " : "");
                text_put(o, command[i], strlen(command[i]));
        }
        output_print(o, "':\n\n");
        for (size_t i = 0; i < c->n; i++)
                put_line(o, &c->list[i], c, times->elapsed);
        output_print(o, "\n%18.9f seconds time elapsed\n\n%18.9f seconds user\n%18.9f seconds sys\n\n",
                     (double)times->elapsed / 1e9, (double)times->user / 1e9, (double)times->sys / 1e9);
}
