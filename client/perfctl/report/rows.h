/*
 * For report: samples added up by rows, which are told from each other by a key of numbers. Memory is bounded by what is distinct, not by
 * the number of samples. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/profile/id-table.h"

/* samples, and the sum of their periods */
typedef struct RowSum {
        uint64_t samples, period;
} RowSum;

typedef struct Row {
        RowSum self;   /* of those whose innermost frame it is */
        RowSum total;  /* of those that have it anywhere on their stack, each once */
        uint64_t last; /* turn in which something was added to `total` */
} Row;

typedef struct Rows {
        size_t n_keys;
        uint64_t *keys; /* n_keys of each row */
        Row *list;
        uint32_t n, room;
        uint64_t turn; /* 0: none has begun */
        IdTable ids;
        uint64_t seed;
} Rows;

void rows_init(Rows *r, size_t n_keys);
void rows_deinit(Rows *r);

/* The row of a key; it is made if there is none. */
uint32_t rows_get(Rows *r, const uint64_t *key);
/* ID_NONE: there is none. */
uint32_t rows_find(const Rows *r, const uint64_t *key);
/* Samples that share a stack: what is added to totals from now on are these. */
static inline void rows_begin_turn(Rows *r) {
        r->turn++;
}

static inline void row_sum_add(RowSum *sum, RowSum samples) {
        sum->samples += samples.samples;
        sum->period += samples.period;
}

static inline void rows_add_self(Rows *r, uint32_t row, RowSum samples) {
        row_sum_add(&r->list[row].self, samples);
}

/* False: they were added in this turn already. */
static inline bool rows_add_total(Rows *r, uint32_t row, RowSum samples) {
        Row *to = &r->list[row];

        if (to->last == r->turn)
                return false;
        to->last = r->turn;
        row_sum_add(&to->total, samples);
        return true;
}

/* Percent of all. */
static inline double row_sum_share(RowSum part, RowSum all, bool is_of_samples) {
        const uint64_t of = is_of_samples ? all.samples : all.period, n = is_of_samples ? part.samples : part.period;

        return of == 0 ? 0 : 100.0 * (double)n / (double)of;
}

static inline const uint64_t *rows_key(const Rows *r, uint32_t row) {
        return r->keys + row * r->n_keys;
}
