/* For the recorder: what an event's attr adds to its samples, above all registers and copies of stacks, of which callers are unwound. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/*
 * What samples of an event that was added so have of both: with callchain dwarf those that the daemon takes of this machine, of a stack as
 * many bytes as its attr says; else what its attr asks for, sample-type, sample-regs-user and sample-stack-user.
 */
void user_stack_of_event(perfd_recorded_event *event, const perfd_event_spec *spec);
/* Whether registers of that machine, as uname -m calls it, are those of this one. */
bool user_stack_is_of(const char *machine);
/* The words of sample-type that no recording of this program has, "weight, data-src", as far as there is room. False: there are none. */
bool user_stack_leaves_out(const perfd_event_spec *spec, char *ret, size_t size);
/*
 * Those of the item, for as long as it is valid. The sample has its other parts already: of the stack there is as much as a record has room
 * for. Registers that are not those of its event are left out. Of an event that has neither, the sample has none then.
 */
void user_stack_of_item(const perfd_item *item, perfd_recorded_sample *sample);
