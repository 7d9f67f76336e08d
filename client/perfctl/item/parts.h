/* For the two printers of items: side records, and the parts of samples that few events ask for. */
#pragma once

#include "client/perfctl/item/print.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/base/output.h"
#include "client/perfd.h"

/* Members of the object "record". */
void record_put_json(Json *j, const perfd_item *item);
/* Members of the item: none for a sample without such parts. */
void parts_put_json(Json *j, const perfd_item *item);
/* "counters" of an item: an array. */
void read_put_json(Json *j, const perfd_item *item);

/* Members of the item: its callchains, if it has any. */
void frames_put_json(Json *j, ItemPlans *plans, const perfd_item *item);

/* Pairs of a record behind its name, and of a sample. */
void record_put_text(ItemText *t, const perfd_item *item);
void parts_put_text(ItemText *t, const perfd_item *item);
/* Lines of their own: of its callchains, and of its parts. */
void frames_put_text(ItemText *t, const perfd_item *item);
/* Of a frame without a line of its own, on that of its item: "symbol=FUNCTION+0xPLACE dso=FILE", or "dso=FILE+0xPLACE" without a function. */
void place_put_text(ItemText *t, const NamedFrame *frame);
void parts_put_lines(ItemText *t, const perfd_item *item);
