/*
 * Sockets that systemd has opened for the relay, sd_listen_fds(3): what FileDescriptorName= of each says that it is for. They stay open
 * until the relay ends, so that who connects while it is reloaded or restarted waits and is not refused. The relay's loop.
 */
#pragma once

#include "client/relay/endpoint.h"
#include "daemon/base/strings.h"

typedef enum GivenPurpose {
        GIVEN_TLS,     /* "tls", or no name: then it is that of the unit */
        GIVEN_METRICS, /* "metrics" */
} GivenPurpose;

typedef struct GivenSocket {
        int fd;
        GivenPurpose purpose;
        struct sockaddr_storage address;
        bool takes_ipv4; /* although it is one of IPv6 */
} GivenSocket;

typedef struct GivenSockets {
        GivenSocket *items;
        size_t n;
} GivenSockets;

/* At the start, once. REFUSED_INVALID: e says which is none that the relay can listen on; negative. `g` is the caller's to deinit. */
int given_sockets_take(GivenSockets *g, Explanation *e);
void given_sockets_deinit(GivenSockets *g);

/* Whether there is one for this. */
bool given_sockets_have(const GivenSockets *g, GivenPurpose purpose);

/* The one to which the kernel gives connections to `address`, ADDRESS:PORT: of it, or of all addresses; NULL: none. NULL has none. */
const GivenSocket *given_sockets_find(const GivenSockets *g, GivenPurpose purpose, const char *address);

/* Says in the log of which of them neither list has the address. */
void given_sockets_log_unnamed(const GivenSockets *g, const Strings *tls, const Strings *metrics);
