#include "client/perfctl/report/print.h"

static void put_value(Json *j, const Shown *s, const Dimension *d, uint64_t value) {
        json_put_name(j, d->text);
        if (value == DIMENSION_ABSENT)
                json_put_null(j);
        else if (dimension_is_number(d))
                json_put_number(j, value);
        else if (s->texts->numbers[(uint32_t)value]) {
                const perfd_text text = text_ids_get(s->texts, (uint32_t)value);
                char digits[24] = "";

                memcpy(digits, text.bytes, text.length < sizeof(digits) ? text.length : sizeof(digits) - 1);
                json_put_digits(j, digits);
        } else
                json_put_text(j, text_ids_get(s->texts, (uint32_t)value));
}

static void put_text(Json *j, const Shown *s, uint32_t text) {
        if (text == ID_NONE)
                json_put_null(j);
        else
                json_put_text(j, text_ids_get(s->texts, text));
}

/* "overhead", "samples", "period": of the row itself */
static void put_self(Json *j, const Shown *s, RowSum self, RowSum all) {
        JSON_KEY(j, "overhead");
        json_put_real(j, shown_share(s, self, all));
        JSON_NUMBER(j, "samples", self.samples);
        JSON_NUMBER(j, "period", self.period);
}

static void put_total(Json *j, const Shown *s, RowSum total, RowSum all) {
        JSON_KEY(j, "total_overhead");
        json_put_real(j, shown_share(s, total, all));
        JSON_NUMBER(j, "total_samples", total.samples);
        JSON_NUMBER(j, "total_period", total.period);
}

static void put_calls(Json *j, const Shown *s, const ShownTable *t, CallNodes nodes) {
        JSON_KEY(j, "calls");
        json_begin(j, '[');
        for (uint32_t i = nodes.first; i < nodes.first + nodes.n; i++) {
                const CallNode *node = &t->calls->nodes[i];
                const FrameId *frame = &s->frames->list[node->frame];

                json_begin(j, '{');
                put_self(j, s, node->sum, t->all);
                JSON_KEY(j, "symbol");
                put_text(j, s, frame->symbol);
                JSON_KEY(j, "dso");
                put_text(j, s, frame->dso);
                if (s->options->has_inlined)
                        JSON_BOOL(j, "inlined", frame->is_inlined);
                put_calls(j, s, t, node->below);
                json_end(j, '}');
        }
        json_end(j, ']');
}

static void put_baseline(Json *j, const Shown *s, const ShownTable *t, const ShownRow *row) {
        JSON_KEY(j, "delta");
        json_put_real(j, shown_row_share(s, t, row) - shown_row_old_share(s, t, row));
        JSON_KEY(j, "baseline");
        json_begin(j, '{');
        put_self(j, s, row->old_self, t->old_all);
        if (s->options->has_children)
                put_total(j, s, row->old_total, t->old_all);
        json_end(j, '}');
}

/* "kernel": of a row of a function, whose name another one may have in user space */
static void put_level(Json *j, const Shown *s, const ShownRow *row) {
        for (size_t i = 0; i < s->options->n_keys; i++)
                if (s->options->keys[i].kind == DIMENSION_SYMBOL && row->key[i] != DIMENSION_ABSENT)
                        JSON_BOOL(j, "kernel", (row->key[i] & DIMENSION_OF_KERNEL) != 0);
}

static void put_row(Json *j, const Shown *s, const ShownTable *t, const ShownRow *row) {
        json_begin(j, '{');
        put_self(j, s, row->self, t->all);
        if (s->options->has_children)
                put_total(j, s, row->total, t->all);
        if (s->has_old)
                put_baseline(j, s, t, row);
        JSON_KEY(j, "key");
        json_begin(j, '{');
        for (size_t i = 0; i < s->options->n_keys; i++)
                put_value(j, s, &s->options->keys[i], row->key[i]);
        json_end(j, '}');
        put_level(j, s, row);
        if (t->calls && row->row != ID_NONE)
                put_calls(j, s, t, call_tree_of_row(t->calls, row->row));
        json_end(j, '}');
}

static void put_table(Json *j, const Shown *s, const ShownTable *t) {
        json_begin(j, '{');
        JSON_KEY(j, "event");
        put_text(j, s, t->event);
        if (t->nth > 0)
                JSON_NUMBER(j, "nth", t->nth);
        JSON_NUMBER(j, "samples", t->all.samples);
        JSON_NUMBER(j, "period", t->all.period);
        if (s->has_old) {
                JSON_NUMBER(j, "baseline_samples", t->old_all.samples);
                JSON_NUMBER(j, "baseline_period", t->old_all.period);
        }
        JSON_KEY(j, "rows");
        json_begin(j, '[');
        for (size_t i = 0; i < t->n_rows; i++)
                put_row(j, s, t, &t->rows[i]);
        json_end(j, ']');
        json_end(j, '}');
}

void report_print_json(const Shown *s, Output *o) {
        Json j = json_of(o);

        json_begin(&j, '{');
        JSON_KEY(&j, "sort");
        json_begin(&j, '[');
        for (size_t i = 0; i < s->options->n_keys; i++)
                json_put_string(&j, s->options->keys[i].text);
        json_end(&j, ']');
        JSON_BOOL(&j, "children", s->options->has_children);
        JSON_KEY(&j, "events");
        json_begin(&j, '[');
        for (size_t i = 0; i < s->n_tables; i++)
                put_table(&j, s, &s->tables[i]);
        json_end(&j, ']');
        json_end(&j, '}');
        json_end_line(&j);
}
