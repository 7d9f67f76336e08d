/* For the supervisor: events whose samples clients emit. Main thread only. */
#pragma once

#include "daemon/supervisor/resolve/resolve.h"

/* A registration without fds, whose plan is made of spec.fields; spec moves. */
int resolver_resolve_external(Resolver *s, uint32_t id, EventSpec *spec, Registration **ret, Explanation *e);
