/* For `fleet`: what it prints of streams and hosts, and what its exit status says of them. */
#pragma once

#include "client/perfctl/fleet-streams.h"

void fleet_ledger_print(FleetStreams *l);
void fleet_hosts_print(FleetStreams *l);
/* PERFCTL_LOST, or PERFCTL_FAILED after a message: what does not balance. */
int fleet_judge(const FleetStreams *l);
