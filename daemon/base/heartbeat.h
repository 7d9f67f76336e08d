/*
 * For the watchdog: a thread that neither moves nor sleeps is stuck. Written by its thread, or by who takes its turns while it
 * sleeps (one at a time: base/owner-lock.h), read by main.
 *
 * A thread that wakes counts the turn first and clears `asleep` with a release store behind it; main loads `asleep` with an
 * acquire load first and the turns behind it. So whoever is seen awake is seen with the turn that it woke for, and who slept
 * at the last look has moved since. In the other order a thread that wakes between main's two loads is seen awake, with the
 * turns of before, and is taken for dead.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Heartbeat {
        _Atomic(uint64_t) turns;
        atomic_bool asleep;
        uint64_t turns_seen; /* main's */
} Heartbeat;

static inline void heartbeat_sleep(Heartbeat *h) {
        /* nothing is published with it: who is seen asleep may have done anything before, and is alive */
        atomic_store_explicit(&h->asleep, true, memory_order_relaxed);
}

/* In the middle of a turn that may be long, too: a step of it is done. */
static inline void heartbeat_move(Heartbeat *h) {
        /* one writer; alone, or published by the next store of heartbeat_wake() */
        atomic_store_explicit(&h->turns, atomic_load_explicit(&h->turns, memory_order_relaxed) + 1, memory_order_relaxed);
}

static inline void heartbeat_wake(Heartbeat *h) {
        heartbeat_move(h);
        atomic_store_explicit(&h->asleep, false, memory_order_release); /* pairs with the load in heartbeat_check() */
}

/* Main: whether it moved since *seen was stored here. */
static inline bool heartbeat_has_moved(const Heartbeat *h, uint64_t *seen) {
        uint64_t before = *seen;

        *seen = atomic_load_explicit(&h->turns, memory_order_relaxed);
        return *seen != before;
}

/* Main: since the last call it moved, or it sleeps. */
static inline bool heartbeat_check(Heartbeat *h) {
        bool is_asleep = atomic_load_explicit(&h->asleep, memory_order_acquire); /* pairs with heartbeat_wake() */
        uint64_t turns = atomic_load_explicit(&h->turns, memory_order_relaxed);
        bool is_alive = is_asleep || turns != h->turns_seen;

        h->turns_seen = turns;
        return is_alive;
}
