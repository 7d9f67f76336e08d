/*
 * What all readers share with the dispatcher: its bell, and its work, which a reader may do while the dispatcher sleeps.
 * All of it belongs to the dispatcher (dispatcher/dispatcher.h), which outlives the readers.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/base/clock.h"
#include "daemon/base/doorbell.h"
#include "daemon/base/owner-lock.h"

#define READER_TICK (3 * NSEC_PER_MSEC) /* of a reader, where much happens and nobody asked for less */

/* The longest tick within a latency: a multiple of the shortest one by a power of two. */
static inline nsec_t reader_longest_tick(nsec_t shortest, nsec_t latency) {
        nsec_t tick = shortest;

        while (2 * tick <= latency)
                tick *= 2;
        return tick;
}

typedef struct Dispatching {
        Doorbell bell; /* wakes the dispatcher, behind a push */
        OwnerLock lock;     /* the dispatcher is its owner */
        bool is_shared; /* set before threads start: readers may work too */
        _Atomic(nsec_t) tick; /* the shortest of all readers' ticks, relaxed; the dispatcher's: a CPU is not asked more often */
        /*
         * Dormant readers sleep without a timeout: the holder of the lock looks at their rings at `looks_at` (CLOCK_MONOTONIC;
         * UINT64_MAX: there are none). n_dormant is added to for each reader that becomes dormant, never taken from. Each side
         * writes its own, and then reads the other's, with sequentially consistent order: a reader that finds nobody who will
         * look rings the bell, or was seen.
         */
        _Atomic(nsec_t) looks_at;
        _Atomic(uint64_t) n_dormant;
        /*
         * By the holder of the lock: runs one cycle; and after how many ns there is something again, if nothing is
         * pushed before (UINT64_MAX: never). Negative: fatal.
         */
        int (*work)(void *userdata, nsec_t *ret_wait);
        void *userdata;
        /*
         * Both relaxed. timer_owner changes under the lock, which orders it, or is taken back before the bell is rung: the fences
         * of doorbell_ring() and doorbell_arm() see to it that then the dispatcher finds NULL, or is woken. no_assist_until stands
         * alone.
         */
        _Atomic(const void *) timer_owner; /* who will be there then: the one that worked last, or NULL, the dispatcher */
        _Atomic(nsec_t) no_assist_until; /* CLOCK_MONOTONIC: turns take longer than a reader has time for */
} Dispatching;

#define DISPATCHING_NULL ((Dispatching){ .bell = DOORBELL_NULL, .lock = OWNER_LOCK_HELD })
