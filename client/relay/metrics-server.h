/*
 * Metrics by HTTP: GET and HEAD of /metrics, on a thread of its own, so that nothing that comes by HTTP, and no perfd that does not answer,
 * is waited for by streams. All functions: the relay's loop.
 */
#pragma once

#include "client/relay/given-sockets.h"
#include "client/relay/relay-config.h"
#include "client/relay/relay-counters.h"
#include "daemon/base/error.h"

typedef struct MetricsServer MetricsServer;

/*
 * One that serves `config`, which it needs no longer; on sockets of `before`, which may be NULL and goes on, or of `given`, which may be
 * NULL too, where they have them. *ret is NULL if the configuration has no address, and no client that reads metrics by TLS.
 * REFUSED_DENIED: e says which address cannot be had; negative.
 */
int metrics_server_start(const RelayConfig *config, const RelayCounters *counters, const GivenSockets *given, const MetricsServer *before,
                         MetricsServer **ret, Explanation *e);
/* Whether it serves what `config` says; NULL serves nothing. */
bool metrics_server_is_of(const MetricsServer *s, const RelayConfig *config);
/*
 * Serves a connection of AF_UNIX as one that it has accepted, for a client that has come by TLS. Takes the fd. False: it is closed, because
 * there is no server, or too many wait.
 */
bool metrics_server_give(MetricsServer *s, int fd);
/* Ends at once, with its connections. Takes NULL. */
MetricsServer *metrics_server_stop(MetricsServer *s);
