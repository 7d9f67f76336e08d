/* For the recorder: the attr of a probe, which only the daemon that has defined it can name. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* By its name as perf list has it: "uprobe:libc:malloc". */
bool probe_event_is(const char *event);
/*
 * The probe that is event `id` of the daemon with this pid, 0 if it is not known. A tracepoint of tracefs, which *ret_tracepoint then names,
 * "perfd_00012f5c3a7d91e0:p12_malloc", or an attr of the PMU of such probes, and *ret_tracepoint is NULL: to be freed. False: it is neither,
 * or this user cannot see it.
 */
bool probe_event_find(const char *event, uint32_t id, uint32_t pid, perfd_recorded_event *ret, char **ret_tracepoint);
/* Whether that tracepoint is still there: it goes with its event. */
bool probe_event_is_defined(const char *tracepoint);
