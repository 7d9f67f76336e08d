/*
 * The ledger: where every sample went. A request waits for its answer, for as long as perfd_client_set_timeout() says.
 * ret_result is to be freed by perfd_result_free(); where its rows are of no interest it may be NULL.
 */
#pragma once

#include "client.h"
#include "declarations.h"
#include "result.h"

PERFD_BEGIN_DECLARATIONS

/* At the end of a stream: what of a row's numbers was from where the stream began to where it ended. The same sum. */
typedef struct perfd_ledger_since {
        uint64_t occurred, delivered, filtered;
        const perfd_count *lost;
        size_t n_lost;
} perfd_ledger_since;

/*
 * `balanced` in the three ledgers: the daemon says so, and the sum, done again here, agrees.
 * An event on one CPU: occurred = delivered + filtered + all of lost.
 */
typedef struct perfd_event_ledger {
        uint32_t id;
        const char *name;
        uint32_t cpu;
        uint64_t occurred, delivered, filtered;
        const perfd_count *lost;
        size_t n_lost;
        bool balanced;
        bool exact;       /* occurred is the kernel's own count */
        uint64_t count;   /* the kernel's count, in the event's unit */
        uint64_t duplicates; /* counted a second time during a live change, lost or not; not part of occurred */
        bool external;    /* emitted by clients: of no CPU */
        bool removed;     /* at the end of a stream: it was removed while the stream was there */
        const perfd_ledger_since *since; /* NULL: not at the end of a stream, or not known */
        bool stalled;     /* the reader of this CPU does not respond: what was read until then, and never balanced */
} perfd_event_ledger;

/* A CPU's ring: records = samples + side_records + lost "unknown_id" and "undecodable". */
typedef struct perfd_ring_ledger {
        uint32_t cpu;
        uint64_t records, samples, side_records;
        const perfd_count *lost;
        size_t n_lost;
        bool balanced;
        const perfd_count *lost_since; /* at the end of a stream: of `lost`, while it was there */
        size_t n_lost_since;
        bool stalled; /* its reader does not respond: the numbers of this CPU are not of the same moment as the others */
        uint64_t foreign_times; /* samples that had the time of another tool's clock, and have that of the one before them */
} perfd_ring_ledger;

/* A subscriber: matched = sent + all of dropped + queued. */
typedef struct perfd_subscriber_ledger {
        uint64_t id;
        const char *peer;
        uint64_t matched, sent;
        const perfd_count *dropped;
        size_t n_dropped;
        uint64_t queued;
        bool balanced;
        const char *order; /* "time", "cpu" */
        uint64_t latency;  /* ns that it lets a sample stay in a ring buffer: requested, or the daemon's default; 0: not known, of an older daemon */
} perfd_subscriber_ledger;

/* Hits of a probe that the kernel could not count, because the probe was busy. Of the whole host. */
typedef struct perfd_probe_ledger {
        uint32_t id; /* of the event */
        const char *name;
        uint64_t hits, missed;
        bool known;  /* false: this kernel does not count them for this kind of probe */
        uint64_t missed_since; /* at the end of a stream: of `missed`, while it was there */
} perfd_probe_ledger;

/* PERFD_E_REFUSED, _CLOSED, _PROTOCOL, _STATE, _INVALID, _TIMEOUT, -ENOMEM */
int perfd_ledger(perfd_client *client, perfd_result **ret_result);
/* Only of these events, by names, globs, "#ID" or "@GROUP", and of the subscribers that have asked for one of them. */
int perfd_ledger_of(perfd_client *client, const char *const *events, size_t n_events, perfd_result **ret_result);

/* Row i, or NULL behind the last one and where the request has no such rows; the result's own. */
const perfd_event_ledger *perfd_result_event_ledger(const perfd_result *result, size_t i);
const perfd_ring_ledger *perfd_result_ring_ledger(const perfd_result *result, size_t i);
const perfd_subscriber_ledger *perfd_result_subscriber_ledger(const perfd_result *result, size_t i);
const perfd_probe_ledger *perfd_result_probe_ledger(const perfd_result *result, size_t i);

/* A ledger: every row is balanced; and the kernel's losses are exact, not a lower bound. */
bool perfd_result_is_balanced(const perfd_result *result);
bool perfd_result_is_loss_exact(const perfd_result *result);
/* At the end of a stream: access.rules limit which samples it may have, and the rows have only what was lost. */
bool perfd_result_is_limited(const perfd_result *result);

PERFD_END_DECLARATIONS
