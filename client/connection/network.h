/*
 * TCP to another host: by its name or address, within a time, and so that Linux ends the connection when nothing is heard from the
 * other host any more.
 */
#pragma once

#include <stdint.h>
#include <netinet/in.h>

/* Seconds of silence after which a connection ends, at the latest: its peer, or the way to it, is gone. */
#define NETWORK_SILENCE 30

#define NETWORK_NEVER INT64_MAX /* a deadline */

enum {
        NETWORK_E_NAME = 1, /* NetworkError.error is of getaddrinfo(3) */
        NETWORK_E_CONNECT,  /* and here an errno, of the address that was tried last */
        NETWORK_E_TIMEOUT,  /* the deadline is over */
};

typedef struct NetworkError {
        int error;
        char address[INET6_ADDRSTRLEN]; /* "": none was tried */
} NetworkError;

/* ms of CLOCK_MONOTONIC at which `timeout` ms from now are over; -1: NETWORK_NEVER. */
int64_t network_deadline(int timeout);
/* poll(2) of one fd until a deadline: 0, also after a signal, NETWORK_E_TIMEOUT, -errno. */
int network_wait(int fd, short events, int64_t deadline);
/*
 * Tries the addresses of a name one after the other, each for its share of the time that is left. A name is looked up for as long as
 * resolv.conf(5) says. The socket does not block and is closed on exec. -errno if there can be no socket.
 */
int network_open(const char *host, const char *port, int64_t deadline, int *ret_fd, NetworkError *ret_error);
