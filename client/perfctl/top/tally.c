/*
 * Keys are processes and threads too, of which a host has new ones all day long: a table that only fills up would show nothing new in the
 * end. So who is quiet makes room, but only when room is lacking: the total since the start is worth more than memory that is there.
 */
#include "client/perfctl/top/tally.h"

#include <stdlib.h>

#include "client/perfctl/base/memory.h"

#define NEARLY_FULL (COUNT_KEYS_MAX / 8 * 7)

static uint64_t add_at_most(uint64_t a, uint64_t b) {
        return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

void tally_sum_add(TallySum *s, const TallySum *more) {
        s->n = add_at_most(s->n, more->n);
        s->weight = add_at_most(s->weight, more->weight);
}

static void add_one(TallyEntry *e, uint64_t weight) {
        const TallySum one = { .n = 1, .weight = weight };

        tally_sum_add(&e->now, &one);
        tally_sum_add(&e->total, &one);
}

static TallyEntry *entry_of(Tally *t, size_t i) {
        if (i == COUNT_OTHERS)
                return &t->others;
        if (i >= t->room) {
                const size_t room = 2 * t->room > i ? 2 * t->room : i + 64;

                t->entries = must_have(reallocarray(t->entries, room, sizeof(*t->entries)));
                for (size_t k = t->room; k < room; k++)
                        t->entries[k] = (TallyEntry){ .now.n = 0 };
                t->room = room;
        }
        return &t->entries[i];
}

void tally_add(Tally *t, const uint8_t *key, size_t length, uint64_t weight) {
        add_one(entry_of(t, count_map_add(&t->keys, key, length)), weight);
        add_one(&t->all, weight);
}

static void turn(TallyEntry *e) {
        e->window = e->now;
        e->now = (TallySum){ .n = 0 };
}

/* Those that the last window has stay. */
static void make_room(Tally *t) {
        Tally kept = { .all = t->all, .others = t->others, .gone = t->gone, .n_gone = t->n_gone };

        count_map_init(&kept.keys, false, 0);
        for (size_t i = 0; i < t->keys.n; i++) {
                const CountEntry *key = &t->keys.entries[i];

                if (t->entries[i].window.n > 0)
                        *entry_of(&kept, count_map_add(&kept.keys, t->keys.bytes + key->key, key->length)) = t->entries[i];
                else {
                        tally_sum_add(&kept.gone, &t->entries[i].total);
                        kept.n_gone++;
                }
        }
        count_map_deinit(&t->keys);
        free(t->entries);
        *t = kept;
}

void tally_turn(Tally *t) {
        turn(&t->all);
        turn(&t->others);
        for (size_t i = 0; i < t->keys.n; i++)
                turn(&t->entries[i]);
        if (t->others.window.n > 0 || t->keys.n >= NEARLY_FULL)
                make_room(t);
}

void tally_zero(Tally *t) {
        tally_deinit(t);
        tally_init(t);
}

void tally_init(Tally *t) {
        *t = (Tally){ .entries = NULL };
        count_map_init(&t->keys, false, 0);
}

void tally_deinit(Tally *t) {
        count_map_deinit(&t->keys);
        free(t->entries);
        t->entries = NULL;
        t->room = 0;
}
