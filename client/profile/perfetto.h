/*
 * For export: the trace format of https://perfetto.dev, written as samples come, in any order of time. Memory is bounded, whatever the size:
 * names are said once, and again after so many of them that all are forgotten. One thread at a time; the file stays the caller's, and
 * whether it could be written is known at perfetto_finish().
 *
 * What switches CPUs are the events of ftrace that Perfetto draws the CPUs by, callchains its samples of profiles, with names of their own
 * for each event, and all others instants of a thread with their fields.
 *
 * 0; -ENOMEM, after which the trace is no use.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PERFETTO_CPUS_MAX 1024 /* of events of ftrace: trace_processor refuses a trace that has others */
#define PERFETTO_NO_CPU UINT32_MAX

typedef struct PerfettoWriter PerfettoWriter;

typedef struct PerfettoText {
        const char *bytes;
        size_t n;
} PerfettoText;

/* Its BuiltinClock. */
typedef enum PerfettoClock {
        PERFETTO_CLOCK_REALTIME = 1,
        PERFETTO_CLOCK_MONOTONIC = 3,
        PERFETTO_CLOCK_MONOTONIC_RAW = 5,
        PERFETTO_CLOCK_BOOTTIME = 6,
} PerfettoClock;

/* Where the samples are from. */
typedef struct PerfettoOrigin {
        PerfettoClock clock;  /* of all times */
        uint64_t time, wall;  /* ns of one moment, of that clock and since 1970; wall 0: not known */
        const char *system, *version, *release, *machine; /* as uname(2) has them: the states of threads depend on it; NULL: not known */
} PerfettoOrigin;

typedef struct PerfettoTask {
        uint32_t pid, tid; /* tid 0: of no thread, or the idle one */
        PerfettoText comm;
} PerfettoTask;

/* When and where a sample was taken, and what ran. */
typedef struct PerfettoMoment {
        uint64_t time; /* ns */
        uint32_t cpu;  /* or PERFETTO_NO_CPU */
        PerfettoTask task;
} PerfettoMoment;

/* Frames with the same key, which is not NULL, have the same texts. */
typedef struct PerfettoFrame {
        const void *key;
        PerfettoText symbol, dso, build_id; /* build_id: bytes; lengths are 0 for what is not known */
        uint64_t address;                   /* in the dso */
        bool is_kernel;
} PerfettoFrame;

typedef enum PerfettoKind { PERFETTO_UNSIGNED, PERFETTO_SIGNED, PERFETTO_BOOL, PERFETTO_POINTER, PERFETTO_TEXT } PerfettoKind;

typedef struct PerfettoField {
        PerfettoText name;
        PerfettoKind kind;
        bool is_list;
        const uint64_t *numbers; /* n_numbers of them; 1 if it is no list */
        size_t n_numbers;
        PerfettoText text;
        PerfettoText called; /* what the number stands for; length 0: it has no name */
} PerfettoField;

/* An event whose samples have callchains. */
typedef struct PerfettoEvent {
        uint32_t number; /* from 1 */
        const char *name;
        uint64_t period, frequency; /* one of them; 0: not known */
} PerfettoEvent;

/* A counter of a CPU, or of a thread if it is none of a CPU. */
typedef struct PerfettoCounter {
        PerfettoText name, unit;
        bool is_of_cpu;
        bool is_whole; /* value, else number */
        uint64_t value;
        double number;
} PerfettoCounter;

/* The fields of sched:sched_switch, and of sched:sched_waking, sched_wakeup and sched_wakeup_new. */
typedef struct PerfettoSide {
        int32_t tid, prio;
        PerfettoText comm;
} PerfettoSide;

typedef enum PerfettoWakeup { PERFETTO_WAKEUP = 17, PERFETTO_WAKING = 20, PERFETTO_WAKEUP_NEW = 114 } PerfettoWakeup; /* of FtraceEvent */

/* NULL: no memory. */
PerfettoWriter *perfetto_new(FILE *out, const PerfettoOrigin *origin);
PerfettoWriter *perfetto_free(PerfettoWriter *w); /* NULL */

/* Which process a thread is of, and what both are called. All that have a moment say it, too. */
int perfetto_put_task(PerfettoWriter *w, const PerfettoTask *task);
/* cpu: below PERFETTO_CPUS_MAX. */
int perfetto_put_switch(PerfettoWriter *w, const PerfettoMoment *m, const PerfettoSide *previous, int64_t previous_state, const PerfettoSide *next);
int perfetto_put_wakeup(PerfettoWriter *w, const PerfettoMoment *m, PerfettoWakeup kind, const PerfettoSide *woken, int32_t target_cpu);
/* Frames: the innermost first. */
int perfetto_put_sample(PerfettoWriter *w, const PerfettoMoment *m, const PerfettoEvent *event, const PerfettoFrame *frames, size_t n_frames);
int perfetto_put_instant(PerfettoWriter *w, const PerfettoMoment *m, PerfettoText category, PerfettoText name, const PerfettoField *fields,
                         size_t n_fields, const PerfettoFrame *frames, size_t n_frames);
int perfetto_put_counter(PerfettoWriter *w, const PerfettoMoment *m, const PerfettoCounter *counter);
/* n records that the kernel had no room for, before that moment. */
int perfetto_put_lost(PerfettoWriter *w, const PerfettoMoment *m, uint64_t n);
/* What is held back. 0; -ENOMEM, or a negative errno of the file. */
int perfetto_finish(PerfettoWriter *w);
