/*
 * Batches and their order: one batch is sorted stably, many are merged as a sort of all of them would, up to whatever
 * time is asked for. And snapshots, by which a reader finds what a record belongs to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/model/snapshot.h"
#include "daemon/route/merge-ahead.h"

static uint64_t seed;

static uint32_t random_below(uint32_t n) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        return (uint32_t)(((seed >> 33) * n) >> 31);
}

/* Entries are numbered by `event` in the order in which they were appended. */
static void fill(Batch *b, size_t n, nsec_t from, uint32_t spread, uint32_t *number) {
        for (size_t i = 0; i < n; i++) {
                uint64_t mask = random_below(2) ? 1ULL << random_below(64) : 1ULL << random_below(64) | 5;
                size_t room;

                memset(batch_room(b, &room), (int)(*number & 0xff), 3);
                assert_int_equal(room, BATCH_ARENA - 3 * i);
                batch_append(b, from + random_below(spread) + (random_below(3) ? i : 0), mask, (*number)++, 0, 3);
        }
}

static void test_sort(void **state) {
        for (unsigned round = 0; round < 150; round++) {
                Batch *b = batch_new(3);
                uint32_t matched[BATCH_BITS] = { 0 }, number = 0;
                bool was_sorted = true;

                seed = round;
                assert_non_null(b);
                batch_reset(b, 7);
                fill(b, random_below(round % 10 ? 100 : BATCH_ENTRIES + 1), 100, 1 + round % 7 * 20, &number);
                for (size_t i = 0; i < b->n_entries; i++) {
                        was_sorted = was_sorted && (i == 0 || b->entries[i].time >= b->entries[i - 1].time);
                        for (unsigned bit = 0; bit < BATCH_BITS; bit++)
                                matched[bit] += b->entries[i].mask >> bit & 1;
                }
                assert_int_equal(b->sorted, was_sorted);
                assert_int_equal(batch_has_entry_room(b), b->n_entries < BATCH_ENTRIES);
                batch_seal(b);
                assert_true(b->sorted);
                assert_int_equal(b->n_entries, number);
                for (size_t i = 0; i < b->n_entries; i++) {
                        const BatchEntry *e = &b->entries[i];

                        assert_true(i == 0 || e[-1].time < e->time || (e[-1].time == e->time && e[-1].event < e->event));
                        assert_int_equal(e->place, 3 * e->event); /* it still has its own bytes */
                        assert_int_equal(b->arena[e->place], e->event & 0xff);
                }
                for (unsigned bit = 0; bit < BATCH_BITS; bit++) {
                        assert_int_equal(b->mask >> bit & 1, matched[bit] > 0);
                        if (matched[bit])
                                assert_int_equal(b->matched[bit], matched[bit]);
                }
                batch_reset(b, 8);
                assert_true(b->generation == 8 && b->n_entries == 0 && b->used == 0 && b->mask == 0 && b->next == 0 &&
                            b->watermark == 0 && b->sorted && b->slot == 3);
                batch_free(b);
        }
}

static int compare_times(const void *a, const void *b) {
        nsec_t x = *(const nsec_t *)a, y = *(const nsec_t *)b;

        return (x > y) - (x < y);
}

#define MANY 60

/* What a round is like. */
typedef struct Weather {
        uint32_t n_slots; /* of CPUs that batches are of, at random */
        uint32_t spread, longest;
        bool follow;      /* a CPU's next batch begins where its last one ended, at the same time at times */
        bool is_at_end;   /* times are the last ones that there are */
        bool goes_ahead;  /* pieces are worked out in between */
        bool is_wide;     /* hours and years lie between some */
} Weather;

typedef struct Merging {
        Merge merge;
        Weather weather;
        Batch *all[MANY];    /* NULL: emptied, and freed as a reader might use it at once */
        uint32_t last[MANY]; /* of each batch: 1 + the number of the entry that came last */
        nsec_t ends[MANY];   /* by slot: newest time that was added */
        nsec_t *times;       /* of what was added and has not come, sorted */
        size_t n_times, n_batches, n_emptied, n_ahead;
        uint64_t newest; /* generation */
} Merging;

static void merging_add(Merging *m, nsec_t from, uint32_t *number) {
        uint32_t slot = random_below(m->weather.n_slots);
        Batch *b = batch_new(slot);

        assert_non_null(b);
        if (m->weather.follow)
                from = m->ends[slot] > from ? m->ends[slot] : from;
        if (m->weather.is_at_end)
                from = UINT64_MAX - 2 - m->weather.spread - m->weather.longest;
        fill(b, 1 + random_below(m->weather.longest), from, 1 + m->weather.spread, number);
        if (m->weather.is_at_end) {
                b->entries[b->n_entries - 1].time = UINT64_MAX;
                b->sorted = false;
        }
        for (size_t i = 0; i < b->n_entries && m->weather.is_wide; i++) {
                b->entries[i].time += random_below(4) ? 0 : (nsec_t)random_below(4) << (38 + random_below(10));
                b->sorted = false;
        }
        batch_seal(b);
        for (size_t i = 0; i < b->n_entries; i++)
                m->times[m->n_times++] = b->entries[i].time;
        m->ends[slot] = b->entries[b->n_entries - 1].time;
        qsort(m->times, m->n_times, sizeof(*m->times), compare_times);
        b->watermark = m->n_batches; /* the merge does not look at it */
        b->generation = 1 + m->n_batches / 20 + random_below(2);
        m->newest = b->generation > m->newest ? b->generation : m->newest;
        m->all[m->n_batches++] = b;
        assert_int_equal(merge_add(&m->merge, b), 0);
}

/* What the next piece has is what comes next, of all and of its batch. */
static size_t merging_check_piece(Merging *m, const MergePiece *p, size_t taken, size_t expected) {
        const Batch *b = p->batch;

        assert_true(p->n > 0);
        assert_ptr_equal(p->item, b->arena + entry_offset(p->first));
        for (size_t i = 0; i < p->n; i++, taken++) {
                assert_true(taken < expected);
                assert_int_equal(p->first[i].time, m->times[taken]);
                assert_ptr_equal(&p->first[i], &b->entries[m->last[b->watermark]++]);
        }
        return taken;
}

static void merging_check_generations(const Merging *m) {
        bool is_of_one = true;

        for (size_t i = 0; i < m->merge.n; i++)
                is_of_one = is_of_one && m->merge.batches[i]->generation == m->newest;
        assert_int_equal(merge_is_plain(&m->merge), is_of_one);
}

/* Whoever has used a piece may work the next ones out, as many as he likes. */
static void merging_go_ahead(Merging *m) {
        MergeAhead ahead = merge_ahead_begin(&m->merge);

        for (uint32_t n = random_below(4); n > 0 && merge_ahead_step(&ahead); n--)
                m->n_ahead++;
        merge_ahead_end(&ahead);
}

/* Everything up to `until`, exactly as the sorted times say, each batch in its own order. */
static void merging_take(Merging *m, nsec_t until) {
        size_t taken = 0, expected = 0;
        const MergePiece *pieces;
        nsec_t oldest;
        unsigned n;
        Batch *b;

        while (expected < m->n_times && m->times[expected] <= until)
                expected++;
        assert_int_equal(merge_oldest(&m->merge, &oldest), m->n_times > 0);
        if (m->n_times > 0)
                assert_int_equal(oldest, m->times[0]);
        while ((n = merge_next(&m->merge, until, &pieces)) > 0) {
                for (unsigned i = 0; i < n; i++) {
                        taken = merging_check_piece(m, &pieces[i], taken, expected);
                        if (m->weather.goes_ahead)
                                merging_go_ahead(m);
                }
                assert_int_equal(merge_oldest(&m->merge, &oldest), taken < m->n_times);
                if (taken < m->n_times)
                        assert_int_equal(oldest, m->times[taken]);
                while ((b = merge_take_emptied(&m->merge))) {
                        size_t number = b->watermark;

                        assert_int_equal(m->last[number], b->n_entries);
                        m->all[number] = batch_free(b);
                        m->n_emptied++;
                }
                merging_check_generations(m);
        }
        assert_int_equal(taken, expected);
        if (!m->weather.is_wide && !m->weather.is_at_end)
                assert_int_equal(m->merge.base, 0); /* keys are made anew for far times only */
        assert_int_equal(m->merge.n, m->n_batches - m->n_emptied);
        for (size_t i = 0; i < m->merge.n; i++) { /* all that is left, with what is left of it */
                b = m->merge.batches[i];
                assert_ptr_equal(m->all[b->watermark], b);
                assert_int_equal(b->next, m->last[b->watermark]);
        }
        m->n_times -= taken;
        memmove(m->times, m->times + taken, m->n_times * sizeof(*m->times));
}

/*
 * Batches come and go at random: of one CPU and of many, overlapping and following each other, with many equal times
 * and with few, in runs and in turns, some worked out ahead, also behind what was taken already: what comes late comes next.
 */
static void test_merge(void **state) {
        size_t n_ahead = 0;

        for (unsigned round = 0; round < 400; round++) {
                Merging m = { .merge = MERGE_NULL, .times = calloc(MANY * 400, sizeof(nsec_t)) };
                uint32_t number = 0;
                nsec_t until = 0;

                seed = round;
                m.weather = (Weather){ .n_slots = 1 + (round % 5 > 1 ? random_below(MANY) : round % 5),
                                       .spread = random_below(round % 3 ? 40 : 2000), .longest = round % 7 ? 100 : 400,
                                       .follow = round % 2, .is_at_end = round % 20 == 19, .goes_ahead = round % 4 > 0,
                                       .is_wide = round % 11 == 10 };
                assert_non_null(m.times);
                merging_take(&m, UINT64_MAX);
                while (m.n_batches < MANY) {
                        if (random_below(3))
                                merging_add(&m, m.weather.is_wide && random_below(4) == 0 ? 0 :
                                                until + random_below(round % 4 ? 300 : 30), &number);
                        else {
                                until += (nsec_t)random_below(100) << (m.weather.is_wide ? random_below(48) : 0);
                                merging_take(&m, m.weather.is_at_end ? UINT64_MAX - 2 - random_below(200) : until);
                        }
                }
                merging_take(&m, UINT64_MAX);
                assert_int_equal(m.n_times, 0);
                assert_int_equal(m.n_emptied, MANY);
                assert_int_equal(m.merge.n, 0);
                n_ahead += m.n_ahead;
                merge_deinit(&m.merge);
                merge_deinit(&m.merge);
                free(m.times);
        }
        assert_true(n_ahead > 10000);
}

/* Trees of each height, of CPUs that take turns, two batches each, of which the second one waits or does not. */
static void test_heights(void **state) {
        for (uint32_t n = 1; n <= 1100; n = 2 * n + random_below(2)) {
                Batch **all = calloc(2 * n, sizeof(*all));
                const MergePiece *pieces;
                uint32_t number = 0;
                size_t n_entries = 0;
                Merge m = MERGE_NULL;
                nsec_t before = 0;
                unsigned n_pieces;

                assert_non_null(all);
                seed = n;
                for (uint32_t i = 0; i < 2 * n; i++) {
                        all[i] = batch_new(i / 2);
                        assert_non_null(all[i]);
                        fill(all[i], 1 + random_below(20), i % 2 * 500, 1000, &number);
                        batch_seal(all[i]);
                        assert_int_equal(merge_add(&m, all[i]), 0);
                }
                while ((n_pieces = merge_next(&m, UINT64_MAX, &pieces)) > 0) {
                        for (unsigned i = 0; i < n_pieces; i++)
                                for (size_t k = 0; k < pieces[i].n; k++, n_entries++) {
                                        const BatchEntry *e = &pieces[i].first[k];

                                        assert_true(e->time >= before);
                                        before = e->time;
                                        assert_ptr_equal(e, &pieces[i].batch->entries[pieces[i].batch->watermark++]);
                                }
                        while (merge_take_emptied(&m))
                                ;
                }
                assert_int_equal(n_entries, number);
                assert_int_equal(m.n, 0);
                merge_deinit(&m);
                for (uint32_t i = 0; i < 2 * n; i++)
                        batch_free(all[i]);
                free(all);
        }
}

/* ---- without memory ---------------------------------------------------------------------------------------------- */

void *__real_calloc(size_t n, size_t size);
void *__real_reallocarray(void *block, size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_reallocarray(void *block, size_t n, size_t size);

static int allocations_left = -1; /* then one fails; negative: none does */

static bool is_refused(void) {
        return allocations_left >= 0 && allocations_left-- == 0;
}

void *__wrap_calloc(size_t n, size_t size) {
        return is_refused() ? NULL : __real_calloc(n, size);
}

void *__wrap_reallocarray(void *block, size_t n, size_t size) {
        return is_refused() ? NULL : __real_reallocarray(block, n, size);
}

/* Whichever allocation fails: the batch is not taken, what is in the merge is not touched, a second try succeeds. */
static void test_memory(void **state) {
        Merge m = MERGE_NULL;
        Batch *all[20], *b;
        unsigned n_refused = 0, n = 0;
        const MergePiece *pieces;

        for (unsigned i = 0; i < 20; i++) {
                all[i] = batch_new(i);
                assert_non_null(all[i]);
                batch_append(all[i], 100 - i, 1, i, 0, 0);
                for (int left = 0;; left++) {
                        nsec_t oldest;
                        int r;

                        allocations_left = left;
                        r = merge_add(&m, all[i]);
                        allocations_left = -1;
                        if (r == 0)
                                break;
                        n_refused++;
                        assert_int_equal(r, -ENOMEM);
                        assert_int_equal(m.n, i);
                        assert_true(i == 0 || (merge_oldest(&m, &oldest) && oldest == 101 - i));
                }
        }
        assert_true(n_refused >= 20); /* at least one for each new slot */
        assert_int_equal(merge_next(&m, UINT64_MAX, &pieces), 20);
        for (; n < 20; n++) {
                b = merge_take_emptied(&m);
                assert_true(b == all[19 - n] && pieces[n].batch == b && pieces[n].first == b->entries && pieces[n].n == 1);
        }
        assert_null(merge_take_emptied(&m));
        assert_int_equal(merge_next(&m, UINT64_MAX, &pieces), 0);
        merge_deinit(&m);
        for (unsigned i = 0; i < 20; i++)
                batch_free(all[i]);
}

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

static void add_routes(SnapshotEvent *e, size_t n) {
        e->event = event_new((uint32_t)n + 1, &(EventSpec){ .event = NULL }, NULL, 1);
        e->table = route_table_new(n, n);
        assert_true(e->event && e->table);
        for (RouteTable *t = e->table; t->n_routes < n; t->n_routes++)
                t->routes[t->n_routes] = (Route){ .number = (uint32_t)t->n_routes, .encoding = (uint32_t)(n - 1 - t->n_routes) };
        e->table->n_encodings = n;
        e->table->needs_comm = n == 2;
        e->exclude_self = n == 1;
        route_table_finish(e->table);
        snapshot_set_routes(e, e->table);
}

/* What readers ask of a stream's event is in the stream itself, with the route if that is all; several stay the event's. */
static void test_streams_know_their_routes(void **state) {
        Snapshot *s = snapshot_new(5, 1, 3);
        SnapshotStream *streams = snapshot_streams_new(3);

        assert_non_null(s);
        assert_non_null(streams);
        assert_int_equal((uintptr_t)streams % 64, 0);
        for (uint32_t i = 0; i < 3; i++) {
                add_routes(&s->events[i], i);
                streams[i] = (SnapshotStream){ .id = i + 1, .event = i };
        }
        assert_int_equal(snapshot_set_streams(s, 0, streams, 3), 0);
        for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(streams[i].n_routes, i);
                assert_ptr_equal(streams[i].of, &s->events[i]);
                assert_int_equal(streams[i].exclude_self, i == 1);
                assert_int_equal(streams[i].is_special, i == 2);
        }
        assert_ptr_equal(streams[1].routes, &streams[1].only);
        assert_memory_equal(&streams[1].only, s->events[1].routes, sizeof(Route));
        assert_ptr_equal(streams[2].routes, s->events[2].routes);
        assert_int_equal(streams[2].routes[0].bit, 2); /* the encoding that comes first */
        assert_int_equal(streams[2].routes[1].bit, 1);
        snapshot_unref(s);
}

/* n streams whose ids all fall into one place of the hash, with others in between that are not there. */
static void test_colliding_ids(void **state) {
        Snapshot *s = snapshot_new(5, 3, 200);
        SnapshotStream *streams = snapshot_streams_new(200);
        uint64_t missing[50];
        size_t n = 0, n_missing = 0;

        assert_non_null(s);
        assert_non_null(streams);
        assert_null(snapshot_find(&s->cpus[0], 1)); /* nothing is set for this CPU */
        for (uint32_t i = 0; i < 200; i++) {
                s->events[i].event = event_new(i + 1, &(EventSpec){ .event = NULL }, NULL, 3);
                assert_non_null(s->events[i].event);
        }
        for (uint64_t id = 1; n < 200 || n_missing < 50; id++)
                if (n < 200 && (snapshot_hash(id) & 511) == 510) /* they run over the end of the table */
                        streams[n] = (SnapshotStream){ .id = id, .event = (uint32_t)n }, n++;
                else if (n == 200 && (snapshot_hash(id) & 511) == 510)
                        missing[n_missing++] = id;
        assert_int_equal(snapshot_set_streams(s, 1, streams, n), 0);
        assert_int_equal(s->cpus[1].mask, 511);
        for (size_t i = 0; i < n; i++)
                assert_ptr_equal(snapshot_find(&s->cpus[1], streams[i].id), &streams[i]);
        assert_ptr_equal(streams[7].counters, &s->events[7].event->counters[1]);
        for (size_t i = 0; i < n_missing; i++)
                assert_null(snapshot_find(&s->cpus[1], missing[i]));
        assert_null(snapshot_find(&s->cpus[1], 0));
        assert_null(snapshot_find(&s->cpus[1], UINT64_MAX));

        assert_int_equal(snapshot_set_streams(s, 2, snapshot_streams_new(0), 0), 0);
        assert_null(snapshot_find(&s->cpus[2], 1));
        assert_int_equal(snapshot_ref(s)->n_refs, 2);
        snapshot_unref(s);
        snapshot_unref(s);
        assert_null(snapshot_unref(NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sort),
                cmocka_unit_test(test_merge),
                cmocka_unit_test(test_heights),
                cmocka_unit_test(test_memory),
                cmocka_unit_test(test_streams_know_their_routes),
                cmocka_unit_test(test_colliding_ids),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
