/* For the files of `fleet` that know libnats. */
#pragma once

#include <nats/nats.h>

#include "client/perfctl/fleet-source.h"

struct FleetConnection {
        const Perfctl *p;
        char *url; /* as it may be shown */
        natsConnection *connection;
        jsCtx *js;
};

/* What the calling thread's last call of libnats says, with the exit status. */
int fleet_fail(const FleetConnection *c, const char *what, natsStatus status);

/* fleet-message.c: what a message says of itself. False: it is none of a relay. The time when it was stored is the caller's to fill. */
bool fleet_message_read(natsMsg *m, FleetMessage *ret);
bool fleet_message_read_status(natsMsg *m, FleetMessage *ret);
/* Part and number of parts alone, of descriptors. */
bool fleet_message_read_parts(natsMsg *m, FleetMessage *ret);
