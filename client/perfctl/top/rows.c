/* Rows are made once a window, with their texts: who pauses, scrolls and filters looks at the same ones. */
#include "client/perfctl/top/rows.h"

#include <stdlib.h>
#include <string.h>

typedef struct Sorting {
        const TopLook *look;
        size_t n_cells;
} Sorting;

const TallySum *top_row_sum(const TopLook *look, const TopRow *row) {
        return look->is_total ? &row->total : &row->window;
}

double top_share(const TallySum *part, const TallySum *all) {
        return all->weight > 0 ? (double)part->weight / (double)all->weight : 0;
}

/* Numbers in texts by what they are, and what differs is never equal. */
static int compare_cells(const TopRow *a, const TopRow *b, size_t n) {
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = strverscmp(a->cells[i], b->cells[i]);
        return r;
}

static int by_cells(const void *left, const void *right, void *userdata) {
        return compare_cells(left, right, ((const Sorting *)userdata)->n_cells);
}

static int by_look(const void *left, const void *right, void *userdata) {
        const TopRow *const *a = left, *const *b = right;
        const Sorting *s = userdata;
        const TallySum *x = top_row_sum(s->look, *a), *y = top_row_sum(s->look, *b);

        if (s->look->order == TOP_ORDER_SAMPLES && x->weight != y->weight)
                return x->weight < y->weight ? 1 : -1;
        if (s->look->order == TOP_ORDER_SAMPLES && x->n != y->n)
                return x->n < y->n ? 1 : -1;
        return compare_cells(*a, *b, s->n_cells);
}

/* What is shown alike is one row, as a number is that two events have in fields of different sizes. */
static void merge(TopRows *r, const Subject *subject) {
        Sorting sorting = { .n_cells = subject->n };
        const size_t n = r->n_all;

        if (n > 1)
                qsort_r(r->all, n, sizeof(*r->all), by_cells, &sorting);
        r->n_all = 0;
        for (size_t i = 0; i < n; i++) {
                TopRow *row = &r->all[i], *last = r->n_all > 0 ? &r->all[r->n_all - 1] : NULL;

                if (last && compare_cells(last, row, subject->n) == 0) {
                        tally_sum_add(&last->window, &row->window);
                        tally_sum_add(&last->total, &row->total);
                        subject_cells_free(subject, row->cells);
                } else
                        r->all[r->n_all++] = *row;
        }
}

void top_rows_init(TopRows *r, Subject *subject, const Tally *tally, Kallsyms *symbols) {
        *r = (TopRows){ .all = must_have(calloc(tally->keys.n + 1, sizeof(*r->all))),
                        .list = must_have(calloc(tally->keys.n + 1, sizeof(*r->list))),
                        .n_all = tally->keys.n, .sum = tally->all, .others = tally->others, .gone = tally->gone,
                        .n_gone = tally->n_gone };
        for (size_t i = 0; i < r->n_all; i++)
                r->all[i] = (TopRow){ .entry = i, .window = tally->entries[i].window, .total = tally->entries[i].total,
                                      .cells = subject_cells(subject, tally->keys.bytes + tally->keys.entries[i].key, symbols) };
        merge(r, subject);
}

void top_rows_deinit(TopRows *r, const Subject *subject) {
        for (size_t i = 0; i < r->n_all; i++)
                subject_cells_free(subject, r->all[i].cells);
        free(r->all);
        free((void *)r->list);
        *r = (TopRows){ .all = NULL };
}

static bool passes(const TopLook *look, char *const *cells, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strstr(cells[i], look->filter))
                        return true;
        return false;
}

void top_rows_look(TopRows *r, const Subject *subject, const TopLook *look) {
        Sorting sorting = { .look = look, .n_cells = subject->n };

        r->n = r->n_left_out = 0;
        for (size_t i = 0; i < r->n_all; i++) {
                if (top_row_sum(look, &r->all[i])->n == 0)
                        continue;
                if (passes(look, r->all[i].cells, subject->n))
                        r->list[r->n++] = &r->all[i];
                else
                        r->n_left_out++;
        }
        if (r->n > 1)
                qsort_r((void *)r->list, r->n, sizeof(*r->list), by_look, &sorting);
}
