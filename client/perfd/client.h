/*
 * A client: one connection to the daemon, and the last error on it. Requests are in events.h, status.h, ledger.h,
 * configuration.h and emit.h; stream.h makes a stream of it. It belongs to one thread at a time.
 */
#pragma once

#include "declarations.h"
#include "error.h"

PERFD_BEGIN_DECLARATIONS

typedef struct perfd_client perfd_client;

/* program: a word for the daemon's log, e.g. "mytool 1.2". NULL: no memory. */
perfd_client *perfd_client_new(const char *program);
/* Takes NULL. Closes the connection; results stay valid, items, events and errors do not. */
void perfd_client_free(perfd_client *client);

/* Most milliseconds that one call may wait for its answer, connecting too; -1, as at first, is for ever. */
void perfd_client_set_timeout(perfd_client *client, int milliseconds);
/* Waits for the daemon's greeting. PERFD_E_UNREACHABLE, PERFD_E_REFUSED, PERFD_E_CLOSED, PERFD_E_PROTOCOL, _TIMEOUT. */
int perfd_client_connect(perfd_client *client, const char *path);
/*
 * The same on a stream socket that is connected already, e.g. through a tunnel; the fd is the client's from now on. Streams
 * share memory with the daemon only if ring_bytes says so.
 */
int perfd_client_connect_fd(perfd_client *client, int fd);

/* Of the last function that failed; valid until the next call on this client. */
const perfd_error *perfd_client_error(const perfd_client *client);
/* The daemon's version, "" before it is known; and whether this connection may change anything. */
const char *perfd_client_version(const perfd_client *client);
bool perfd_client_may_change(const perfd_client *client);

/* For __attribute__((cleanup)). */
static inline void perfd_client_freep(perfd_client **client) {
        perfd_client_free(*client);
}

PERFD_END_DECLARATIONS
