/*
 * Rows are made when they are printed. What is shown alike is one row, also if its keys differ, as the number of a state does that
 * two events have in fields of different sizes.
 */
#include "client/perfctl/count/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/field-copy.h"
#include "client/perfctl/item/print.h"

static char *hexadecimal(perfd_text bytes) {
        char *text = must_have(malloc(2 * bytes.length + 1));

        for (size_t i = 0; i < bytes.length; i++)
                (void)sprintf(text + 2 * i, "%02x", (unsigned char)bytes.bytes[i]);
        text[2 * bytes.length] = '\0';
        return text;
}

/* "0xffffffff81d3c1a0 FUNCTION+0xPLACE [MODULE]": the latter as in a callchain, where it is known. */
static char *address_text(uint64_t address, Kallsyms *symbols) {
        perfd_symbol symbol;
        char *text;

        if (!kallsyms_find(symbols, address, &symbol))
                must_have(asprintf(&text, "0x%" PRIx64, address) < 0 ? NULL : text);
        else
                must_have(asprintf(&text, "0x%" PRIx64 " %s+0x%" PRIx64 "%s%s%s", address, symbol.name, address - symbol.address,
                                   *symbol.module ? " [" : "", symbol.module, *symbol.module ? "]" : "") < 0 ? NULL : text);
        return text;
}

char *count_cell_text(const KeyCell *c, Kallsyms *symbols) {
        const perfd_value *v = &c->value;
        size_t length;
        char *text;

        if (c->is_absent)
                return must_have(strdup("-"));
        if (v->fault)
                return must_have(strdup("(fault)"));
        if (c->part == KEY_IP || c->part == KEY_ADDR)
                return address_text(v->numbers[0], symbols);
        if (c->part == KEY_CONTAINER)
                return must_have(strndup(v->text.bytes, v->text.length < CONTAINER_ID_SHOWN ? v->text.length : CONTAINER_ID_SHOWN));
        if (v->field->kind == PERFD_TEXT)
                return must_have(v->text.length > 0 ? strndup(v->text.bytes, v->text.length) : strdup("\"\""));
        if (v->field->kind == PERFD_BYTES)
                return hexadecimal(v->text);
        length = perfd_value_render(v, NULL, 0);
        text = must_have(malloc(length + 1));
        (void)perfd_value_render(v, text, length + 1);
        return text;
}

/* A number that is shown by a name is a text. */
static CountPlace place_of(const KeyCell *c) {
        const perfd_value *v = &c->value;
        CountPlace place = { .kind = COUNT_TEXT };

        if (c->is_absent)
                return (CountPlace){ .kind = COUNT_ABSENT };
        if (!field_is_number(v->field) || v->count != 1 || perfd_field_render(v->field, v->numbers[0], NULL, 0) > 0)
                return place;
        place.kind = COUNT_NUMBER;
        place.number = v->numbers[0];
        place.is_negative = v->field->kind == PERFD_SIGNED && (int64_t)place.number < 0;
        return place;
}

static int compare_places(const CountPlace *a, const CountPlace *b) {
        if (a->kind != b->kind)
                return a->kind < b->kind ? -1 : 1;
        if (a->is_negative != b->is_negative)
                return a->is_negative ? -1 : 1;
        return a->number < b->number ? -1 : a->number > b->number;
}

/* In the order of the keys: numbers by what they are, whether decimal or hexadecimal, and those in texts too. */
static int compare_keys(const CountRow *a, const CountRow *b) {
        int r = 0;

        for (size_t i = 0; i < a->n_cells && r == 0; i++) {
                r = compare_places(&a->places[i], &b->places[i]);
                if (r == 0)
                        r = strverscmp(a->cells[i], b->cells[i]);
        }
        return r;
}

static int by_cells(const void *left, const void *right) {
        const CountRow *a = left, *b = right;
        int r = 0;

        for (size_t i = 0; i < a->n_cells && r == 0; i++)
                r = strcmp(a->cells[i], b->cells[i]);
        return r;
}

/* The largest first. */
static int by_number(const void *left, const void *right) {
        const CountRow *a = left, *b = right;
        int r = a->numbers ? count_number_compare(&a->numbers[0], &b->numbers[0], a->functions[0].function) : 0;

        if (r != 0)
                return r;
        return a->n != b->n ? a->n < b->n ? 1 : -1 : compare_keys(a, b);
}

static void free_row(const CountRow *row) {
        for (size_t i = 0; i < row->n_cells; i++)
                free(row->cells[i]);
        free(row->cells);
        free(row->places);
}

static void merge(CountRow *row, const CountRow *other) {
        row->n += other->n;
        for (size_t i = 0; row->numbers && i < row->n_functions; i++)
                count_number_merge(&row->numbers[i], row->functions[i].function, &other->numbers[i]);
        for (size_t i = 0; row->histogram && i < HISTOGRAM_BUCKETS; i++)
                row->histogram[i] += other->histogram[i];
        free_row(other);
}

CountRow *count_rows_new(const CountOptions *o, const Keys *keys, CountMap *map, Kallsyms *symbols, size_t *ret_n) {
        CountRow *rows = must_have(calloc(map->n + 1, sizeof(*rows)));
        KeyCell *cells = must_have(calloc(o->n_columns + 1, sizeof(*cells)));
        size_t n = 0;

        for (size_t i = 0; i < map->n; i++) {
                const CountEntry *e = &map->entries[i];

                rows[i] = (CountRow){ .entry = e, .n = e->n, .n_cells = o->n_columns,
                                 .histogram = count_map_histogram(map, i), .numbers = count_map_numbers(map, i),
                                 .functions = o->functions, .n_functions = o->n_functions,
                                 .cells = must_have(calloc(o->n_columns + 1, sizeof(char *))),
                                 .places = must_have(calloc(o->n_columns + 1, sizeof(CountPlace))) };
                keys_decode(keys, map->bytes + e->key, cells);
                for (size_t k = 0; k < o->n_columns; k++) {
                        rows[i].cells[k] = count_cell_text(&cells[k], symbols);
                        rows[i].places[k] = place_of(&cells[k]);
                }
        }
        qsort(rows, map->n, sizeof(*rows), by_cells);
        for (size_t i = 0; i < map->n; i++)
                if (n > 0 && by_cells(&rows[n - 1], &rows[i]) == 0)
                        merge(&rows[n - 1], &rows[i]);
                else
                        rows[n++] = rows[i];
        qsort(rows, n, sizeof(*rows), by_number);
        free(cells);
        *ret_n = n;
        return rows;
}

void count_rows_free(CountRow *rows, size_t n) {
        for (size_t i = 0; i < n; i++)
                free_row(&rows[i]);
        free(rows);
}
