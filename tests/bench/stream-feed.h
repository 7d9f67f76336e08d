/*
 * For benchmarks of libperfd: a stream as the daemon sends it, its items written by encode/, into a ring in shared memory or
 * a socket; the other end of it is in the same thread, so that each part can be measured alone.
 */
#pragma once

#include "client/perfd.h"
#include "daemon/stream/shared-ring.h"

#define FEED_PACKETS 4 /* of a turn: half of the ring that libperfd asks for */

typedef enum FeedEvents {
        FEED_SYS_ENTER, /* raw_syscalls:sys_enter: a number, and an array of six; each item has the same layout */
        FEED_SWITCH,    /* sched:sched_switch: five numbers, two texts of different lengths */
        FEED_BOTH,      /* by turns */
        _FEED_EVENTS_MAX,
} FeedEvents;

#define FEED_SYS_ENTER_ID 1
#define FEED_SWITCH_ID 2

typedef struct Feed {
        int fd;           /* the daemon's end */
        int theirs;       /* the client's */
        SharedRing *ring; /* NULL: by the socket */
        uint8_t *start;   /* the first frame, of start_length */
        size_t start_length;
        uint8_t *frames;  /* of a turn */
        size_t length;
        size_t sequences[FEED_PACKETS]; /* where in `frames` each packet has its number */
        uint64_t sequence;
        size_t n_items;                 /* of a turn */
        FeedEvents events;
} Feed;

/* Ends the program if something fails. */
void feed_init(Feed *f, FeedEvents events, bool by_socket);
void feed_deinit(Feed *f);
/* A client whose stream this is; its start is read already. It takes the client's end. */
perfd_client *feed_subscribe(Feed *f, const perfd_callbacks *callbacks, void *userdata);
/* Sends a turn. */
void feed_turn(Feed *f);
