/* For the printers of items as lines for people. */
#pragma once

#include "client/perfctl/item/print.h"

/* SGR of ECMA-48: colours that can be read on black and on white. */
#define COLOUR_HEADING "1"
#define COLOUR_EVENT "1"
#define COLOUR_NAME "36"
#define COLOUR_MISSING "31"

void colour_begin(const ItemText *t, const char *colour);
void colour_end(const ItemText *t);
void padding_put(Output *o, size_t n);
/* Behind a column that is `length` long. */
void column_end(const ItemText *t, size_t length, size_t width);

/* "name=" on the item's line, with what parts it from what is before it. */
void pair_begin(ItemText *t, const char *name);
/* The value of field i, which is `v`, in quotes where it needs them. */
void item_value_put(const ItemText *t, const perfd_item *item, size_t i, const perfd_value *v);

/* plain-line.c: the whole line of a sample that is `s`, up to its end; by a plan, and so neither padded nor coloured, without columns of tasks. */
void plain_line_put(ItemText *t, const ItemPlan *plan, const perfd_item *item, const perfd_plain_sample *s);

/* "NAME " of a line of its own, below the item's. */
void line_begin(ItemText *t, const char *name);
