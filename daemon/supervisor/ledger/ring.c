#include "daemon/supervisor/ledger/ring.h"

RingCut ledger_ring_cut(const RingCounters *c, bool is_stalled) {
        if (is_stalled)
                return (RingCut){ .records = counter_get(&c->records), .samples = counter_get(&c->samples),
                                  .side_records = counter_get(&c->side_records), .side_lost = c->closed_side_lost,
                                  .unknown_id = counter_get(&c->unknown_id), .undecodable = counter_get(&c->undecodable) };
        return (RingCut){ c->cut_records, c->cut_samples, c->cut_side_records, c->cut_side_lost, c->cut_unknown_id,
                          c->cut_undecodable };
}

RingLosses ledger_ring_losses(const Ledger *s, uint32_t slot) {
        const RingCut c = ledger_ring_cut(&s->readers->by_slot[slot].counters, reader_is_stalled(&s->readers->answering.readers[slot]));

        return (RingLosses){ c.side_lost, c.unknown_id, c.undecodable };
}
