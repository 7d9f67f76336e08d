/*
 * Begins and ends streams at cuts. A cut is a position in the ring buffer of each CPU at which a batch ends, and to which all
 * numbers of a ledger belong. Each batch carries the number of the last cut before it. So a stream that gets the batches between
 * two cuts has exactly what happened between them, as its closing ledger says.
 *
 * Batches from before and behind a cut are in the merge together only for a short time: until all readers have acknowledged the
 * cut and the merge has released everything before it. Meanwhile packets end where the cut number changes, and the fast paths are
 * not used.
 *
 * A stalled reader misses cuts. When it continues, its first batches contain what it read before them. Main then has it take a
 * cut, and a stream that began meanwhile begins at that cut on this CPU.
 */
#include "daemon/dispatcher/cycle.h"

int dispatcher_set_side(Dispatcher *d, StreamOrder order, uint64_t cut) {
        int r = 0;

        if (d->side[order] == cut)
                return 0;
        for (Channel *c = d->unflushed; c && r >= 0; c = c->next_unflushed)
                if (c->order == order)
                        r = channel_flush(d, c);
        d->side[order] = cut;
        return r;
}

static void subscriber_cut(Dispatcher *d, Subscriber *s, uint64_t cut) {
        if (s->until != UINT64_MAX || s->ended)
                return;
        s->until = cut;
        d->n_edges++;
}

void dispatcher_cut(Dispatcher *d, uint64_t id, uint64_t cut) {
        for (Channel *c = d->channels; c; c = c->next)
                for (Subscriber *s = c->subscribers; s; s = s->next)
                        if (id == 0 || s->id == id)
                                subscriber_cut(d, s, cut);
}

void dispatcher_set_behind(Dispatcher *d, uint32_t slot, bool is_behind) {
        PipeProgress *h = &d->progress[slot];

        d->n_behind += is_behind;
        d->n_behind -= h->is_behind;
        h->is_behind = is_behind;
}

static bool is_before(const Dispatcher *d, const Subscriber *s) {
        if (s->is_corked || d->n_behind > 0)
                return false; /* batches from before the cut may still arrive */
        for (size_t i = 0; i < d->merge.n && s->order == STREAM_BY_TIME; i++)
                if (d->merge.batches[i]->cut < s->from)
                        return false;
        return true;
}

void dispatcher_pass_beginnings(Dispatcher *d) {
        for (Channel *c = d->channels; c; c = c->next)
                for (Subscriber *s = c->subscribers; s; s = s->next)
                        if (s->from > 0 && is_before(d, s)) {
                                s->from = 0;
                                d->n_edges--;
                        }
}
