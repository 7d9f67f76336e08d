/* For the supervisor: the uid that fds are charged to until they are closed. Main thread only. */
#pragma once

#include "daemon/supervisor/events/events.h"

/*
 * How many fds the closer still has of what this uid has made perfd open: they are charged until they are closed. NULL: of root,
 * or there is no memory to count them.
 */
_Atomic(size_t) *events_closing_of(Events *s, uint32_t uid);
/* The close of so many more or fewer fds is deferred for a reader that does not answer: they are charged like the closer's. */
void events_charge_deferred(Events *s, uint32_t uid, ptrdiff_t n_fds);
void events_free_charges(Events *s);
/* The uid that an operation is charged to: 0 is root, or nobody. */
uint32_t events_charged_uid(const Events *s);
/* How many fds of this uid are being closed, or deferred for a reader. */
size_t events_charged_fds(const Events *s, uint32_t uid);
