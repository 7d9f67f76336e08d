/* In the place of fleet-nats.c where libnats is not installed. */
#include "client/perfctl/fleet-source.h"

bool fleet_is_built(void) {
        return false;
}

int fleet_source_open(const Perfctl *p, const char *url, const char *stream, const char *route, bool is_from_oldest, FleetSource **ret) {
        return perfctl_fail(p, PERFCTL_FAILED, "this perfctl was built without NATS: build it again with the Debian package libnats-dev "
                            "installed");
}

int fleet_source_next(FleetSource *s, int timeout, FleetMessage *ret) {
        return FLEET_E_NONE;
}

bool fleet_source_is_through(const FleetSource *s) {
        return true;
}

bool fleet_source_find_descriptors(FleetSource *s, const char *digest, uint8_t **ret_bytes, size_t *ret_length) {
        return false;
}

void fleet_source_close(FleetSource *s) {
}
