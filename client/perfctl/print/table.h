/*
 * For lists: aligned columns under a heading on a terminal, no wider than that; otherwise the same columns without the heading, one tab
 * between them, for cut(1) and awk(1).
 */
#pragma once

#include "client/perfctl/base/output.h"

typedef struct Table {
        const char **columns; /* headings; one that begins with '>' is of numbers, and right-aligned */
        size_t n_columns;
        bool human;   /* a terminal */
        size_t width; /* of stdout if that is a terminal, 0: lines may be of any length */
        bool continues; /* columns that do not fit stand in further blocks, which repeat the first `n_keys`; else texts are cut */
        size_t n_keys; /* columns that name the row: 1 */
        size_t cut_first; /* the column that is cut before others are, at its end; SIZE_MAX, as at first: none */
        bool is_commented; /* not human: headings stand there in any case, behind "# " */
        char **cells;
        size_t n_cells, room;
        char **below; /* by row, NULL where nothing is */
        size_t n_below, below_room;
} Table;

#define TABLE_COLUMNS(...) ((const char *const[]){ __VA_ARGS__ })
#define TABLE_INIT(t, human, ...)                                                                                      \
        table_init((t), (human), TABLE_COLUMNS(__VA_ARGS__), sizeof(TABLE_COLUMNS(__VA_ARGS__)) / sizeof(char *))

/* Of all tables from here on, or not, also where they are not for a terminal. */
void table_show_headings(bool shown);

/* The texts of the headings, static or not, have to live as long as the table; the list of them is copied. */
void table_init(Table *t, bool human, const char *const *columns, size_t n_columns);
void table_deinit(Table *t);

/* The next cell, row by row. Text is escaped as text_put() does. */
void table_put(Table *t, const char *text);
void table_put_number(Table *t, uint64_t number);
void table_put_bytes(Table *t, uint64_t bytes); /* human: with a unit */
void table_put_time(Table *t, uint64_t nsec);

/* Lines that stand below the row whose last cell was put before: malloc'ed, taken, printed as they are. */
void table_put_below(Table *t, char *lines);

void table_print(const Table *t, Output *o);
