/* The same of samples as JSON: plain-line.c. */
#include "client/perfctl/item/plain-json.h"

#include "client/perfctl/item/known-pieces.h"
#include "client/perfctl/item/plain-values.h"
#include "client/perfctl/print/json.h"

static char *put_text(Output *o, const ItemPlan *plan, char *to, perfd_text text) {
        if (plan_has_text(text, PLAIN_JSON)) {
                *to = '"';
                to = (char *)mempcpy(to + 1, text.bytes, text.length);
                *to = '"';
                return to + 1;
        }
        output_end(o, to);
        json_quote(o, text.bytes, text.length);
        return plan_go_on(o, plan);
}

static char *make_who(Output *o, const ItemPlan *plan, char *to, const perfd_plain_sample *s) {
        to = s->cpu == PERFD_CPU_NONE ? PUT_LITERAL(to, "null") : decimal_put(to, s->cpu);
        to = decimal_put(PUT_LITERAL(to, ",\"pid\":"), s->pid);
        to = decimal_put(PUT_LITERAL(to, ",\"tid\":"), s->tid);
        return put_text(o, plan, PUT_LITERAL(to, ",\"comm\":"), s->comm);
}

static char *put_who(Output *o, const ItemPlans *plans, const ItemPlan *plan, char *to, const perfd_plain_sample *s) {
        PieceKey key;
        KnownPiece *piece;
        char *end;

        if (!known_head_key(s, &key))
                return make_who(o, plan, to, s);
        piece = known_head_at(plans->pieces, &key);
        if (known_piece_is(piece, &key))
                return plan_put(to, piece->bytes, piece->n);
        end = make_who(o, plan, to, s);
        if (plan_has_text(s->comm, PLAIN_JSON)) /* else it is not here in one piece */
                known_piece_keep(piece, &key, to, end);
        return end;
}

char *plain_json_put_head(Output *o, const ItemPlans *plans, const ItemPlan *plan, const perfd_plain_sample *s, uint64_t wall) {
        char *to = output_begin(o, plan->room);

        to = known_time_put(&plans->pieces->time, PUT_LITERAL(to, "{\"kind\":\"sample\",\"time\":"), s->time);
        to = known_time_put(&plans->pieces->wall, PUT_LITERAL(to, ",\"wall\":"), wall);
        return put_who(o, plans, plan, plan_put(to, plan->name, plan->n_name), s);
}

char *plain_json_put_fields(Output *o, const ItemPlan *plan, char *to, const perfd_item *item, const perfd_plain_sample *s) {
        perfd_value v;

        to = PUT_LITERAL(to, ",\"fields\":{");
        for (const PlannedField *f = plan->fields, *end = f + plan->n_fields; f < end; f++) {
                to = plan_put(to, f->key, f->n_key);
                if (f->form == VALUE_TEXT)
                        to = put_text(o, plan, to, s->texts[f->place]);
                else if (f->form != VALUE_RENDERED)
                        to = plan_put_numbers(to, f, s->numbers + f->place, "[]");
                else if (perfd_item_get(item, f->index, &v)) {
                        Json j = json_of(o);

                        output_end(o, to);
                        value_put_json(&j, &v);
                        to = plan_go_on(o, plan);
                }
        }
        *to = '}';
        return to + 1;
}

#define PUT_HEX(to, key, number) ((to) = hex_put(PUT_LITERAL((to), key "\"0x"), (number)), *(to) = '"', (to) + 1)

static char *make_rest(char *to, const perfd_plain_sample *s) {
        if (s->period > 0)
                to = decimal_put(PUT_LITERAL(to, ",\"period\":"), s->period);
        if (s->ip > 0)
                to = PUT_HEX(to, ",\"ip\":", s->ip);
        if (s->address > 0)
                to = PUT_HEX(to, ",\"address\":", s->address);
        return to;
}

char *plain_json_put_end(char *to, const perfd_plain_sample *s) {
        if (s->sample_id > 0)
                to = decimal_put(PUT_LITERAL(to, ",\"id\":"), s->sample_id);
        if (s->stream_id > 0)
                to = decimal_put(PUT_LITERAL(to, ",\"stream_id\":"), s->stream_id);
        return PUT_LITERAL(to, "}\n");
}

char *plain_json_put_rest(const ItemPlans *plans, const ItemPlan *plan, char *to, const perfd_plain_sample *s) {
        const PieceKey key = known_rest_key(s);
        KnownPiece *piece;
        char *end;

        if (s->has_callchain)
                return make_rest(to, s);
        if (plan->n_fields == 0)
                return plain_json_put_end(make_rest(to, s), s);
        piece = known_rest_at(plans->pieces, &key);
        if (known_piece_is(piece, &key))
                return plan_put(to, piece->bytes, piece->n);
        end = plain_json_put_end(make_rest(to, s), s);
        known_piece_keep(piece, &key, to, end);
        return end;
}
