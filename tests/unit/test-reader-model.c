/*
 * A random load of every kind of record, through rings of several sizes and pools of a few batches that come back when
 * they like: what arrives is compared, item by item, with what a few lines here say that must come of it. And nothing
 * of it costs an allocation.
 */
#include "tests/unit/reader-checks.h"

/* --- counting allocations: linked with --wrap --- */

static unsigned n_allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

void *__wrap_malloc(size_t size) {
        n_allocations++;
        return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
        n_allocations++;
        return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size) {
        n_allocations++;
        return __real_realloc(p, size);
}

void __wrap_free(void *p) {
        n_allocations++;
        __real_free(p);
}

/* --- everything at once, against a model --- */

static uint64_t seed;

static uint32_t random_below(uint32_t n) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        return (uint32_t)(((seed >> 33) * n) >> 31);
}

typedef struct Model {
        Want wants[65536]; /* a ring of what was put and has not arrived */
        size_t begin, end;
        Counts counts[RIG_EVENTS];
        RingCounts ring;
        nsec_t time;
} Model;

static void model_want(Model *m, RigWho who, uint32_t event, uint64_t mask, uint64_t number) {
        m->wants[m->end++ % ARRAY_SIZE(m->wants)] = (Want){ who.time, mask, event, who.pid, who.tid, number };
}

/* One record of any kind; false if the ring is full. */
static bool model_put(Model *m, Rig *rig) {
        RigWho who = WHO(1 + random_below(5), random_below(40), m->time);
        uint64_t value = random_below(2000);
        uint32_t n;

        switch (random_below(12)) {
        default:
                if (!rig_put_number(rig, 1, who, value, 8 * random_below(100)))
                        return false;
                model_want(m, who, 11, value >= 1000 ? 5 : 1, value);
                if (value & 1)
                        model_want(m, who, 11, 2, 0);
                m->counts[RIG_NUMBERS].delivered++;
                break;
        case 0:
                if (!rig_put_number(rig, 2, who, value, 0))
                        return false;
                m->counts[RIG_NUMBERS].duplicates++;
                break;
        case 1:
                who.pid = value & 1 ? RIG_OWN_PID : who.pid;
                if (!rig_put_software(rig, who, value))
                        return false;
                if (!(value & 1))
                        model_want(m, who, 12, 8, 0);
                m->counts[RIG_SOFTWARE].filtered += value & 1;
                m->counts[RIG_SOFTWARE].delivered += !(value & 1);
                break;
        case 2:
                if (!rig_put_number(rig, 4, who, value, 0))
                        return false;
                m->counts[RIG_UNWANTED].filtered++;
                break;
        case 3:
                if (!rig_put_number(rig, 77, who, value, 0))
                        return false;
                m->ring.unknown_id++;
                m->ring.records++;
                m->time++;
                return true;
        case 4:
                if (!rig_put_sample(rig, 1, who, "01234567890", 12))
                        return false;
                m->counts[RIG_NUMBERS].undecodable++;
                break;
        case 5:
                n = 8 * (random_below(10) ? random_below(890) : 930 + random_below(4000)); /* clear of the limit */
                if (!rig_put_long(rig, who, n))
                        return false;
                if (9 * n > BATCH_ARENA) /* raw bytes, and eight times as many for the list */
                        m->counts[RIG_LONG].batch_pool++;
                else {
                        model_want(m, who, 14, 16, 0);
                        model_want(m, who, 14, 32, n);
                        m->counts[RIG_LONG].delivered++;
                }
                break;
        case 6:
                if (!rig_put_comm(rig, who, "name"))
                        return false;
                model_want(m, who, 0, 1 << 8, 0);
                m->ring.side_records++;
                m->ring.records++;
                m->time++;
                return true;
        case 7:
                if (!rig_put_lost(rig, 1, who, value))
                        return false;
                model_want(m, who, 11, 7, 0);
                m->ring.side_records++;
                m->ring.records++;
                m->time++;
                return true;
        }
        m->ring.records++;
        m->ring.samples++;
        m->time++;
        return true;
}

static void model_take(Model *m, Rig *rig, unsigned max) {
        Batch *b;

        while (max-- > 0 && (b = queue_pop(&rig->reader.full))) {
                check_batch(b);
                assert_int_equal(b->generation, 1);
                for (size_t i = 0; i < b->n_entries; i++) {
                        assert_true(m->begin < m->end);
                        check_item(b, &b->entries[i], &m->wants[m->begin++ % ARRAY_SIZE(m->wants)]);
                }
                queue_push(&rig->reader.free, b);
        }
}

static void test_random(void **state) {
        _cleanup_free_ Model *m = __real_calloc(1, sizeof(*m));
        unsigned starved = 0;
        Rig rig;

        assert_non_null(m);
        for (unsigned round = 0; round < 24; round++) {
                *m = (Model){ .time = 1 };
                seed = round;
                rig_init(&rig, (size_t)64 * 1024 << round % 4, 2 + round % 3);
                for (unsigned turn = 0; turn < 400; turn++) {
                        for (unsigned n = random_below(200); n > 0 && model_put(m, &rig); n--)
                                ;
                        if (random_below(4)) {
                                if (reader_drain(&rig.reader) == READER_E_STARVED)
                                        starved++;
                                else if (random_below(2))
                                        (void)reader_push_batch(&rig.reader);
                        }
                        if (random_below(3) == 0)
                                model_take(m, &rig, random_below(4));
                }
                while (m->begin < m->end || rig.page->data_tail != rig.page->data_head) {
                        size_t before = m->begin;
                        uint64_t tail = rig.page->data_tail;

                        if (reader_drain(&rig.reader) == 0)
                                (void)reader_push_batch(&rig.reader);
                        model_take(m, &rig, UINT32_MAX);
                        assert_true(m->begin > before || rig.page->data_tail > tail);
                }
                for (size_t i = 0; i < RIG_EVENTS; i++)
                        check_counts(&rig, i, m->counts[i]);
                check_ring_counts(&rig, m->ring);
                rig_deinit(&rig);
        }
        assert_true(starved > 50);
}

/* --- no allocation for a sample --- */

static void test_no_allocation(void **state) {
        unsigned before;
        uint64_t n = 0;
        Batch *b;
        Rig rig;

        rig_init(&rig, 256 * 1024, 4);
        for (uint32_t tid = 1; tid <= 50; tid++)
                comm_table_set(&rig.comms, tid, 1, "known");
        n_allocations = 0;
        batch_free(batch_new(0));
        assert_int_equal(n_allocations, 6); /* they are counted */
        before = n_allocations;
        while (n < 100000) {
                while (rig_put_number(&rig, 1, WHO(7, (uint32_t)(n % 50) + 1, n + 1), n, 8 * (n % 20)))
                        n++;
                rig_put_software(&rig, WHO(7, 1, n), 5);
                while (reader_drain(&rig.reader) == READER_E_STARVED)
                        while ((b = queue_pop(&rig.reader.full)))
                                queue_push(&rig.reader.free, b);
                reader_push_batch(&rig.reader);
                while ((b = queue_pop(&rig.reader.full)))
                        queue_push(&rig.reader.free, b);
        }
        assert_int_equal(n_allocations, before);
        check_counts(&rig, RIG_NUMBERS, (Counts){ .delivered = n });
        rig_deinit(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_no_allocation),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
