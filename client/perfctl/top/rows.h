/* For `top`: what was counted, as rows in an order, those that somebody wants to see. */
#pragma once

#include "client/perfctl/top/subject.h"
#include "client/perfctl/top/tally.h"

#define TOP_FILTER_MAX ((size_t)64) /* bytes */

typedef enum TopOrder {
        TOP_ORDER_SAMPLES, /* the largest first */
        TOP_ORDER_NAME,
        _TOP_ORDER_MAX,
} TopOrder;

/* What is looked at. */
typedef struct TopLook {
        bool is_total; /* all since the start, and not the last window */
        TopOrder order;
        char filter[TOP_FILTER_MAX + 1]; /* only rows that have it in one of their cells; "": all */
} TopLook;

typedef struct TopRow {
        size_t entry; /* of Tally.keys, of one key that is shown so */
        TallySum window, total;
        char **cells;
} TopRow;

typedef struct TopRows {
        TopRow *all;
        size_t n_all;
        const TopRow **list; /* those that are looked at, in their order */
        size_t n;
        size_t n_left_out;   /* that the filter has not let pass, of those with samples */
        TallyEntry sum, others; /* as the tally had them */
        TallySum gone;
        uint64_t n_gone;
} TopRows;

/* Of a tally at the end of a window; it is not looked at any more afterwards. None are looked at yet. */
void top_rows_init(TopRows *r, Subject *subject, const Tally *tally, Kallsyms *symbols);
void top_rows_deinit(TopRows *r, const Subject *subject);
/* Chooses those that have samples in what is looked at, and orders them: equal ones by their names. As often as wanted. */
void top_rows_look(TopRows *r, const Subject *subject, const TopLook *look);
/* What is looked at of a row. */
const TallySum *top_row_sum(const TopLook *look, const TopRow *row);
/* Of all samples, by what they stand for: 0 to 1; 0 of none. */
double top_share(const TallySum *part, const TallySum *all);
