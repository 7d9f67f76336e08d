/* For `fleet`: the items of routes as they are stored, until a signal. */
#pragma once

#include "client/perfctl/fleet/source.h"

/* `read` says from where on; `host` and `route` are globs, or NULL. An exit status. */
int fleet_watch(Perfctl *p, FleetConnection *c, const FleetRead *read, const char *host, const char *route);
