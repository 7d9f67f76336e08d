/* For the supervisor: whom fds are charged to until they are closed. Main thread only. */
#pragma once

#include "daemon/supervisor/events/events.h"

/*
 * How many fds the closer still has of what this uid has made perfd open: they are charged until they are closed. NULL: of root,
 * or there is no memory to count them.
 */
_Atomic(size_t) *events_closing_of(Events *s, uint32_t uid);
/* So many fds more, or less, are kept for a reader that does not answer: they are charged as what the closer has. */
void events_charge_kept(Events *s, uint32_t uid, ptrdiff_t n_fds);
void events_free_charges(Events *s);
/* The uid that an operation is charged to: 0 is root, or nobody. */
uint32_t events_charged_uid(const Events *s);
/* How many fds of this uid are being closed, or kept for a reader. */
size_t events_charged_fds(const Events *s, uint32_t uid);
