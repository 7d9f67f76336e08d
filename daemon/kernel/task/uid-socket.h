/*
 * The kernel's reports of processes that have changed their uid: the process events of the connector (linux/cn_proc.h), of which
 * a socket gets, from Linux 6.6 on and without any privilege, only those that it asks for. The kernel puts a report into the
 * socket before the system call that changed the uid returns. So whoever reads the socket after a sample was seen has all reports
 * that are older than the sample.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "daemon/base/error.h"
#include "daemon/model/uid-changes.h"

/*
 * Main. A socket that gets nothing yet. REFUSED_UNSUPPORTED: perfd is in a network or pid namespace of its own, or the kernel has
 * no CONFIG_PROC_EVENTS, or is older than 6.6.
 */
int uid_socket_open(int *ret_fd, Explanation *e);
/* Main. Twice is once. -errno */
int uid_socket_listen(int fd, bool on);

enum {
        UID_SOCKET_E_END = _REFUSED_MAX, /* nothing more has come */
        UID_SOCKET_E_LOST,               /* more came than the socket holds: what was lost is not known */
};

/* Does not wait. clock: of ret->time. 0, UID_SOCKET_E_END, UID_SOCKET_E_LOST. */
int uid_socket_read(int fd, clockid_t clock, UidChange *ret);
/* Of a message the change of a process; false: it is of something else, as a thread that changes its uid alone. Pure. */
bool uid_socket_parse(const void *message, size_t length, UidChange *ret);
