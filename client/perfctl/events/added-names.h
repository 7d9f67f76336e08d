/* For verbs that add events for as long as they run: what these are called beside all that others have added. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/perfd.h"

/*
 * Sets the name of each spec. Called as the event is, unless that is the name of one in `list` that the daemon will not share, or of
 * another spec; then the process id is appended, as in "sched:sched_switch~4711". with_id: to each, because the daemon has refused the shorter names. Those of a
 * pattern are not given names. To be given to added_names_free().
 */
void added_names_choose(perfd_event_spec *specs, size_t n, const perfd_result *list, bool with_id);
void added_names_free(perfd_event_spec *specs, size_t n);
