/* Events that become others while they run. Main thread only. */
#pragma once

#include "daemon/supervisor/changes/changes.h"

/* What an event is about to become, which keeps its id. */
typedef struct Replacement {
        Registration *registration;
        Event *event;   /* what it will be */
        bool has_rate;  /* period, frequency or interval change, and with them the next two */
        AttrPlan plan;
        SampleLayout *layout;
        bool needs_fds; /* something changes that fds know */
        PerfFdSet opened;  /* disabled */
} Replacement;

#define REPLACEMENT_NULL ((Replacement){ .registration = NULL })

/* From the event's spec to `wanted`, which event_spec_can_become() is true of. Opens it; nothing is changed. */
int replacement_prepare(Changes *s, Registration *r, const EventSpec *wanted, Replacement *ret, Explanation *e);
void replacement_deinit(Changes *s, Replacement *p);
/* All of them become active in the place of what is open, or, refused, none of them. Their contents move. */
int changes_replace(Changes *s, Replacement *list, size_t n, Explanation *e);
