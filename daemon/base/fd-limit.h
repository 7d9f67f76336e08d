/*
 * The number of fds that perfd may have (RLIMIT_NOFILE), and a reserve of them that clients cannot exhaust. The kernel enforces the
 * reserve: the soft limit is FD_RESERVE below the hard one, and is raised only between fd_reserve_enter() and fd_reserve_leave().
 * All other code, including libraries, therefore gets EMFILE before the reserve is used. Code between the two calls opens fds that
 * perfd needs for itself, is short, and opens no number of fds that a client determines.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"

#define FD_RESERVE 24

/* Once, at the start: sets the soft limit to the hard one less the reserve. -errno. */
int fd_limit_init(void);
/* The limit of fds, including the reserve. */
uint64_t fd_limit(void);
/* Whether the number of this fd is in the reserve. */
bool fd_is_of_reserve(int fd);

/* Any thread; can be nested. No effect without fd_limit_init(). */
void fd_reserve_enter(void);
void fd_reserve_leave(void);

static inline void fd_reserve_leavep(const char *entered) {
        fd_reserve_leave();
}

/* Uses the reserve until the end of the scope. */
#define WITH_FD_RESERVE                                                                                                \
        _cleanup_(fd_reserve_leavep) __attribute__((unused)) const char reserve_ = (fd_reserve_enter(), 0)
