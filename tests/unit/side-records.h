/*
 * Side records built by hand from linux/perf_event.h, for those that a kernel writes seldom: header, body, then TID
 * TIME IDENTIFIER in the trailer, 7/8, 99, 0x21. What each says is in test-record.c.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>

#define TRAILER 0x0000000800000007, 99, 0x21
#define HEADER(type, misc, n_words) ((uint64_t)(n_words) << 51 | (uint64_t)(misc) << 32 | (uint64_t)(type))

static const uint64_t RECORD_NEWER[] = { HEADER(77, 3, 6), 1, 2, TRAILER };
static const uint64_t RECORD_SWITCH_IN[] = { HEADER(PERF_RECORD_SWITCH, 0, 4), TRAILER };
static const uint64_t RECORD_SWITCH_OUT[] = {
        HEADER(PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, 5), 0x0000000600000005, TRAILER,
};
static const uint64_t RECORD_NAMESPACES[] = {
        HEADER(PERF_RECORD_NAMESPACES, 0, 10), 0x0000000800000007, 2, 4, 0xf0000075, 5, 0xf0000076, TRAILER,
};
static const uint64_t RECORD_KSYMBOL[] = {
        HEADER(PERF_RECORD_KSYMBOL, 0, 7), 0xffffffffc0000000, 0x0001000100000040, 0x00676f72705f6662, TRAILER,
};
static const uint64_t RECORD_BPF_EVENT[] = {
        HEADER(PERF_RECORD_BPF_EVENT, 0, 6), 0x0000002a00000001, 0x1122334455667788, TRAILER,
};
static const uint64_t RECORD_CGROUP[] = { HEADER(PERF_RECORD_CGROUP, 0, 6), 0x1234, 0x00006565732f622f, TRAILER };
static const uint64_t RECORD_TEXT_POKE[] = {
        HEADER(PERF_RECORD_TEXT_POKE, 0, 7), 0xffffffff81000000, 0xddcceebb00030002, 0x11, TRAILER,
};
static const uint64_t RECORD_AUX[] = { HEADER(PERF_RECORD_AUX, 0, 7), 4096, 512, 0x01, TRAILER };
static const uint64_t RECORD_ITRACE_START[] = { HEADER(PERF_RECORD_ITRACE_START, 0, 5), 0x0000000b0000000a, TRAILER };
static const uint64_t RECORD_HW_ID[] = { HEADER(PERF_RECORD_AUX_OUTPUT_HW_ID, 0, 5), 0x77, TRAILER };
/* read_format 0 */
static const uint64_t RECORD_READ[] = { HEADER(PERF_RECORD_READ, 0, 6), 0x0000000600000005, 1000, TRAILER };
