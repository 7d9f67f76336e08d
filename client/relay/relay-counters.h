/*
 * What the relay has counted of itself since its start: written by its loop alone, and read by the thread that serves metrics. Each number
 * is right for itself; several are not of one moment.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

typedef struct RelayCounters {
        _Atomic uint64_t n_accepted, n_closed;           /* connections by TLS, authenticated or not */
        _Atomic uint64_t n_admitted, n_admitted_closed;  /* those that `clients` in relay.yaml permits */
        _Atomic uint64_t n_refused;
        _Atomic uint64_t n_overloads;                    /* closed at once, by the limits before authentication */
        _Atomic uint64_t n_sent, n_received;             /* bytes, to and from clients, without what TLS adds */
        _Atomic uint64_t n_reloads, n_reloads_refused;
        _Atomic uint64_t certificate_end;                /* of the relay's own, seconds since 1970 */
} RelayCounters;

static inline void relay_count(_Atomic uint64_t *counter, uint64_t n) {
        atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t relay_counted(const _Atomic uint64_t *counter) {
        return atomic_load_explicit(counter, memory_order_relaxed);
}
