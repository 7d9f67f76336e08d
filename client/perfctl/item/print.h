/* For `watch`: what a stream brings, as JSON lines or as text. */
#pragma once

#include "client/perfctl/item/columns.h"
#include "client/perfctl/item/plan.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/events/kallsyms.h"
#include "client/perfctl/print/line-wrap.h"
#include "client/perfctl/base/output.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/time-text.h"
#include "client/perfd.h"

/* How lines for people are written: under a heading, on a terminal in columns, else with a tab between them. */
typedef struct ItemText {
        Output *out;
        TimeText time;
        bool raw;         /* the raw bytes too */
        bool is_padded, has_colours;
        bool has_kernels; /* fields that the kernel adds to those of the event too: their names begin with "__" */
        ItemColumns columns;
        size_t event_width;
        Kallsyms *symbols; /* for addresses that a print format shows by name */
        const NamedFrame *frames; /* of the item that is to be printed, as frame_names_of() has them; NULL: those of the kernel by `symbols` */
        size_t n_frames;  /* of them: more than its callchain, where its stack was unwound */
        bool is_cut;      /* only so many of a callchain are there as were asked for */
        const NamedFrame *place;  /* where ip of the item is, if nothing else says it; or NULL */
        bool has_no_calls; /* callchains are left out */
        bool has_heading; /* it was printed */
        LineWrap wrap;
        bool has_pair;    /* the line has something behind its event */
        ItemPlans *plans; /* of the right form, for lines that are neither padded nor coloured; NULL: without */
} ItemText;

/* An event of this name is in the stream: its column may have to be wider. */
void item_text_add_event(ItemText *t, const char *name);

/* Above the first line, if it is not there already. */
void item_text_put_heading(ItemText *t);

/* plans: of ITEM_FORM_JSON, or NULL. wall: the item's, ns since 1970. */
void item_print_json(Output *o, ItemPlans *plans, const perfd_item *item, uint64_t wall, bool raw);
void item_print_text(ItemText *t, const perfd_item *item);
void gap_print_json(Output *o, const perfd_gap *gap);
/* It says which packets are missing, and nobody knows what was in them: those that a fleet's server has dropped. */
static inline bool gap_is_of_packets(const perfd_gap *gap) {
        return gap->items == 0 && gap->to == 0;
}
void gap_print_text(ItemText *t, const perfd_gap *gap);
/* time: of the stream's clock, when it ends, 0: that is not known. As JSON: hosts/gap.h */
void host_gap_print_text(ItemText *t, uint64_t time, const HostGap *gap);

/* Of a JSON object: a value by its kind; and what a number of it is called, null if nothing. */
void value_put_json(Json *j, const perfd_value *v);
void value_put_names_json(Json *j, const perfd_value *v);

/* "sample", "comm", ..., as in "kind" */
const char *record_name(perfd_record record);
