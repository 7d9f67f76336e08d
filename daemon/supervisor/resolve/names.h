/* For main.c: `perfd --check --names`. Main thread only. */
#pragma once

#include "config/config.h"
#include "daemon/supervisor/resolve/resolve.h"

/*
 * Which names of events this kernel does not have now: notes in `m`, or errors where a start would be refused for them. Nothing is
 * opened or defined, and a name that this user may not look for is a note too. 0 or negative.
 */
int resolver_check_names(const Config *c, ConfigDiagnostics *m);
