/* Rows as a table, for people or with tabs, or as JSON. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/count/rows.h"
#include "client/perfctl/item/print.h"
#include "client/perfctl/print/table.h"

#define OTHERS "(others)"
#define BAR_WIDTH 48

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* "[1K, 2K)", as bpftrace(8) writes it. */
static void put_bound(FILE *f, uint64_t bound) {
        const char *unit = " KMGTPE";

        for (; bound >= 1024; bound >>= 10)
                unit++;
        fprintf(f, "%" PRIu64 "%.*s", bound, *unit != ' ', unit);
}

static void put_bucket(FILE *f, size_t bucket) {
        if (bucket == HISTOGRAM_NEGATIVE)
                fputs("(..., 0)", f);
        else if (histogram_to(bucket) == histogram_from(bucket) + 1) {
                fprintf(f, "[%" PRIu64 "]", histogram_from(bucket));
        } else {
                fputc('[', f);
                put_bound(f, histogram_from(bucket));
                fputs(", ", f);
                if (histogram_to(bucket) > 0)
                        put_bound(f, histogram_to(bucket));
                else
                        fputs("16E", f);
                fputc(')', f);
        }
}

/* From the first bucket that has something to the last one. */
static bool find_ends(const uint64_t *histogram, size_t *ret_first, size_t *ret_last, uint64_t *ret_most) {
        bool any = false;

        *ret_most = 0;
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
                if (histogram[i] == 0)
                        continue;
                if (!any)
                        *ret_first = i;
                any = true;
                *ret_last = i;
                *ret_most = histogram[i] > *ret_most ? histogram[i] : *ret_most;
        }
        return any;
}

/* In lines of less than 80 columns; for programs with tabs, and without bars. */
static char *histogram_text(const uint64_t *histogram, bool is_human) {
        size_t first = 0, last = 0, size, name_size;
        uint64_t most;
        char *text, *name;
        FILE *f = must_have(open_memstream(&text, &size));

        for (size_t i = find_ends(histogram, &first, &last, &most) ? first : HISTOGRAM_BUCKETS;
             i < HISTOGRAM_BUCKETS && i <= last; i++) {
                FILE *n = must_have(open_memstream(&name, &name_size));
                int bar = (int)((double)histogram[i] / (double)most * BAR_WIDTH);

                put_bucket(n, i);
                must_have(fclose(n) == 0 ? name : NULL);
                if (is_human) {
                        fprintf(f, "  %-16s%10" PRIu64 " |", name, histogram[i]);
                        for (int k = 0; k < BAR_WIDTH; k++)
                                fputc(k < bar ? '@' : ' ', f);
                        fputs("|\n", f);
                } else
                        fprintf(f, "\t%s\t%" PRIu64 "\n", name, histogram[i]);
                free(name);
        }
        must_have(fclose(f) == 0 ? text : NULL);
        return text;
}

static void put_numbers(Table *t, const CountOptions *o, const CountNumber *numbers) {
        for (size_t i = 0; i < o->n_functions; i++) {
                char *text = count_number_text(&numbers[i], o->functions[i].function);

                table_put(t, text);
                free(text);
        }
}

/* A row of which the first column says what it is. */
static void put_rest(Table *t, const CountOptions *o, const char *what, uint64_t n, const CountNumber *numbers,
                     const uint64_t *histogram) {
        table_put(t, what);
        for (size_t i = 1; i < o->n_columns; i++)
                table_put(t, "");
        table_put_number(t, n);
        put_numbers(t, o, numbers);
        if (histogram)
                table_put_below(t, histogram_text(histogram, t->human));
}

static char *heading(const char *name) {
        char *text = must_have(strdup(name));

        for (char *at = text; *at; at++)
                *at = (char)toupper((unsigned char)*at);
        return text;
}

/* ">SUM(COUNT)" */
static char *function_heading(const CountColumn *c) {
        char *text, *upper;

        must_have(asprintf(&text, ">%s(%s)", count_function_name(c->function), c->name.text) < 0 ? NULL : text);
        upper = heading(text);
        free(text);
        return upper;
}

static void print_table(Perfctl *p, const CountOptions *o, const CountMap *map, const CountRow *rows, size_t n) {
        size_t n_columns = o->n_columns + 1 + o->n_functions;
        char **columns = must_have(calloc(n_columns, sizeof(*columns)));
        CountNumber numbers_left[_COUNT_FUNCTION_MAX] = { { .n = 0 } };
        size_t shown = o->top > 0 && o->top < n ? o->top : n;
        uint64_t left = 0;
        char text[48];
        Table t;

        for (size_t i = 0; i < o->n_columns; i++)
                columns[i] = heading(o->columns[i].text);
        columns[o->n_columns] = heading(">COUNT");
        for (size_t i = 0; i < o->n_functions; i++)
                columns[o->n_columns + 1 + i] = function_heading(&o->functions[i]);
        table_init(&t, p->human, (const char *const *)columns, n_columns);
        if (o->width > 0) { /* a row is one line of the screen */
                t.width = o->width;
                t.continues = false;
        }
        for (size_t i = 0; i < shown; i++) {
                for (size_t k = 0; k < o->n_columns; k++)
                        table_put(&t, rows[i].cells[k]);
                table_put_number(&t, rows[i].n);
                put_numbers(&t, o, rows[i].numbers);
                if (rows[i].histogram)
                        table_put_below(&t, histogram_text(rows[i].histogram, t.human));
        }
        if (map->n_others > 0)
                put_rest(&t, o, OTHERS, map->n_others, map->others_numbers, map->has_histograms ? map->others_histogram : NULL);
        for (size_t i = shown; i < n; i++) {
                left += rows[i].n;
                for (size_t k = 0; k < o->n_functions; k++)
                        count_number_merge(&numbers_left[k], o->functions[k].function, &rows[i].numbers[k]);
        }
        if (shown < n) {
                (void)snprintf(text, sizeof(text), "(%zu more key%s)", n - shown, n - shown > 1 ? "s" : "");
                put_rest(&t, o, text, left, numbers_left, NULL);
        }
        table_print(&t, &p->out);
        table_deinit(&t);
        for (size_t i = 0; i < n_columns; i++)
                free(columns[i]);
        free(columns);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

void count_put_cell_json(Json *j, const KeyCell *c) {
        if (c->is_absent)
                json_put_null(j);
        else if (c->part == KEY_IP || c->part == KEY_ADDR)
                json_put_hex(j, c->value.numbers[0]);
        else
                value_put_json(j, &c->value);
}

/* As in a document of the kind sample: what numbers are called stands beside them. */
static void put_key_json(Json *j, const CountOptions *o, const KeyCell *cells) {
        bool has_names = false;

        json_put_name(j, "key");
        json_begin(j, '{');
        for (size_t i = 0; i < o->n_columns; i++) {
                json_put_name(j, o->columns[i].text);
                count_put_cell_json(j, &cells[i]);
                has_names = has_names || (!cells[i].is_absent && cells[i].value.field->n_values > 0);
        }
        json_end(j, '}');
        if (!has_names)
                return;
        json_put_name(j, "names");
        json_begin(j, '{');
        for (size_t i = 0; i < o->n_columns; i++)
                if (!cells[i].is_absent && cells[i].value.field->n_values > 0) {
                        json_put_name(j, o->columns[i].text);
                        value_put_names_json(j, &cells[i].value);
                }
        json_end(j, '}');
}

static void put_histogram_json(Json *j, const uint64_t *histogram) {
        json_put_name(j, "hist");
        json_begin(j, '[');
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
                if (histogram[i] == 0)
                        continue;
                json_begin(j, '{');
                json_put_name(j, "from");
                if (i == HISTOGRAM_NEGATIVE)
                        json_put_null(j);
                else
                        json_put_number(j, histogram_from(i));
                json_put_name(j, "to");
                if (i != HISTOGRAM_NEGATIVE && histogram_to(i) == 0)
                        json_put_null(j);
                else
                        json_put_number(j, i == HISTOGRAM_NEGATIVE ? 0 : histogram_to(i));
                JSON_NUMBER(j, "count", histogram[i]);
                json_end(j, '}');
        }
        json_end(j, ']');
}

/* cells: NULL of the rest. */
static void put_document(Json *j, const CountOptions *o, const KeyCell *cells, uint64_t n, const CountNumber *numbers,
                         const uint64_t *histogram) {
        json_begin(j, '{');
        JSON_STRING(j, "kind", cells ? "count" : "others");
        if (cells)
                put_key_json(j, o, cells);
        JSON_NUMBER(j, "count", n);
        for (size_t i = 0; i < o->n_functions; i++)
                count_number_put_json(j, &numbers[i], o->functions[i].function);
        if (histogram)
                put_histogram_json(j, histogram);
        json_end(j, '}');
        json_end_line(j);
}

void count_print(Perfctl *p, const CountOptions *o, const Keys *keys, CountMap *map, Kallsyms *symbols) {
        KeyCell *cells = must_have(calloc(o->n_columns + 1, sizeof(*cells)));
        Json j = json_of(&p->out);
        size_t n;
        CountRow *rows = count_rows_new(o, keys, map, symbols, &n);

        if (!p->json)
                print_table(p, o, map, rows, n);
        for (size_t i = 0; p->json && i < n; i++) {
                keys_decode(keys, map->bytes + rows[i].entry->key, cells);
                put_document(&j, o, cells, rows[i].n, rows[i].numbers, rows[i].histogram);
        }
        if (p->json && map->n_others > 0)
                put_document(&j, o, NULL, map->n_others, map->others_numbers, map->has_histograms ? map->others_histogram : NULL);
        count_rows_free(rows, n);
        free(cells);
}
