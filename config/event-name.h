/*
 * For everyone who takes an event from a user: the names of `perf list`, parsed. Pure; asks the kernel nothing, so a
 * tracepoint that parses need not exist. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

#define EVENT_NAME_MAX 255 /* bytes of text */

typedef enum EventNameKind {
        EVENT_NAME_TRACEPOINT,
        EVENT_NAME_SOFTWARE,
        _EVENT_NAME_KIND_MAX,
} EventNameKind;

/* One software event of perf_event_open(2), PERF_TYPE_SOFTWARE. */
typedef struct SoftwareEvent {
        const char *name;
        const char *alias; /* or NULL */
        uint64_t config;   /* PERF_COUNT_SW_ */
        const char *unit;  /* of its count and period: "ns" or "events" */
        const char *help;
} SoftwareEvent;

typedef struct EventName {
        EventNameKind kind;
        char *group; /* tracepoint: owned, each may be a glob (fnmatch(3)) */
        char *name;
        const SoftwareEvent *software; /* static, NULL for other kinds */
} EventName;

#define EVENT_NAME_NULL ((EventName){ .group = NULL })

/*
 * "group:name" or a software event's name or alias. `e` (may be NULL) says what is wrong and at which byte:
 *   REFUSED_INVALID      "bad-event": no name of perf list has this form
 *   REFUSED_NOT_FOUND    "unknown-event": a single word, but no software event
 *   REFUSED_UNSUPPORTED  "unsupported-event": of perf list, but of a kind that this version does not know
 * Negative: -ENOMEM.
 */
int event_name_parse(const char *text, EventName *ret, Explanation *e);
void event_name_deinit(EventName *n);

/* It can name several events. */
bool event_name_is_glob(const EventName *n);

/* "tracepoint", "software" */
const char *event_name_kind(EventNameKind kind);

/* The table, in the order of perf_event.h, for lists of what there is. Static lifetime. */
const SoftwareEvent *software_events(size_t *ret_n);
/* By name or alias; NULL if there is none. */
const SoftwareEvent *software_event_find(const char *name);
