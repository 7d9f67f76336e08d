/*
 * For the supervisor: the list of what is registered, in its order, and where in it a name or an id is, found in constant time.
 * Main thread only.
 */
#pragma once

#include "daemon/base/index.h"
#include "daemon/supervisor/events/registration.h"

typedef struct Supervisor Supervisor;

/* A list becomes the last of what is registered. -ENOMEM: it does not. */
int supervisor_link(Supervisor *s, Registration *list);
/* It is registered no longer. */
void supervisor_unlink(Supervisor *s, Registration *g);
/* The same of a list that was linked last: it stays one. */
void supervisor_unlink_last(Supervisor *s, Registration *list);
/* Behind opened_hand_over(): those that are active replace nothing any more. */
void supervisor_end_succession(Supervisor *s);
void supervisor_free_registered(Supervisor *s);
Registration *supervisor_find(const Supervisor *s, const char *name);
Registration *supervisor_find_id(const Supervisor *s, uint32_t id);

/* Lists of registrations that are not registered, by name: for pairs of the same name. */
int names_add_list(Index *names, Registration *list); /* -ENOMEM */
Registration *names_find(const Index *names, const char *name);

/* Closed and freed, when no reader may look at it any more. NULL */
Registration *registration_free(Supervisor *s, Registration *r);
void registrations_free(Supervisor *s, Registration *list);
