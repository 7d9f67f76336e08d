/*
 * Batches come from mmap(2) through malloc's threshold: untouched arenas are not resident. The sort is by insertion,
 * because a ring is in order but for what interrupts wrote between another record's clock and its place.
 */
#include "daemon/model/batch.h"

#include <assert.h>
#include <string.h>

Batch *batch_new(uint32_t slot) {
        _cleanup_(batch_freep) Batch *b = calloc(1, sizeof(*b));

        if (!b)
                return NULL;
        b->slot = slot;
        b->due = UINT64_MAX;
        b->entries = malloc(BATCH_ENTRIES_MAX * sizeof(*b->entries)); /* memory only as far as they are written */
        b->arena = malloc(BATCH_ARENA);
        if (!b->entries || !b->arena)
                return NULL;
        batch_reset(b, 0);
        return TAKE_PTR(b);
}

Batch *batch_free(Batch *b) {
        if (!b)
                return NULL;
        free(b->entries);
        free(b->arena);
        free(b);
        return NULL;
}

void batch_reset(Batch *b, uint64_t generation) {
        b->generation = generation;
        b->watermark = 0;
        b->sorted = true;
        b->n_entries = b->used = b->n_notes = b->n_grouped = b->n_shared = b->next = 0;
        b->mask = b->run_mask = 0;
        b->run = 0;
}

void batch_count_run(Batch *b) {
        for (uint64_t m = b->run_mask; m && b->run > 0; m &= m - 1) {
                unsigned bit = (unsigned)__builtin_ctzll(m);

                if (!(b->mask & (1ULL << bit)))
                        b->matched[bit] = 0;
                b->mask |= 1ULL << bit;
                b->matched[bit] += b->run;
        }
        b->run = 0;
}

void batch_take_back(Batch *b, size_t n_entries, size_t used) {
        batch_count_run(b);
        for (size_t i = n_entries; i < b->n_entries; i++) {
                b->n_notes -= b->entries[i].event == BATCH_MARKER;
                if (entry_group(&b->entries[i]) > 0) {
                        b->n_grouped--;
                        b->n_shared -= i > 0 && entry_shares(&b->entries[i]);
                        continue;
                }
                for (uint64_t m = b->entries[i].mask; m; m &= m - 1)
                        if (--b->matched[__builtin_ctzll(m)] == 0)
                                b->mask &= ~(m & -m); /* a batch without entries must not look wanted */
        }
        b->n_entries = n_entries;
        b->used = used;
}

void batch_seal(Batch *b) {
        batch_count_run(b);
        if (b->sorted)
                return;
        for (size_t i = 1; i < b->n_entries; i++) {
                BatchEntry e = b->entries[i];
                size_t k = i;

                for (; k > 0 && b->entries[k - 1].time > e.time; k--)
                        b->entries[k] = b->entries[k - 1];
                b->entries[k] = e;
        }
        b->sorted = true;
}

/* The words of an entry, behind those of the entries before it that share its item. */
static void batch_copy_words(const Batch *b, const BatchEntry *e, Batch *to) {
        size_t at = 0;

        FOR_EACH_BIT(bit, entry_is_conditional(e) ? e->mask : 0) {
                ConditionWord word = batch_find_word(b, e, entry_group(e) * BATCH_BITS + (uint32_t)bit, &at);

                batch_add_word(to, &word);
        }
        to->entries[to->n_entries - 1].place |= e->place & BATCH_CONDITIONAL;
}

void batch_move_last(Batch *b, size_t n, Batch *to) {
        size_t n_left = b->n_entries - n, length = 0;

        for (size_t i = n_left; i < b->n_entries; i++) {
                const BatchEntry *e = &b->entries[i];
                size_t room;
                uint8_t *at = batch_room(to, &room);

                assert(batch_has_entry_room(to));
                if (i > 0 && entry_shares(e)) {
                        if (i > n_left) {
                                batch_share(to, entry_group(e), e->mask);
                                batch_copy_words(b, e, to);
                                continue;
                        }
                } else
                        length += e->length;
                assert(e->length <= room);
                memcpy(at, b->arena + entry_offset(e), e->length);
                batch_append_of(to, e->time, entry_group(e), e->mask, e->event, e->tid, e->length);
                to->entries[to->n_entries - 1].place |= e->place & BATCH_MORE;
                batch_copy_words(b, e, to);
        }
        batch_take_back(b, n_left, b->used - length); /* they were anywhere in the arena, of which no more is written */
}
