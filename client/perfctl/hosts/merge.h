/*
 * Merges what several hosts print, item by item, by wall time. An item is given when each other host has a later one or has ended, or
 * when `hold` ns are over since it came: a host that is quiet, slow or gone delays the others by that and no more. What comes later
 * than that is given when it comes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_HOLD ((uint64_t)500000000) /* ns: by default */
#define HOST_QUEUES_MAX ((size_t)256 << 20) /* bytes that wait, of all hosts together */
#define HOST_QUEUE_LEAST ((size_t)8 << 20)  /* and of one of them, however many there are */

/* Lines that belong together. */
typedef struct HostEntry {
        struct HostEntry *next;
        uint64_t wall;  /* ns since 1970; 0: it has no time, and follows what is before it */
        uint64_t error; /* UINT64_MAX: not known */
        uint64_t came;  /* CLOCK_MONOTONIC */
        size_t n;
        char bytes[];
} HostEntry;

typedef struct HostQueue {
        HostEntry *first, **end;
        size_t bytes;
        bool has_ended;
        bool has_given; /* `latest` is valid */
        uint64_t latest; /* when the last item that was given was at the latest, by its wall time and error */
} HostQueue;

void host_queue_init(HostQueue *q);
void host_queue_deinit(HostQueue *q);
void host_queue_add(HostQueue *q, uint64_t wall, uint64_t error, uint64_t now, const char *bytes, size_t n);

/* Its first entry, the caller's to free; NULL: there is none. */
HostEntry *host_queue_take(HostQueue *q);

/*
 * The next entry, which is the caller's to free, and the queue that it is from; NULL: none is due, and *ret_wait has the ns until one
 * is, UINT64_MAX: only after something has come. *ret_certain: it was behind everything that was given of other hosts.
 */
HostEntry *host_merge_next(HostQueue *queues, size_t n, uint64_t hold, uint64_t now, size_t *ret_queue, bool *ret_certain,
                           uint64_t *ret_wait);
/*
 * Nothing more is to be read of that host until something of it was given: it loses in its own queue there, with a number, rather than
 * here the order. It does not wait for ever, because of what waits the first item is given when `hold` is over.
 */
bool host_queue_is_full(const HostQueue *queues, size_t n, size_t index);
