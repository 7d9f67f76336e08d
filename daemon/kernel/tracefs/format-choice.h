/* For tracefs/format-names.c: FIELD ? "TEXT" : "TEXT", which names values as __print_symbolic() does. */
#pragma once

#include "daemon/kernel/tracefs/format-text.h"
#include "daemon/model/plan.h"

/* Behind all lists of names. What is not understood adds nothing. -ENOMEM. */
int format_add_choice(Plan *p, Span argument);
