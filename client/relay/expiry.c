/* One timer for all certificates: the one that ends first is found when a client comes, and when one has ended. */
#include "client/relay/connection.h"

bool connection_may_expire(const RelayConnection *c) {
        return c->expires != 0 && (c->state == RELAY_GREETING || c->state == RELAY_PUMPING);
}

int relay_set_expiry(Relay *r) {
        time_t first = 0;
        int k;

        for (const RelayConnection *c = r->connections; c; c = c->next)
                if (connection_may_expire(c) && (first == 0 || c->expires < first))
                        first = c->expires;
        if (first == 0)
                return sd_event_source_set_enabled(r->expiry, SD_EVENT_OFF);
        k = sd_event_source_set_time(r->expiry, ((uint64_t)first + 1) * 1000000); /* notAfter itself is still valid */
        return k < 0 ? k : sd_event_source_set_enabled(r->expiry, SD_EVENT_ONESHOT);
}
