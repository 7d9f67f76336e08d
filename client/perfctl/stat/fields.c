/*
 * Lines for programs: a JSON object, or the columns of perf-stat(1) -x in their order, as what reads those reads these:
 *
 *     [time][CPU] value unit event [place] [deviation%] running percentage metric unit
 */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/print/json.h"
#include "client/perfctl/stat/stat.h"
#include "client/perfctl/base/text.h"

void stat_put_json(Output *o, const StatStyle *style, const StatLine *l) {
        static const char *const states[] = { "counted", "not-counted", "not-supported" };
        const StatCounter *c = l->counter;
        StatState state = stat_counter_state(c);
        Json j = json_of(o);

        json_begin(&j, '{');
        JSON_NUMBER(&j, "time", l->time);
        JSON_NUMBER(&j, "duration", l->duration);
        if (l->cpu >= 0)
                JSON_NUMBER(&j, "cpu", (uint64_t)l->cpu);
        if (c->place)
                JSON_STRING(&j, "cgroup", c->place);
        JSON_STRING(&j, "event", c->event);
        JSON_STRING(&j, "state", states[state]);
        json_put_name(&j, "value");
        if (state != STAT_COUNTED)
                json_put_null(&j);
        else if (c->scale == 1 && c->sum.spread.n < 2)
                json_put_number(&j, (uint64_t)(stat_counter_value(c) + 0.5));
        else
                json_put_real(&j, stat_counter_value(c));
        JSON_STRING(&j, "unit", c->unit);
        if (style->is_repeated) {
                JSON_NUMBER(&j, "runs", c->sum.spread.n);
                json_put_name(&j, "deviation");
                json_put_real(&j, stat_spread_deviation(&c->sum.spread));
        }
        JSON_NUMBER(&j, "enabled", stat_counter_enabled(c));
        JSON_NUMBER(&j, "running", c->sum.running);
        json_put_name(&j, "confidence");
        json_put_real(&j, state == STAT_COUNTED ? stat_counter_confidence(c) : 0);
        if (c->is_removed)
                JSON_NUMBER(&j, "removed", c->removed);
        if (l->metric.unit) {
                json_put_name(&j, "metric");
                json_put_real(&j, l->metric.value);
                JSON_STRING(&j, "metric_unit", l->metric.unit);
        }
        json_end(&j, '}');
        json_end_line(&j);
}

static void put_value(Output *o, const char *separator, const StatCounter *c) {
        StatState state = stat_counter_state(c);

        if (state != STAT_COUNTED)
                output_print(o, "%s%s", state == STAT_NOT_COUNTED ? "<not counted>" : "<not supported>", separator);
        else if (strcmp(c->unit, "ns") == 0)
                output_print(o, "%.2f%smsec", stat_counter_value(c) / 1e6, separator);
        else if (strcmp(c->unit, "events") == 0 && c->scale == 1)
                output_print(o, "%.0f%s", stat_counter_value(c), separator);
        else {
                output_print(o, "%.2f%s", stat_counter_value(c), separator);
                text_put(o, c->unit, strlen(c->unit));
        }
        output_put_string(o, separator);
}

void stat_put_fields(Output *o, const StatStyle *style, const StatLine *l) {
        const StatCounter *c = l->counter;
        StatState state = stat_counter_state(c);
        const char *x = style->separator;

        if (l->has_time)
                output_print(o, "%6" PRIu64 ".%09" PRIu64 "%s", l->time / 1000000000, l->time % 1000000000, x);
        if (l->cpu >= 0)
                output_print(o, "CPU%zd%s", l->cpu, x);
        put_value(o, x, c);
        text_put(o, c->event, strlen(c->event));
        output_put_string(o, x);
        if (style->per_place) {
                text_put(o, c->place ? c->place : "", c->place ? strlen(c->place) : 0);
                output_put_string(o, x);
        }
        if (style->is_repeated)
                output_print(o, "%.2f%%%s", stat_spread_percentage(&c->sum.spread), x);
        output_print(o, "%" PRIu64 "%s%.2f%s", c->sum.running, x,
                     state == STAT_NOT_COUNTED ? 0 : 100 * stat_counter_confidence(c), x);
        if (l->metric.unit)
                output_print(o, "%.3f%s%s\n", l->metric.value, x, l->metric.unit);
        else
                output_print(o, "%s\n", x);
}
