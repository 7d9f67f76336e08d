/*
 * Side records of the kernel, with the meaning of perf_event_open(2). All functions: any item may be asked, in its callback
 * only; what they give is valid until the callback returns.
 */
#pragma once

#include "declarations.h"
#include "field.h"
#include "item.h"

PERFD_BEGIN_DECLARATIONS

/* PERFD_COMM: a thread has a new name, by exec(2) or prctl(2). */
typedef struct perfd_comm_record {
        uint32_t pid, tid;
        perfd_text comm;
        bool exec;
} perfd_comm_record;

/* PERFD_FORK, PERFD_EXIT. */
typedef struct perfd_task_record {
        uint32_t pid, ppid, tid, ptid;
} perfd_task_record;

/* PERFD_MMAP2: executable memory. */
typedef struct perfd_mmap2_record {
        uint32_t pid, tid;
        uint64_t addr, len, pgoff;
        uint32_t maj, min;
        uint64_t ino, ino_generation;
        perfd_text build_id; /* instead of maj, min, ino, ino_generation */
        uint32_t prot, flags;
        perfd_text filename;
} perfd_mmap2_record;

/* PERFD_SWITCH: the item's thread got the CPU, or left it. */
typedef struct perfd_switch_record {
        bool out, preempted;
        bool cpu_wide; /* then the next two are there */
        uint32_t next_prev_pid, next_prev_tid;
} perfd_switch_record;

/* As stat(2) of /proc/PID/ns has it. */
typedef struct perfd_namespace {
        uint64_t dev, inode;
} perfd_namespace;

typedef struct perfd_namespaces_record {
        uint32_t pid, tid;
        const perfd_namespace *namespaces; /* net, uts, ipc, pid, user, mnt, cgroup */
        size_t n_namespaces;
} perfd_namespaces_record;

/* PERFD_KSYMBOL: type and flags are PERF_RECORD_KSYMBOL_*. */
typedef struct perfd_ksymbol_record {
        uint64_t addr;
        uint32_t len, type, flags;
        perfd_text name;
} perfd_ksymbol_record;

/* PERFD_BPF_EVENT: type is PERF_BPF_EVENT_*. */
typedef struct perfd_bpf_event_record {
        uint32_t type, flags, id;
        perfd_text tag;
} perfd_bpf_event_record;

typedef struct perfd_cgroup_record {
        uint64_t id;
        perfd_text path;
} perfd_cgroup_record;

typedef struct perfd_text_poke_record {
        uint64_t addr;
        perfd_text old_bytes, new_bytes;
} perfd_text_poke_record;

/* PERFD_AUX: bytes in the AUX area; flags are PERF_AUX_FLAG_*. */
typedef struct perfd_aux_record {
        uint64_t offset, size, flags;
} perfd_aux_record;

/* PERFD_UNKNOWN: the header's type and misc, and what follows it. */
typedef struct perfd_unknown_record {
        uint32_t type, misc;
        perfd_text bytes;
} perfd_unknown_record;

/* NULL if the item is another record. */
const perfd_comm_record *perfd_item_comm_record(const perfd_item *item);
const perfd_task_record *perfd_item_task_record(const perfd_item *item); /* FORK, EXIT; ITRACE_START, READ: pid, tid */
const perfd_mmap2_record *perfd_item_mmap2_record(const perfd_item *item);
const perfd_switch_record *perfd_item_switch_record(const perfd_item *item);
const perfd_namespaces_record *perfd_item_namespaces_record(const perfd_item *item);
const perfd_ksymbol_record *perfd_item_ksymbol_record(const perfd_item *item);
const perfd_bpf_event_record *perfd_item_bpf_event_record(const perfd_item *item);
const perfd_cgroup_record *perfd_item_cgroup_record(const perfd_item *item);
const perfd_text_poke_record *perfd_item_text_poke_record(const perfd_item *item);
const perfd_aux_record *perfd_item_aux_record(const perfd_item *item);
const perfd_unknown_record *perfd_item_unknown_record(const perfd_item *item);
/* LOST, LOST_SAMPLES: how many the kernel could not write before this place. */
uint64_t perfd_item_lost(const perfd_item *item);
/* THROTTLE, UNTHROTTLE: of which stream; samples: PERF_SAMPLE_STREAM_ID. */
uint64_t perfd_item_stream_id(const perfd_item *item);
/* AUX_OUTPUT_HW_ID */
uint64_t perfd_item_hw_id(const perfd_item *item);

PERFD_END_DECLARATIONS
