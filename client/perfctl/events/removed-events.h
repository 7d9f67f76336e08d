/* For verbs that read a stream: events of it that somebody removes, told on stderr; and whether one of those that were named is left. */
#pragma once

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/base/perfctl.h"

typedef struct RemovedEvents {
        EventWords names; /* that were not told yet */
} RemovedEvents;

/* For the callback perfd_callbacks.removed. */
void removed_events_add(RemovedEvents *r, const char *name);
/* A line for all that were removed since the last call. False: there were none. */
bool removed_events_tell(RemovedEvents *r, const Perfctl *p);
void removed_events_deinit(RemovedEvents *r);

/*
 * Whether more can come for these names: an event of one of them runs, is pending, or has replaced the one that was removed, which
 * the daemon is asked on another connection. A glob, or no name at all, also waits for what is added later. True if it cannot be known.
 */
bool removed_events_any_left(Perfctl *p, const EventWords *words);
