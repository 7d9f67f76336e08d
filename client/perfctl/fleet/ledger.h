/* For `fleet`: what it prints of streams and hosts, and what its exit status says of them. */
#pragma once

#include "client/perfctl/fleet/relays.h"
#include "client/perfctl/fleet/streams.h"

void fleet_ledger_print(Perfctl *p, const perfd_fleet *fleet);
/* PERFCTL_LOST, or PERFCTL_FAILED after a message: what does not balance. */
int fleet_judge(const Perfctl *p, const FleetStreams *l);
/* hosts.c. The same, by what hosts say; PERFCTL_FAILED if no relay says anything. */
int fleet_hosts_print(Perfctl *p, const char *stream, const FleetRelays *l);
