/* For report: what was added up, as rows in their order. One thread. */
#pragma once

#include "client/perfctl/report/sums.h"

typedef struct ShownRow {
        const uint64_t *key;    /* of the sums that it comes from */
        uint32_t row;           /* of the newer ones; ID_NONE: it is in the older ones alone */
        RowSum self, total;
        RowSum old_self, old_total;
} ShownRow;

typedef struct ShownTable {
        uint32_t event;         /* text; ID_NONE: all */
        uint32_t nth;           /* of several of that name: from 1; 0: it is the only one */
        RowSum all, old_all;
        const CallTree *calls;  /* NULL: there is none */
        ShownRow *rows;
        size_t n_rows;
} ShownTable;

typedef struct Shown {
        const SumsOptions *options;
        const TextIds *texts;
        const FrameIds *frames;
        bool has_old;
        double call_limit;      /* percent, of all */
        ShownTable *tables;     /* by the order in which events came first */
        size_t n_tables;
} Shown;

typedef struct ShownLimits {
        double percent, call_percent; /* rows and calls of less are left out */
        uint64_t top;                 /* 0: all */
} ShownLimits;

/* old: what is compared with; NULL: nothing is. */
void shown_init(Shown *s, Sums *sums, const Sums *old, const ShownLimits *limits);
void shown_deinit(Shown *s);

/* Percent of all; of periods, or of samples where the table is of all events. */
double shown_share(const Shown *s, RowSum part, RowSum all);
/* What the row is sorted by: total with children, else self. */
double shown_row_share(const Shown *s, const ShownTable *t, const ShownRow *row);
double shown_row_old_share(const Shown *s, const ShownTable *t, const ShownRow *row);
