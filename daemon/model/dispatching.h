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

typedef struct Dispatching {
        Doorbell bell; /* wakes the dispatcher, behind a push */
        OwnerLock lock;     /* the dispatcher is its owner */
        bool is_shared; /* set before threads start: readers may work too */
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
