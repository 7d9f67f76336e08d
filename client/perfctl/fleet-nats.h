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

/* fleet-message.c: the message as libperfd takes it, as long as it is there. */
perfd_fleet_message fleet_message_of(natsMsg *m);
/* Where it belongs to. False: it is none of a relay. What else is in a packet, libperfd judges. The caller fills in when it was stored. */
bool fleet_message_read(natsMsg *m, FleetMessage *ret);
bool fleet_message_read_status(natsMsg *m, FleetMessage *ret);
