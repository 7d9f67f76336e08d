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
int opened_enable(Readers *s, Opened *const *list, size_t n, const char *what, Explanation *e);
int opened_disable(Readers *s, Opened *const *list, size_t n);
/* Fds that are to replace others, before anything is published of them. */
void opened_set_successor(Opened *o, bool is_successor);
/* What is opened beside `before`, and not enabled yet, awaits no exec of a task that had its exec. -errno */
int opened_follow_exec(Opened *o, const Opened *before);
/*
 * Disables `list`, whose heirs are known to the readers: what these have counted until then, which the others have counted
 * too, is never sent. They are heirs no more, but for the snapshot, up to the next one.
 */
int opened_hand_over(Readers *s, Opened *const *list, size_t n);
