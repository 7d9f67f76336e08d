/*
 * A durable consumer of JetStream, whose place in the stream the server keeps: it gives what it is asked for, and again what is not
 * acknowledged.
 */
#pragma once

#include "client/perfctl/fleet/ordered.h"

typedef struct FleetDurable FleetDurable;

/* What of the stream an earlier reader has been given. */
typedef struct FleetResumed {
        bool is_resumed;    /* there was one */
        uint64_t floor;     /* the last number that it acknowledged, as all before it; 0: none */
        uint64_t delivered; /* the last one that it was given */
} FleetResumed;

/* The texts have to stay. `place`: of one that is made now. 0, or an exit status after a message. */
int fleet_durable_open(FleetConnection *c, const char *stream, const char *name, const char *subject, FleetPlace place, FleetDurable **ret,
                       FleetResumed *ret_resumed);
/* Takes NULL. Waits a second at most until the server has noted what was acknowledged; that it did not say so is said on stderr. */
void fleet_durable_close(FleetDurable *d);

/* As fleet_ordered_next(). */
int fleet_durable_next(FleetDurable *d, int timeout, natsMsg **ret, Delivery *ret_about);
/* The connection was away: what was on its way is given again. */
void fleet_durable_lose(FleetDurable *d);
/* How many messages have come and are to be given: nobody else gets them while this one is there. */
size_t fleet_durable_waiting(FleetDurable *d);
/* How many of its messages another reader has got meanwhile. */
uint64_t fleet_durable_taken(const FleetDurable *d);
/* All messages of the stream up to the one with this reply subject. One that does not arrive has no effect but that they are given again. */
void fleet_durable_acknowledge(FleetDurable *d, const char *reply);
