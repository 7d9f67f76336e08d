/*
 * For perfetto*.c: the packets of a trace. A sequence is what has names of its own: the first has tracks and instants, and each event whose
 * samples have callchains has another, so that Perfetto counts them apart.
 */
#pragma once

#include "client/profile/message-writer.h"
#include "client/profile/perfetto-names.h"
#include "client/profile/perfetto.h"

/* Numbers of fields, by Perfetto's documentation of its messages. */
enum { TRACE_PACKET = 1 };
enum {
        PACKET_FTRACE_EVENTS = 1,
        PACKET_CLOCK_SNAPSHOT = 6,
        PACKET_TIMESTAMP = 8,
        PACKET_SEQUENCE = 10, /* trusted_packet_sequence_id */
        PACKET_TRACK_EVENT = 11,
        PACKET_INTERNED_DATA = 12,
        PACKET_SEQUENCE_FLAGS = 13,
        PACKET_SYSTEM_INFO = 45,
        PACKET_DEFAULTS = 59,
        PACKET_TRACK_DESCRIPTOR = 60,
        PACKET_PERF_SAMPLE = 66,
};

typedef struct Sequence {
        PerfettoNames names;
        MessageWriter defaults; /* TracePacketDefaults */
        bool is_begun;          /* what it refers to is valid */
} Sequence;

/* Events of a CPU that no packet has yet. */
typedef struct CpuEvents {
        MessageWriter events; /* of FtraceEventBundle */
        bool has_lost;        /* before the first of them */
} CpuEvents;

struct PerfettoWriter {
        FILE *out;
        PerfettoOrigin origin;
        MessageWriter packet, interned; /* that is written, and what it says of names */
        Sequence *sequences; /* [0]: tracks and instants; [n]: samples of event n */
        size_t n_sequences;
        CpuEvents cpus[PERFETTO_CPUS_MAX];
        uint64_t seed;
        int error;      /* -ENOMEM */
        int file_error; /* of the first write that failed */
};

/* Before what a sample says is put: if names have become too many, all are forgotten. */
void perfetto_limit(PerfettoWriter *w);

/* A packet, which may refer to names if it has a time; what it says of them is a part of it. */
void perfetto_begin(PerfettoWriter *w, uint32_t sequence);
void perfetto_begin_at(PerfettoWriter *w, uint32_t sequence, uint64_t time);
int perfetto_end(PerfettoWriter *w);

/* The number of a name, which is said if it is new: as a message of iid and text, that field of InternedData. 0: no memory. */
uint64_t perfetto_name(PerfettoWriter *w, uint32_t sequence, NameKind kind, uint32_t field, PerfettoText text);
/* Of a message that is composed by the caller: true if it is new, and then the caller says what it is. */
bool perfetto_number(PerfettoWriter *w, uint32_t sequence, NameKind kind, const void *content, size_t n, uint64_t *ret_number);

/* perfetto-stack.c: the number of a callstack; 0: it has no frames, or no memory. */
uint64_t perfetto_stack(PerfettoWriter *w, uint32_t sequence, const PerfettoFrame *frames, size_t n_frames);
/* perfetto-track.c: puts packets for tracks that are not known, and gives the uuid. Before perfetto_begin(). */
int perfetto_task_track(PerfettoWriter *w, const PerfettoTask *task, uint64_t *ret_uuid);
int perfetto_moment_track(PerfettoWriter *w, const PerfettoMoment *m, uint64_t *ret_uuid);
int perfetto_counter_track(PerfettoWriter *w, const PerfettoMoment *m, const PerfettoCounter *c, uint64_t *ret_uuid);
/* perfetto-sched.c: events were lost of that CPU; and what is held back of all CPUs. */
int perfetto_lose(PerfettoWriter *w, uint32_t cpu);
int perfetto_flush_cpus(PerfettoWriter *w);
