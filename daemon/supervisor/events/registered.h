/*
 * For the supervisor: the list of what is registered, in its order, and where in it a name or an id is, found in constant time.
 * Main thread only.
 */
#pragma once

#include "daemon/base/index.h"
#include "daemon/supervisor/events/registration.h"
#include "daemon/supervisor/events/events.h"

/* A list becomes the last of what is registered. -ENOMEM: it does not. */
int events_link(Events *s, Registration *list);
/* It is registered no longer. */
void events_unlink(Events *s, Registration *g);
/* The same of a list that was linked last: it stays one. */
void events_unlink_last(Events *s, Registration *list);
/* Behind event_fds_cut_over(): those that are active replace nothing any more. */
void events_end_succession(Events *s);
void events_free_registered(Events *s);
Registration *events_find(const Events *s, const char *name);
Registration *events_find_id(const Events *s, uint32_t id);

/* Lists of registrations that are not registered, by name: for pairs of the same name. */
int names_add_list(Index *names, Registration *list); /* -ENOMEM */
Registration *names_find(const Index *names, const char *name);

/* Closed and freed, when no reader may look at it any more. NULL */
Registration *registration_free(Events *s, Registration *r);
void registrations_free(Events *s, Registration *list);
