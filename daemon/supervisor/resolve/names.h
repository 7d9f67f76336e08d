/* For main.c: `perfd --check`. Main thread only. */
#pragma once

#include "config/config.h"
#include "daemon/supervisor/resolve/resolve.h"

/*
 * Which names of events this kernel does not have now: notes in `m`, or errors where a start would be refused for them; and which filters
 * it refuses. Nothing is defined, nothing opened but for a filter a disabled event of the own thread, and a name that this user may not look for is a note too. 0 or negative.
 */
int resolver_check_names(const Config *c, ConfigDiagnostics *m);
/* Of the filters what is wrong whatever the kernel has; the former says it too. 0 or negative. */
int resolver_check_filters(const Config *c, ConfigDiagnostics *m);
