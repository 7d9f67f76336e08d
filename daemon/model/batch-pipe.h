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

/* What any thread may ask a reader by its mailbox. */
enum {
        READER_ASK_WATERMARK = 1 << 0, /* the merge waits for this CPU */
        READER_ASK_BATCHES = 1 << 1,   /* free batches have come back */
        /* half of its ring was written: the thread that asks has consumed the kernel's notification */
        READER_ASK_LOOK = 1 << 2,
};

typedef struct BatchPipe {
        Queue *full;           /* batches from the reader */
        Queue *free;           /* and back */
        /*
         * `needs_batch` has fences on both sides (reader_take_batch(), dispatcher_give_back()), as the doorbell has: the reader
         * finds the batch, or is asked. It is cleared before the ask, so a reader that needs more sets it again after that.
         * `reports_until` is not ordered with anything; a reader that is asked sees it.
         */
        atomic_bool *needs_batch; /* the reader waits for a free batch: ask READER_ASK_BATCHES when one is returned */
        Mailbox *reader;
        RingView *view; /* of its ring, NULL: there is none */
        uint32_t cpu;
        const _Atomic(nsec_t) *tick; /* ns, of the reader while there is something to read; NULL: there is no reader */
        /* CLOCK_MONOTONIC, set by the dispatcher: the reader reports a watermark at each tick until then */
        _Atomic(nsec_t) *reports_until;
        uint64_t guard; /* ns by which its watermarks are behind the clock when it reports them */
} BatchPipe;
