/*
 * Recordings: files and pipes in the format of perf(1), perf.data, of any machine and of Linux up to 6.18, in either byte order. No daemon
 * is needed, and nothing is written but the temporary file of an order. A recording is used by one thread at a time; there is no limit to
 * its size, and memory is taken for one record, for the attrs, for one section of the header at a time, and for what an order holds back.
 *
 * What is damaged is said with its place, and what is whole is read: perfd_recording_damage().
 */
#pragma once

#include "declarations.h"
#include "field.h"

PERFD_BEGIN_DECLARATIONS

typedef struct perfd_recording perfd_recording;

typedef enum perfd_byte_order {
        PERFD_LITTLE_ENDIAN,
        PERFD_BIG_ENDIAN,
} perfd_byte_order;

/* An attr and its ids: what perf_event_open(2) was asked for. Lives as long as the recording. */
typedef struct perfd_recorded_event {
        const char *name;     /* as the recording calls it; where it does not, perf's name of its numbers, "page-faults", or "type=T,config=0xC" */
        uint32_t type;        /* PERF_TYPE_* */
        uint32_t attr_size;   /* bytes, as they were written */
        uint64_t config;
        uint64_t sample_period; /* or sample_freq, by PERFD_ATTR_FREQ of flags */
        uint64_t sample_type; /* PERF_SAMPLE_* */
        uint64_t read_format; /* PERF_FORMAT_* */
        uint64_t flags;       /* bits of perf_event_attr from `disabled` on, bit 0, in the order of perf_event.h */
        uint32_t wakeup_events;
        uint32_t bp_type;
        uint64_t config1, config2, config3; /* bp_addr, bp_len with a breakpoint */
        uint64_t branch_sample_type;
        uint64_t sample_regs_user, sample_regs_intr;
        uint32_t sample_stack_user; /* bytes */
        int32_t clockid;
        uint32_t aux_watermark;
        uint32_t aux_sample_size;
        uint64_t sig_data;
        uint16_t sample_max_stack;
        const uint64_t *ids;  /* of its fds, which sample ids name */
        size_t n_ids;
} perfd_recorded_event;

#define PERFD_ATTR_FREQ (UINT64_C(1) << 10)         /* in flags */
#define PERFD_ATTR_SAMPLE_ID_ALL (UINT64_C(1) << 18)

/* One record, until the next call. */
typedef struct perfd_recorded {
        uint32_t type;       /* PERF_RECORD_* of perf_event.h or of perf */
        uint16_t misc;       /* PERF_RECORD_MISC_* */
        bool is_compressed;  /* it was inside of a COMPRESSED record, whose place `offset` is */
        uint64_t offset;     /* bytes from the beginning of the recording */
        const void *bytes;   /* behind the header, in the recording's byte order */
        size_t size;         /* bytes of them */
} perfd_recorded;

/* Where a recording is damaged, and how. */
typedef struct perfd_damage {
        uint64_t offset; /* bytes from its beginning */
        const char *text;
} perfd_damage;

/* NULL: no memory. */
perfd_recording *perfd_recording_new(void);
/* Takes NULL. Closes what perfd_recording_open() opened. */
void perfd_recording_free(perfd_recording *r);

/*
 * Each begins one, once: of a path ("-": stdin), of an fd that stays the caller's, or of bytes that stay. 0; PERFD_E_INVALID: it is no
 * recording, or of another version; -errno of open(2), read(2); perfd_recording_error() says what and why.
 */
int perfd_recording_open(perfd_recording *r, const char *path);
int perfd_recording_open_fd(perfd_recording *r, int fd);
int perfd_recording_open_bytes(perfd_recording *r, const void *bytes, size_t n);
/* "" if nothing failed. */
const char *perfd_recording_error(const perfd_recording *r);

/* It was written to a pipe: what a file has in its header comes as records. */
bool perfd_recording_is_pipe(const perfd_recording *r);
perfd_byte_order perfd_recording_byte_order(const perfd_recording *r);

/*
 * In which order records come. A record's time is what perfd_recording_id() says; those without one, or with 0 or all ones, as perf's own
 * records and those that perf makes up, keep their place: they come before all that follows them in the recording.
 *
 * TIME: never backwards; records of the same time in the order of the recording.
 *
 * CAUSAL: what says of processes and memory what they are (MMAP, MMAP2, COMM, FORK, EXIT, NAMESPACES, KSYMBOL, BPF_EVENT, CGROUP and
 * TEXT_POKE) comes in the order of time, and never after a record that has the same time or a later one; all others, samples too, are in the
 * order of the recording. So a mapping may come before samples which are older than it: compare times. Where records have no time, it is
 * the order of the recording.
 *
 * What is held back lies in memory, as far as that goes, then in a temporary file without a name. Recordings which fit in memory are read to
 * their end before the first record comes. Larger files and bytes are read twice: first to know whether they are in order of time already
 * (nothing is held back then), and whether each FINISHED_ROUND keeps what it promises: that all records up to the latest time of the round
 * before it have been read. Then two rounds are held back. If a round does not, or there is none, all is sorted in the temporary file
 * first, or copied there in the causal order, with up to 31 bytes more for each record, and up to twice while runs are merged. Pipes are
 * read once, and their rounds are believed, so that records come while the recorder runs; one that comes too late for its round becomes
 * a damage, and is given at once: the one case in which a time goes backwards.
 */
typedef enum perfd_recording_order {
        PERFD_RECORDING_ORDER_FILE, /* as they stand in the recording: the default, which holds nothing back */
        PERFD_RECORDING_ORDER_CAUSAL,
        PERFD_RECORDING_ORDER_TIME,
} perfd_recording_order;

#define PERFD_RECORDING_ORDER_MEMORY_MIN ((size_t)2 << 20)      /* bytes */
#define PERFD_RECORDING_ORDER_MEMORY_DEFAULT ((size_t)56 << 20) /* bytes */

/* Before the first perfd_recording_next(). 0; PERFD_E_INVALID: no such order; PERFD_E_STATE: a record was asked for already. */
int perfd_recording_set_order(perfd_recording *r, perfd_recording_order order);
/*
 * Bytes of memory for records that are held back, beside what reading itself takes, and zstd for compressed recordings. The same codes;
 * PERFD_E_INVALID: fewer than PERFD_RECORDING_ORDER_MEMORY_MIN.
 */
int perfd_recording_set_order_memory(perfd_recording *r, size_t bytes);
/* Where the temporary file is; NULL: $TMPDIR, or /var/tmp. Copied. The same codes; -ENOMEM. It is opened when it is needed. */
int perfd_recording_set_order_directory(perfd_recording *r, const char *path);

/*
 * The next record, in the order of the recording those inside of COMPRESSED ones behind it. 0; PERFD_E_ENDED behind the last one, or
 * where nothing more can be read, which perfd_recording_damage() tells; -ENOMEM, -errno of read(2), or of open(2), write(2) or read(2) of
 * the temporary file, after which the same comes again: perfd_recording_error().
 */
int perfd_recording_next(perfd_recording *r, const perfd_recorded **ret);
/* "SAMPLE", "COMPRESSED2"; NULL: Linux 6.18 has no such record. 0 and all from 256 on are damages, because no later one will have them. */
const char *perfd_recorded_name(uint32_t type);

/* Events so far: of a pipe they come as records. NULL: there is none of that index. */
size_t perfd_recording_n_events(const perfd_recording *r);
const perfd_recorded_event *perfd_recording_event(const perfd_recording *r, size_t index);

/* What is damaged, in the order in which it was found: as far as records and features were read. At most 1,000 are kept. */
size_t perfd_recording_n_damages(const perfd_recording *r);
const perfd_damage *perfd_recording_damage(const perfd_recording *r, size_t index);
/* How many there are, those that were not kept too. */
uint64_t perfd_recording_damage_count(const perfd_recording *r);

/*
 * Behind PERFD_E_ENDED, in the order of the recording: writes to that fd, from its beginning, what of it is whole, so that perf opens it: all
 * up to the last record that is whole, and the sections of the header that are there. Left out are records of types that Linux 6.18 does not
 * have, and those that were decoded meanwhile and are damaged (perfd_recording_id(), perfd_recording_sample(), perfd_recording_item()), if
 * they are not inside of compressed ones; of samples among them a LOST_SAMPLES at the end says how many. A recording of perf that was not ended has none of
 * them: its events have the names of their numbers then, and tracepoints no fields; those of perfd_recording_writer have them in any case. What
 * perf needs to read compressed records, and formats of tracepoints without fields, are made if they are not there.
 * 0; PERFD_E_STATE: it was not read to its end, or is a pipe; PERFD_E_INVALID: it is of a perf before Linux 2.6.35; -ENOMEM, -errno of
 * read(2) or write(2): perfd_recording_error().
 */
int perfd_recording_repair(perfd_recording *r, int fd);

/*
 * The sections of the header, of a pipe those that came so far, by perf's names: each a tree of values that a visitor is called for. Its
 * root has the name of the feature as its key; members of lists have NULL.
 */
typedef struct perfd_feature_visitor {
        void (*begin_object)(void *userdata, const char *key);
        void (*end_object)(void *userdata);
        void (*begin_list)(void *userdata, const char *key);
        void (*end_list)(void *userdata);
        void (*text)(void *userdata, const char *key, perfd_text text);
        void (*number)(void *userdata, const char *key, uint64_t number);
        void (*bytes)(void *userdata, const char *key, perfd_text bytes); /* build ids, and what has no known form */
        void (*flag)(void *userdata, const char *key, bool is);
} perfd_feature_visitor;

/* Bits 0 to 255: whether the recording has it. */
bool perfd_recording_has_feature(const perfd_recording *r, unsigned bit);
/* "HOSTNAME"; NULL: Linux 6.18 has no such feature. */
const char *perfd_feature_name(unsigned bit);
/* Calls the visitor for what is whole of it; what is not becomes a damage. 0; PERFD_E_INVALID: it has none; -ENOMEM, -errno */
int perfd_recording_visit_feature(perfd_recording *r, unsigned bit, const perfd_feature_visitor *visitor, void *userdata);

PERFD_END_DECLARATIONS
