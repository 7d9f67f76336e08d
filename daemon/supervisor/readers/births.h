/*
 * Children that are born in the middle of a change. Where one may have been passed by (model/births.h), the rows of the events
 * that were changed say from then on that they are not exact. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "daemon/model/births.h"
#include "daemon/model/event.h"

struct PerfFdSet;

/* Of one switch. */
typedef struct BirthDoubt {
        struct BirthDoubt *next;
        BirthWatch watch;
        nsec_t until; /* who is in a fork now has ended it by then */
        size_t n_events;
        Event *events[]; /* references */
} BirthDoubt;

typedef struct BirthDoubts {
        BirthDoubt *first; /* the newest */
        size_t n;
        sd_event_source *timer;
} BirthDoubts;

typedef struct Readers Readers;

int readers_start_births(Readers *s);
void readers_free_births(Readers *s);
/*
 * Between two switches of the same fds: who may be in a fork now. *ret is NULL where nobody inherits any of them. -ENOMEM
 */
int readers_doubt_births(Readers *s, struct PerfFdSet *const *list, size_t n, BirthDoubt **ret);
/* Behind the second one, which began at `second`; takes it. */
void readers_watch_births(Readers *s, BirthDoubt *doubt, nsec_t second);
/* Children of whom they were opened on have them too. */
bool births_are_inherited(const struct PerfFdSet *o);
/* TargetRef they were opened on. -ENOMEM */
int births_list_roots(BirthWatch *w, const struct PerfFdSet *o);
/* Its rows are not exact from now on. */
void births_mark(Event *event);
/* By what records have told until now. */
void readers_judge_births(Readers *s);
