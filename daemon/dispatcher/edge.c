/*
 * Where a stream begins and ends. A cut is a place of each CPU's ring at which a batch ends, and all numbers of the ledger
 * are of that place; batches carry the number of the last cut before them. So a stream that has the batches from one cut to
 * another has just what happened between the two, and its closing ledger says the same of the other side.
 *
 * Batches of several sides are on their way for a moment only: until all readers have answered and the merge is so far.
 * Meanwhile packets end where the side changes, and what can be done quickly if nobody looks at sides is done slowly.
 *
 * A reader that does not answer misses cuts, and brings what it read before them when it goes on. Main has it take one then; a
 * stream that began meanwhile begins there on its CPU.
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
        if (s->held || d->n_behind > 0)
                return false; /* some may still come */
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
