/* What a stream says of an event before its first item. Pure types. */
#pragma once

#include "declarations.h"
#include "field.h"

PERFD_BEGIN_DECLARATIONS

/* Which part of a callchain. */
typedef enum perfd_callchain {
        PERFD_CALLCHAIN_NONE = 0,
        PERFD_CALLCHAIN_KERNEL = 1,
        PERFD_CALLCHAIN_USER = 2,
        PERFD_CALLCHAIN_BOTH = 3,
        PERFD_CALLCHAIN_DWARF = 4, /* a bit of a perfd_event_spec alone: copies of stacks, as --callchain dwarf of perfctl(1) */
} perfd_callchain;

/* One counter of an event that is read, alone or in its group. */
typedef struct perfd_counter {
        const char *event; /* as in perf list */
        const char *unit;  /* of its value: "events", "ns", "Joules" */
        double scale;      /* value times this is in `unit` */
} perfd_counter;

/* Valid until the `removed` callback for it returned, another `event` with this id, or the client's end. */
typedef struct perfd_event {
        uint32_t id;
        const char *name;
        const char *event;  /* as in perf list */
        const perfd_field *fields;
        size_t n_fields;
        uint64_t period;    /* of every sample; 0 if by frequency */
        uint64_t frequency;
        const char *unit;   /* of period: "events", "ns" */
        const perfd_counter *counters; /* what perfd_item_read() gives, in its order */
        size_t n_counters;
        uint64_t interval;  /* ns between two PERFD_READ items; 0: none come */
} perfd_event;

PERFD_END_DECLARATIONS
