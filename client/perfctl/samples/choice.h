/* For verbs that read recordings: which of the samples they read. One thread. */
#pragma once

#include "client/perfctl/samples/filter.h"
#include "client/perfctl/samples/sample-source.h"

/* In the table of a verb. */
#define TIME_RANGE_OPTION                                                                                                                  \
        { .name = "time", .argument = "FROM,TO", .help = "of a recording: only between these seconds, as `script` prints them; or 10%-20%" }
#define SAMPLE_CHOICE_OPTIONS                                                                                                              \
        { .name = "comm", .argument = "NAME,...", .help = "of a recording: only samples of threads of these names" },                      \
        { .name = "only", .argument = "KEY=VALUE,...", .help = "of a recording: only where a key of `report --sort` has one of these values", \
          .repeats = true },                                                                                                               \
        TIME_RANGE_OPTION

struct SampleChoice {
        TextIds texts;
        Filters filters;
        uint64_t first, last; /* ns of the clock of the events, of --time; both are taken */
        double first_percent, last_percent; /* the same of all of a recording; last 0: times were given, or none */
};

/*
 * What the options of the verb say: --time, and with `has_filters` --comm, --pid, --tid, --cpu and --only, of which none is of frames. They
 * are for recordings. 0, or PERFCTL_USAGE after a message; has to be deinitialized in any case.
 */
int sample_choice_init(SampleChoice *c, const Perfctl *p, bool has_filters);
void sample_choice_deinit(SampleChoice *c);

/* Options of SAMPLE_SOURCE_OPTIONS that choose among samples of a recording, for sample_source_check(). */
extern const char *const sample_choice_targets[];

/* For sums of time off CPU, which need the switches of all threads. 0, or PERFCTL_USAGE after a message. */
int sample_choice_check_off_cpu(const SampleChoice *c, const Perfctl *p);

/* Of a recording that was opened, before its first sample. 0, or PERFCTL_FAILED after a message. */
int sample_choice_begin(SampleChoice *c, const Perfctl *p, perfd_recording *r, const char *path);
bool sample_choice_takes(SampleChoice *c, const perfd_item *item, const char *event);
