/* For verbs that add events: what was meant by a word that the daemon has refused, though it is no name of an event. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/*
 * After a refusal for its reason and with its message: on stderr, if this event is the one that it names, what to name instead.
 * Asks the daemon for what runs. False: nothing was said.
 */
bool event_advice_tell(const Perfctl *p, const char *event, const char *reason, const char *message);
/* The times of perf-list(1) that no perf event counts: where they are instead. False: this is none. */
bool event_advice_tell_time(const Perfctl *p, const char *event);
/* Of a word that nothing else is known of, where a command may have been meant: that it is no program either. */
void event_advice_tell_program(const Perfctl *p, const char *event);
