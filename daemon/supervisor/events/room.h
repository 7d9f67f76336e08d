/* For the supervisor: how many fds there are, and what is open or to be opened needs. Main thread only. */
#pragma once

#include "daemon/supervisor/events/events.h"

/* Before anything is opened: whether all fds of the list fit. Refused with how many are needed, and how many there are. */
int events_check_room(Events *s, const Registration *list, Explanation *e);
/* How many fds they need now. Refused: as they would be. */
int events_count_room(Events *s, const Registration *list, size_t *ret_n_fds, Explanation *e);
/* Whether so many fit beside what is open. Refused: `what` needs them. */
int events_check_fds(const Events *s, const char *what, size_t need, Explanation *e);
/* Fds that perfd needs on so many CPUs before it traces anything. */
size_t events_own_fds(size_t n_cpus);
size_t events_count_fds(const Events *s);
