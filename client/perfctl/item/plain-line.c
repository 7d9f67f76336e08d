/*
 * The line of a sample that is what most are, in one go: the plan says where each value is and how it is written, so that nothing is asked of
 * the library but what a print format shows. What has to be escaped, or does not fit, is written as any other.
 */
#include "client/perfctl/item/line.h"

#include "client/perfctl/base/plain.h"
#include "client/perfctl/base/text.h"

#define COMM_ROOM ((size_t)64)
#define NUMBER_ROOM (1 + DECIMAL_ROOM) /* and what is before it */
#define RENDER_ROOM ((size_t)512)      /* nearly all are shorter */

static char *put_element(char *to, const PlannedField *f, uint64_t number) {
        switch ((ValueForm)f->form) {
        case VALUE_HEX:
                memcpy(to, "0x", 2);
                return hex_put(to + 2, number & f->mask);
        case VALUE_SIGNED:
                return signed_put(to, (int64_t)number);
        default:
                return decimal_put(to, number);
        }
}

static void put_numbers(Output *o, const PlannedField *f, const uint64_t *numbers) {
        char *to = plan_put(output_begin(o, f->n_key + PLAN_PIECE + (f->count + 2) * NUMBER_ROOM), f->key, f->n_key);

        if (!f->is_array) {
                output_end(o, put_element(to, f, *numbers));
                return;
        }
        *to++ = '{';
        for (uint32_t i = 0; i < f->count; i++) {
                if (i > 0)
                        *to++ = ',';
                to = put_element(to, f, numbers[i]);
        }
        *to++ = '}';
        output_end(o, to);
}

static void put_text(Output *o, const PlannedField *f, perfd_text text) {
        output_end(o, plan_put(output_begin(o, f->n_key + PLAN_PIECE), f->key, f->n_key));
        text_put_value(o, text);
}

/* Where it belongs, and it stays there if nothing in it has to be escaped. */
static void put_rendered(const ItemText *t, const PlannedField *f, const perfd_item *item) {
        const perfd_symbols symbols = { .size = sizeof(symbols), .find = kallsyms_find, .userdata = t->symbols };
        char *value = plan_put(output_begin(t->out, f->n_key + PLAN_PIECE + RENDER_ROOM), f->key, f->n_key);
        const size_t n = perfd_item_render(item, f->index, &symbols, value, RENDER_ROOM);
        perfd_value v;

        if (n > 0 && n < RENDER_ROOM && plain_is(value, n, f->is_quoted ? PLAIN_VALUE : PLAIN_TEXT))
                output_end(t->out, value + n);
        else if (perfd_item_get(item, f->index, &v)) {
                output_end(t->out, value);
                item_value_put(t, item, f->index, &v);
        }
}

/* The kernel's -1: of a task that has no number any more, because it is gone. */
static char *put_task_number(char *to, uint32_t number) {
        if (number != UINT32_MAX)
                return decimal_put(to, number);
        memcpy(to, "-1", 2);
        return to + 2;
}

/* "CPU	COMM-PID/TID	EVENT" */
static void put_head(Output *o, const ItemPlan *plan, const perfd_plain_sample *s) {
        const bool has_tid = s->tid > 0 || s->comm.length > 0;
        char *to = output_begin(o, 4 * NUMBER_ROOM + COMM_ROOM);

        *to++ = '\t';
        to = decimal_put(to, s->cpu);
        *to++ = '\t';
        if (s->comm.length <= COMM_ROOM && plain_is(s->comm.bytes, s->comm.length, PLAIN_TEXT))
                to = (char *)mempcpy(to, s->comm.bytes, s->comm.length);
        else {
                output_end(o, to);
                text_put(o, s->comm.bytes, s->comm.length);
                to = output_begin(o, 4 * NUMBER_ROOM);
        }
        *to++ = '-';
        if (s->pid > 0 || has_tid)
                to = put_task_number(to, s->pid);
        if (has_tid) {
                *to++ = '/';
                to = put_task_number(to, s->tid);
        }
        *to++ = '\t';
        output_end(o, to);
        output_end(o, plan_put(output_begin(o, plan->n_name + PLAN_PIECE), plan->name, plan->n_name));
}

#define PUT_PAIR(to, has_pair, name) (*(to) = (has_pair) ? ' ' : '\t', (has_pair) = true, (char *)mempcpy((to) + 1, name "=", sizeof(name)))
#define REST_ROOM (5 * (sizeof(" stream_id=0x") + DECIMAL_ROOM) + 2)

/* What is not of its event, and the end of the line. */
static void put_rest(Output *o, const perfd_plain_sample *s, bool has_pair) {
        char *to = output_begin(o, REST_ROOM);

        if (s->period > 0)
                to = decimal_put(PUT_PAIR(to, has_pair, "period"), s->period);
        if (s->ip > 0)
                to = hex_put((char *)mempcpy(PUT_PAIR(to, has_pair, "ip"), "0x", 2), s->ip);
        if (s->address > 0)
                to = hex_put((char *)mempcpy(PUT_PAIR(to, has_pair, "address"), "0x", 2), s->address);
        if (s->sample_id > 0)
                to = decimal_put(PUT_PAIR(to, has_pair, "id"), s->sample_id);
        if (s->stream_id > 0)
                to = decimal_put(PUT_PAIR(to, has_pair, "stream_id"), s->stream_id);
        if (!has_pair)
                *to++ = '\t'; /* as many columns as the others */
        *to++ = '\n';
        output_end(o, to);
}

void plain_line_put(ItemText *t, const ItemPlan *plan, const perfd_item *item, const perfd_plain_sample *s) {
        time_text_put(&t->time, t->out, s->time, false);
        put_head(t->out, plan, s);
        for (size_t i = 0; i < plan->n_fields; i++) {
                const PlannedField *f = &plan->fields[i];

                if (f->form == VALUE_RENDERED)
                        put_rendered(t, f, item);
                else if (f->form == VALUE_TEXT)
                        put_text(t->out, f, s->texts[f->place]);
                else
                        put_numbers(t->out, f, s->numbers + f->place);
        }
        put_rest(t->out, s, plan->n_fields > 0);
}
