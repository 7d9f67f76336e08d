/* perfd-relay as a whole: what its parts share. One thread, and that of metrics beside it. */
#pragma once

#include <openssl/ssl.h>
#include <systemd/sd-event.h>

#include "client/relay/given-sockets.h"
#include "client/relay/metrics-server.h"
#include "client/relay/publish/publishing.h"
#include "client/relay/relay-config.h"
#include "client/relay/relay-counters.h"
#include "client/relay/socket-set.h"
#include "client/relay/tls.h"
#include "daemon/base/clock.h"

#define RELAY_PLAIN_MAX ((size_t)64 << 10) /* bytes that are compressed at once: of a smaller piece more is left */

/* Of a connection: connection.h. */
typedef enum RelayState {
        RELAY_HANDSHAKE,
        RELAY_GREETING,
        RELAY_PUMPING,
        RELAY_ENDING,
        RELAY_LINGERING,
        _RELAY_STATE_MAX,
} RelayState;

typedef struct RelayConnection RelayConnection;
typedef struct RelayListener RelayListener;

/* Lines about clients that are not authenticated: so many in a while, and then how many more there were. */
typedef struct RelayLines {
        nsec_t begin;
        unsigned n, n_left_out;
} RelayLines;

typedef struct Relay {
        sd_event *event;
        SocketSet sockets; /* of all connections */
        RelayConfig *config;
        SSL_CTX *tls; /* NULL: no clients come */
        unsigned generation; /* of both */
        GivenSockets given; /* by systemd */
        RelayListener *listeners;
        RelayConnection *connections;
        Publishing *publishing; /* NULL: nothing is published */
        void (*steps[_RELAY_STATE_MAX])(RelayConnection *c); /* what a connection does in each state */
        uint64_t n_handshakes; /* connections that are not authenticated, until they are closed */
        RelayLines refusals, overloads;
        RelayCounters counters;
        MetricsServer *metrics; /* NULL: none */
        sd_event_source *expiry;  /* of the first certificate that ends */
        sd_event_source *feeding; /* of the watchdog */
        sd_event_source *goodbye; /* the end, whether all have heard of it or not */
        bool is_stopping;
        uint8_t bytes[RELAY_PLAIN_MAX]; /* what is on its way through, within one call */
        uint8_t compressed[RELAY_PLAIN_MAX + 4096]; /* the same, for a client that has asked for it; compressor_room() */
} Relay;

/* lines.c: whether this line may be logged, and how many were not since the last one that was. */
bool relay_lines_may(RelayLines *l, unsigned most, nsec_t window, unsigned *ret_left_out);

/* -errno; e: why not, or why there is no configuration. `path` must stay. */
int relay_start(Relay *r, const char *path);
int relay_run(Relay *r);
void relay_stop(Relay *r);

/*
 * Reads all files again. 0; REFUSED_INVALID: said in the log, and nothing has changed; negative. Connections that the new files do not
 * permit end with the reason.
 */
int relay_reload(Relay *r);
/* Configuration and TLS (NULL: without `listen`) of `path`, and each line that is to be said of them. 0, REFUSED_INVALID, -ENOMEM. */
int relay_load(const char *path, bool takes_expired, RelayConfig **ret_config, SSL_CTX **ret_tls);
/* expiry.c: the timer of certificates, for the first one that ends now. */
int relay_set_expiry(Relay *r);
/* Ends those whose certificate has. */
void relay_end_expired(Relay *r);
