/* For `record`: items of a stream that become records of a file. */
#pragma once

#include "client/perfctl/stream-loop.h"

typedef struct RecorderEvent {
        uint32_t id;
        uint64_t ids[1];
        char *name, *asked; /* asked: as perf list has it */
        perfd_recorded_event event; /* of ids and name */
} RecorderEvent;

typedef struct Recorder {
        StreamLoop loop;
        Perfctl *p;
        perfd_recording_writer *writer;
        RecorderEvent **events;
        size_t n_events;
        uint64_t n_samples, n_lost; /* of samples; of what LOST and LOST_SAMPLES of the kernel said */
        uint64_t n_left_out; /* items that no record can hold, or of no event that was announced */
        uint64_t flushed;  /* CLOCK_MONOTONIC, ns */
        bool has_callchain; /* asked for, of events that are added later */
        bool has_failed;   /* which was said */
        uint64_t round;    /* bytes when the last FINISHED_ROUND was written */
} Recorder;

/* What stands behind each record that is no sample: whose it is. */
typedef struct RecorderId {
        uint32_t pid, tid;
        uint64_t time;
        uint32_t cpu, zero;
        uint64_t id;
} RecorderId;

/* recorder-events.c: the attr of an event by its name in perf list. False: it is none that is written. */
bool recorder_event_find(const char *event, perfd_recorded_event *ret);

/* recorder-records.c: a side record of the stream. 0, or what perfd_recording_writer_put() gave. */
int recorder_put_side_record(Recorder *r, const perfd_item *item);
/* Any one: its bytes up to a text, the text with zeros up to a multiple of 8, and whose it is. */
int recorder_put_record(Recorder *r, uint32_t type, uint16_t misc, const void *bytes, size_t n, perfd_text text, const RecorderId *id);
/* With no text: "". */
#define RECORDER_NO_TEXT ((perfd_text){ .bytes = "" })

/* An MMAP2 up to its file name. */
typedef struct RecorderMmap2 {
        uint32_t pid, tid;
        uint64_t addr, len, pgoff;
        union {
                struct {
                        uint32_t maj, min;
                        uint64_t ino, ino_generation;
                } file;
                struct {
                        uint8_t size, zeros[3], bytes[20];
                } build_id;
        };
        uint32_t prot, flags;
} RecorderMmap2;

/* Runs until it is told to end; path: "-" is stdout. An exit status. */
int recorder_run(Perfctl *p, const perfd_subscription *subscription, const char *path, int level, uint64_t duration, bool may_lose);
