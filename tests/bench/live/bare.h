/*
 * For the bare loops: a program that drains one CPU's ring of raw_syscalls:sys_enter of one process, with nothing of
 * perfd in it. What it does with a record is the program's own file; waking up, the ring and the account are here.
 *
 *     bare-NAME PID CPU OUT    the fd that it writes to
 *
 * Said on stdout: "ready", and after any line on stdin, when all is drained, one line of JSON:
 * {"occurred":N,"lost":N,"cpu_ns":N,"wakeups":N}, the first two as the kernel counts them.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BARE_RING ((size_t)4 << 20)   /* rings.size by default */
#define BARE_BLOCK ((size_t)64 << 10) /* written, handed over and given back to the kernel at a time */
#define BARE_RECORD_MAX ((size_t)64 << 10)

typedef struct Bare {
        int fd, out;
        struct perf_event_mmap_page *page;
        const uint8_t *bytes;     /* of the ring */
        uint64_t head, tail, published;
        uint8_t *block;           /* room for BARE_BLOCK and one record */
        size_t used;
        uint8_t wrapped[BARE_RECORD_MAX];
        uint64_t tick;            /* ns between two looks */
        void (*say)(void);        /* more members of its JSON, each with a comma behind it; or NULL */
} Bare;

/*
 * PERF_SAMPLE_IDENTIFIER, TID, TIME, CPU, RAW of this event:
 *
 *     | header | identifier | pid, tid | time | cpu, 0 | raw size, raw: 8 bytes of common_*, id, args[6]
 *       8        8            8          8      8        4         8                        8   48
 */
enum { BARE_PID = 16, BARE_TID = 20, BARE_TIME = 24, BARE_CPU = 32, BARE_NUMBERS = 52, BARE_N_NUMBERS = 7 };

typedef void BareStep(Bare *bare);

/*
 * main() of a bare loop; bare->say may be set in begin. begin, or NULL: on a thread that is not pinned yet. drain: takes all records up to bare->head,
 * and passes on what it has.
 */
int bare_run(int argc, char **argv, BareStep *begin, BareStep *drain);
/* The calling thread is scheduled as those of perfd are. */
void bare_be_urgent(void);
/* All of it; ends the program if it cannot. */
void bare_write(const Bare *bare, const uint8_t *bytes, size_t length);
_Noreturn void bare_fail(const char *what);

static inline void bare_publish(Bare *b) {
        __atomic_store_n(&b->page->data_tail, b->tail, __ATOMIC_RELEASE);
        b->published = b->tail;
}

/* The next record, in one piece, valid until the next call; NULL at the head. */
static inline const uint8_t *bare_next(Bare *b, size_t *ret_length) {
        size_t at = b->tail & (BARE_RING - 1), first = BARE_RING - at;
        const uint8_t *record = b->bytes + at;
        size_t length;

        if (b->tail - b->published >= BARE_BLOCK)
                bare_publish(b);
        if (b->tail == b->head)
                return NULL;
        length = ((const struct perf_event_header *)record)->size;
        if (length > first) {
                memcpy(b->wrapped, record, first);
                memcpy(b->wrapped + first, b->bytes, length - first);
                record = b->wrapped;
        }
        b->tail += length;
        *ret_length = length;
        return record;
}

/* To the block; true: it is full, and has to be empty before the next one. */
static inline bool bare_append(Bare *b, const uint8_t *bytes, size_t length) {
        memcpy(b->block + b->used, bytes, length);
        b->used += length;
        return b->used >= BARE_BLOCK;
}
