/* For the supervisor: an event that is registered, or may be. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/kernel/event/attr.h"
#include "daemon/kernel/probe/probe.h"
#include "daemon/model/event.h"
#include "daemon/model/loss.h"
#include "daemon/model/snapshot.h"
#include "daemon/supervisor/readers/perf-fd.h"

typedef struct Registration Registration;

/* A connection that a temporary event lives for, and whose uid it is charged to. */
typedef struct Holder {
        uint64_t connection; /* its id */
        uint32_t uid;
} Holder;

/* An event while it is registered. */
struct Registration {
        struct Registration *next, *previous; /* previous: of what is registered */
        bool is_registered; /* else it is about to be, or only looked at */
        bool was_registered; /* readers may know it, or have known it */
        uint64_t position;  /* in the order of registration */
        Event *event; /* another one from each live change on, with the same id and numbers */
        AttrPlan plan;
        Probe *probe;      /* or NULL: defined as long as this lives */
        char *cpus;        /* CPU list: where its PMU can count; NULL: everywhere */
        bool of_glob;      /* one of several that a glob of tracepoints means */
        bool like_first;   /* of a glob, behind the first of them: it differs in nothing but the tracepoint */
        bool fallen_back;  /* spec.fallback is counted */
        bool is_dynamic;  /* its cgroups come and go: a glob, a container, a unit */
        bool may_be_absent; /* none of them need be there when it is opened for the first time */
        char *absent;      /* of these names, what has no cgroup now, for people; NULL: all of them have one */
        size_t asked;      /* before it is registered: of which spec of its request it is */
        bool is_temporary; /* it ends with the last of its holders: supervisor/events/holders.h */
        Holder *holders;   /* of a temporary one, in the order in which they came */
        size_t n_holders;
        uint32_t last_uid; /* of the holder that left last */
        bool can_sample;   /* as attr_plan() takes it */
        SampleLayout *layout;         /* of the samples of `opened`; NULL of external events */
        SampleLayout *pending_layout; /* of `pending`; NULL: the same */
        PerfFdSet opened;  /* the active fds: their samples count */
        PerfFdSet pending; /* on standby: the replacement before the switch, what was replaced after it */
        bool enabled;
        bool is_persistent; /* it is in the state file */
        bool is_selected;  /* while a change is prepared: it is in the change's list already */
        bool is_planned;   /* the configuration that is looked at has it: supervisor/configuration/reload.c */
        bool exclude_self; /* by the reader */
        uint64_t said_lost[_LOSS_MAX]; /* in the log: supervisor/ledger/losses.c */
        nsec_t latest;     /* of the times of what clients emitted for it: they may be ahead of the clock */
        void (*free_routes)(struct Registration *g); /* of those who have set them; NULL: there are none */
        struct EventRoute *routes; /* of all subscriptions that select it, in no order */
        size_t n_routes, n_routes_allocated;
        struct EventEncoding *encodings; /* theirs */
        size_t n_encodings;
        RouteTable *table;  /* made of them for the last snapshot; NULL: to be made, or there are none */
};
