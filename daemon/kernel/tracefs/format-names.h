/* For format.c: what the print format says of the fields, names of values, flags, and what is shown as hexadecimal. */
#pragma once

#include "daemon/kernel/tracefs/format-text.h"
#include "daemon/model/plan.h"

/* print: "FORMAT", ARGUMENTS. What is not understood adds nothing. -ENOMEM. */
int format_add_names(Plan *p, Span print);

/* For tracefs/format-choice.c. */

/* The text of adjacent string literals. NULL: it is something else, or there is no memory, which *ret_error says. */
char *format_unquote(Span s, int *ret_error);
/*
 * The field that an expression shows: itself, cast, masked, one element of it, or handed over as an array. NULL for all
 * else.
 */
PlanField *format_shown_field(Plan *p, Span s);
