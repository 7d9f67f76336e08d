/*
 * How many fds perfd may have (RLIMIT_NOFILE), and the reserve of them that nobody can make it spend. The kernel keeps the
 * reserve: the soft limit stands FD_RESERVE below what perfd may have, and is raised only between fd_reserve_enter() and
 * fd_reserve_leave(). So whatever else opens something, in a library too, finds EMFILE before the reserve is touched. What may be
 * in between is what perfd needs for itself, is short, and opens nothing whose number a client decides.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"

#define FD_RESERVE 24

/* Once, at the start: raises the soft limit to the hard one, and takes the reserve off it. -errno. */
int fd_limit_init(void);
/* With the reserve. */
uint64_t fd_limit(void);
/* It has one of the numbers that only the reserve gives. */
bool fd_is_of_reserve(int fd);

/* Any thread; may be nested. Without fd_limit_init() they do nothing. */
void fd_reserve_enter(void);
void fd_reserve_leave(void);

static inline void fd_reserve_leavep(const char *entered) {
        fd_reserve_leave();
}

/* Until the end of the scope. */
#define WITH_FD_RESERVE                                                                                                \
        _cleanup_(fd_reserve_leavep) __attribute__((unused)) const char reserve_ = (fd_reserve_enter(), 0)
