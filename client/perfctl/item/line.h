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
/* "NAME " of a line of its own, below the item's. */
void line_begin(ItemText *t, const char *name);
