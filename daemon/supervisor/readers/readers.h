/* For the supervisor: CPUs, with their carriers, rings and readers, and where threads run. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/kernel/host/idle-cpus.h"
#include "daemon/supervisor/readers/perf-fd.h"

typedef struct Supervisor Supervisor;

/*
 * supervisor/readers/cpus.c: for each CPU that can be there a slot, for each that is online a carrier, a ring, batches and a reader.
 * Refused: with the limit or the privilege that is in the way.
 */
int supervisor_start_cpus(Supervisor *s, Explanation *e);
int supervisor_start_readers(Supervisor *s, Explanation *e);
int supervisor_explain_thread(int r, Explanation *e);
/*
 * supervisor/readers/idle.c: what it takes, with the privileges of the beginning, which end with it; why not, if *ret is NULL then.
 * -ENOMEM. Behind it, before the dispatcher starts, all CPUs that are online; and one that came.
 */
int supervisor_open_idle(IdleCpus **ret, Explanation *why);
void supervisor_start_idle(Supervisor *s);
void supervisor_find_idle(Supervisor *s, uint32_t slot);
/*
 * supervisor/readers/place.c: tells every reader and the dispatcher, before they start, where they run and how urgently. Refused: a
 * list of CPUs has none that is online.
 */
int supervisor_place_threads(Supervisor *s, Explanation *e);
/* Some ring is read by a thread on another CPU than its own. */
bool supervisor_reads_remotely(const Supervisor *s);
void supervisor_free_places(Supervisor *s);
/* Disabled. Side records that this kernel does not know are done without. Also OPEN_E_OFFLINE. */
int supervisor_open_carrier(Supervisor *s, uint32_t slot, int *ret_fd, uint64_t *ret_read_format, Explanation *e);
/*
 * One CPU's carrier and ring, and the reader's own parts unless it has them from the last time that the CPU was there.
 * Half of it is left if it fails: supervisor_close_ring().
 */
int supervisor_open_ring(Supervisor *s, uint32_t slot, Explanation *e);
void supervisor_close_ring(Supervisor *s, uint32_t slot);
int supervisor_start_reader(Supervisor *s, uint32_t slot, Explanation *e);
/* What is on while something is traced: the carrier, and who moves between cgroups. At most two. */
size_t supervisor_list_carrier(const Supervisor *s, uint32_t slot, Stream *to);
/* The same of all online CPUs, into s->carrier_streams. */
void supervisor_list_carriers(Supervisor *s);
size_t supervisor_count_online(const Supervisor *s);
void supervisor_stop_readers(Supervisor *s);
/* Accepts what was half started. The threads have ended. */
void supervisor_free_cpus(Supervisor *s);
