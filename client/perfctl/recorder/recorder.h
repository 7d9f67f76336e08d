/* For `record`: items of a stream that become records of a file. */
#pragma once

#include "client/perfctl/recorder/build-ids.h"
#include "client/perfctl/recorder/formats.h"
#include "client/perfctl/recorder/kernel-functions.h"
#include "client/perfctl/recorder/proc-tasks.h"
#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/print/progress.h"
#include "client/perfctl/recorder/others.h"
#include "client/perfctl/recorder/pid-set.h"
#include "client/perfctl/recorder/state.h"
#include "client/perfctl/recorder/task-names.h"
#include "client/perfctl/stream/stream-loop.h"

typedef struct RecorderEvent {
        uint32_t id;
        uint64_t ids[1];
        char *name;
        const perfd_event_format *format; /* the recorder's `formats` has it */
        perfd_recorded_event event; /* of ids and name */
} RecorderEvent;

/* What becomes a file of its own, and how many of them stay. */
typedef struct Rotation {
        uint64_t bytes, nsec; /* either; 0: not by this */
        uint64_t keep;        /* 0: all */
} Rotation;

typedef struct RecorderFiles {
        const char *path; /* "-": stdout; with a rotation, what their names begin with */
        int level;        /* of zstd; 0: none */
        Rotation rotation;
        bool is_default; /* its event was chosen, and nobody has named one: it is said which one it is */
        char **names; /* of those that are whole, and then the present one; with a rotation */
        size_t n_names;
        uint64_t last;  /* hundredths of a second since 1970, in the name of the last one */
        uint64_t begun; /* CLOCK_MONOTONIC, ns */
        uint64_t head;  /* bytes before its first sample */
        uint64_t n_samples;
} RecorderFiles;

/* Where the daemon is, if it is elsewhere: nothing of this machine is in the recording then. */
typedef struct RemoteHost {
        char *name, *kernel; /* as its stream calls them */
        HostWall wall;
        TaskNames tasks;
} RemoteHost;

struct Recorder {
        StreamLoop loop;
        Perfctl *p;
        perfd_recording_writer *writer;
        RecorderFiles files;
        RecorderState *state; /* NULL: no file follows */
        Others *others;       /* NULL: the whole host is recorded */
        bool hides;           /* the side record that is made now is of one of them */
        PidSet *named;        /* threads of this host whose names the recording has */
        uint32_t clock;       /* of the times: a clockid_t */
        RemoteHost remote;    /* with p->host */
        Formats formats;
        KernelFunctions functions; /* of a remote host */
        Progress progress;
        RecorderEvent **events;
        size_t n_events;
        uint32_t *passed; /* ids of events that run and that no recording can have */
        size_t n_passed;
        uint64_t n_samples, n_lost; /* of samples; of what LOST and LOST_SAMPLES of the kernel said */
        uint64_t n_dropped;  /* of gaps so far */
        uint64_t n_left_out; /* items that no record can hold, or of no event that was announced */
        uint64_t flushed;  /* CLOCK_MONOTONIC, ns */
        uint32_t *pids;   /* all that is recorded is of these and of what descends from them; with n_pids 0 of the whole host */
        size_t n_pids;
        ProcTasks early, here; /* of the whole host: before events were added, and when the stream began */
        BuildIds build_ids;
        perfd_event_spec asked; /* callchain and attr alone: of events that are added later */
        bool has_failed;   /* which was said */
        bool is_closed;    /* the same, because nobody reads its pipe any more: then nothing is said */
        bool has_begun;    /* the stream: its events are the writer's */
        uint64_t round;    /* bytes when the last FINISHED_ROUND was written */
};

/* What stands behind each record that is no sample: whose it is. */
typedef struct RecorderId {
        uint32_t pid, tid;
        uint64_t time;
        uint32_t cpu, zero;
        uint64_t id;
} RecorderId;

/* files.c: the first file, and nothing in it. 0, or an exit status after a message. */
int recorder_open(Recorder *r);
/* What stands before the records, when all events are known; what fails is said, and in has_failed. */
void recorder_put_head(Recorder *r);
/* Both clocks at this moment, as far as the stream says: by wall_offset. */
void recorder_put_clocks(Recorder *r, int64_t wall_offset);
/* Behind a sample, and from time to time: whether it is time for another file, which then follows. */
void recorder_rotate(Recorder *r);
/* A file is whole, and has its name. */
void recorder_close(Recorder *r);
void recorder_files_deinit(RecorderFiles *f);

/* choose.c: before the stream begins, what the daemon has of the words, for stream_loop_run(); userdata: the recorder. */
int recorder_choose(void *userdata, const EventWords *words, perfd_subscription *subscription);
/* An event of the stream: if it was not there before, it is one of the recording from now on. */
void recorder_add_late(Recorder *r, const perfd_event *e);
/* NULL: there is none. */
RecorderEvent *recorder_find_event(const Recorder *r, uint32_t id);
void recorder_free_events(Recorder *r);
/* It runs, nobody has named it, and a recording cannot have it: its samples are left out. */
bool recorder_passes_over(const Recorder *r, uint32_t id);
/* Of any event, or of those that are to be added, there are copies of stacks. */
bool recorder_unwinds(const Recorder *r);

/* events.c: the attr of an event by its name in perf list. False: it is none that is written. */
bool recorder_event_find(const char *event, perfd_recorded_event *ret);
/* Flags of an attr by what stands behind a name: "cycles:u", "cpu/config=0x3c/k". */
void recorder_event_modifiers(const char *event, perfd_recorded_event *ret);

/* records.c: says what the writer has to say, once; the stream is then told to end. */
void recorder_check(Recorder *r, int code);
/* A side record of the stream. 0, or what perfd_recording_writer_put() gave. */
int recorder_put_side_record(Recorder *r, const perfd_item *item);
/* A sample of that process comes: what its side records said is in the file, too. The same. */
int recorder_put_sampled(Recorder *r, uint32_t pid);
/* Before a sample: COMM of its thread, where the recording does not have its name: of another host nobody has read /proc, and here a thread may
   begin and end between two looks at it. As before. */
int recorder_put_name(Recorder *r, const perfd_item *item);
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

/* Runs until it is told to end; of the files path, level and rotation are given. An exit status. */
int recorder_run(Perfctl *p, const perfd_subscription *subscription, const RecorderFiles *files, uint64_t duration, bool may_lose);
