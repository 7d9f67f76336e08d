/* Items as lines for people: who, where, when, then the fields as the kernel's own format would name them. */
#include "client/perfctl/item/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/hosts/gap.h"
#include "client/perfctl/item/line.h"
#include "client/perfctl/item/parts.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/plain.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/base/text.h"

#define WHO_WIDTH ((size_t)24)
#define CPU_WIDTH ((size_t)3)
#define EVENT_WIDTH_MAX ((size_t)40) /* a longer one moves what is behind it */

void item_text_add_event(ItemText *t, const char *name) {
        size_t length = strlen(name), least = strlen("EVENT");

        length = length < least ? least : length > EVENT_WIDTH_MAX ? EVENT_WIDTH_MAX : length;
        if (length > t->event_width)
                t->event_width = length;
}

static void heading_put_column(ItemText *t, const char *name, size_t width) {
        output_put_string(t->out, name);
        column_end(t, strlen(name), width);
}

static void wrap_begin(ItemText *t) {
        t->wrap.width = 0;
        if (t->is_padded)
                line_wrap_begin(&t->wrap, t->out);
}

static void wrap_end(ItemText *t) {
        line_wrap_end(&t->wrap, t->out);
        output_put_char(t->out, '\n');
}

/* Before the first line, when it is known how long the names of events are. */
void item_text_put_heading(ItemText *t) {
        if (t->has_heading)
                return;
        t->has_heading = true;
        wrap_begin(t);
        colour_begin(t, COLOUR_HEADING);
        heading_put_column(t, "TIME", TIME_WIDTH(t->time.form));
        heading_put_column(t, "CPU", CPU_WIDTH);
        heading_put_column(t, "TASK", WHO_WIDTH);
        line_wrap_from_here(&t->wrap, t->out);
        for (size_t i = 0; i < t->columns.n; i++)
                heading_put_column(t, item_column_heading(&t->columns, i), t->columns.widths[i]);
        heading_put_column(t, "EVENT", t->event_width);
        output_put_string(t->out, "FIELDS");
        colour_end(t);
        wrap_end(t);
}

/* Gives how many digits it has. */
static size_t put_digits(Output *o, uint64_t number) {
        char *to = output_begin(o, DECIMAL_ROOM), *end = decimal_put(to, number);

        output_end(o, end);
        return (size_t)(end - to);
}

/* The kernel's -1: of a task that has no number any more, because it is gone. perf_event_tid_type() of kernel/events/core.c */
static size_t put_task_number(Output *o, uint32_t number) {
        if (number != UINT32_MAX)
                return put_digits(o, number);
        output_put(o, "-1", 2);
        return 2;
}

/* "COMM-PID/TID"; of no thread "-PID", or "-". */
static void put_who(ItemText *t, const perfd_item *item) {
        Output *o = t->out;
        perfd_text comm = perfd_item_comm(item);
        uint32_t pid = perfd_item_pid(item), tid = perfd_item_tid(item);
        bool has_tid = tid > 0 || comm.length > 0;
        size_t width = comm.length + 1;

        text_put(o, comm.bytes, comm.length);
        output_put_char(o, '-');
        if (pid > 0 || has_tid) {
                width += put_task_number(o, pid);
        }
        if (has_tid) {
                output_put_char(o, '/');
                width += 1 + put_task_number(o, tid);
        }
        column_end(t, width, WHO_WIDTH);
}

static void put_hexadecimal(ItemText *t, const char *name, uint64_t number) {
        if (number == 0)
                return;
        pair_begin(t, name);
        output_put(t->out, "0x", 2);
        output_put_hex(t->out, number);
}

static void put_fields(ItemText *t, const perfd_item *item) {
        perfd_value v;

        for (size_t i = 0; perfd_item_get(item, i, &v); i++) {
                if (!t->has_kernels && strncmp(v.field->name, "__", 2) == 0)
                        continue;
                pair_begin(t, v.field->name);
                item_value_put(t, item, i, &v);
        }
}

#define VALUE_ROOM ((size_t)512) /* nearly all are shorter */

/* By a plan: a value is made where it belongs, and stays there if nothing in it has to be escaped. */
static void put_planned_fields(ItemText *t, const ItemPlan *plan, const perfd_item *item) {
        const perfd_symbols symbols = { .size = sizeof(symbols), .find = kallsyms_find, .userdata = t->symbols };
        perfd_value v;

        for (size_t i = 0; i < plan->n_fields; i++) {
                const PlannedField *f = &plan->fields[i];
                char *to = output_begin(t->out, f->n_key + PLAN_PIECE + VALUE_ROOM), *value = plan_put(to, f->key, f->n_key);
                const size_t n = perfd_item_render(item, f->index, &symbols, value, VALUE_ROOM);

                if (n > 0 && n < VALUE_ROOM && (f->is_quoted ? plain_is(value, n, PLAIN_VALUE) : plain_is(value, n, PLAIN_TEXT))) {
                        output_end(t->out, value + n);
                        t->has_pair = true;
                } else if (perfd_item_get(item, f->index, &v)) {
                        output_end(t->out, value);
                        item_value_put(t, item, f->index, &v);
                        t->has_pair = true;
                } else
                        return; /* this item has no fields */
        }
}

/* The event's column, up to its end and no further: there may be nothing behind it. */
static void put_event(ItemText *t, const perfd_event *event) {
        const char *name = event ? event->name : "-";
        size_t length = strlen(name);

        colour_begin(t, COLOUR_EVENT);
        text_put(t->out, name, length);
        colour_end(t);
        if (t->is_padded)
                padding_put(t->out, length < t->event_width ? t->event_width - length : 0);
        t->has_pair = false;
}

static void put_cpu(ItemText *t, uint32_t cpu) {
        const bool has_cpu = cpu != PERFD_CPU_NONE;

        for (uint32_t least = 100; t->is_padded && least > 1 && (!has_cpu || cpu < least); least /= 10) /* CPU_WIDTH */
                output_put_char(t->out, ' ');
        if (has_cpu)
                output_put_number(t->out, cpu);
        else
                output_put_char(t->out, '-');
        column_end(t, 0, 0);
}

/* What few samples have. */
static void put_rest(ItemText *t, const perfd_item *item) {
        if (perfd_item_period(item) > 0) {
                pair_begin(t, "period");
                output_put_number(t->out, perfd_item_period(item));
        }
        put_hexadecimal(t, "ip", perfd_item_ip(item));
        if (t->place)
                place_put_text(t, t->place);
        put_hexadecimal(t, "address", perfd_item_address(item));
        parts_put_text(t, item);
        if (t->raw && perfd_item_record(item) == PERFD_SAMPLE) {
                pair_begin(t, "raw");
                output_put_hex_bytes(t->out, perfd_item_raw(item).bytes, perfd_item_raw(item).length);
        }
}

void item_print_text(ItemText *t, const perfd_item *item) {
        const perfd_event *event = perfd_item_event(item);
        const perfd_record record = perfd_item_record(item);
        const ItemPlan *plan = t->plans && event ? item_plans_find(t->plans, event) : NULL;
        perfd_plain_sample plain;
        bool has_more;

        item_text_put_heading(t);
        if (plan && !t->raw && t->columns.n == 0 && perfd_item_plain(item, &plain)) {
                plain_line_put(t, plan, item, &plain);
                if (plain.has_callchain)
                        frames_put_text(t, item);
                return;
        }
        has_more = perfd_item_has_more(item);
        wrap_begin(t);
        time_text_put(&t->time, t->out, perfd_item_time(item), t->is_padded);
        column_end(t, 0, 0);
        put_cpu(t, perfd_item_cpu(item));
        put_who(t, item);
        line_wrap_from_here(&t->wrap, t->out);
        for (size_t i = 0; i < t->columns.n; i++) {
                size_t width = item_column_put(&t->columns, i, t->out, perfd_item_process(item));

                column_end(t, width, t->columns.widths[i]);
        }
        if (plan) {
                output_end(t->out, plan_put(output_begin(t->out, plan->n_name + PLAN_PIECE), plan->name, plan->n_name));
                t->has_pair = false;
        } else
                put_event(t, event);
        if (record != PERFD_SAMPLE) {
                column_end(t, 0, 0);
                output_put_string(t->out, record_name(record));
                t->has_pair = true;
                record_put_text(t, item);
        }
        if (plan && !t->has_pair)
                put_planned_fields(t, plan, item);
        else
                put_fields(t, item);
        if (has_more || t->raw)
                put_rest(t, item);
        if (!t->has_pair && !t->is_padded)
                output_put_char(t->out, '\t'); /* as many columns as the others */
        wrap_end(t);
        if (!has_more)
                return;
        frames_put_text(t, item);
        parts_put_lines(t, item);
}

void gap_print_text(ItemText *t, const perfd_gap *gap) {
        Output *o = t->out;

        item_text_put_heading(t);
        time_text_put(&t->time, o, gap->from, t->is_padded);
        column_end(t, 0, 0);
        colour_begin(t, COLOUR_MISSING);
        if (gap_is_of_packets(gap)) {
                uint64_t n = gap->last_sequence - gap->first_sequence + 1;

                output_print(o, "--- %" PRIu64 " %s missing (", n, n == 1 ? "packet is" : "packets are");
                text_put_string(o, gap->reason);
                output_put_string(o, "), of an unknown number of items");
        } else {
                output_print(o, "--- %" PRIu64 " %s missing (", gap->items, gap->items == 1 ? "item is" : "items are");
                text_put_string(o, gap->reason);
                output_put_string(o, "), until ");
                time_text_put(&t->time, o, gap->to, false);
        }
        for (size_t i = 0; i < gap->n_events; i++) {
                output_put_string(o, i > 0 ? ", " : ": ");
                text_put_string(o, *gap->events[i].name ? gap->events[i].name : "side records");
                output_print(o, " %" PRIu64, gap->events[i].items);
        }
        colour_end(t);
        output_put_char(o, '\n');
}

void host_gap_print_text(ItemText *t, uint64_t time, const HostGap *gap) {
        item_text_put_heading(t);
        time_text_put(&t->time, t->out, time, t->is_padded);
        column_end(t, 0, 0);
        colour_begin(t, COLOUR_MISSING);
        host_gap_put_words(t->out, gap);
        colour_end(t);
        output_put_char(t->out, '\n');
}
