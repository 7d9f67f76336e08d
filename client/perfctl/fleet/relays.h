/* For `fleet`: what relays say of themselves, the newest word of each run of one. */
#pragma once

#include "client/perfctl/fleet/source.h"

#define FLEET_RELAYS_MAX 20000

typedef struct FleetRelay {
        FleetMessage about; /* its bytes are gone; `stored` is when the server had it */
        perfd_result *result;
        const perfd_relay_status *status; /* in it */
} FleetRelay;

typedef struct FleetRelays {
        const Perfctl *p;
        FleetRelay *list; /* in the order of their first messages */
        size_t n;
        size_t n_bytes;   /* of all messages that are kept */
        size_t n_alien;   /* messages that are of no relay, or more than are kept */
        bool has_stream;  /* false: no relay has made the stream of such messages */
} FleetRelays;

/* All that is stored, of hosts that match the glob, or NULL. 0, or an exit status after a message. */
int fleet_relays_read(FleetConnection *c, const char *stream, const char *glob, FleetRelays *ret);
void fleet_relays_deinit(FleetRelays *r);

typedef enum FleetState {
        FLEET_PUBLISHING,
        FLEET_WAITING,  /* it publishes nothing: no route has a stream */
        FLEET_SILENT,   /* nothing has come for 30 s */
        FLEET_ENDED,    /* it has said so */
        FLEET_REPLACED, /* another run of it began after its last word */
} FleetState;

/* `now`: ns since 1970. */
FleetState fleet_relay_state(const FleetRelays *l, const FleetRelay *r, uint64_t now);
/* Items that were lost before they were published. */
uint64_t fleet_relay_lost(const FleetRelay *r);
