/* For the supervisor: where every sample went, put together from its own numbers, the readers' and the dispatcher's. */
#pragma once

#include "daemon/supervisor.h"

/* Every event's cut, of all CPUs and of clients. -ENOMEM */
int supervisor_cut(Supervisor *s);
int supervisor_ledger(Supervisor *s, Perfd__V1__Ledger **ret);
/* Posts the end to one subscriber, or all (0). */
int supervisor_close_stream(Supervisor *s, uint64_t id, const char *reason);
int supervisor_report(Supervisor *s, DispatcherReport *ret);
/* Until it posts `done`; one that does not has all streams, and the daemon ends to be restarted. `what` it was asked, for the log. */
void supervisor_wait_for_dispatcher(Supervisor *s, sem_t *done, const char *what);
/* Whether it has a row in the ledger for this CPU. */
bool registration_has_slot(const Registration *g, uint32_t slot);
EventCut supervisor_event_totals(const Supervisor *s, const Registration *r);
