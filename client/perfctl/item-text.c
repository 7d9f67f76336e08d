/* Items as lines for people: who, where, when, then the fields as the kernel's own format would name them. */
#include "client/perfctl/item-print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/perfctl/item-parts.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/text.h"

#define WHO_WIDTH ((size_t)24)

static void put_padding(Output *o, size_t n) {
        while (n-- > 0)
                output_put_char(o, ' ');
}

static size_t digits(uint64_t number) {
        size_t n = 1;

        while ((number /= 10) > 0)
                n++;
        return n;
}

/* "COMM-PID/TID"; of no thread "-PID", or "-". */
static void put_who(Output *o, const perfd_item *item) {
        perfd_text comm = perfd_item_comm(item);
        uint32_t pid = perfd_item_pid(item), tid = perfd_item_tid(item);
        bool has_tid = tid > 0 || comm.length > 0;
        size_t width = comm.length + 1;

        text_put(o, comm.bytes, comm.length);
        output_put_char(o, '-');
        if (pid > 0 || has_tid) {
                output_put_number(o, pid);
                width += digits(pid);
        }
        if (has_tid) {
                output_put_char(o, '/');
                output_put_number(o, tid);
                width += 1 + digits(tid);
        }
        put_padding(o, width < WHO_WIDTH ? WHO_WIDTH - width : 0);
}

static void put_number_value(Output *o, const perfd_value *v) {
        char small[512], *text = small;
        size_t n = perfd_value_render(v, small, sizeof(small));

        if (n >= sizeof(small)) {
                text = must_have(malloc(n + 1));
                n = perfd_value_render(v, text, n + 1);
        }
        text_put(o, text, n);
        if (text != small)
                free(text);
}

static void put_fields(Output *o, const perfd_item *item) {
        perfd_value v;

        for (size_t i = 0; perfd_item_get(item, i, &v); i++) {
                output_put_char(o, ' ');
                output_put_string(o, v.field->name);
                output_put_char(o, '=');
                if (v.field->kind == PERFD_TEXT)
                        text_put_value(o, v.text);
                else if (v.field->kind == PERFD_BYTES)
                        output_put_hex_bytes(o, v.text.bytes, v.text.length);
                else
                        put_number_value(o, &v);
        }
}

static void put_callchain(Output *o, const perfd_item *item, perfd_callchain part, const char *name) {
        const uint64_t *addresses;
        size_t n = perfd_item_callchain(item, part, &addresses);

        for (size_t i = 0; i < n; i++)
                output_print(o, "%16s %16" PRIx64 "\n", i == 0 ? name : "", addresses[i]);
}

void item_print_text(ItemText *t, const perfd_item *item) {
        const perfd_event *event = perfd_item_event(item);
        perfd_record record = perfd_item_record(item);
        Output *o = t->out;

        time_text_put(&t->time, o, perfd_item_time(item));
        output_put(o, "  ", 2);
        put_padding(o, perfd_item_cpu(item) < 10 ? 2 : perfd_item_cpu(item) < 100 ? 1 : 0);
        output_put_number(o, perfd_item_cpu(item));
        output_put(o, "  ", 2);
        put_who(o, item);
        output_put(o, "  ", 2);
        if (event)
                output_put_string(o, event->name);
        if (event && record != PERFD_SAMPLE)
                output_put_char(o, ' ');
        if (record != PERFD_SAMPLE) {
                output_put_string(o, record_name(record));
                record_put_text(o, item);
        }
        put_fields(o, item);
        if (perfd_item_period(item) > 0)
                output_print(o, " period=%" PRIu64, perfd_item_period(item));
        if (perfd_item_ip(item) > 0)
                output_print(o, " ip=0x%" PRIx64, perfd_item_ip(item));
        if (perfd_item_address(item) > 0)
                output_print(o, " address=0x%" PRIx64, perfd_item_address(item));
        parts_put_text(o, item);
        if (t->raw && record == PERFD_SAMPLE) {
                output_put(o, " raw=", 5);
                output_put_hex_bytes(o, perfd_item_raw(item).bytes, perfd_item_raw(item).length);
        }
        output_put_char(o, '\n');
        put_callchain(o, item, PERFD_CALLCHAIN_KERNEL, "kernel");
        put_callchain(o, item, PERFD_CALLCHAIN_USER, "user");
        parts_put_lines(o, item);
}

void gap_print_text(ItemText *t, const perfd_gap *gap) {
        Output *o = t->out;

        time_text_put(&t->time, o, gap->from);
        output_print(o, "  --- %" PRIu64 " items are missing here (%s), until ", gap->items, gap->reason);
        time_text_put(&t->time, o, gap->to);
        for (size_t i = 0; i < gap->n_events; i++)
                output_print(o, "%s%s %" PRIu64, i > 0 ? ", " : ": ",
                             *gap->events[i].name ? gap->events[i].name : "side records", gap->events[i].items);
        output_put_char(o, '\n');
}
