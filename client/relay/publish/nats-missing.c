/* In the place of nats.c where libnats is not installed: relay.yaml with `publish` is refused before anything is opened. */
#include "client/relay/publish/publisher.h"

bool nats_is_built(void) {
        return false;
}

int nats_open(const PublishConfig *config, const PublisherCallbacks *callbacks, Publisher **ret) {
        return error_origin(-EOPNOTSUPP);
}
