/* For the supervisor: the fds of registrations. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/supervisor/events/registration.h"
#include "daemon/supervisor/events/targets.h"
#include "daemon/supervisor/events/events.h"

/*
 * The fds of one registration, disabled, filtered, in their rings. All or none. There may be none for an
 * event that is registered already, and whose tasks or CPUs are gone; and none in a trial (supervisor/operations/operations.h), which closes
 * what it has opened.
 */
int events_open(Events *s, const Registration *r, const char *filter, PerfFdSet *ret, Explanation *e);
/* The same on some CPUs, given by their slots. Not for external events. */
int events_open_on(Events *s, const Registration *r, const char *filter, const uint32_t *slots, size_t n_slots,
                   PerfFdSet *ret, Explanation *e);
/* All of a list that is not registered yet. Those of a glob that the kernel never lets be sampled are left out, and said. */
int events_open_list(Events *s, Registration **list, Explanation *e);
/* For those only, without a second look at who is there. */
int events_open_at(Events *s, const Registration *r, const char *filter, const TargetSet *targets,
                   const uint32_t *slots, size_t n_slots, PerfFdSet *ret, Explanation *e);
/* supervisor/events/close.c: by the closer, and charged to whom what runs is charged. Disabled, and no reader knows them (any more); of stalled ones it waits for that. */
void event_fds_close(Events *s, PerfFdSet *o);
/* Whether the closer also closes what was opened and is not wanted (open_close()). */
void events_give_closer(Events *s, bool is_there);
/* The same as event_fds_close(), charged to a uid. */
void event_fds_close_of(Events *s, PerfFdSet *o, uint32_t uid);
/* The same, of what no reader was ever told of: it waits for none. */
void event_fds_close_unknown(Events *s, PerfFdSet *o, uint32_t uid);
/*
 * supervisor/events/counts.c: what the fds have counted, which are disabled and will be closed, stays in the ledger and, except for
 * successors that never became active, in the counts that are sent. is_standby: others were active when they were disabled, which a
 * reader that does not answer may not know. -errno
 */
int registration_keep_counts(const Events *s, Registration *r, const PerfFdSet *o, bool is_standby);
