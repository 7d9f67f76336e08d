/*
 * For closing ledgers: the last numbers of events that are no more, until the last stream has ended that was there with them.
 * Main thread only.
 */
#pragma once

#include "daemon/model/event.h"
#include "daemon/supervisor/events/registration.h"

typedef struct Ledger Ledger;

/* Events that were removed while streams were there, the oldest first. */
typedef struct RemovedEvents {
        struct RemovedEvent *first, *last;
        size_t n_bytes;
        uint64_t forgotten; /* last subscriber that was there when the last one went that there is no room for; 0: none */
} RemovedEvents;

typedef struct RemovedEvent {
        struct RemovedEvent *next;
        Event *event;             /* a reference: its counters are final, and everything is in their cuts */
        uint64_t last_subscriber; /* that was there */
        bool is_exact;            /* as its probe is */
        bool has_probe, probe_known;
        uint64_t probe_hits, probe_missed;
        bool has_slot[]; /* event->n_slots */
} RemovedEvent;

/*
 * They are disabled, unlinked and published without, and their fds are still open. last_subscriber: of the streams that are there; 0: there are none, and it does nothing. What there
 * is no memory for is missing in closing ledgers, which say so. Negative: errno of a read.
 */
int ledger_remember_removed(Ledger *s, Registration *const *removed, size_t n, uint64_t last_subscriber);
/* A stream has ended; oldest: of those that are there, UINT64_MAX: none is. */
void ledger_forget_removed(Ledger *s, uint64_t oldest);
void ledger_free_removed(Ledger *s);
/* Whether a stream that ends now, or any (0), was there with it. */
bool removed_concerns(const RemovedEvent *e, uint64_t subscriber);
