/*
 * From the id of an fd to its event: a hash table with open addressing, built before the first record whose event may be looked for, and
 * again when events have come since.
 */
#include <errno.h>
#include <stdlib.h>

#include "client/recording/recording.h"

#define LOAD 2 /* slots for each id, at least */

static size_t slot_of(uint64_t id, size_t n_slots) {
        return (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (n_slots - 1);
}

static void put(Ids *t, uint64_t id, size_t event) {
        size_t i = slot_of(id, t->n_slots);

        while (t->slots[i].event > 0 && t->slots[i].id != id)
                i = (i + 1) & (t->n_slots - 1);
        if (t->slots[i].event == 0)
                t->slots[i] = (IdSlot){ .id = id, .event = event + 1 };
}

int ids_build(perfd_recording *r) {
        size_t n = 0, n_slots = 64;
        IdSlot *slots;

        if (r->ids.slots && r->ids.n_events == r->n_events)
                return 0;
        for (size_t i = 0; i < r->n_events; i++)
                n += r->events[i].shown.n_ids;
        while (n_slots < LOAD * n)
                n_slots *= 2;
        slots = calloc(n_slots, sizeof(*slots));
        if (!slots)
                return recording_fail(r, -ENOMEM, "no memory");
        free(r->ids.slots);
        r->ids = (Ids){ .slots = slots, .n_slots = n_slots, .n_events = r->n_events };
        for (size_t i = 0; i < r->n_events; i++)
                for (size_t k = 0; k < r->events[i].shown.n_ids; k++)
                        put(&r->ids, r->events[i].ids[k], i);
        return 0;
}

const Event *ids_find(const perfd_recording *r, uint64_t id) {
        const Ids *t = &r->ids;
        size_t i;

        if (!t->slots)
                return NULL;
        i = slot_of(id, t->n_slots);
        while (t->slots[i].event > 0 && t->slots[i].id != id)
                i = (i + 1) & (t->n_slots - 1);
        return t->slots[i].event > 0 ? &r->events[t->slots[i].event - 1] : NULL;
}
