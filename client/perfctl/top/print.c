/* The name of the row is cut where a line is too narrow, and numbers never. */
#include "client/perfctl/top/print.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/print/table.h"

#define N_NUMBERS 3

static char *heading(const char *word) {
        char *text = must_have(strdup(word));

        for (char *at = text; *at; at++)
                *at = (char)toupper((unsigned char)*at);
        return text;
}

static void put_numbers(Table *t, const TopLook *look, const TallySum *window, const TallySum *total, const TallyEntry *all) {
        char share[16];

        (void)snprintf(share, sizeof(share), "%.2f%%",
                       100 * (look->is_total ? top_share(total, &all->total) : top_share(window, &all->window)));
        table_put(t, share);
        table_put_number(t, window->n);
        table_put_number(t, total->n);
}

static void put_rest(Table *t, const Subject *subject, const TopLook *look, const char *what, const TallySum *window, const TallySum *total,
                     const TallyEntry *all) {
        table_put(t, what);
        for (size_t i = 1; i < subject->n; i++)
                table_put(t, "");
        put_numbers(t, look, window, total, all);
}

static void put_rests(Table *t, const Subject *subject, const TopLook *look, const TopRows *r, size_t shown) {
        TallySum window = { .n = 0 }, total = { .n = 0 };
        char text[64];

        if ((look->is_total ? r->others.total.n : r->others.window.n) > 0)
                put_rest(t, subject, look, "(others)", &r->others.window, &r->others.total, &r->sum);
        if (look->is_total && r->n_gone > 0) {
                (void)snprintf(text, sizeof(text), "(%" PRIu64 " quiet before)", r->n_gone);
                put_rest(t, subject, look, text, &window, &r->gone, &r->sum);
        }
        for (size_t i = shown; i < r->n; i++) {
                tally_sum_add(&window, &r->list[i]->window);
                tally_sum_add(&total, &r->list[i]->total);
        }
        if (shown < r->n) {
                (void)snprintf(text, sizeof(text), "(%zu more)", r->n - shown);
                put_rest(t, subject, look, text, &window, &total, &r->sum);
        }
}

void top_put_table(Output *o, const Subject *subject, const TopLook *look, const TopRows *rows, size_t first, size_t n, bool human, size_t width) {
        const size_t n_columns = subject->n + N_NUMBERS, end = n < rows->n - first ? first + n : rows->n;
        const char **columns = must_have(calloc(n_columns, sizeof(*columns)));
        char **names = must_have(calloc(subject->n, sizeof(*names)));
        Table t;

        for (size_t i = 0; i < subject->n; i++)
                columns[i] = names[i] = heading(subject->words[i]);
        columns[subject->n] = ">SHARE";
        columns[subject->n + 1] = ">SAMPLES";
        columns[subject->n + 2] = ">TOTAL";
        table_init(&t, human, columns, n_columns);
        t.width = width;
        t.continues = false;
        for (size_t i = first; i < end; i++) {
                for (size_t k = 0; k < subject->n; k++)
                        table_put(&t, rows->list[i]->cells[k]);
                put_numbers(&t, look, &rows->list[i]->window, &rows->list[i]->total, &rows->sum);
        }
        put_rests(&t, subject, look, rows, end);
        table_print(&t, o);
        table_deinit(&t);
        for (size_t i = 0; i < subject->n; i++)
                free(names[i]);
        free(names);
        free(columns);
}

static void put_sums(Json *j, const TopLook *look, const TallySum *window, const TallySum *total, const TallyEntry *all) {
        JSON_NUMBER(j, "count", window->n);
        JSON_NUMBER(j, "weight", window->weight);
        JSON_NUMBER(j, "total", total->n);
        JSON_NUMBER(j, "total_weight", total->weight);
        JSON_KEY(j, "share");
        json_put_real(j, look->is_total ? top_share(total, &all->total) : top_share(window, &all->window));
}

static void put_others(Output *o, const TopLook *look, const char *kind, const TallySum *window, const TallySum *total, const TallyEntry *all) {
        Json j = json_of(o);

        if ((look->is_total ? total->n : window->n) == 0)
                return;
        json_begin(&j, '{');
        JSON_STRING(&j, "kind", kind);
        put_sums(&j, look, window, total, all);
        json_end(&j, '}');
        json_end_line(&j);
}

void top_put_json(Output *o, Subject *subject, const TopLook *look, const TopRows *rows, const Tally *tally) {
        static const TallySum none;
        Json j = json_of(o);

        for (size_t i = 0; i < rows->n; i++) {
                const TopRow *row = rows->list[i];

                json_begin(&j, '{');
                JSON_STRING(&j, "kind", "top");
                subject_put_json(subject, &j, tally->keys.bytes + tally->keys.entries[row->entry].key);
                put_sums(&j, look, &row->window, &row->total, &rows->sum);
                json_end(&j, '}');
                json_end_line(&j);
        }
        put_others(o, look, "others", &rows->others.window, &rows->others.total, &rows->sum);
        put_others(o, look, "quiet", &none, &rows->gone, &rows->sum);
}
