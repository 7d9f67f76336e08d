/*
 * Conditions that ask for the process. A reader cannot answer them: exec, fork and moves between cgroups are in the rings of
 * whatever CPU they happened on, and a process may fire on another one a microsecond later. Here, where an item is about to go
 * into a stream, the notes of all CPUs that are older than it have been applied, in the order of time; so a condition sees what
 * the stream itself says of the item's task, and the two cannot disagree.
 *
 * What is kept from a subscription is taken out of the entry's mask: from then on all is as if a reader had not matched it. The
 * bits of a conditional subscription are of one order only, so nobody else asks for them.
 */
#include "daemon/dispatcher/cycle.h"

static void channel_keep_from(const Channel *c, const Batch *b) {
        for (Subscriber *s = c->subscribers; s; s = s->next)
                s->filtered += subscriber_gets(s, b->cut);
}

/* The batch is the dispatcher's own. */
static void entry_clear(const Batch *b, const BatchEntry *e, uint64_t bits) {
        b->entries[e - b->entries].mask &= ~bits;
}

static int dispatcher_decide_entry(Dispatcher *d, StreamOrder order, const Batch *b, const BatchEntry *e) {
        const uint32_t group = entry_group(e);
        Task *task = task_table_find(&d->tasks[order], e->tid);
        int r = dispatcher_confirm_cgroup(d, order, task);
        uint64_t bits = e->mask & dispatcher_live_bits(d, order, group, b->generation);
        size_t at = 0;

        FOR_EACH_BIT(bit, bits) {
                Channel *c = d->groups[order][group].by_bit[bit];
                ConditionWord word = batch_find_word(b, e, (uint32_t)(group * BATCH_BITS + bit), &at);

                if (!c->condition || process_condition_holds(c->condition, &word, task ? task->process : NULL))
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
