/* For the supervisor: enabling and disabling, by the readers. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/supervisor/readers/perf-fd.h"
#include "daemon/supervisor/readers/readers.h"

/*
 * All of the list, by the readers. Refused: all are disabled; `what` is for the explanation.
 * Negative: memory.
 */
int event_fds_enable(Readers *s, PerfFdSet *const *list, size_t n, const char *what, Explanation *e);
int event_fds_disable(Readers *s, PerfFdSet *const *list, size_t n);
/* Fds that are to replace others, before anything is published of them. */
void event_fds_set_successor(PerfFdSet *o, bool is_successor);
/* What is opened beside `before`, and not enabled yet, awaits no exec of a task that had its exec. -errno */
int event_fds_follow_exec(PerfFdSet *o, const PerfFdSet *before);
/*
 * Disables `list`, whose successors are known to the readers: what these have counted until then, which the others have counted
 * too, is never sent. They are successors no more, but for the snapshot, up to the next one.
 */
int event_fds_cut_over(Readers *s, PerfFdSet *const *list, size_t n);
