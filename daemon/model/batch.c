/*
 * Batches come from mmap(2) through malloc's threshold: untouched arenas are not resident. The sort is by insertion,
 * because a ring is in order but for what interrupts wrote between another record's clock and its place.
 */
#include "daemon/model/batch.h"

Batch *batch_new(uint32_t slot) {
        _cleanup_(batch_freep) Batch *b = calloc(1, sizeof(*b));

        if (!b)
                return NULL;
        b->slot = slot;
        b->entries = malloc(BATCH_ENTRIES * sizeof(*b->entries));
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
        b->n_entries = b->used = b->n_notes = b->next = 0;
        b->mask = 0;
}

void batch_sort(Batch *b) {
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
