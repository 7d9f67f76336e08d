/*
 * Evaluates conditions on the process of a sample (exe, uid, cgroup, container, unit). A reader cannot: the exec, fork or cgroup
 * move that determines them may be in the ring buffer of another CPU. When the dispatcher appends an item to a stream, it has
 * applied all older notes of all CPUs, in the order of time. So a condition is evaluated with the same task data that the stream
 * itself describes.
 *
 * If a condition is false, the subscription's bit is removed from the entry's mask; from then on the entry is handled as if the
 * reader had not matched it. A conditional subscription has a bit in one order only, so this affects no other stream.
 */
#include "daemon/dispatcher/cycle.h"

static void channel_keep_from(const Channel *c, const Batch *b) {
        for (Subscriber *s = c->subscribers; s; s = s->next)
                s->filtered += subscriber_gets(s, b->cut);
}

/* Removes bits of an entry's mask. Only the dispatcher uses the batch now. */
static void entry_clear(const Batch *b, const BatchEntry *e, uint64_t bits) {
        b->entries[e - b->entries].mask &= ~bits;
}

static int dispatcher_decide_entry(Dispatcher *d, StreamOrder order, const Batch *b, const BatchEntry *e) {
        const uint32_t group = entry_group(e);
        Task *task = task_table_find(&d->tasks[order], e->tid);
        int r = dispatcher_confirm(d, order, task);
        uint64_t bits = e->mask & dispatcher_live_bits(d, order, group, b->generation);
        size_t at = 0;

        FOR_EACH_BIT(bit, bits) {
                Channel *c = d->groups[order][group].by_bit[bit];
                ConditionWord word = batch_find_word(b, e, (uint32_t)(group * BATCH_BITS + bit), &at);

                if (!c->condition || process_condition_holds(c->condition, &word, task))
                        continue;
                channel_keep_from(c, b);
                entry_clear(b, e, 1ULL << bit);
        }
        return r;
}

int dispatcher_decide(Dispatcher *d, StreamOrder order, const Batch *b, const BatchEntry *e, size_t n) {
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = dispatcher_decide_entry(d, order, b, &e[i]);
        return r;
}
