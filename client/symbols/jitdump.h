/*
 * For this folder alone: records of a jitdump file, as JIT compilers write it for perf (tools/perf/Documentation/jitdump-specification.txt),
 * in either byte order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JITDUMP_NAME_MAX 4096
/* Of a record, as much as is looked at: its header, numbers and name. */
#define JITDUMP_WINDOW (16 + 56 + JITDUMP_NAME_MAX + 1)

typedef enum JitRecordType {
        JIT_CODE_LOAD = 0,
        JIT_CODE_MOVE = 1,
        JIT_CODE_DEBUG_INFO = 2, /* words: the specification's */
        JIT_CODE_CLOSE = 3,
        JIT_CODE_UNWINDING_INFO = 4,
} JitRecordType;

typedef struct JitHeader {
        bool is_swapped;
        bool has_other_clock; /* its times are of a clock of the CPU */
        uint32_t size;        /* bytes to the first record */
} JitHeader;

typedef struct JitRecord {
        uint32_t type, size;  /* bytes to the next record */
        uint64_t time;        /* ns */
        uint64_t address, old_address, length;
        const char *name;     /* of JIT_CODE_LOAD, within the bytes */
        size_t n_name;
} JitRecord;

/* False: it is none, or of another version. */
bool jitdump_read_header(const uint8_t *bytes, size_t n, JitHeader *ret);
/* 1: it is read; 0: the bytes end before it does, as far as it is looked at; -1: no record can be so, nothing follows. */
int jitdump_read_record(const JitHeader *header, const uint8_t *bytes, size_t n, JitRecord *ret);
