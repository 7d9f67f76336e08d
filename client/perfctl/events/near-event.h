/* For verbs that add events: what somebody may have meant by a name without its group. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/*
 * After a refusal: on stderr, for each of these that is called by one word which no event has, the tracepoint with the nearest
 * name, or that of the system call; where the code of an indirect function is; or as event_advice_tell() has it. The daemon is
 * asked for all that it offers.
 */
void near_event_tell(const Perfctl *p, const perfd_event_spec *specs, size_t n);
/* Of these the tracepoint of a system call that is called so, or the one whose name behind its group is nearest; NULL: none is, or one is it. */
const char *near_event_find(const perfd_result *available, const char *word);
