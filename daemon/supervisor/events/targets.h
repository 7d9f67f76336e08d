/* For the supervisor: what an event observes as of now, and where. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/kernel/cgroup/cgroup.h"
#include "daemon/model/event.h"
#include "daemon/supervisor/events/events.h"
typedef struct Registration Registration;

typedef struct TargetRef {
        int pid;        /* as perf_event_open(2) takes it: -1, a tid, or the fd of a cgroup's folder */
        const Cgroup *cgroup; /* of that fd, or NULL */
        uint64_t id;    /* as PerfFd.target_id */
} TargetRef;

typedef struct TargetSet {
        TargetRef *list; /* sorted by id, none twice */
        size_t n, n_allocated;
        Cgroup *cgroups; /* whose fds are in the list */
        size_t n_cgroups;
        size_t n_duplicates; /* cgroups that lie in another one, or were named twice: counted with that one */
        const char *absent;     /* the spec's: the first name that has no cgroup now; NULL: all have one */
        CgroupNaming absent_by; /* how it names it */
        CgroupFate fate;        /* of a container that is absent */
        size_t n_absent;
} TargetSet;

#define TARGET_SET_NULL ((TargetSet){ .list = NULL })

void target_set_deinit(TargetSet *w);
/*
 * Every thread or cgroup that the event names, once. A process that is gone is said; that all of them are, is refused. Of a
 * registered event all may be gone, and what is gone is left out. None only then, or if the spec has nothing but cgroup
 * globs.
 */
int events_find_targets(Events *s, const Registration *g, TargetSet *ret, Explanation *e);
bool target_set_has(const TargetSet *w, uint64_t id);
/* Everyone in `some` is in `all` too. */
bool target_set_contains(const TargetSet *all, const TargetSet *some);
/* The slots of the online CPUs that the event is to be opened on; malloc. None only of a registered event. */
int events_find_slots(const Events *s, const Registration *r, uint32_t **ret_slots, size_t *ret_n, Explanation *e);
