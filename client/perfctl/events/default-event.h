/* For verbs that sample: the event where none is named is that of perf, cycles, or cpu-clock where the machine does not count these. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* rate: times a second, if no option says it, which lives as long as `p`. False: events are named, and nothing is changed. */
bool default_event_choose(Perfctl *p, const char *rate);
