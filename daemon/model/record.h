/*
 * For readers: one kernel record, decoded. Made by decode/record.c, matched by route/, written by encode/. Pointers
 * lead into the record's own bytes and live as long as these.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"

#define COMM_SIZE 16 /* TASK_COMM_LEN, with its zero */

typedef struct Record {
        uint32_t type; /* PERF_RECORD_* */
        uint16_t misc; /* PERF_RECORD_MISC_* */
        uint32_t cpu;
        uint64_t stream_id; /* PERF_SAMPLE_IDENTIFIER */
        nsec_t time;
        uint32_t pid, tid;
        uint64_t ip, addr, period;       /* 0 where the sample type has none */
        const char *comm;                /* of tid, found by the reader; at most COMM_SIZE with its zero; never NULL */
        const uint8_t *raw;              /* PERF_SAMPLE_RAW without its size */
        uint32_t raw_size;
        const uint8_t *callchain;        /* n_callchain u64, unaligned, with PERF_CONTEXT_ markers */
        uint64_t n_callchain;

        union { /* by type; the names of perf_event_open(2) */
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
        };
} Record;
