/*
 * From the id of an fd to its event: a hash table with open addressing, built before the first record whose event may be looked for, and
 * again when events have come since.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "client/recording/damage.h"
#include "client/recording/ids.h"

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

#define TIME_AND_ID (PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

static size_t words(uint64_t sample_type) {
        return sizeof(uint64_t) * (size_t)__builtin_popcountll(sample_type);
}

/* All attrs have the id at the same place if they have not the same bits: perf sees to that. */
static void place_ids(Ids *t, uint64_t type) {
        t->at = t->before_end = SIZE_MAX;
        if ((type & PERF_SAMPLE_IDENTIFIER) != 0) {
                t->at = 0;
                t->before_end = sizeof(uint64_t);
        } else if ((type & PERF_SAMPLE_ID) != 0) {
                t->at = words(type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
                t->before_end = words(type & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
        }
}

static void place_time(Event *e) {
        const uint64_t type = e->shown.sample_type;

        e->time_at = e->time_before_end = SIZE_MAX;
        if ((type & PERF_SAMPLE_TIME) == 0)
                return;
        e->time_at = words(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID));
        if ((e->shown.flags & PERFD_ATTR_SAMPLE_ID_ALL) != 0)
                e->time_before_end = words(type & TIME_AND_ID);
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
        place_ids(&r->ids, r->n_events > 0 ? r->events[0].shown.sample_type : 0);
        for (size_t i = 0; i < r->n_events; i++)
                place_time(&r->events[i]);
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
