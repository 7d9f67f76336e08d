/* In the place of the files that know libnats, where it is not installed. */
#include "client/perfctl/fleet/source.h"

bool fleet_is_built(void) {
        return false;
}

int fleet_connect(const Perfctl *p, FleetConnection **ret) {
        return perfctl_fail(p, PERFCTL_FAILED, "this perfctl was built without NATS: build it again with the Debian package libnats-dev "
                            "installed");
}

void fleet_disconnect(FleetConnection *c) {
}

int fleet_source_open(FleetConnection *c, const FleetRead *read, FleetSource **ret) {
        return FLEET_E_NONE;
}

int fleet_source_next(FleetSource *s, int timeout, FleetMessage *ret) {
        return FLEET_E_NONE;
}

bool fleet_source_is_through(const FleetSource *s) {
        return true;
}

void fleet_source_ask(FleetSource *s) {
}

bool fleet_source_is_resumed(const FleetSource *s) {
        return false;
}

uint64_t fleet_source_dropped(const FleetSource *s) {
        return 0;
}

uint64_t fleet_source_taken(const FleetSource *s) {
        return 0;
}

size_t fleet_source_held(const FleetSource *s) {
        return 0;
}

size_t fleet_source_fetched(const FleetSource *s) {
        return 0;
}

void fleet_source_acknowledge(FleetSource *s) {
}

int fleet_source_find(FleetSource *s, const char *subject, perfd_fleet_message *ret) {
        return FLEET_E_NONE;
}

void fleet_source_close(FleetSource *s) {
}
