/*
 * For verbs that take events: what users of perf, bpftrace and ld.so(8) write for them, as the names that perfd has.
 *
 *     sched:sched_switch,cycles                two events
 *     kprobe:a,b  uprobe:/bin/x:f,g            two probes: what has no colon is another symbol of the probe before it
 *     {a,b}  cpu/event=1,umask=2/              one: commas in braces, brackets, parentheses and terms of a PMU part nothing
 *     tracepoint:sched:sched_switch            sched:sched_switch, as bpftrace(8) calls it
 *     software:page-faults  hardware:cycles    page-faults, cycles; as it calls these
 *     uprobe:libc:malloc  uprobe:./a.out:main  the file that is meant, by its path
 *     sched_switch                             sched:sched_switch, if it is the only one of this name
 */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* In the table of a verb that takes events. */
#define EVENT_OPTION(offered)                                                                                          \
        { .name = "event", .letter = 'e', .argument = "EVENT,...", .help = "events, in the way of perf's -e", .words = (offered), \
          .repeats = true }

typedef struct EventWords {
        char **names;
        size_t *places; /* of the word that each comes from, on the command line: event_option_get() */
        size_t place;   /* of what is added next */
        size_t n, room;
} EventWords;

#define EVENT_WORDS_NULL ((EventWords){ .names = NULL })

void event_words_deinit(EventWords *w);
/* As it is. */
void event_words_take(EventWords *w, const char *text);
/* All but the last form, which only the daemon knows. 0, or an exit status after a message. */
int event_words_add(EventWords *w, const Perfctl *p, const char *text);
/* The arguments of the verb and the values of its option `event`, with event_words_add() or as they are. */
int event_words_add_all(EventWords *w, const Perfctl *p);
void event_words_take_all(EventWords *w, const Perfctl *p);

/* What was added for the verb has a name of its own if another event has the one that was typed. */
typedef struct TypedNames {
        EventWords names, events; /* one of the others each */
} TypedNames;

/* As it was typed; else the name itself. */
const char *typed_names_find(const TypedNames *t, const char *name);
void typed_names_deinit(TypedNames *t);

/*
 * Where the file of a probe in a program ends, "uprobe:FILE:...", "usdt:FILE:PROVIDER:...", "usdt:FILE:...": at a colon or the end.
 * NULL: it is no such probe. ret_file: where the file begins.
 */
const char *event_words_file(const char *text, const char **ret_file);
/* A glob for the daemon, which a file in it is named to by its path. 0, or an exit status after a message. */
int event_words_glob(const Perfctl *p, const char *text, char **ret);

/*
 * What is behind the kind of events that bpftrace(8) writes before their names, "software:page-faults", or "" for the kind alone,
 * "sw" of perf-list(1); ret_kind: as perfd_available_row has it. NULL: `text` has none, and is given.
 */
const char *event_words_kind(const char *text, const char **ret_kind);

/* Where the daemon looks for a name. */
typedef enum EventWhere {
        EVENT_WHERE_RUNNING,
        EVENT_WHERE_OFFERED,
} EventWhere;

/*
 * The last form, for words without a colon: asks the daemon for tracepoints of the name. What is not found stays as it is.
 * 0, or an exit status after a message: more than one is called so.
 */
int event_words_find(EventWords *w, const Perfctl *p, EventWhere where);
/* The tracepoints that a glob means now. False: none were added, and the daemon, asked for the glob, says why. */
bool event_words_expand(EventWords *w, const Perfctl *p, const char *glob);
