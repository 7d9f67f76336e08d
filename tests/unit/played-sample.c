#include "tests/unit/played-sample.h"

#include <assert.h>
#include <string.h>

/* What all tracepoints begin with, and the field of softirq_entry. */
struct raw {
        uint32_t size; /* of what follows */
        uint16_t type;
        uint8_t flags, preempt_count;
        int32_t pid;
        uint32_t vec;
} __attribute__((packed));

#define HANDLED                                                                                                        \
        (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |             \
         PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ | PERF_SAMPLE_RAW)

static size_t put_tid(uint64_t *to) {
        *to = (uint64_t)PLAYED_PID << 32 | PLAYED_PID;
        return 1;
}

static size_t put_raw(const PlayedFd *p, uint64_t *to) {
        struct raw raw = { .size = sizeof(raw) - sizeof(raw.size), .type = (uint16_t)p->attr.config, .pid = PLAYED_PID,
                           .vec = PLAYED_VEC };

        static_assert(sizeof(raw) % sizeof(*to) == 0, "the kernel pads it");
        memcpy(to, &raw, sizeof(raw));
        return sizeof(raw) / sizeof(*to);
}

size_t played_sample(const PlayedFd *p, uint64_t time, const uint64_t *counts, size_t n_counts, uint64_t *to) {
        const uint64_t type = p->attr.sample_type;
        struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_KERNEL };
        size_t n = 1;

        assert((type & ~(uint64_t)HANDLED) == 0);
        if (type & PERF_SAMPLE_IDENTIFIER)
                to[n++] = p->id;
        if (type & PERF_SAMPLE_IP)
                to[n++] = UINT64_C(0xffffffff81000000);
        if (type & PERF_SAMPLE_TID)
                n += put_tid(to + n);
        if (type & PERF_SAMPLE_TIME)
                to[n++] = time;
        if (type & PERF_SAMPLE_ADDR)
                to[n++] = 0;
        if (type & PERF_SAMPLE_ID)
                to[n++] = p->id;
        if (type & PERF_SAMPLE_CPU)
                to[n++] = (uint64_t)p->cpu;
        if (type & PERF_SAMPLE_PERIOD)
                to[n++] = 1;
        if (type & PERF_SAMPLE_READ) {
                memcpy(to + n, counts, n_counts * sizeof(*to));
                n += n_counts;
        }
        if (type & PERF_SAMPLE_RAW)
                n += put_raw(p, to + n);
        assert(n <= PLAYED_SAMPLE_MOST);
        header.size = (uint16_t)(n * sizeof(*to));
        memcpy(to, &header, sizeof(header));
        return n;
}
