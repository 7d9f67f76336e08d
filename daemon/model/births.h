/*
 * For main: which births may have met a change of inherited events. Linux gives a child the state that its parent's event had
 * when the fork began, and puts it where a switch finds it at the fork's end (inherit_event()). So a child is passed by whose
 * parent's fork had begun before a change, and ended behind it. When a fork ended, records say; when it began, nobody: but it
 * did not begin before the end of the parent's last fork, nor before a moment at which the parent was asleep.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/model/process-tree.h"

/* All times by the clock of the records. */
typedef struct BirthWatch {
        uint32_t *roots;       /* sorted: whom the events were opened on */
        size_t n_roots;
        nsec_t opened, listed; /* if just now: behind that, and before it was looked who is there; else 0 */
        nsec_t first, second;  /* behind the first switch, before the second one */
        uint32_t *busy;        /* sorted: who may be in a fork, which was not seen asleep between the two */
        size_t n_busy;
        bool all_busy; /* nobody looked */
} BirthWatch;

#define BIRTH_WATCH_NULL ((BirthWatch){ .roots = NULL })

void birth_watch_deinit(BirthWatch *w);
/* Has inherited what was opened on one of the roots, or is one of them. */
bool births_concern(const ProcessTree *t, const BirthWatch *w, uint32_t tid);
/* Whether a birth until then may have been passed by. True also for want of memory to find out. */
bool births_doubtful(const ProcessTree *t, const BirthWatch *w, nsec_t until);
/* For qsort(3) and bsearch(3), of uint32_t. */
int births_compare_tids(const void *a, const void *b);
