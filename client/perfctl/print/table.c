/* All cells first, then the widths, then the lines. */
#include "client/perfctl/print/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/base/terminal.h"
#include "client/perfctl/base/text.h"

#define CUT_FIRST_LEAST ((size_t)16) /* characters that are left of it */

static bool shows_headings; /* the program is one thread and ends with its verb */

void table_show_headings(bool shown) {
        shows_headings = shown;
}

void table_init(Table *t, bool human, const char *const *columns, size_t n_columns) {
        const char **own = must_have(calloc(n_columns, sizeof(*own)));

        memcpy(own, columns, n_columns * sizeof(*own));
        *t = (Table){
                .columns = own,
                .n_columns = n_columns,
                .human = human,
                .continues = true,
                .n_keys = 1,
                .cut_first = SIZE_MAX,
                .width = human ? terminal_width(STDOUT_FILENO) : 0,
        };
}

void table_deinit(Table *t) {
        for (size_t i = 0; i < t->n_cells; i++)
                free(t->cells[i]);
        free(t->cells);
        free(t->columns);
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

static size_t heading_width(const Table *t, size_t column) {
        return strlen(t->columns[column]) - is_right(t->columns[column]);
}

/* Columns that stand side by side: those that name the row, and those from `from` to `to`. */
typedef struct Block {
        size_t from, to;
} Block;

static bool is_in(const Table *t, Block b, size_t column) {
        return column < t->n_keys || (column >= b.from && column < b.to);
}

static size_t block_width(const Table *t, const size_t *widths, Block b) {
        size_t all = 0;

        for (size_t i = 0; i < t->n_columns; i++)
                if (is_in(t, b, i))
                        all += widths[i] + (i > 0 ? 2 : 0);
        return all;
}

static size_t at_most(size_t n, size_t most) {
        return n < most ? n : most;
}

/* Numbers are never cut; the name of the row gets half of the line. */
static size_t least_width(const Table *t, const size_t *widths, size_t column) {
        size_t heading = heading_width(t, column), least = 16;

        if (is_right(t->columns[column]))
                return widths[column];
        if (!t->continues)
                return heading;
        if (column == 0 || column + 1 == t->n_keys)
                least = t->width / 2;
        else if (column + 1 == t->n_columns)
                least = 24;
        return at_most(widths[column], heading > least ? heading : least);
}

/* As many columns from `from` on as fit, at least one: without `continues` all. */
static Block find_block(const Table *t, const size_t *widths, size_t from) {
        Block b = { .from = from, .to = from };
        size_t all = 0;

        for (size_t i = 0; i < t->n_keys; i++)
                all += least_width(t, widths, i) + (i > 0 ? 2 : 0);
        while (b.to < t->n_columns) {
                all += 2 + least_width(t, widths, b.to);
                if (t->continues && all > t->width && b.to > b.from)
                        break;
                b.to++;
        }
        return b;
}

/* From the widest column of text, again and again, or from the one that is meant for it. */
static void fit(const Table *t, size_t *widths, Block b) {
        for (size_t all = block_width(t, widths, b); all > t->width; all--) {
                size_t widest = SIZE_MAX;

                if (t->cut_first < t->n_columns && widths[t->cut_first] > CUT_FIRST_LEAST) {
                        widths[t->cut_first]--;
                        continue;
                }
                for (size_t i = 0; i < t->n_columns; i++)
                        if (is_in(t, b, i) && widths[i] > least_width(t, widths, i) &&
                            (widest == SIZE_MAX || widths[i] > widths[widest]))
                                widest = i;
                if (widest == SIZE_MAX)
                        return;
                widths[widest]--;
        }
}

/* Sentences stand in the last column: they continue below themselves instead of being cut. */
static void put_last(const Table *t, Output *o, const char *text, size_t width, size_t before) {
        size_t n = strlen(text), part = n;

        if (t->continues)
                part = text_wrap(text, n, width);
        text_put(o, text, part);
        output_put_char(o, '\n');
        for (text += part, n -= part; n > 0; text += part, n -= part) {
                if (*text == ' ') {
                        part = 1;
                        continue;
                }
                part = text_wrap(text, n, width);
                output_print(o, "%*s", (int)before, "");
                text_put(o, text, part);
                output_put_char(o, '\n');
        }
}

static void put_row(const Table *t, Output *o, const char *const *cells, const size_t *widths, Block b) {
        size_t before = 0;

        for (size_t i = 0; i < t->n_columns; i++) {
                bool right = is_right(t->columns[i]), last = i + 1 == b.to;
                const char *text = cells[i] + (cells == t->columns && right);
                size_t used = text_width(text, strlen(text));

                if (!is_in(t, b, i))
                        continue;
                if (last && !right && i + 1 == t->n_columns && i != t->cut_first && t->width > 0) {
                        put_last(t, o, text, widths[i], before);
                        break;
                }
                for (size_t k = used; right && k < widths[i]; k++)
                        output_put_char(o, ' ');
                used = (i == t->cut_first ? text_put_begin : text_put_cut)(o, text, strlen(text), t->width > 0 ? widths[i] : SIZE_MAX);
                for (size_t k = used; !right && !last && k < widths[i]; k++)
                        output_put_char(o, ' ');
                output_put_string(o, last ? "\n" : "  ");
                before += widths[i] + 2;
        }
}

/* Behind the i-th cell. */
static void print_below(const Table *t, Output *o, size_t i) {
        if ((i + 1) % t->n_columns == 0 && i / t->n_columns < t->n_below && t->below[i / t->n_columns])
                output_put_string(o, t->below[i / t->n_columns]);
}

static void print_plain(const Table *t, Output *o) {
        if (t->is_commented && !shows_headings)
                output_put_string(o, "# ");
        for (size_t i = 0; i < t->n_columns && (shows_headings || t->is_commented); i++) {
                output_put_string(o, t->columns[i] + is_right(t->columns[i]));
                output_put_char(o, i + 1 == t->n_columns ? '\n' : '\t');
        }
        for (size_t i = 0; i < t->n_cells; i++) {
                text_put(o, t->cells[i], strlen(t->cells[i]));
                output_put_char(o, (i + 1) % t->n_columns == 0 ? '\n' : '\t');
                print_below(t, o, i);
        }
}

static void print_block(const Table *t, Output *o, const size_t *natural, Block b) {
        size_t *widths = must_have(calloc(t->n_columns, sizeof(*widths)));

        memcpy(widths, natural, t->n_columns * sizeof(*widths));
        if (t->width > 0)
                fit(t, widths, b);
        put_row(t, o, t->columns, widths, b);
        for (size_t i = 0; i + t->n_columns <= t->n_cells; i += t->n_columns) {
                put_row(t, o, (const char *const *)t->cells + i, widths, b);
                if (b.to == t->n_columns)
                        print_below(t, o, i + t->n_columns - 1);
        }
        free(widths);
}

void table_print(const Table *t, Output *o) {
        Block b = { .from = t->n_keys, .to = t->n_columns };
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
        if (t->width == 0 || t->n_columns <= t->n_keys || block_width(t, widths, b) <= t->width)
                print_block(t, o, widths, b);
        else
                for (b.to = t->n_keys; b.to < t->n_columns;) {
                        if (b.to > t->n_keys)
                                output_put_char(o, '\n');
                        b = find_block(t, widths, b.to);
                        print_block(t, o, widths, b);
                }
        free(widths);
}
