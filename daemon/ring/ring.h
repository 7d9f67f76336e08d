/*
 * For readers: a perf ring buffer, mapped from a carrier's fd or made of plain memory for tests and benchmarks. One
 * thread, that of the ring's CPU.
 *
 *     | perf_event_mmap_page | data: size bytes, a power of two |      data_head: theirs, data_tail: ours
 *
 * The way of a drain: head, then peek and consume until the head, then publish, which gives the space back.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
        RING_E_EMPTY = 1, /* consumed up to the head */
        RING_E_CORRUPT,   /* a header that cannot be right; the ring was consumed up to the head to find its feet */
};

typedef struct Ring {
        struct perf_event_mmap_page *page;
        uint8_t *data;
        size_t size;       /* of data, bytes, a power of two */
        uint64_t tail;     /* consumed up to here; published or not */
        uint8_t *scratch;  /* where a record that wraps is put together: 64 KiB, the longest record */
        void *mapping;     /* to unmap, or NULL if the memory is the caller's */
        size_t mapping_size;
} Ring;

#define RING_NULL ((Ring){ .page = NULL })

/* Maps the ring of a perf event fd; size as ring.size. Negative: errno of mmap(2), -ENOMEM. */
int ring_open(Ring *r, int fd, size_t size);
/* Memory of the caller instead, laid out as above, which must stay while the ring is used. -ENOMEM. */
int ring_init_memory(Ring *r, void *memory, size_t size);
void ring_close(Ring *r);

/* The kernel's write position, with acquire: all records before it are whole. */
uint64_t ring_head(const Ring *r);

/* For ring_peek(): what is not a plain record in one piece. */
int ring_peek_slow(Ring *r, uint64_t head, const uint8_t **ret_record, size_t *ret_length);

/*
 * The next record before `head`, contiguous, valid until publish. 0, RING_E_EMPTY or RING_E_CORRUPT. Does not move.
 */
static inline int ring_peek(Ring *r, uint64_t head, const uint8_t **ret_record, size_t *ret_length) {
        size_t at = r->tail & (r->size - 1), first = r->size - at;
        uint64_t available = head - r->tail;
        struct perf_event_header header;

        if (available - sizeof(header) >= r->size || at % sizeof(header) != 0) /* less, more than there can be, odd */
                return ring_peek_slow(r, head, ret_record, ret_length);
        memcpy(&header, r->data + at, sizeof(header)); /* 8-aligned, so that a header never wraps */
        if (header.size < sizeof(header) || header.size % 8 != 0 || header.size > available || header.size > first)
                return ring_peek_slow(r, head, ret_record, ret_length);
        *ret_record = r->data + at;
        *ret_length = header.size;
        return 0;
}

static inline void ring_consume(Ring *r, size_t length) {
        r->tail += length;
}
/* Tells the kernel that everything consumed may be overwritten. */
void ring_publish(Ring *r);
