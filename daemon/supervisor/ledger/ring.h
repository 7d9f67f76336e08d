/* For the ledger: what a ring has had, and what was lost in it that no event can be charged with. Main thread only, behind a cut. */
#pragma once

#include "daemon/supervisor/ledger/ledger.h"

typedef struct RingCut {
        uint64_t records, samples, side_records, side_lost, unknown_id, undecodable;
} RingCut;

/* Of a reader that does not answer what it has counted by now: it may be in the middle of a cut. */
RingCut ledger_ring_cut(const RingCounters *c, bool is_stalled);
RingLosses ledger_ring_losses(const Ledger *s, uint32_t slot);
