/* For the recorder: registers and copies of stacks, of which callers are unwound. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* What samples of an event with callchain dwarf have: the daemon takes these of this machine. */
void user_stack_of_event(perfd_recorded_event *event);
/*
 * Those of the item, for as long as it is valid. The sample has its other parts already: of the stack there is as much as a record has room
 * for. Registers that are not those of its event are left out.
 */
void user_stack_of_item(const perfd_item *item, perfd_recorded_sample *sample);
