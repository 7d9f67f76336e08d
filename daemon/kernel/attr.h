/* For the supervisor: what an event asks of perf_event_open(2). Pure. */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "daemon/base/error.h"
#include "daemon/model/event.h"

/* What is the same for every event of a daemon. */
typedef struct AttrBase {
        clockid_t clock;
        bool has_lost;      /* PERF_FORMAT_LOST is known to this kernel */
        uint32_t watermark; /* bytes in the ring that wake its reader */
} AttrBase;

/* PERF_TYPE_*, its config, and what follows from these. */
typedef struct AttrSource {
        uint32_t type;
        uint64_t config;
} AttrSource;

/*
 * Fills sample type, period and exactness of `event` from its spec: a tracepoint or a software event counts each
 * occurrence unless asked otherwise, a clock samples 99 times a second. REFUSED_INVALID for contradictions, with the
 * field's name.
 */
int attr_plan_event(Event *event, AttrSource source, Explanation *e);

/* The attr of one fd of a planned event; for_task: of a pid or tid instead of a whole CPU. Disabled. */
struct perf_event_attr attr_of_event(const AttrBase *base, const Event *event, AttrSource source, bool for_task);

/* The carrier of a ring: a dummy that owns the mapping and writes the host's side records. Disabled. */
struct perf_event_attr attr_of_carrier(const AttrBase *base);
