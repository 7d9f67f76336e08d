/*
 * For benchmarks: the kernel's side of a ring in plain memory. What it writes are records that a kernel wrote once
 * (tests/unit/kernel-records.h), with a stream id, a thread, a time and a system call's number of their own.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"

#define PLAYED_MAX ((size_t)256) /* bytes of a record */

typedef struct PlayedRing {
        struct perf_event_mmap_page *page; /* and the data behind it, as Ring expects it */
        uint8_t *bytes;
        size_t size;
        uint64_t head;
} PlayedRing;

static inline void played_ring_init(PlayedRing *r, size_t size) {
        size_t page_size = (size_t)sysconf(_SC_PAGESIZE);

        *r = (PlayedRing){ .page = aligned_alloc(page_size, page_size + size), .size = size };
        if (!r->page)
                abort();
        memset(r->page, 0, page_size + size);
        r->bytes = (uint8_t *)r->page + page_size;
}

static inline void played_ring_deinit(PlayedRing *r) {
        free(r->page);
}

/*
 *     u64 of a sample  | header | IDENTIFIER | pid tid | TIME | raw size, common_type flags | common_pid, id ...
 *
 * id is the first field of raw_syscalls:sys_enter, at an odd place: half of it is in the next u64.
 */
enum { PLAYED_IDENTIFIER = 1, PLAYED_TASK = 2, PLAYED_TIME = 3, PLAYED_SYSCALL = 44 };

/* tid: of a process that has no other thread. */
static inline void played_ring_put(PlayedRing *r, const uint64_t *record, uint64_t stream_id, uint32_t tid, nsec_t time,
                                   const uint64_t *syscall) {
        size_t at = r->head & (r->size - 1), size, first = r->size - at;
        uint64_t words[PLAYED_MAX / sizeof(uint64_t)];
        struct perf_event_header header;

        memcpy(&header, record, sizeof(header));
        size = header.size;
        memcpy(words, record, size);
        words[PLAYED_IDENTIFIER] = stream_id;
        words[PLAYED_TASK] = (uint64_t)tid << 32 | tid;
        words[PLAYED_TIME] = time;
        if (syscall)
                memcpy((uint8_t *)words + PLAYED_SYSCALL, syscall, sizeof(*syscall));
        if (first > size)
                first = size;
        memcpy(r->bytes + at, words, first);
        memcpy(r->bytes, (uint8_t *)words + first, size - first);
        r->head += size;
}

static inline void played_ring_publish(PlayedRing *r) {
        __atomic_store_n(&r->page->data_head, r->head, __ATOMIC_RELEASE);
}
