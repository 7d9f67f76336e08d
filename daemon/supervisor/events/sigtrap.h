/* For resolving and opening events: who may ask for attr.sigtrap, and on which tasks. Main thread only. */
#pragma once

#include "daemon/base/error.h"
#include "daemon/model/event.h"
#include "daemon/supervisor/events/targets.h"
#include "daemon/supervisor/events/events.h"

/* REFUSED_INVALID "bad-attr": a client that is not root's asks for it. */
int sigtrap_check_client(const Events *s, const EventSpec *spec, Explanation *e);
/* Of tasks, sorted. REFUSED_INVALID "bad-target": a task of perfd is among them. */
int sigtrap_check_targets(const EventSpec *spec, const TargetSet *targets, Explanation *e);
