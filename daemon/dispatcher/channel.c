/*
 * State of channels and batch pipes: which bits of a batch's masks are valid, the lowest watermark of all CPUs, and the entries
 * in the merge.
 */
#include "daemon/dispatcher/cycle.h"

uint64_t dispatcher_find_live_bits(Dispatcher *d, StreamOrder order, uint32_t group, uint64_t generation) {
        ChannelGroup *channels = &d->groups[order][group];
        LiveBits *known = &channels->live;

        *known = (LiveBits){ .generation = generation, .n_changes = d->n_channel_changes };
        FOR_EACH_BIT(bit, channels->bits)
                if (channels->by_bit[bit]->since <= generation)
                        known->bits |= 1ULL << bit;
        return known->bits;
}

nsec_t dispatcher_min_watermark(const Dispatcher *d) {
        nsec_t least = UINT64_MAX, window = atomic_load_explicit(&d->window, memory_order_relaxed);

        for (uint32_t i = 0; i < d->n_pipes; i++)
                if (d->watermarks[i] < least)
                        least = d->watermarks[i];
        if (least == UINT64_MAX)
                return least;
        least = least > window ? least - window : 0;
        return least > d->unwindowed ? least : d->unwindowed;
}

static void channel_begin_count(Channel *c) {
        c->pending = 0;
        for (Subscriber *s = c->subscribers; s; s = s->next)
                s->foreign = 0;
}

/* Counts an entry that is in the merge. While streams begin or end, it may be for only some of the channel's subscribers. */
static inline void channel_count(const Dispatcher *d, Channel *c, const Batch *b) {
        if (b->generation < c->since)
                return;
        c->pending++;
        for (Subscriber *s = d->n_edges > 0 ? c->subscribers : NULL; s; s = s->next)
                s->foreign += !subscriber_gets(s, b->cut);
}

void dispatcher_count_pending(Dispatcher *d) {
        for (Channel *c = d->channels; c; c = c->next)
                channel_begin_count(c);
        for (size_t i = 0; i < d->merge.n; i++) {
                const Batch *b = d->merge.batches[i];

                for (size_t k = b->next; k < b->n_entries; k++) {
                        const BatchEntry *e = &b->entries[k];
                        const ChannelGroup *group = &d->groups[STREAM_BY_TIME][entry_group(e)];

                        FOR_EACH_BIT(bit, e->mask & group->bits)
                                channel_count(d, group->by_bit[bit], b);
                }
        }
}
