/* For `stat`: counters that are read at an interval, summed over CPUs, and printed. */
#pragma once

#include "client/perfctl/perfctl.h"

/* One line of a report: one counter. */
typedef struct StatCounter {
        char *event;     /* as it was asked for; in a group the member */
        char *unit;      /* "events", "ns", "Joules" */
        double scale;    /* value times this is in `unit` */
        bool is_missing; /* this machine can not count it */

        /* since the last report, over all CPUs */
        double value;              /* of CPUs: as if each had counted all the time; of tasks: as counted */
        uint64_t enabled, running; /* ns */
        /*
         * A task's counter on one CPU is enabled while the task runs on another one too, so the time is in the sum once
         * for each CPU: so many. 1: it is not of tasks.
         */
        uint64_t n_shares;
        uint64_t apart; /* ns: CPUs were not read at one moment, neither where this began nor where it ends */
} StatCounter;

/* What it really counted of the time that it was enabled: from 0, which is "not counted", to 1. */
double stat_counter_confidence(const StatCounter *c);
/* As if it had counted all the time, in `unit`. */
double stat_counter_value(const StatCounter *c);

/* An event that was added: its counters are counters[first] and those behind it. */
typedef struct StatEvent {
        uint32_t id;
        char *name;
        size_t first, n;     /* n 0: its descriptor has not come yet, and one place is kept */
        uint64_t n_expected; /* items in each interval: its CPUs */
        bool is_task;
        perfd_read_value *last; /* what each CPU said last: n for each CPU */
        uint64_t *times;        /* of that, for each CPU; 0: it has said nothing */
        uint64_t apart;         /* ns between the first and the last of these, at the last report */
        size_t n_cpus;
} StatEvent;

typedef struct StatCounters {
        StatCounter *list; /* in the order in which they were asked for */
        size_t n;
        StatEvent *events;
        size_t n_events;
} StatCounters;

/* stat-counters.c */

typedef struct StatAsked {
        const char *const *events;
        size_t n_events;
        perfd_event_spec target; /* its members about whom and where */
        uint64_t interval;       /* ns */
        bool from_exec;          /* the target's tasks are counted from their next exec on */
} StatAsked;

/*
 * Adds events to the daemon, disabled, for as long as the connection lasts. What this machine can not count is a counter
 * that is missing, unless it is all of them. 0, or an exit status after a message.
 */
int stat_counters_add(Perfctl *p, StatCounters *c, const StatAsked *asked);
void stat_counters_deinit(StatCounters *c);
/* All that were added begin to count. */
int stat_counters_enable(Perfctl *p, perfd_client *control, const StatCounters *c);
/* What a stream says. take_item: false if it is none of these reads. */
void stat_counters_take_event(StatCounters *c, const perfd_event *event);
bool stat_counters_take_item(StatCounters *c, const perfd_item *item);
StatEvent *stat_counters_find(const StatCounters *c, uint32_t id);
/* Items that an interval has, if every CPU says something. */
uint64_t stat_counters_expected(const StatCounters *c);
/* After a report: from 0 again. */
void stat_counters_reset(StatCounters *c);

/* stat-print.c: the heading of a series, once; then a line, or a JSON object, for each counter. */
void stat_print_heading(Perfctl *p);
/* time: ns since the counters began, of the end of what is reported, which lasted `duration`. */
void stat_print(Perfctl *p, const StatCounters *c, uint64_t time, uint64_t duration);
/* How long a command ran, of which so much was its own and its children's: ns. */
typedef struct StatTimes {
        uint64_t elapsed, user, sys;
} StatTimes;

/* A whole run of a command, without the column of times. */
void stat_print_total(Perfctl *p, const StatCounters *c, char *const *command, const StatTimes *times);

/* stat-command.c: a program that waits until its counters are there. */
typedef struct StatCommand {
        int pid;     /* 0: none */
        int gate;    /* a byte lets it go */
        int failure; /* errno of its exec comes here, or end of file */
        bool ended;
        int status;         /* as of wait(2), as the next two */
        uint64_t user, sys; /* ns */
} StatCommand;

#define STAT_COMMAND_NULL ((StatCommand){ .gate = -1, .failure = -1 })

/* 0, or an exit status after a message. */
int stat_command_start(const Perfctl *p, StatCommand *c, char **command);
int stat_command_go(const Perfctl *p, StatCommand *c, char **command);
/* After SIGCHLD: sets `ended`. */
void stat_command_look(StatCommand *c);
/* What it ended with, as a shell says it. */
int stat_command_code(const StatCommand *c);
/* Ends it if it has not ended. */
void stat_command_deinit(StatCommand *c);

/* stat.c */
typedef struct StatOptions {
        const char *const *events;
        size_t n_events;
        perfd_event_spec target; /* its members about whom and where */
        uint64_t interval;       /* ns; 0: one report at the end of the command */
        uint64_t count;          /* reports; 0: no limit */
        char **command;          /* or NULL */
} StatOptions;

/* On a client that is connected to the control socket. An exit status. */
int stat_run(Perfctl *p, const StatOptions *options);
