/* For format.c: what the print format says of the fields, names of values, flags, and what is shown as hexadecimal. */
#pragma once

#include "daemon/kernel/format-text.h"
#include "daemon/model/plan.h"

/* print: "FORMAT", ARGUMENTS. What is not understood adds nothing. -ENOMEM. */
int format_add_names(Plan *p, Span print);
