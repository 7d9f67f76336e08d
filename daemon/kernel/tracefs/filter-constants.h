/* For whoever sets a filter of the kernel: constants in it that its author cannot have meant. */
#pragma once

#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/model/plan.h"

/*
 * What the kernel would take: a number of which it compares only the low bits, because the field has not more; a CPU that is none of
 * n_cpus (0: not known); a name of a thread that is longer than they are. Whatever else is wrong the kernel says itself.
 * REFUSED_INVALID "bad-filter", with e->position. plan: of the event's own fields, or NULL.
 */
int filter_constants_check(const Plan *plan, const char *filter, uint32_t n_cpus, Explanation *e);
