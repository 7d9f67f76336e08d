/* All cells first, then the widths, then the lines. */
#include "client/perfctl/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/perfctl/perfctl.h"
#include "client/perfctl/quantity.h"
#include "client/perfctl/text.h"

void table_init(Table *t, bool human, const char *const *columns, size_t n_columns) {
        *t = (Table){ .columns = columns, .n_columns = n_columns, .human = human };
}

void table_deinit(Table *t) {
        for (size_t i = 0; i < t->n_cells; i++)
                free(t->cells[i]);
        free(t->cells);
        for (size_t i = 0; i < t->n_below; i++)
                free(t->below[i]);
        free(t->below);
        *t = (Table){ .cells = NULL };
}

void table_put(Table *t, const char *text) {
        if (t->n_cells == t->room) {
                t->room = t->room ? 2 * t->room : 64;
                t->cells = must_have(reallocarray(t->cells, t->room, sizeof(*t->cells)));
        }
        t->cells[t->n_cells++] = must_have(strdup(text));
}

void table_put_number(Table *t, uint64_t number) {
        char text[24];

        (void)snprintf(text, sizeof(text), "%" PRIu64, number);
        table_put(t, text);
}

void table_put_bytes(Table *t, uint64_t bytes) {
        char text[QUANTITY_SIZE];

        if (t->human)
                table_put(t, quantity_show_size(bytes, text));
        else
                table_put_number(t, bytes);
}

void table_put_time(Table *t, uint64_t nsec) {
        char text[QUANTITY_SIZE];

        if (t->human)
                table_put(t, quantity_show_time(nsec, text));
        else
                table_put_number(t, nsec);
}

void table_put_below(Table *t, char *lines) {
        size_t row = t->n_cells / t->n_columns - 1;

        if (row >= t->below_room) {
                t->below_room = 2 * row + 64;
                t->below = must_have(reallocarray(t->below, t->below_room, sizeof(*t->below)));
        }
        while (t->n_below < row)
                t->below[t->n_below++] = NULL;
        t->below[t->n_below++] = must_have(lines);
}

static bool is_right(const char *column) {
        return *column == '>';
}

static void put_cell(const Table *t, Output *o, size_t column, const char *text, size_t width) {
        size_t used = text_width(text, strlen(text));
        bool right = is_right(t->columns[column]), last = column + 1 == t->n_columns;

        for (size_t i = used; right && i < width; i++)
                output_put_char(o, ' ');
        used = text_put_cut(o, text, strlen(text), width);
        for (size_t i = used; !right && !last && i < width; i++)
                output_put_char(o, ' ');
        output_put_string(o, last ? "\n" : "  ");
}

static size_t heading_width(const Table *t, size_t column) {
        return strlen(t->columns[column]) - is_right(t->columns[column]);
}

/* From the widest column of text, again and again; each keeps room for its heading. */
static void fit(const Table *t, size_t *widths) {
        size_t all = 2 * (t->n_columns - 1);

        for (size_t i = 0; i < t->n_columns; i++)
                all += widths[i];
        for (; t->width > 0 && all > t->width; all--) {
                size_t widest = SIZE_MAX;

                for (size_t i = 0; i < t->n_columns; i++)
                        if (!is_right(t->columns[i]) && widths[i] > heading_width(t, i) &&
                            (widest == SIZE_MAX || widths[i] > widths[widest]))
                                widest = i;
                if (widest == SIZE_MAX)
                        return;
                widths[widest]--;
        }
}

/* Behind the i-th cell. */
static void print_below(const Table *t, Output *o, size_t i) {
        if ((i + 1) % t->n_columns == 0 && i / t->n_columns < t->n_below && t->below[i / t->n_columns])
                output_put_string(o, t->below[i / t->n_columns]);
}

static void print_plain(const Table *t, Output *o) {
        for (size_t i = 0; i < t->n_cells; i++) {
                text_put(o, t->cells[i], strlen(t->cells[i]));
                output_put_char(o, (i + 1) % t->n_columns == 0 ? '\n' : '\t');
                print_below(t, o, i);
        }
}

void table_print(const Table *t, Output *o) {
        size_t *widths;

        if (!t->human) {
                print_plain(t, o);
                return;
        }
        widths = must_have(calloc(t->n_columns, sizeof(*widths)));
        for (size_t i = 0; i < t->n_columns; i++)
                widths[i] = heading_width(t, i);
        for (size_t i = 0; i < t->n_cells; i++) {
                size_t width = text_width(t->cells[i], strlen(t->cells[i])), *column = &widths[i % t->n_columns];

                *column = width > *column ? width : *column;
        }
        fit(t, widths);
        for (size_t i = 0; i < t->n_columns; i++)
                put_cell(t, o, i, t->columns[i] + is_right(t->columns[i]), widths[i]);
        for (size_t i = 0; i < t->n_cells; i++) {
                put_cell(t, o, i % t->n_columns, t->cells[i], widths[i % t->n_columns]);
                print_below(t, o, i);
        }
        free(widths);
}
