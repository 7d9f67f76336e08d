/* For verbs that add events: what an event is, and whom it observes, from the command line. */
#pragma once

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/base/perfctl.h"

/* Rows of a verb's table of options, beside TARGET_OPTIONS. */
#define SPEC_OPTIONS                                                                                                   \
        { .name = "filter", .each = 1, .argument = "F", .help = "the kernel's filter, events with fields only",      \
          .words = WORDS_FIELDS_ALONE },                 \
        { .name = "args", .each = 2, .argument = "ARGS", .help = "probes: what they fetch, as in 'file=$arg1:x64'" },             \
        { .name = "maxactive", .each = 3, .argument = "N", .help = "kretprobe: calls at the same time that are followed" },       \
        { .name = "period", .each = 4, .letter = 'c', .argument = "N", .help = "a sample each N events" },                        \
        { .name = "frequency", .each = 4, .letter = 'F', .argument = "HZ", .help = "so many samples a second" },                  \
        { .name = "fallback", .argument = "EVENT", .help = "taken if this machine cannot count it: cpu-clock",        \
          .choices = "cpu-clock" },                                                                                    \
        { .name = "callchain", .each = 5, .argument = "kernel,user,dwarf", .help = "with callchains; dwarf: unwound of copies of stacks", \
          .choices = "kernel user kernel,user dwarf user,dwarf" },                                                                      \
        { .name = "both-callchains", .each = 5, .letter = 'g', .help = "the same as --callchain kernel,user" },                   \
        { .name = "attr", .argument = "NAME=VALUE", .help = "a field of perf_event_attr", .repeats = true },           \
        { .name = "include-self", .help = "perfd's own activity too" }

/* Any of SPEC_OPTIONS or TARGET_OPTIONS. */
bool spec_options_given(const Perfctl *p);
/* Sets what they say of all events; the spec is then to be given to target_deinit(). 0, or PERFCTL_USAGE after a message. */
int spec_options_parse(const Perfctl *p, perfd_event_spec *spec);
/* "NAME=VALUE", "NAME:TYPE": here it is known which option was meant. */
int spec_options_check_pairs(const Perfctl *p, const char *option, char separator);
/* A spec for each word, like `each`, with what this event has for itself: free(3). As before. */
int specs_new(const Perfctl *p, const EventWords *words, const perfd_event_spec *each, perfd_event_spec **ret);
/* What the position of an error counts in, for perfctl_fail_client(); of several events that is known only if they share it. */
const char *specs_mistaken_text(const perfd_event_spec *specs, size_t n, const char *reason);
