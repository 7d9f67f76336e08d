/*
 * For closing ledgers: where the numbers stood at the cut at which a stream began, so that they can say what happened during
 * its life. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/model/event.h"
#include "daemon/model/loss.h"

typedef struct Ledger Ledger;

/* occurred = delivered + filtered + all of lost */
typedef struct LedgerNumbers {
        uint64_t occurred, delivered, filtered;
        uint64_t lost[_LOSS_MAX];
} LedgerNumbers;

/* What could not be charged to an event, on one ring. */
typedef struct RingLosses {
        uint64_t side_lost, unknown_id, undecodable;
} RingLosses;

typedef struct EventBase {
        uint32_t event, slot;
        bool is_balanced; /* false: the numbers were no sum then, and nothing can be taken off them */
        LedgerNumbers numbers;
} EventBase;

typedef struct ProbeBase {
        uint32_t event;
        uint64_t missed;
} ProbeBase;

typedef struct LedgerBase {
        EventBase *events; /* that had any, by event and slot */
        size_t n_events;
        ProbeBase *probes;
        size_t n_probes;
        RingLosses *rings; /* by slot */
        size_t n_bytes;
} LedgerBase;

/* Which events somebody has asked for. */
typedef struct LedgerWants {
        const void *userdata;
        const Event *(*get)(const void *userdata, size_t i);           /* the i-th of those that it gets; NULL: there are no more */
        bool (*has)(const void *userdata, const Event *event);         /* it has asked for it, be it there or no more */
} LedgerWants;

/* Of these events, right after the cut. *ret is NULL, and that is no failure, if there is no room for it; its stream's ledger says less then. */
int ledger_base_new(Ledger *s, const LedgerWants *wants, LedgerBase **ret);
LedgerBase *ledger_base_free(Ledger *s, LedgerBase *b);
/* False: not known. What had no numbers yet had zeros. */
bool ledger_base_find(const LedgerBase *b, uint32_t event, uint32_t slot, LedgerNumbers *ret);
uint64_t ledger_base_missed(const LedgerBase *b, uint32_t event);
