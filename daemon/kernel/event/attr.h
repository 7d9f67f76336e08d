/* For the supervisor: what an event asks of perf_event_open(2). Pure. */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "config/event-name/event-name.h"
#include "daemon/base/error.h"
#include "daemon/model/event.h"

/* What is the same for every event of a daemon. */
typedef struct AttrBase {
        clockid_t clock;
        bool has_lost;      /* PERF_FORMAT_LOST is known to this kernel */
        bool inherits_reads; /* PERF_SAMPLE_READ can be asked of inherited events (Linux 6.13) */
        uint32_t watermark; /* bytes in the ring that wake its reader */
} AttrBase;

/* What is opened for an event: one attr, or those of a group's members, the leader's first. */
typedef struct AttrPlan {
        struct perf_event_attr *attrs; /* complete but for what attr_for() adds */
        size_t n_attrs;
        uint64_t *config3; /* of each; perf_event_attr has it since Linux 6.3, its header not everywhere */
        bool is_group;     /* scheduled as one; otherwise each is opened on its own, as the sites of a USDT probe are */
        bool wants_group_sample; /* :S */
        bool group_sample; /* the leader's samples read all members: attr_plan() */
        bool hides_read;   /* PERF_SAMPLE_READ is there for the id in it, and nobody has asked for it: attr_plan() */
        bool is_probe;     /* of the kprobe or uprobe PMU, whose types are numbered like those of any PMU */
        bool has_ip;       /* a tracepoint that says where it was: a dynamic probe, as those of the PMUs do */
        bool precise_max;  /* precise_ip is as high as the machine lets it be */
} AttrPlan;

/* PERF_TYPE_* and config of one event, with what stands behind its colon. */
struct perf_event_attr attr_of_source(uint32_t type, uint64_t config, const EventModifiers *modifiers);
/* mem:ADDR/len:rwx */
struct perf_event_attr attr_of_breakpoint(const EventName *name);

/* Of its count and its period: "ns" or "events". */
const char *attr_unit(const struct perf_event_attr *attr);

/*
 * Completes the attrs of `plan` from the spec of `event`, and fills period, unit and exactness of `event`. What is counted
 * unless asked otherwise: tracepoints, probes, breakpoints and software events sample each occurrence; clocks and hardware
 * events 99 times a second; groups, and whatever is read at an interval, only count. can_sample: false for uncore PMUs.
 * REFUSED_INVALID for contradictions, with the field's name.
 */
int attr_plan(const AttrBase *base, Event *event, AttrPlan *plan, bool can_sample, Explanation *e);

/* Whether it can write samples into the ring. */
static inline bool attr_has_samples(const struct perf_event_attr *attr) {
        return attr->sample_period != 0; /* in one union with sample_freq */
}

/* Attr i of the plan for one fd. for_task: of a pid or tid instead of a whole CPU. The leader is disabled. */
struct perf_event_attr attr_for(const AttrPlan *plan, size_t i, bool for_task, bool no_inherit);

/* The carrier of a ring: a dummy that owns the mapping and writes the host's side records. Disabled. */
struct perf_event_attr attr_of_carrier(const AttrBase *base);
/* The same, with what every kernel that has PERF_RECORD_MMAP2 knows. */
struct perf_event_attr attr_of_plain_carrier(const AttrBase *base);
