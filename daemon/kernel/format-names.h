/* For format.c: what a parsed print format says of the fields. Main thread, as all that touches libtraceevent. */
#pragma once

#include "daemon/model/plan.h"

struct tep_event;

/* Names of values, flags and hex to the plan's fields. -ENOMEM. */
int format_add_names(Plan *p, const struct tep_event *event);
