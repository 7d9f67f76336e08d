/*
 * For everyone who takes an event from a user: the names of `perf list` and the probe forms of perfd, parsed. Pure;
 * asks the kernel nothing, so what parses need not exist on this machine. Any thread.
 *
 *     sched:sched_switch  sched:*                      tracepoint, perhaps a glob
 *     cpu-clock  cs  dummy                             software event or its alias
 *     cycles  cycles:u  cpu-cycles                     hardware event
 *     L1-dcache-load-misses  LLC-stores                cache event: NAME[-OP][-RESULT]
 *     r01c2                                            raw event of the core PMU
 *     cpu/event=0x3c,umask=0x0/  msr/tsc/              PMU event: terms, and names of its sysfs events/ folder
 *     mem:0x7f001234[/4][:rwx]                         breakpoint on an address
 *     kprobe:SYM[+OFF]  kretprobe:SYM  kprobe:0xADDR   kernel probe; alternates: kprobe:a|b, the first that resolves
 *     uprobe:PATH:SYM[+OFF]  uretprobe:PATH:SYM        user probe; symbol[@VERSION], 0xADDRESS of the ELF file
 *     usdt:PATH:PROVIDER:NAME                          static user probe
 *     external:NAME                                    samples that clients emit
 *     {a,b,c}[:MODIFIERS]                              counters that are scheduled as one; the first one leads
 *
 * Tracepoints, software, hardware, cache and raw events and breakpoints may have :MODIFIERS, PMU events with or without
 * the colon; probes and external events have none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

#define EVENT_NAME_MAX 1023 /* bytes of text, of each member of a group */
#define EVENT_MEMBERS_MAX 32
#define EVENT_ALTERNATES_MAX 16

typedef enum EventNameKind {
        EVENT_NAME_TRACEPOINT,
        EVENT_NAME_SOFTWARE,
        EVENT_NAME_HARDWARE,
        EVENT_NAME_CACHE,
        EVENT_NAME_RAW,
        EVENT_NAME_PMU,
        EVENT_NAME_BREAKPOINT,
        EVENT_NAME_KPROBE,
        EVENT_NAME_UPROBE,
        EVENT_NAME_USDT,
        EVENT_NAME_EXTERNAL,
        _EVENT_NAME_KIND_MAX,
} EventNameKind;

/* One event with a fixed number of perf_event_open(2): PERF_TYPE_SOFTWARE or PERF_TYPE_HARDWARE. */
typedef struct NumberedEvent {
        const char *name;
        const char *alias; /* or NULL */
        uint64_t config;   /* PERF_COUNT_SW_ or PERF_COUNT_HW_ */
        const char *unit;  /* of its count and period: "ns" or "events" */
        const char *help;
} NumberedEvent;

/* What stands behind the last colon, as in perf-list(1). */
typedef struct EventModifiers {
        bool user, kernel, hypervisor; /* u k h: only where one of these is set; none: everywhere */
        bool host, guest;              /* H G: the same for virtual machines */
        bool no_idle;                  /* I */
        bool pinned;                   /* D */
        bool exclusive;                /* e */
        bool group_sample;             /* S, groups: the leader samples and reads all */
        unsigned precise;              /* p pp ppp: attr.precise_ip, 0 to 3 */
        bool precise_max;              /* P: as precise as the machine can */
} EventModifiers;

/* "name", "name=0x3c" or "name=text" of a PMU event; "r1a8" is config=0x1a8, as in perf-list(1). */
typedef struct EventTerm {
        char *name;
        char *text;      /* NULL: without a value; without the quotes that it may have had */
        bool is_number;  /* text is one: `value` */
        uint64_t value;
        size_t position; /* byte offset of the name in the event's text, for messages */
} EventTerm;

/* Where a probe sits. Either an address or one or more symbols. */
typedef struct ProbePlace {
        char **symbols; /* alternates in order of preference; "name" or "name@VERSION" */
        size_t n_symbols;
        uint64_t address; /* if there is no symbol: of the kernel, or in the ELF file's own terms */
        uint64_t offset;  /* bytes behind the symbol */
} ProbePlace;

typedef struct EventName {
        EventNameKind kind;
        EventModifiers modifiers;
        char *group; /* tracepoint, both may be globs (fnmatch(3)); USDT: the provider; PMU: its name, may be a glob */
        char *name;  /* tracepoint, USDT, external */
        const NumberedEvent *numbered; /* software and hardware; static */
        uint64_t config; /* software, hardware, cache, raw: perf_event_attr.config */
        EventTerm *terms;
        size_t n_terms;
        char *path; /* uprobe, USDT */
        ProbePlace place;
        bool is_return; /* kretprobe, uretprobe */
        uint64_t address; /* breakpoint */
        uint32_t length;  /* breakpoint: 1, 2, 4 or 8; sizeof(long) for x */
        uint32_t access;  /* breakpoint: HW_BREAKPOINT_R | _W | _X */
} EventName;

#define EVENT_NAME_NULL ((EventName){ .group = NULL })

/*
 * One event, no braces. `e` (may be NULL) says what is wrong and at which byte:
 *   REFUSED_INVALID      "bad-event": no name of perf list has this form
 *   REFUSED_NOT_FOUND    "unknown-event": a single word that no table knows, with the nearest one
 *   REFUSED_UNSUPPORTED  "unsupported-event": of perf list, but nothing that this version can do (bpf-output, :W, :b)
 * Negative: -ENOMEM.
 */
int event_name_parse(const char *text, EventName *ret, Explanation *e);
void event_name_deinit(EventName *n);

/* Several scheduled as one. Without braces a list of one, and is_group is false. Modifiers of braces are in each member. */
typedef struct EventNames {
        EventName *members;
        char **texts; /* of each member as it was written, without white space around it */
        size_t n_members;
        bool is_group;
} EventNames;

#define EVENT_NAMES_NULL ((EventNames){ .members = NULL })

/* Positions in `e` are those in `text`. Also refused: probes, tracepoint globs and external events in braces, nesting. */
int event_names_parse(const char *text, EventNames *ret, Explanation *e);
void event_names_deinit(EventNames *n);

/* It can name several events: a pattern of tracepoints. A PMU's name may be a pattern, too, but that is one event. */
bool event_name_is_glob(const EventName *n);
/* Records of it have fields: tracepoints and probes, which the kernel can filter, and external events. */
bool event_name_has_fields(const EventName *n);

/* "tracepoint", "software", "hardware", "cache", "raw", "pmu", "breakpoint", "kprobe", "uprobe", "usdt", "external" */
const char *event_name_kind(EventNameKind kind);

/* The tables, in the order of perf_event.h, for lists of what there is. Static lifetime. */
const NumberedEvent *software_events(size_t *ret_n);
const NumberedEvent *hardware_events(size_t *ret_n);
/* Cache event i as perf list writes it, into `buffer`, and its config; false behind the last one. */
bool cache_event(size_t i, char buffer[static 64], uint64_t *ret_config);
/* By name or alias; NULL if there is none. */
const NumberedEvent *software_event_find(const char *name);
const NumberedEvent *hardware_event_find(const char *name);
