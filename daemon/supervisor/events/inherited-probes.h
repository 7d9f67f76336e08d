/* For the supervisor: user probes on tasks, at each cut. Main thread only. */
#pragma once

#include "daemon/supervisor/events/events.h"

/* ReaderHooks.judge_probes, userdata is the supervisor: the rows of those that children have inherited say from then on that they are not exact. */
void events_mark_inherited_probes(void *userdata);
