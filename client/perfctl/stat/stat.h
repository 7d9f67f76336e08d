/* For `stat`: counters that are read at an interval, summed over CPUs, and printed. */
#pragma once

#include <sys/types.h>

#include "client/perfctl/command-line/command.h"
#include "client/perfctl/base/perfctl.h"

/* What several runs of a command counted: Welford's sums. */
typedef struct StatSpread {
        uint64_t n;
        double mean, squares; /* squares: of the differences to the mean */
} StatSpread;

/* Of one CPU, or of all of them, since the last report. */
typedef struct StatCount {
        bool is_there;             /* the CPU has said something */
        double value;              /* of CPUs: as if each had counted all the time; of tasks: as counted */
        uint64_t enabled, running; /* ns */
        StatSpread spread;
        struct {
                double value;
                uint64_t enabled, running;
        } reported; /* the same, up to the last report */
} StatCount;

/* A counter: a line of a report, or one for each CPU. */
typedef struct StatCounter {
        char *event;     /* as it was asked for; in a group the member */
        char *unit;      /* "events", "ns", "Joules" */
        double scale;    /* value times this is in `unit` */
        bool is_missing; /* this machine cannot count it, */
        bool is_uncounted; /* or not another one of its group */
        bool is_host;    /* of whole CPUs, and whatever they do */
        bool is_of_cpu;  /* stat_counter_on() made it */
        bool is_removed; /* by another client, */
        uint64_t removed; /* until then it was counted: ns since the counters began */
        char *place;     /* the cgroup, container or unit that it is counted in; NULL: what was asked for in one */

        StatCount sum;
        StatCount *cpus; /* by the CPU's number */
        size_t n_cpus;
        /*
         * A task's counter on one CPU is enabled while the task runs on another one too, so the time is in the sum once
         * for each CPU: so many. 1: it is not of tasks.
         */
        uint64_t n_shares;
        uint64_t apart; /* ns: CPUs were not read at one moment, neither where this began nor where it ends */
} StatCounter;

/* What it really counted of the time that it was enabled: from 0, which is "not counted", to 1. */
double stat_counter_confidence(const StatCounter *c);
/* ns of which `sum.running` is that part: of a task the time that it ran, wherever. */
uint64_t stat_counter_enabled(const StatCounter *c);
/* As if it had counted all the time, in `unit`. */
double stat_counter_value(const StatCounter *c);
/* On one CPU alone, as a counter that borrows all of its memory. False: this CPU has said nothing of it. */
bool stat_counter_on(const StatCounter *c, size_t cpu, StatCounter *ret);
/* What it was counted in, ns: the counter's own time if it has one, or else `duration`. */
uint64_t stat_counter_duration(const StatCounter *c, uint64_t duration);
/* The place of what one CPU counts; there are more of them if it is none yet. */
StatCount *stat_counter_reach(StatCounter *c, size_t cpu);

/* An event that was added: its counters are counters[first] and those behind it. */
typedef struct StatEvent {
        uint32_t id;
        char *name;
        size_t first, n;     /* n 0: its descriptor has not come yet, and one place is kept */
        uint64_t n_expected; /* items of each read: its CPUs */
        bool is_task, is_host;
        bool is_removed;        /* by another client */
        char *fallback;         /* what is counted instead, or NULL */
        perfd_read_value *last; /* what each CPU said last: n for each CPU */
        uint64_t *times;        /* of that, for each CPU; 0: it has said nothing */
        uint64_t apart;         /* ns between the first and the last of these, at the last report */
        perfd_read_value *skipped; /* what each CPU said behind that, and no report was made of: there is room for as many */
        uint64_t *skipped_times;
        size_t n_cpus;
} StatEvent;

typedef struct StatCounters {
        StatCounter *list; /* in the order in which they were asked for */
        size_t n;
        StatEvent *events;
        size_t n_events;
} StatCounters;

/* counters.c */
typedef struct StatAsked {
        const char *const *events;
        size_t n_events;
        perfd_event_spec target; /* its members about whom and where, `fallback` and `filter` */
        bool per_place;          /* each cgroup, container and unit of it on its own */
        uint64_t interval;       /* ns */
        bool is_limited;         /* by a command or a time, whatever is read */
        bool from_exec;          /* the target's tasks are counted from their next exec on */
} StatAsked;

/*
 * Adds events to the daemon, disabled, for as long as the connection lasts. What this machine cannot count is a counter
 * that is missing; it is a failure if it is the only one, or if there would be nothing to wait for. 0, or an exit status
 * after a message.
 */
int stat_counters_add(Perfctl *p, StatCounters *c, const StatAsked *asked);
/* Takes its events from the daemon. */
int stat_counters_remove(Perfctl *p, const StatCounters *c);
void stat_counters_deinit(StatCounters *c);
/* All that were added begin to count. */
int stat_counters_enable(Perfctl *p, perfd_client *control, const StatCounters *c);
/* And end; what they counted until then is in the stream. */
int stat_counters_disable(Perfctl *p, perfd_client *control, const StatCounters *c);
/* What a stream says. reads.c has items. take_item: false if it is none of these reads. */
void stat_counters_take_event(StatCounters *c, const perfd_event *event);
bool stat_counters_take_item(StatCounters *c, const perfd_item *item);
/* A read that ends no report: the next one that does has all of it, unless the event is removed before. */
void stat_counters_skip_item(StatCounters *c, const perfd_item *item);
/* When this item's CPU was last read of this event; 0: not yet. */
uint64_t stat_counters_time(const StatCounters *c, const perfd_item *item);
StatEvent *stat_counters_find(const StatCounters *c, uint32_t id);
/* Another client has removed this one. began: when the counters did, and now, of the stream's clock; what was read last counts. */
void stat_counters_set_removed(StatCounters *c, StatEvent *e, uint64_t began, uint64_t now);
/* One that nobody has removed. */
bool stat_counters_any_left(const StatCounters *c);
/* Items that a read has, if every CPU says something. */
uint64_t stat_counters_expected(const StatCounters *c);
/* After a report: from 0 again. has_begun: what was counted until now belongs to the whole. */
void stat_counters_reset(StatCounters *c, bool has_begun);
/* In the place of what was counted since the last report, what was counted in all of them. */
void stat_counters_take_whole(StatCounters *c);

/* events.c: "a,{b,c},pmu/d=1,e=2/" has three events, each in malloc'ed memory. */
char **stat_events_split(const char *list, size_t *ret_n);
/* Of "{b,c}:u" b and c; an event that is no group is its own. */
char **stat_events_members(const char *event, size_t *ret_n);
void stat_events_free(char **events, size_t n);
/* A name of cycles, with modifiers: what alone can have a fallback. */
bool stat_event_is_cycles(const char *event);

/* places.c: where cgroup v2 is mounted, malloc; NULL: nowhere. */
char *stat_places_mount(void);
/* places.c: the cgroups that are there now instead of globs, in malloc'ed memory, each and all. */
char **stat_places_find(const char *const *cgroups, size_t n, size_t *ret_n);

/* runs.c: several runs of one command. */
typedef struct StatTimes {
        uint64_t elapsed, user, sys; /* ns: how long it ran, and its and its children's time on CPUs */
} StatTimes;

typedef struct StatRuns {
        StatCounters total; /* of the first one, with what all of them spread */
        StatSpread elapsed, user, sys;
} StatRuns;

/* Takes what a run counted, which is empty afterwards. False: it has other counters than those before. */
bool stat_runs_add(StatRuns *r, StatCounters *counters, const StatTimes *times);
/* The counters become means. */
void stat_runs_finish(StatRuns *r);
void stat_runs_deinit(StatRuns *r);
void stat_spread_add(StatSpread *s, double value);
/* The mean's standard deviation. */
double stat_spread_deviation(const StatSpread *s);
/* The same as a percentage of the mean. */
double stat_spread_percentage(const StatSpread *s);

/* metric.c */
typedef enum StatState {
        STAT_COUNTED,
        STAT_NOT_COUNTED,   /* it was there, but its hardware always counted something else */
        STAT_NOT_SUPPORTED, /* by this machine */
} StatState;

StatState stat_counter_state(const StatCounter *c);

/* What a value says beside another one. */
typedef struct StatMetric {
        double value;
        const char *unit; /* NULL: nothing */
} StatMetric;

/* cpu: a line of this CPU alone, as `c` is; -1: of all. duration: ns, as of stat_counter_duration(). */
StatMetric stat_metric_of(const StatCounter *c, const StatCounters *all, ssize_t cpu, uint64_t duration);

/* print.c */
typedef struct StatStyle {
        const char *separator; /* columns for programs, as perf-stat(1) -x; NULL: for people */
        bool per_cpu;
        bool per_place;
        bool is_repeated; /* several runs */
} StatStyle;

typedef struct StatOptions {
        StatAsked asked; /* but its interval */
        StatStyle style;
        uint64_t interval; /* ns; 0: one report at the end of the command, or of `duration` */
        uint64_t count;    /* reports; 0: no limit */
        uint64_t duration; /* ns; 0: no limit */
        bool has_total;    /* behind the reports of intervals there is one of all of them */
        uint64_t n_runs;   /* of the command */
        char **command;    /* or NULL */
        bool is_beside;    /* what is counted is not the command, but what was asked for, while it runs */
} StatOptions;

/* The heading of a series, once; then a line, or a JSON object, for each counter. */
void stat_print_heading(Perfctl *p, const StatStyle *style);
/* time: ns since the counters began, of the end of what is reported, which lasted `duration`. */
void stat_print(Perfctl *p, const StatStyle *style, const StatCounters *c, uint64_t time, uint64_t duration);
/* Whole runs of a command, or the whole of a time, without the column of times. */
void stat_print_total(Perfctl *p, const StatRuns *runs, const StatOptions *options);

/* fields.c: a line for programs. */
typedef struct StatLine {
        const StatCounter *counter;
        ssize_t cpu; /* -1: all */
        StatMetric metric;
        uint64_t time, duration; /* ns */
        bool has_time;           /* of an interval */
} StatLine;

void stat_put_json(Output *o, const StatStyle *style, const StatLine *line);
void stat_put_fields(Output *o, const StatStyle *style, const StatLine *line);

/* stat.c: a line of Perfctl.gap, which ends at `to`, ns since 1970; none among the columns of --field-separator. */
void stat_put_gap(Perfctl *p, uint64_t to);
/* stat.c: on a client that is connected to the control socket. An exit status. */
int stat_run(Perfctl *p, const StatOptions *options);
