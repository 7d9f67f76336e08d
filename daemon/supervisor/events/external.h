/* For the supervisor: external events that are registered. Main thread only. */
#pragma once

#include "daemon/supervisor/events/events.h"

/* ReaderHooks.on_cut, userdata is the supervisor: at a cut, behind what was delivered: their numbers belong to it, as readers take those of theirs. */
void events_settle_external(void *userdata);
/* The merge waits for clients while there are external events, and only then. */
void events_update_window(Events *s);
