/* A reload: other servers and other secrets are taken at once; all else of `publish` waits for a restart (publishing_keep()). */
#include "client/relay/publish/publishing.h"
#include "daemon/base/log.h"

bool publishing_take_access(PublishConfig *running, PublishConfig *loaded) {
        PublishAccess other = loaded->access;

        if (running->n_routes == 0 || !publish_config_equal(running, loaded) || publish_access_equal(&running->access, &other))
                return false;
        loaded->access = running->access;
        running->access = other;
        return true;
}

void publishing_reconnect(Publishing *p, const PublishAccess *access) {
        int r = p->publisher->reload(p->publisher, access);

        if (r < 0) {
                log_print_with(LOG_WARNING, MESSAGE_NEEDS_RESTART, LOG_FIELDS({ "REASON", "needs-restart" }),
                               "servers or credentials of 'publish' have changed, but there is no memory: restart the relay");
                return;
        }
        p->config.access = *access;
        log_print(LOG_INFO, MESSAGE_PUBLISHING, "servers or credentials of 'publish' have changed: connecting again");
}
