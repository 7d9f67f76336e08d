/*
 * Samples of a recording, and what the kernel appends to its other records. Bytes are decoded by the attr of the event that they are of;
 * numbers are in the byte order of this machine. Whatever a pointer leads to stays until the next call with the recording.
 */
#pragma once

#include "field.h"
#include "recording.h"

PERFD_BEGIN_DECLARATIONS

/* What says whose a record is. Of its members those are set whose PERF_SAMPLE_* bit `has` has. */
typedef struct perfd_recorded_id {
        const perfd_recorded_event *event; /* NULL: of none that is known */
        size_t index;       /* of it: perfd_recording_event() */
        uint64_t has;       /* PERF_SAMPLE_TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER */
        uint32_t pid, tid;
        uint64_t time;      /* ns of the clock of the event, clockid */
        uint64_t id;        /* of the fd: ID or IDENTIFIER */
        uint64_t stream_id;
        uint32_t cpu;
} perfd_recorded_id;

typedef struct perfd_recorded_value {
        uint64_t value;
        uint64_t id;        /* with PERF_FORMAT_ID */
        uint64_t lost;      /* with PERF_FORMAT_LOST */
} perfd_recorded_value;

typedef struct perfd_recorded_branch {
        uint64_t from, to;
        uint64_t flags;     /* bits of perf_branch_entry from `mispred` on, bit 0 */
} perfd_recorded_branch;

typedef struct perfd_recorded_registers {
        uint64_t abi;       /* PERF_SAMPLE_REGS_ABI_*; 0: there are none */
        const uint64_t *values; /* one for each bit of the mask of the event, from the lowest */
        size_t n;
} perfd_recorded_registers;

/* Of its members those are set whose PERF_SAMPLE_* bit id.has has, which has those of the sample here, too. */
typedef struct perfd_recorded_sample {
        perfd_recorded_id id;
        uint64_t ip, addr, period;
        uint64_t time_enabled, time_running; /* ns: READ, as its read_format has them */
        const perfd_recorded_value *values;
        size_t n_values;
        const uint64_t *callchain; /* with PERF_CONTEXT_* between its parts */
        size_t n_callchain;
        perfd_text raw;            /* in the byte order of the recording */
        const perfd_recorded_branch *branches;
        size_t n_branches;
        uint64_t branch_hw_index;  /* with PERF_SAMPLE_BRANCH_HW_INDEX */
        const uint64_t *branch_counters; /* one for each branch, with PERF_SAMPLE_BRANCH_COUNTERS; NULL: there are none */
        perfd_recorded_registers registers_user, registers_intr;
        perfd_text stack_user;     /* as much as the kernel could copy, in the byte order of the recording */
        uint64_t weight;           /* WEIGHT, or the three of WEIGHT_STRUCT */
        uint64_t data_src, transaction, phys_addr, cgroup, data_page_size, code_page_size;
        perfd_text aux;
} perfd_recorded_sample;

/*
 * Of a record of type SAMPLE that perfd_recording_next() gave last. 0; PERFD_E_INVALID: it is none, of an event that is not known, or does
 * not have what its attr says, which has become a damage; -ENOMEM.
 */
int perfd_recording_sample(perfd_recording *r, const perfd_recorded *record, perfd_recorded_sample *ret);
/*
 * Of any other record of the kernel: what stands at its end with sample_id_all, nothing if the attrs do not have it. Of a sample, the
 * same members. As perfd_recording_sample().
 */
int perfd_recording_id(perfd_recording *r, const perfd_recorded *record, perfd_recorded_id *ret);

PERFD_END_DECLARATIONS
