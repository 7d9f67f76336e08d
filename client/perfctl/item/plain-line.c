/*
 * The line of a sample that is what most are, in one go: the plan says where each value is and how it is written, and how much room a line takes
 * at the most, so that nothing is asked of the output, and of the library but what a print format shows. What has to be escaped, or does not fit,
 * is written as any other.
 */
#include "client/perfctl/item/line.h"

#include "client/perfctl/base/text.h"
#include "client/perfctl/item/chain-texts.h"
#include "client/perfctl/item/known-pieces.h"
#include "client/perfctl/item/parts.h"
#include "client/perfctl/item/plain-values.h"

static char *put_text(Output *o, const ItemPlan *plan, char *to, perfd_text text) {
        if (text.length > 0 && plan_has_text(text, PLAIN_VALUE))
                return (char *)mempcpy(to, text.bytes, text.length);
        output_end(o, to);
        text_put_value(o, text);
        return plan_go_on(o, plan);
}

/* Where it belongs, and it stays there if nothing in it has to be escaped. */
static char *put_rendered(const ItemText *t, const ItemPlan *plan, const PlannedField *f, char *value, const perfd_item *item) {
        const perfd_symbols symbols = { .size = sizeof(symbols), .find = kallsyms_find, .userdata = t->symbols };
        const size_t n = perfd_item_render(item, f->index, &symbols, value, RENDER_ROOM);
        perfd_value v;

        if (n > 0 && n < RENDER_ROOM && plain_is(value, n, f->is_quoted ? PLAIN_VALUE : PLAIN_TEXT))
                return value + n;
        if (!perfd_item_get(item, f->index, &v))
                return value - f->n_key;
        output_end(t->out, value);
        item_value_put(t, item, f->index, &v);
        return plan_go_on(t->out, plan);
}

/* The kernel's -1: of a task that has no number any more, because it is gone. */
static char *put_task_number(char *to, uint32_t number) {
        if (number != UINT32_MAX)
                return decimal_put(to, number);
        memcpy(to, "-1", 2);
        return to + 2;
}

/* "	CPU	COMM-PID/TID	" */
static char *make_head(Output *o, const ItemPlan *plan, char *to, const perfd_plain_sample *s) {
        const bool has_tid = s->tid > 0 || s->comm.length > 0;

        *to++ = '\t';
        if (s->cpu == PERFD_CPU_NONE)
                *to++ = '-';
        else
                to = decimal_put(to, s->cpu);
        *to++ = '\t';
        if (plan_has_text(s->comm, PLAIN_TEXT))
                to = (char *)mempcpy(to, s->comm.bytes, s->comm.length);
        else {
                output_end(o, to);
                text_put(o, s->comm.bytes, s->comm.length);
                to = plan_go_on(o, plan);
        }
        *to++ = '-';
        if (s->pid > 0 || has_tid)
                to = put_task_number(to, s->pid);
        if (has_tid) {
                *to++ = '/';
                to = put_task_number(to, s->tid);
        }
        *to++ = '\t';
        return to;
}

static char *put_head(Output *o, const ItemPlans *plans, const ItemPlan *plan, char *to, const perfd_plain_sample *s) {
        PieceKey key;
        KnownPiece *piece;
        char *end;

        if (!known_head_key(s, &key))
                return make_head(o, plan, to, s);
        piece = known_head_at(plans->pieces, &key);
        if (known_piece_is(piece, &key))
                return plan_put(to, piece->bytes, piece->n);
        end = make_head(o, plan, to, s);
        if (plan_has_text(s->comm, PLAIN_TEXT)) /* else it is not here in one piece */
                known_piece_keep(piece, &key, to, end);
        return end;
}

#define PUT_PAIR(to, has_pair, name) (*(to) = (has_pair) ? ' ' : '\t', (has_pair) = true, (char *)mempcpy((to) + 1, name "=", sizeof(name)))

/* What is not of its event, up to its place. */
static char *make_begin(char *to, const perfd_plain_sample *s, bool *has_pair) {
        if (s->period > 0)
                to = decimal_put(PUT_PAIR(to, *has_pair, "period"), s->period);
        if (s->ip > 0)
                to = hex_put((char *)mempcpy(PUT_PAIR(to, *has_pair, "ip"), "0x", 2), s->ip);
        return to;
}

/* What is behind that, and the end of the line. */
static char *make_end(char *to, const perfd_plain_sample *s, bool has_pair) {
        if (s->address > 0)
                to = hex_put((char *)mempcpy(PUT_PAIR(to, has_pair, "address"), "0x", 2), s->address);
        if (s->sample_id > 0)
                to = decimal_put(PUT_PAIR(to, has_pair, "id"), s->sample_id);
        if (s->stream_id > 0)
                to = decimal_put(PUT_PAIR(to, has_pair, "stream_id"), s->stream_id);
        if (!has_pair)
                *to++ = '\t'; /* as many columns as the others */
        *to++ = '\n';
        return to;
}

static char *make_rest(char *to, const perfd_plain_sample *s, bool has_pair) {
        to = make_begin(to, s, &has_pair);
        return make_end(to, s, has_pair);
}

/* Of a tracepoint they are the same again and again; of other events without a place each has an address of its own. */
static char *put_rest(const ItemPlans *plans, const ItemPlan *plan, char *to, const perfd_plain_sample *s) {
        const PieceKey key = known_rest_key(s);
        KnownPiece *piece;
        char *end;

        if (plan->n_fields == 0)
                return make_rest(to, s, false);
        piece = known_rest_at(plans->pieces, &key);
        if (known_piece_is(piece, &key))
                return plan_put(to, piece->bytes, piece->n);
        end = make_rest(to, s, true);
        known_piece_keep(piece, &key, to, end);
        return end;
}

/* Those of an event without fields, with the function that it was in. */
static char *put_placed_rest(ItemText *t, const ItemPlan *plan, char *to, const perfd_plain_sample *s) {
        const PieceKey key = known_place_key(s, t->place);
        KnownPiece *piece = known_rest_at(t->plans->pieces, &key);
        ChainBegin begin;

        if (s->address == 0 && known_piece_is(piece, &key))
                return plan_put(to, piece->bytes, piece->n);
        output_end(t->out, to);
        begin = chain_begin(t->out);
        t->has_pair = false;
        output_end(t->out, make_begin(plan_go_on(t->out, plan), s, &t->has_pair));
        place_put_text(t, t->place);
        to = make_end(plan_go_on(t->out, plan), s, t->has_pair);
        if (s->address == 0 && begin.n_flushed == t->out->n_flushed) /* it is here in one piece */
                known_piece_keep(piece, &key, t->out->bytes + begin.at, to);
        return to;
}

void plain_line_put(ItemText *t, const ItemPlan *plan, const perfd_item *item, const perfd_plain_sample *s) {
        Output *o = t->out;
        char *to;

        time_text_put(&t->time, o, s->time, false);
        to = put_head(o, t->plans, plan, output_begin(o, plan->room), s);
        to = plan_put(to, plan->name, plan->n_name);
        for (const PlannedField *f = plan->fields, *end = f + plan->n_fields; f < end; f++) {
                to = plan_put(to, f->key, f->n_key);
                if (f->form == VALUE_RENDERED)
                        to = put_rendered(t, plan, f, to, item);
                else if (f->form == VALUE_TEXT)
                        to = put_text(o, plan, to, s->texts[f->place]);
                else
                        to = plan_put_numbers(to, f, s->numbers + f->place, "{}");
        }
        output_end(o, t->place ? put_placed_rest(t, plan, to, s) : put_rest(t->plans, plan, to, s));
}
