/* For the watchdog: a thread that neither moves nor sleeps is stuck. Written by its thread, read by main. */
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
        atomic_store_explicit(&h->asleep, true, memory_order_relaxed);
}

static inline void heartbeat_wake(Heartbeat *h) {
        atomic_store_explicit(&h->asleep, false, memory_order_relaxed);
        atomic_fetch_add_explicit(&h->turns, 1, memory_order_relaxed);
}

/* Main: since the last call it moved, or it sleeps. */
static inline bool heartbeat_check(Heartbeat *h) {
        uint64_t turns = atomic_load_explicit(&h->turns, memory_order_relaxed);
        bool alive = atomic_load_explicit(&h->asleep, memory_order_relaxed) || turns != h->turns_seen;

        h->turns_seen = turns;
        return alive;
}
