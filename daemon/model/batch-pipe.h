/*
 * What a reader and the dispatcher share: two SPSC queues of one CPU's batches, there and back, and how one wakes the other. All
 * of it belongs to the reader (reader/reader.h), which outlives the dispatcher's use.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/base/clock.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/queue.h"

typedef struct RingView RingView; /* ring/ring-view.h */

/* What the dispatcher, or anybody, may ask a reader by its mailbox. */
enum {
        READER_ASK_WATERMARK = 1 << 0, /* the merge waits for this CPU */
        READER_ASK_BATCHES = 1 << 1,   /* free batches have come back */
        READER_ASK_LOOK = 1 << 2,      /* half of its ring was written, and who asks has taken the kernel's word of it away */
};

typedef struct BatchPipe {
        Queue *full;           /* batches from the reader */
        Queue *free;           /* and back */
        /*
         * `needs_batch` has fences on both sides (reader_take_batch(), dispatcher_give_back()), as the doorbell has: the reader finds the
         * batch, or is asked. It is cleared before the ask, so a reader that wants more sets it again behind that. `reports_until`
         * stands alone, and who is asked sees it.
         */
        atomic_bool *needs_batch; /* the reader waits for one that comes back: ask READER_ASK_BATCHES */
        Mailbox *reader;
        RingView *view; /* of its ring, NULL: there is none */
        uint32_t cpu;
        _Atomic(nsec_t) *reports_until; /* CLOCK_MONOTONIC: until then it says at each tick how far it is; the dispatcher's */
        uint64_t guard; /* ns: its watermarks are so much older than the moment at which it says them */
} BatchPipe;
