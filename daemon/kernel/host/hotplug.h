/*
 * For the supervisor: CPUs that come and go, as the kernel announces them (uevents, by netlink(7)). Main thread only. A
 * word of it is a reason to look at cpus_online(); what a CPU did before its word is read is not told.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

enum {
        HOTPLUG_E_NONE = _REFUSED_MAX, /* nothing more for now, or nothing of a CPU in a whole lot: the fd says when */
        HOTPLUG_E_OVERRUN,             /* something was lost, perhaps of a CPU that went and is back: the caller looks
                                          at each of them and at cpus_online(), and reads on */
};

/* For the loop. -errno: EAFNOSUPPORT and EPERM if a sandbox does not let us have AF_NETLINK. */
int hotplug_open(int *ret_fd);
/* One event: a CPU is online from now on, or has gone offline. HOTPLUG_E_NONE, HOTPLUG_E_OVERRUN, -errno. */
int hotplug_next(int fd, uint32_t *ret_cpu, bool *ret_online);
/*
 * One message of the kernel's: "online@/devices/system/cpu/cpu3" and its KEY=value, each terminated. HOTPLUG_E_NONE if
 * it says anything else, or was only made up by a write to a file called uevent. Pure.
 */
int hotplug_parse(const char *message, size_t length, uint32_t *ret_cpu, bool *ret_online);
