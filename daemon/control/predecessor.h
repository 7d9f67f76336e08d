/*
 * A daemon that was killed may listen for seconds more: the kernel closes its events before it is gone, and each takes a grace
 * period. Who starts meanwhile waits for it.
 */
#pragma once

#include <stdbool.h>

#define PREDECESSOR_WAIT 30 /* seconds at most */

/* fd: connected to it. False: it is alive, or does not end in that time; *ret_is_ending says which. */
bool predecessor_wait(int fd, const char *path, bool *ret_is_ending);
