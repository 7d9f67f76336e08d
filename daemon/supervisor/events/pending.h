/*
 * Events that are to run and cannot be opened now, because their module, file, process or privilege is not there. They are tried
 * again by a slow timer, by each reload and by each apply (supervisor/configuration/retry.h). Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "config/config.h"
#include "daemon/base/error.h"
#include "daemon/model/event.h"
#include "proto/perfd.pb-c.h"

typedef struct Events Events;

typedef struct PendingEvent {
        struct PendingEvent *next;
        Perfd__V1__EventSpec *spec;
        bool is_configured; /* else it stands in the state file */
        char *place;        /* "PATH:LINE:COLUMN: " of the configuration, or "" */
        char *why;          /* it cannot be opened, for people */
        const char *reason; /* the same for programs, with static lifetime; NULL: it was not tried yet */
} PendingEvent;

typedef struct PendingEvents {
        PendingEvent *first;
        sd_event_source *timer; /* off while none is pending */
        unsigned n_tries;       /* since one came */
} PendingEvents;

/*
 * Takes the message. -ENOMEM: it is freed. place: where the configuration has it; NULL: the state file does. why: it was refused;
 * NULL: it was not tried yet.
 */
int pending_new(Perfd__V1__EventSpec *spec, const ConfigPlace *place, const Explanation *why, PendingEvent **ret);
/* With the reason, in one line. */
void pending_log(const PendingEvent *p);
void pending_free_list(PendingEvent *list);
/* Out of the list, and freed. */
void pending_remove(PendingEvent **at, PendingEvent *removed);
size_t events_count_pending(const Events *s);
/* NULL: none that is pending has this name. */
const PendingEvent *events_find_pending(const Events *s, const char *name);
/* The state file's or the configuration's of a new list, which moves, replace those of the same kind. */
void events_set_pending(Events *s, PendingEvent *list, bool is_configured);
