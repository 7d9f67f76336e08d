/* For the supervisor: what clients have added is charged to their uid. Main thread only. */
#pragma once

#include "daemon/supervisor/events/events.h"

/*
 * Before a trial opens n fds, which are closed at once: waits until the closer has few, and what is charged to its uid leaves room
 * for them. Refused: it does not, or REFUSED_CANCELLED.
 */
int events_wait_for_trial_room(Events *s, const char *what, size_t n_fds, Explanation *e);
/* What a trial plans for, or something needs at least, is within what the uid of what runs may have. */
int events_check_trial_quota(const Events *s, const char *what, size_t n_fds, Explanation *e);
/* A list, all of it of the same uid, that is not registered yet. Refused: it would be more than the configuration allows. */
int events_check_quota(Events *s, const Registration *list, Explanation *e);
/* The same for one that runs, and is to be held for this uid too. */
int events_check_share_quota(const Events *s, const Registration *g, uint32_t uid, Explanation *e);
/* The same for more fds of an event. */
int events_check_fd_quota(const Events *s, const Registration *g, size_t n_fds, Explanation *e);
