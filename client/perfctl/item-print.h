/* For `watch`: what a stream brings, as JSON lines or as text. */
#pragma once

#include "client/perfctl/output.h"
#include "client/perfctl/time-text.h"
#include "client/perfd.h"

/* How lines for people are written. */
typedef struct ItemText {
        Output *out;
        TimeText time;
        bool raw; /* the raw bytes too */
} ItemText;

void item_print_json(Output *o, const perfd_item *item, bool raw);
void item_print_text(ItemText *t, const perfd_item *item);
void gap_print_json(Output *o, const perfd_gap *gap);
void gap_print_text(ItemText *t, const perfd_gap *gap);

/* "sample", "comm", ..., as in "kind" */
const char *record_name(perfd_record record);
