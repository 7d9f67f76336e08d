/* For the supervisor: from what was asked for to what would be opened for it. Main thread only. */
#pragma once

#include "daemon/base/error.h"
#include "daemon/supervisor/events/registration.h"
#include "daemon/supervisor/events/events.h"

typedef struct Resolver {
        Settings *settings;
        Host *host;
        Operations *operations;
        Readers *readers;
        Events *events;
} Resolver;

/* An event or a glob, parsed and looked up: what would be opened for it. */
int resolver_resolve(Resolver *s, EventSpec *spec, Registration **ret_list, Explanation *e);
/* Its cgroups, containers and units may all come later: it is open on those that are there. */
void registration_allow_absence(Registration *r);
/* A layout of its own for what the plan's leader writes. -ENOMEM, refused. */
int plan_layout_new(const AttrPlan *plan, SampleLayout **ret);
