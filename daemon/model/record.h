/*
 * For readers: one kernel record, decoded. Made by decode/record.c, matched by route/, written by encode/. Pointers
 * lead into the record's own bytes, are at any alignment, and live as long as these.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/model/sample-path.h"

#define COMM_SIZE 16 /* TASK_COMM_LEN, with its zero */
#define COMM_OF_NO_PID "idle-or-outside" /* tid 0 where perfd is in a pid namespace: whoever is not in that has it too, */
#define COMM_OF_OUTSIDE "outside"        /* and this is one of those */

/* Side records that a subscriber can ask for: perfd.v1.RecordKind. */
typedef enum RecordKind {
#define RECORD_KIND(code, word) RECORD_KIND_##code,
#include "proto/record.def"
        _RECORD_KIND_MAX,
        RECORD_KIND_UNASKED = _RECORD_KIND_MAX,
} RecordKind;

/* Of a PERF_RECORD_* type; _RECORD_KIND_MAX for SAMPLE and for what comes unasked: losses and throttles. */
unsigned record_kind_of(uint32_t type);

/* What read(2) of one perf event fd, or PERF_SAMPLE_READ, says of one counter. */
typedef struct ReadCount {
        uint64_t value, enabled, running, lost; /* times in ns; not scaled */
} ReadCount;

/*
 * struct read_format: the counters that were read at one moment, a group's in the order in which it was created. Where
 * each lies is uniform, so that an event that is no group has the same shape with n = 1.
 */
typedef struct RecordRead {
        const uint8_t *values;
        uint64_t n;
        uint64_t enabled, running;      /* 0 without PERF_FORMAT_TOTAL_TIME_* */
        uint8_t size;                   /* bytes from one to the next */
        uint8_t id_offset, lost_offset; /* in one; 0: not asked for */
} RecordRead;

typedef struct RecordRegisters {
        uint64_t abi, mask;
        const uint8_t *values; /* u64 for each bit of mask; none if abi is 0 */
} RecordRegisters;

/* The parts of a sample that few events ask for: each is valid if its bit is in Record.parts. */
typedef struct RecordExtra {
        RecordRead read;
        const uint8_t *branches; /* struct perf_branch_entry, the newest first */
        uint64_t n_branches;
        const uint8_t *branch_counters; /* u64 for each; NULL without PERF_SAMPLE_BRANCH_COUNTERS */
        uint64_t branch_hw_index;       /* UINT64_MAX: not known */
        RecordRegisters user_registers, interrupt_registers;
        const uint8_t *user_stack;
        uint64_t user_stack_size; /* bytes that are the stack's, not all that the kernel made room for */
        uint64_t weight;          /* WEIGHT, or WEIGHT_STRUCT as its union's `full` */
        uint64_t data_source, transaction, physical_address, cgroup_id, data_page_size, code_page_size;
        const uint8_t *aux;
        uint64_t aux_size;
        uint64_t id, stream_id; /* PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID */
} RecordExtra;

typedef struct Record {
        uint32_t type; /* PERF_RECORD_* */
        uint16_t misc; /* PERF_RECORD_MISC_* */
        uint8_t zero_tid; /* ZeroTid (model/zero-tid.h), of side records: that of a sample is found when it is encoded */
        uint32_t cpu;
        uint64_t stream_id; /* PERF_SAMPLE_IDENTIFIER */
        nsec_t time;
        uint32_t pid, tid;
        uint64_t ip, addr, period;       /* 0 where the sample type has none */
        const char *comm;                /* of tid, found by the reader; at most COMM_SIZE with its zero; never NULL */
        const uint8_t *raw;              /* PERF_SAMPLE_RAW without its size */
        uint32_t raw_size;
        uint32_t parts;                  /* PERF_SAMPLE_* bits of what is in `extra`; 0 for most samples */
        RecordLayout layout;             /* BASE: no ip, addr, period, callchain; ANY says nothing */
        bool is_comm_sure;               /* no other CPU can know it better: an idle thread's, or none of what a client emits */
        const uint8_t *callchain;        /* n_callchain u64, with PERF_CONTEXT_ markers */
        uint64_t n_callchain;

        union { /* by type; the names of perf_event_open(2) */
                RecordExtra extra; /* SAMPLE */
                struct {
                        uint32_t pid, tid;
                        const char *comm; /* terminated */
                } comm_record;            /* exec: misc & PERF_RECORD_MISC_COMM_EXEC */
                struct {
                        uint32_t pid, ppid, tid, ptid;
                        uint64_t time;
                } task; /* FORK and EXIT */
                struct {
                        uint32_t pid, tid;
                        uint64_t addr, len, pgoff;
                        uint32_t maj, min;
                        uint64_t ino, ino_generation;
                        const uint8_t *build_id; /* or NULL */
                        uint8_t build_id_size;
                        uint32_t prot, flags;
                        const char *filename; /* terminated */
                } mmap2;
                struct {
                        uint64_t id, lost;
                } lost; /* LOST, and LOST_SAMPLES without id */
                struct {
                        uint64_t time, id, stream_id;
                } throttle; /* THROTTLE and UNTHROTTLE */
                struct {
                        uint32_t next_prev_pid, next_prev_tid; /* SWITCH_CPU_WIDE */
                } switch_record; /* out, preempted: misc & PERF_RECORD_MISC_SWITCH_OUT, _SWITCH_OUT_PREEMPT */
                struct {
                        uint32_t pid, tid;
                        uint64_t n;
                        const uint8_t *list; /* n struct perf_ns_link_info */
                } namespaces;
                struct {
                        uint64_t addr;
                        uint32_t len;
                        uint16_t type, flags;
                        const char *name; /* terminated */
                } ksymbol;
                struct {
                        uint16_t type, flags;
                        uint32_t id;
                        const uint8_t *tag; /* 8 bytes */
                } bpf_event;
                struct {
                        uint64_t id;
                        const char *path; /* terminated */
                } cgroup;
                struct {
                        uint64_t addr;
                        uint16_t old_len, new_len;
                        const uint8_t *bytes; /* the old ones, then the new ones */
                } text_poke;
                struct {
                        uint64_t offset, size, flags;
                } aux;
                struct {
                        uint32_t pid, tid;
                } itrace_start;
                struct {
                        uint64_t hw_id;
                } aux_output_hw_id;
                struct {
                        uint32_t pid, tid;
                        RecordRead values;
                } read;
                struct {
                        const uint8_t *bytes;
                        size_t size;
                } unknown; /* any other type: what is between header and trailer */
        };
} Record;

static inline uint64_t record_word(const uint8_t *words, uint64_t i) {
        uint64_t value;

        memcpy(&value, words + i * sizeof(value), sizeof(value));
        return value;
}

/* Counter i of those that were read. */
static inline ReadCount record_read_at(const RecordRead *r, uint64_t i) {
        const uint8_t *at = r->values + i * r->size;

        return (ReadCount){
                .value = record_word(at, 0),
                .enabled = r->enabled,
                .running = r->running,
                .lost = r->lost_offset ? record_word(at + r->lost_offset, 0) : 0,
        };
}

/* PERF_FORMAT_ID of counter i, or 0. */
static inline uint64_t record_read_id(const RecordRead *r, uint64_t i) {
        return r->id_offset ? record_word(r->values + i * r->size + r->id_offset, 0) : 0;
}

static inline unsigned record_n_registers(const RecordRegisters *r) {
        return r->abi == 0 ? 0 : (unsigned)__builtin_popcountll(r->mask);
}
