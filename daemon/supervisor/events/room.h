/* For the supervisor: how many fds there are, and what is open or to be opened needs. Main thread only. */
#pragma once

#include "daemon/supervisor/events/events.h"

/* Before anything is opened: whether all fds of the list fit. Refused with how many are needed, and how many there are. */
int events_check_room(Events *s, const Registration *list, Explanation *e);
/* What a list needs now: fds, and reads of counters in 1,000 s, as events_count_reads(). */
typedef struct Room {
        size_t n_fds;
        uint64_t reads;
} Room;

/* Refused: as they would be. */
int events_count_room(Events *s, const Registration *list, Room *ret, Explanation *e);
/* How often so many fds of an event are read in 1,000 s: 0 of one without an interval. */
uint64_t events_count_reads(const Registration *g, size_t n_fds);
/* Whether so many fit beside what is open. Refused: `what` needs them. */
int events_check_fds(const Events *s, const char *what, size_t need, Explanation *e);
/* Fds that perfd needs on so many CPUs before it traces anything. */
size_t events_own_fds(size_t n_cpus);
size_t events_count_fds(const Events *s);
