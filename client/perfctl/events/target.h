/* For verbs that add events: whom and where they observe, from the command line. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* Rows of a verb's table of options; their letters are those of perf-record(1) and perf-stat(1). */
#define TARGET_OPTIONS                                                                                                 \
        { .name = "pid", .letter = 'p', .argument = "P,...", .help = "only these processes, their threads and children", \
          .words = WORDS_PROCESSES },                                                                                  \
        { .name = "tid", .letter = 't', .argument = "T,...", .help = "only these threads", .words = WORDS_THREADS },   \
        { .name = "cgroup", .letter = 'G', .argument = "PATH", .help = "only this cgroup; globs are followed",          \
          .repeats = true, .words = WORDS_CGROUPS },                                                                                           \
        { .name = "container", .argument = "ID", .help = "only this container", .repeats = true,       \
          .words = WORDS_CONTAINERS },                     \
        { .name = "unit", .argument = "UNIT", .help = "only this unit of systemd", .repeats = true,      \
          .words = WORDS_UNITS },                  \
        { .name = "cpu", .letter = 'C', .argument = "LIST", .help = "only these CPUs, as in 0-3,8" },                   \
        { .name = "target", .argument = "NAME", .help = "a target of the configuration" },                             \
        { .name = "no-inherit", .help = "without children and new threads of the tasks" }

/* Changes nothing, and so is none of them: what has no target is asked for the whole host. For target_parse() too. */
#define ALL_CPUS_OPTION                                                                                                \
        { .name = "all-cpus", .letter = 'a', .help = "whole CPUs, as without it: not with --pid or --tid" }

/* Sets the members of a target; the spec is then to be given to target_deinit(). 0, or PERFCTL_USAGE after a message. */
int target_parse(const Perfctl *p, perfd_event_spec *spec);
void target_deinit(perfd_event_spec *spec);
/*
 * Where an event was refused: perfctl_fail_client(), and of a unit that does not run what can be done before it does. An exit
 * status.
 */
int target_fail(const Perfctl *p, const char *expression);
/* The last answer was that there is no such cgroup, container or unit: of the event nothing was said. */
bool target_is_unknown(const Perfctl *p);
/* Nothing but the whole host was asked for. */
bool target_is_host(const perfd_event_spec *spec);
