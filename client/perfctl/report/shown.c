/* The largest first, or what has changed most; equal ones by their keys, so that the same samples are always shown alike. */
#include "client/perfctl/report/shown.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double shown_share(const Shown *s, RowSum part, RowSum all) {
        return row_sum_share(part, all, s->options->is_of_all);
}

double shown_row_share(const Shown *s, const ShownTable *t, const ShownRow *row) {
        return shown_share(s, s->options->has_children ? row->total : row->self, t->all);
}

double shown_row_old_share(const Shown *s, const ShownTable *t, const ShownRow *row) {
        return shown_share(s, s->options->has_children ? row->old_total : row->old_self, t->old_all);
}

static int compare_texts(const TextIds *texts, uint32_t a, uint32_t b) {
        const perfd_text left = text_ids_get(texts, a), right = text_ids_get(texts, b);
        const int r = memcmp(left.bytes, right.bytes, left.length < right.length ? left.length : right.length);

        return r != 0 ? r : left.length < right.length ? -1 : left.length > right.length;
}

static int compare_keys(const Shown *s, const uint64_t *a, const uint64_t *b) {
        for (size_t i = 0; i < s->options->n_keys; i++) {
                int r;

                if (a[i] == b[i])
                        continue;
                if (a[i] == DIMENSION_ABSENT || b[i] == DIMENSION_ABSENT || dimension_is_number(&s->options->keys[i]))
                        return a[i] < b[i] ? -1 : 1;
                r = compare_texts(s->texts, (uint32_t)a[i], (uint32_t)b[i]);
                if (r != 0)
                        return r;
                return a[i] < b[i] ? -1 : 1; /* the kernel's function of that name is the last */
        }
        return 0;
}

typedef struct Sorting {
        const Shown *shown;
        const ShownTable *table;
} Sorting;

static uint64_t amount(const Shown *s, const ShownRow *row) {
        const RowSum *sum = s->options->has_children ? &row->total : &row->self;

        return s->options->is_of_all ? sum->samples : sum->period;
}

static int compare_amounts(const Shown *s, const ShownRow *a, const ShownRow *b) {
        const uint64_t n_a = amount(s, a), n_b = amount(s, b), self_a = s->options->is_of_all ? a->self.samples : a->self.period,
                       self_b = s->options->is_of_all ? b->self.samples : b->self.period;

        if (n_a != n_b)
                return n_a > n_b ? -1 : 1;
        return self_a > self_b ? -1 : self_a < self_b;
}

static double change(const Sorting *sorting, const ShownRow *row) {
        return fabs(shown_row_share(sorting->shown, sorting->table, row) - shown_row_old_share(sorting->shown, sorting->table, row));
}

static int by_size(const void *left, const void *right, void *userdata) {
        const Sorting *sorting = userdata;
        const ShownRow *a = left, *b = right;
        int r = 0;

        if (sorting->shown->has_old) {
                const double change_a = change(sorting, a), change_b = change(sorting, b);

                r = change_a > change_b ? -1 : change_a < change_b;
        }
        if (r == 0)
                r = compare_amounts(sorting->shown, a, b);
        return r != 0 ? r : compare_keys(sorting->shown, a->key, b->key);
}

static void add_rows(ShownTable *t, const Rows *rows, const Rows *old) {
        t->rows = must_have(calloc((size_t)(rows ? rows->n : 0) + (old ? old->n : 0) + 1, sizeof(*t->rows)));
        for (uint32_t i = 0; rows && i < rows->n; i++) {
                ShownRow *row = &t->rows[t->n_rows++];
                const uint32_t before = old ? rows_find(old, rows_key(rows, i)) : ID_NONE;

                *row = (ShownRow){ .key = rows_key(rows, i), .row = i, .self = rows->list[i].self, .total = rows->list[i].total };
                if (before != ID_NONE) {
                        row->old_self = old->list[before].self;
                        row->old_total = old->list[before].total;
                }
        }
        for (uint32_t i = 0; old && i < old->n; i++)
                if (!rows || rows_find(rows, rows_key(old, i)) == ID_NONE)
                        t->rows[t->n_rows++] = (ShownRow){ .key = rows_key(old, i), .row = ID_NONE, .old_self = old->list[i].self,
                                                           .old_total = old->list[i].total };
}

/* With two recordings it is enough that a row is large in one of them. */
static void leave_out(const Shown *s, ShownTable *t, const ShownLimits *limits) {
        size_t n = 0;

        for (size_t i = 0; i < t->n_rows; i++)
                if (shown_row_share(s, t, &t->rows[i]) >= limits->percent || (s->has_old && shown_row_old_share(s, t, &t->rows[i]) >= limits->percent))
                        t->rows[n++] = t->rows[i];
        t->n_rows = limits->top > 0 && limits->top < n ? limits->top : n;
}

/* Which of several of its name it is, as ShownTable.nth. */
static uint32_t nth_of(const Sums *s, const SumsGroup *g) {
        uint32_t nth = 1, n = 0;

        for (size_t i = 0; i < s->n_groups; i++) {
                n += s->groups[i].event == g->event;
                nth += s->groups[i].event == g->event && s->groups[i].number < g->number;
        }
        return n > 1 ? nth : 0;
}

/* Below the rows that are shown. */
static void add_calls(const Shown *s, ShownTable *t, Sums *sums, SumsGroup *g) {
        bool *is_wanted = must_have(calloc((size_t)g->rows.n + 1, sizeof(*is_wanted)));

        for (size_t i = 0; i < t->n_rows; i++)
                if (t->rows[i].row != ID_NONE)
                        is_wanted[t->rows[i].row] = true;
        sums_make_calls(sums, g, s->call_limit, is_wanted);
        free(is_wanted);
        t->calls = &g->calls;
}

static void add_table(Shown *s, Sums *sums, SumsGroup *g, const Sums *old_sums, const SumsGroup *old, const ShownLimits *limits) {
        ShownTable *t = &s->tables[s->n_tables++];

        *t = (ShownTable){ .event = g ? g->event : old->event, .nth = g ? nth_of(sums, g) : nth_of(old_sums, old) };
        if (g)
                t->all = g->all;
        if (old)
                t->old_all = old->all;
        add_rows(t, g ? &g->rows : NULL, old ? &old->rows : NULL);
        qsort_r(t->rows, t->n_rows, sizeof(*t->rows), by_size, &(Sorting){ .shown = s, .table = t });
        leave_out(s, t, limits);
        if (g && s->options->has_graph)
                add_calls(s, t, sums, g);
}

static uint32_t place_of(const Sums *s, const SumsGroup *g) {
        const uint32_t nth = nth_of(s, g);

        return nth > 0 ? nth : 1;
}

/* The same event in the other sums: of several of one name the one that has the same place among them. */
static SumsGroup *find_group(const Sums *s, const Sums *of, const SumsGroup *g) {
        const uint32_t place = place_of(of, g);

        for (size_t i = 0; i < s->n_groups; i++)
                if (s->groups[i].event == g->event && place_of(s, &s->groups[i]) == place)
                        return &s->groups[i];
        return NULL;
}

void shown_init(Shown *s, Sums *sums, const Sums *old, const ShownLimits *limits) {
        *s = (Shown){ .options = sums->options, .texts = sums->texts, .frames = sums->frames, .has_old = old, .call_limit = limits->call_percent };
        s->tables = must_have(calloc(sums->n_groups + (old ? old->n_groups : 0) + 1, sizeof(*s->tables)));
        for (size_t i = 0; i < sums->n_groups; i++)
                add_table(s, sums, &sums->groups[i], old, old ? find_group(old, sums, &sums->groups[i]) : NULL, limits);
        for (size_t i = 0; old && i < old->n_groups; i++)
                if (!find_group(sums, old, &old->groups[i]))
                        add_table(s, sums, NULL, old, &old->groups[i], limits);
}

void shown_deinit(Shown *s) {
        for (size_t i = 0; i < s->n_tables; i++)
                free(s->tables[i].rows);
        free(s->tables);
        *s = (Shown){ .tables = NULL };
}
