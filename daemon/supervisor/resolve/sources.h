/* For supervisor/resolve/resolve.c: what the name of an event means on this machine. Main thread only. */
#pragma once

#include "daemon/supervisor/resolve/resolve.h"

/* One thing that can be opened. */
typedef struct Source {
        struct perf_event_attr *attrs; /* one; several for a probe with several sites */
        size_t n_attrs;
        uint64_t config3;
        Plan *fields;    /* a reference, or NULL */
        Probe *probe;    /* or NULL */
        Closer *closer;  /* of the probe: who removes it */
        bool is_pmu_probe;
        char *cpus;      /* CPU list; NULL: all */
        bool can_sample, is_uncore;
        bool fallen_back;
        uint64_t period, frequency; /* from the terms of a PMU event; 0: not there */
        char *event;     /* its text, as in perf list */
        char *unit;      /* of its count; NULL: "events" or "ns" */
        double scale;
} Source;

#define SOURCE_NULL ((Source){ .attrs = NULL })

typedef struct Sources {
        Source *items;
        size_t n;
} Sources;

#define SOURCES_NULL ((Sources){ .items = NULL })

void source_deinit(Source *o);
void sources_deinit(Sources *list);

typedef struct SourceRequest {
        const EventSpec *spec;
        const EventName *name; /* not a glob */
        const char *text;      /* of this name; in a group, one of several in spec->event */
        uint32_t id;           /* of the event that it will be: the name of a probe in tracefs */
} SourceRequest;

/* A probe is defined then, and removed with the source. Refused: as the kind's own module says. */
int resolver_find_sources(Resolver *s, const SourceRequest *q, Sources *ret, Explanation *e);
