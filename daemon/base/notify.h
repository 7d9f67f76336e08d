/*
 * What the service manager is told: sd_notify(3), but that it never waits for who reads it. sd_notify(3) sends on a blocking
 * socket, and so stands still while the queue of $NOTIFY_SOCKET is full. Any thread.
 */
#pragma once

#include <stdbool.h>

/* False: the queue is full, and the same may be said later. True: sent, or there is nobody to tell. */
bool notify_send(const char *state);
