/*
 * For readers and encode/: who a tid of 0 is. On the host it is the idle thread of a CPU. To a perfd in a pid namespace of its
 * own the kernel says 0 of every thread outside of that too, and what else the record has has to tell them apart: a fact of
 * the kernel's each time, and where there is none, the answer is that it is not known.
 */
#pragma once

#include "daemon/model/plan.h"
#include "daemon/model/record.h"


/* The same values as perfd.v1.ZeroTid. */
typedef enum ZeroTid {
        ZERO_TID_NONE, /* the tid is not 0, or perfd has the host's pids: nothing is to be told apart */
        ZERO_TID_IDLE,
        ZERO_TID_OUTSIDE,
        ZERO_TID_UNKNOWN,
} ZeroTid;

/* Of a sample with tid 0, taken in a pid namespace; plan: its event's, or NULL. */
ZeroTid zero_tid_of_sample(const Plan *plan, const Record *r);
/* Of a side record with tid 0 in its trailer: who did it. NONE: a READ, whose tid 0 is nobody's. */
ZeroTid zero_tid_of_side(const Record *r);
