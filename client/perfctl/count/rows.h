/* For `count`: what was counted, as rows in their order. */
#pragma once

#include "client/perfctl/count/count.h"

/* Where a cell is among others of its column: without a value, a number, another text. */
typedef struct CountPlace {
        enum { COUNT_ABSENT, COUNT_NUMBER, COUNT_TEXT } kind;
        bool is_negative;
        uint64_t number; /* as two's complement if negative */
} CountPlace;

typedef struct CountRow {
        const CountEntry *entry; /* of one key that is shown so */
        uint64_t n;
        uint64_t *histogram;  /* these two are the map's; NULL: there are none */
        CountNumber *numbers; /* n_functions */
        const CountColumn *functions;
        size_t n_functions;
        char **cells; /* as text */
        CountPlace *places;
        size_t n_cells;
} CountRow;

/* As it is shown: "-" if there is no value; malloc. */
char *count_cell_text(const KeyCell *cell, Kallsyms *symbols);
/* A value of JSON, and null if there is none. */
void count_put_cell_json(Json *j, const KeyCell *cell);
/* The largest by the first of the functions, or by the count, first. May add up rows of `map`. */
CountRow *count_rows_new(const CountOptions *options, const Keys *keys, CountMap *map, Kallsyms *symbols, size_t *ret_n);
void count_rows_free(CountRow *rows, size_t n);
