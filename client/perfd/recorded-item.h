/*
 * Samples of a recording as items, as a stream has them: the functions of item.h, field.h and sample.h read their fields, tasks, callchains
 * and rare parts, and print them.
 */
#pragma once

#include "item.h"
#include "recording.h"

PERFD_BEGIN_DECLARATIONS

/*
 * Of the record that perfd_recording_next() gave last, each in its turn: those that are no samples say who threads are (COMM, FORK), and
 * give NULL. Of a sample, the item, until the next call with the recording, which may be where the record's own bytes end, too. The time is
 * that of the event's clock; its event is that of perfd_recording_event(id - 1): named as there, with the name of its numbers as
 * perfd_event.event. Fields are those of the format of a tracepoint, in the tracing data; without one, the raw bytes are those of the item. Registers are
 * left out of recordings of the other byte order: they are of another machine, and perfd_recording_sample() has them.
 *
 * 0; PERFD_E_INVALID: what it has is not what its attr or its format says, which has become a damage; -ENOMEM, -errno of read(2). Allocates
 * for the first sample of an event, and for names of threads.
 */
int perfd_recording_item(perfd_recording *r, const perfd_recorded *record, const perfd_item **ret);

PERFD_END_DECLARATIONS
