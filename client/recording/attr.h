/* For this folder: attrs of the events of a recording, their ids and names. */
#pragma once

#include "client/recording/reading.h"

/* An attr of that many bytes, which may be more or fewer than those of this machine. */
void attr_read(Bytes *b, uint64_t size, perfd_recorded_event *ret);
/* It is called so from now on. 0; -ENOMEM */
int event_set_name(perfd_recording *r, Event *e, const char *name, size_t n);
/* Adds an event with that attr. 0; -ENOMEM */
int events_add(perfd_recording *r, Bytes *attr, uint64_t size);
/* The last one gets the ids that these bytes are. 0; -ENOMEM */
int events_take_ids(perfd_recording *r, Bytes *ids);
/* Events from that index on get the names of the section EVENT_DESC, which the bytes are, and its ids if they have none. 0; -ENOMEM */
int events_name(perfd_recording *r, Bytes *b, size_t from);
/* Tracepoints without a name get that of the table of perf before Linux 3.15, which the bytes are. 0; -ENOMEM */
int events_name_types(perfd_recording *r, Bytes *b);
/* The event with that id gets a name. 0; -ENOMEM */
int events_name_id(perfd_recording *r, uint64_t id, const char *name, size_t n);
