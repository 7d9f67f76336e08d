/* For this folder and recorded/: names of events by their type and config. */
#pragma once

#include "client/recording/reading.h"

/* By its type and config, "page-faults", "L1-dcache-load-misses", "r1c2"; else "type=T,config=0xC" */
#define EVENT_NAME_SIZE 96 /* bytes, with the zero */
void event_name_of(const perfd_recorded_event *e, char to[static EVENT_NAME_SIZE]);
/* The same as perf script prints it, "cycles" for "cpu-cycles" */
void event_name_in_perf(const perfd_recorded_event *e, char to[static EVENT_NAME_SIZE]);
/* "ns" or "events": of its count and period */
const char *event_unit(const perfd_recorded_event *e);
