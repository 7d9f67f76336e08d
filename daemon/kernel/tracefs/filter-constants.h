/* For whoever sets a filter of the kernel: what is wrong with it that the kernel does not say, or not so that it helps. */
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

/* An = that stands alone, of which the kernel only says that it is no operator. REFUSED_INVALID "bad-filter", with e->position. */
int filter_equals_check(const char *filter, Explanation *e);
/* What is wrong with it for every event, as far as that is seen without the kernel. As above. */
int filter_form_check(const char *filter, Explanation *e);
