/* For the supervisor: whose reads of counters are limited, and what requests make readers and main do. Main thread only. */
#pragma once

#include "daemon/supervisor/readers/readers.h"

/* Borrowed, until something is published again; of a uid other than root. NULL: no memory. */
ReadBudget *readers_budget_of(Readers *s, uint32_t uid);
/*
 * What is asked of readers is charged to the uid whose request runs, or from here on to this one. Returns which it was before;
 * BUDGET_OF_REQUEST: that of the request.
 */
#define BUDGET_OF_REQUEST UINT64_MAX
#define BUDGET_OF_ALL ((uint64_t)(uid_t)-1) /* of all but root together: it is no uid's own */
uint64_t readers_charge(Readers *s, uint64_t uid);
/* A reference to whose budget that is; NULL: nobody's, or root's, which has none, or there is no memory for it. */
ReadBudget *readers_charged(Readers *s);
/* What main itself does between both is charged, but not what it serves of others meanwhile. */
typedef struct MainWork {
        nsec_t began, served; /* of the thread's CPU */
} MainWork;
MainWork readers_begin_main(const Readers *s);
void readers_end_main(Readers *s, MainWork work);
/* OperationHooks.postpones */
bool readers_postpone(void *userdata, uid_t uid, nsec_t now, nsec_t *ret_until);
/* No reader has one any more. */
void readers_free_budgets(Readers *s);
