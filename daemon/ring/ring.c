/*
 * The head is the kernel's to write, so it is foreign data as well: one that is farther away than the ring is large, or
 * a record that is shorter than its header, odd, or longer than what is there, cannot be followed. Then everything up
 * to the head is given up, which is counted, because a wrong length makes every later boundary a guess.
 */
#include "daemon/ring/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/error-trail.h"

#define SCRATCH_SIZE ((size_t)64 * 1024) /* perf_event_header.size is 16 bits */

static int ring_init_scratch(Ring *r) {
        r->scratch = malloc(SCRATCH_SIZE);
        return r->scratch ? 0 : error_origin(-ENOMEM);
}

int ring_open(Ring *r, int fd, size_t size) {
        size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
        void *mapping;
        int error;

        *r = RING_NULL;
        mapping = mmap(NULL, page_size + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (mapping == MAP_FAILED)
                return error_origin(-errno);
        *r = (Ring){ .page = mapping, .data = (uint8_t *)mapping + page_size, .size = size,
                     .mapping = mapping, .mapping_size = page_size + size };
        error = ring_init_scratch(r);
        if (error < 0) {
                ring_close(r);
                return error;
        }
        return 0;
}

int ring_init_memory(Ring *r, void *memory, size_t size) {
        *r = (Ring){ .page = memory, .data = (uint8_t *)memory + sysconf(_SC_PAGESIZE), .size = size };
        return ring_init_scratch(r);
}

void ring_close(Ring *r) {
        if (r->mapping)
                (void)munmap(r->mapping, r->mapping_size); /* the arguments are those of mmap: it cannot fail */
        free(r->scratch);
        *r = RING_NULL;
}

uint64_t ring_head(const Ring *r) {
        return __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

static int ring_corrupt(Ring *r, uint64_t head) {
        r->tail = head;
        return RING_E_CORRUPT;
}

int ring_peek_slow(Ring *r, uint64_t head, const uint8_t **ret_record, size_t *ret_length) {
        struct perf_event_header header;
        uint64_t available = head - r->tail;
        size_t at = r->tail & (r->size - 1), first = r->size - at;
        const uint8_t *record = r->data + at;

        if (available == 0)
                return RING_E_EMPTY;
        if (available > r->size || available < sizeof(header) || r->tail % 8 != 0)
                return ring_corrupt(r, head);
        memcpy(&header, record, sizeof(header));
        if (header.size < sizeof(header) || header.size % 8 != 0 || header.size > available)
                return ring_corrupt(r, head);
        if (header.size > first) {
                memcpy(r->scratch, record, first);
                memcpy(r->scratch + first, r->data, header.size - first);
                record = r->scratch;
        }
        *ret_record = record;
        *ret_length = header.size;
        return 0;
}

void ring_publish(Ring *r) {
        /* full barrier in perf's protocol: our reads of the data come before the tail that frees it */
        __atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}
