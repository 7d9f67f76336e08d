/*
 * An ordered consumer of JetStream: each message once and in the order of the stream, whatever gets lost on the way. It is made here, and
 * not by libnats, which takes whatever a server answers later for an answer of JetStream.
 */
#pragma once

#include "client/nats/delivery.h"
#include "client/perfctl/fleet/nats.h"

typedef struct FleetOrdered FleetOrdered;

/* Where it begins. */
typedef struct FleetPlace {
        uint64_t sequence; /* of the stream; 0: by time */
        uint64_t since;    /* ns since 1970 */
} FleetPlace;

/* In the words of a consumer's configuration. */
#define FLEET_PLACE_SIZE 120
void fleet_place_write(const FleetPlace *place, char to[static FLEET_PLACE_SIZE]);

/* Both texts have to stay. 0, or an exit status after a message. */
int fleet_ordered_open(FleetConnection *c, const char *stream, const char *subject, FleetPlace place, FleetOrdered **ret);
/* Takes NULL. */
void fleet_ordered_close(FleetOrdered *o);

/* The next one, for which it waits at most so many ms: it is the caller's. 0, FLEET_E_NONE; or an exit status after a message. */
int fleet_ordered_next(FleetOrdered *o, int timeout, natsMsg **ret, Delivery *ret_about);
/* The connection was away: what was on its way is asked for again. */
void fleet_ordered_lose(FleetOrdered *o);
/* Asks the server whether all that there is has been given. False: it is not known either. */
bool fleet_ordered_is_through(FleetOrdered *o);
