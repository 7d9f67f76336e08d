/*
 * A client that takes nothing is perhaps only stopped, and perfd bounds what it costs; one that is gone has to be noticed. The client's
 * kernel tells them apart: it answers for a stopped program, too. TCP_USER_TIMEOUT does not (tcp_probe_timer()): it ends a connection
 * whose window was closed for so long, whoever answers.
 */
#include <netinet/tcp.h>

#include "client/relay/connection.h"

#define SILENCE_MOST 30000 /* ms since the last acknowledgement */
#define TRIES_MOST 3       /* in vain, one behind the other: a living one may have nothing to acknowledge for longer */

bool connection_is_silent(const RelayConnection *c) {
        struct tcp_info info = { .tcpi_state = 0 };
        socklen_t size = sizeof(info);

        return getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_last_ack_recv >= SILENCE_MOST &&
               (info.tcpi_retransmits >= TRIES_MOST || info.tcpi_probes >= TRIES_MOST);
}
