/*
 * Notifies the service manager like sd_notify(3), but never blocks. sd_notify(3) sends on a blocking socket, and so waits while the
 * queue of $NOTIFY_SOCKET is full. Any thread.
 */
#pragma once

#include <stdbool.h>

/* False: the queue is full; try again later. True: sent, or there is no service manager. */
bool notify_send(const char *state);
