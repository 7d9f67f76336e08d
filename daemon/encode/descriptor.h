/*
 * For streams and for `available`: plans described for those who read items. Made of malloc'ed memory in the shape of
 * protobuf-c's unpacked messages, so that the generated _free_unpacked(message, NULL) frees them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/encode/item.h"
#include "proto/perfd.pb-c.h"

/* All fields of a plan, which may be NULL: then none. Free each, then the array, or let a message own them. -ENOMEM. */
int field_descriptors_new(const Plan *plan, Perfd__V1__FieldDescriptor ***ret_fields, size_t *ret_n_fields);

/*
 * What the items of an encode plan look like: its fields are those that are sent. name: of the event for its users;
 * event: as in perf list; unit: "events" or "ns". Free with perfd__v1__event_descriptor__free_unpacked(d, NULL).
 * -ENOMEM.
 */
int event_descriptor_new(const EncodePlan *p, const char *name, const char *event, uint64_t period, uint64_t frequency,
                         const char *unit, Perfd__V1__EventDescriptor **ret);

/*
 * Appends what one of the event's counters is, in the order of ReadValues. unit of its value: "events", "ns", "Joules";
 * scale: value times this is in the unit, 1 if it is so already. -ENOMEM.
 */
int event_descriptor_add_counter(Perfd__V1__EventDescriptor *d, const char *event, const char *unit, double scale);
