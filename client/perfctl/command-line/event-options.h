/*
 * For verbs that add events: options that each event may have for itself (Option.each). Given behind some of the events and before
 * others, or again, such an option applies to the events before it, as far back as to the last one of its kind; a single one
 * before or behind all events applies to all of them.
 */
#pragma once

#include "client/perfctl/base/perfctl.h"

enum {
        EVENT_OPTION_E_AGAIN = 1, /* given twice without an event in between */
        EVENT_OPTION_E_FIRST,     /* given again, and no event stands before the first one */
};

/* For the command line: as it is read. 0, or one of those. */
int event_option_add(Perfctl *p, const Option *option, const char *value);
/* For the event at this place on the command line (EventWords.places); NULL: it has none. */
const char *event_option_get(const Perfctl *p, const char *name, size_t place);
