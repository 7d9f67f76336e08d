/*
 * Runs of samples, and mixtures, with all that may end one in their middle: what arrives is compared, byte by byte, with
 * what record_decode() and item_encode() make of each record alone.
 */
#include "tests/unit/reader-checks.h"

#include "daemon/decode/record.h"
#include "tests/unit/format-file.h"

#define RECORDS 3000
#define ITEMS (RECORDS * _PAYLOAD_MAX)
#define ITEM_MAX 512
#define RAW_MAX 256

enum { RUN, OTHER, UNWANTED, MUTED, N_EVENTS }; /* an event that nearly all samples are of, and those of the rest */

typedef struct Shape {
        const char *format, *where; /* NULL: nobody asks */
        Payload payload;            /* _PAYLOAD_MAX: all of them, and of one there are two */
        uint32_t cpu;
        bool exclude_self, is_unwanted;
        uint32_t mix; /* one in so many samples is not of RUN */
} Shape;

typedef struct Expected {
        uint8_t bytes[ITEMS][ITEM_MAX];
        size_t lengths[ITEMS];
        nsec_t times[ITEMS];
        uint64_t masks[ITEMS];
        size_t n, n_seen;
        uint64_t delivered, filtered, undecodable, doubled, others;
} Expected;

static uint64_t seed;

static uint32_t random_below(uint32_t n) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        return (uint32_t)(((seed >> 33) * n) >> 31);
}

/* Ids that all lead to the same place of the hash. */
static uint64_t stream_id(size_t event) {
        uint64_t id = 1;

        for (size_t n = 0; snapshot_hash(id) % 8 != 7 || n++ < event; id++)
                ;
        return id;
}

static void set_routes(SnapshotEvent *e, const Shape *shape, unsigned event) {
        if (shape->is_unwanted || event == UNWANTED)
                return;
        if (shape->payload < _PAYLOAD_MAX) {
                rig_route(e, 5 + event, 0, shape->where);
                return;
        }
        rig_route(e, 0, 0, shape->exclude_self ? shape->where : NULL);
        rig_route(e, 1, 1, shape->where);
        rig_route(e, 2, 0, shape->where);
        rig_route(e, 3, 2, shape->exclude_self ? shape->where : NULL);
}

static void set_snapshot(Rig *rig, const Shape *shape) {
        static const Payload payloads[] = { PAYLOAD_FIELDS, PAYLOAD_RAW, PAYLOAD_BOTH };
        bool is_one = shape->payload < _PAYLOAD_MAX;
        _cleanup_(plan_unrefp) Plan *plan = format_file_plan(shape->format);
        Snapshot *s = snapshot_new(1, 1, N_EVENTS);
        SnapshotStream *streams = snapshot_streams_new(N_EVENTS);

        assert_true(s && streams && plan);
        s->deinit = rig_drop_references;
        for (size_t i = 0; i < N_EVENTS; i++) {
                rig_event(s, i, plan, &rig->plain, is_one ? &shape->payload : payloads, is_one ? 1 : ARRAY_SIZE(payloads));
                set_routes(&s->events[i], shape, (unsigned)i);
                s->events[i].exclude_self = shape->exclude_self;
                snapshot_finish_event(&s->events[i]);
                streams[i] = (SnapshotStream){ .id = stream_id(i), .fd = -1, .is_plain = true, .muted = i == MUTED,
                                               .event = (uint32_t)i };
        }
        assert_int_equal(snapshot_set_streams(s, 0, streams, N_EVENTS), 0);
        assert_int_equal(s->cpus[0].mask, 7);
        snapshot_unref(rig->reader.snapshot);
        rig->reader.snapshot = s;
        rig->reader.cpu = rig->reader.plain.cpu = shape->cpu;
}

static uint64_t mask_of(const SnapshotEvent *e, uint32_t encoding, const Record *record) {
        uint64_t mask = 0;

        for (size_t i = 0; i < e->n_routes; i++)
                if (e->routes[i].encoding == encoding && (!e->routes[i].program || match_run(e->routes[i].program, record)))
                        mask |= e->routes[i].bit;
        return mask;
}

/* What must come of the record that was put last. */
static void expect(Expected *x, Rig *rig, const Shape *shape, size_t event, const uint8_t *bytes, size_t length) {
        const SnapshotEvent *e = &rig->reader.snapshot->events[event];
        size_t before = x->n;
        Record record;

        x->others += event != RUN;
        assert_int_equal(record_decode(&rig->plain, bytes, length, &record), 0);
        record.cpu = shape->cpu;
        if (event == MUTED) {
                x->doubled++;
                return;
        }
        if (record.raw_size < e->event->plan->min_size) {
                x->undecodable++;
                return;
        }
        for (uint32_t k = 0; k < e->n_encodings && !(shape->exclude_self && record.pid == RIG_OWN_PID); k++) {
                uint64_t mask = mask_of(e, k, &record);

                if (!mask)
                        continue;
                assert_int_equal(item_encode(e->encodings[k], &record, x->bytes[x->n], ITEM_MAX, &x->lengths[x->n]), 0);
                x->masks[x->n] = mask;
                x->times[x->n++] = record.time;
        }
        x->delivered += x->n > before;
        x->filtered += x->n == before;
}

static void put_one(Expected *x, Rig *rig, const Shape *shape, nsec_t time, uint32_t raw_size) {
        size_t event = random_below(shape->mix) == 0 ? OTHER + random_below(N_EVENTS - OTHER) : RUN, length;
        RigWho who = WHO(1 + random_below(3), 1 + random_below(5), time);
        uint8_t raw[RAW_MAX], record[36 + RAW_MAX];
        uint64_t id = stream_id(event);

        for (size_t i = 0; i < sizeof(raw); i++)
                raw[i] = (uint8_t)random_below(random_below(4) ? 256 : 3);
        switch (random_below(60)) {
        case 0: who.pid = who.tid = 0; break;
        case 1: who.tid = 0; break;
        case 2: who.pid = 0; break;
        case 3: who.pid = RIG_OWN_PID; break;
        case 4: who.pid = who.tid = UINT32_MAX; break;
        case 5: raw_size += 8 * random_below(8); break;
        case 6: raw_size = 4; break;
        default: break;
        }
        length = 36 + raw_size;
        raw_size -= random_below(100) == 0 ? 4 : 0; /* the same length, fewer bytes that count */
        memcpy(record, &(struct perf_event_header){ .type = PERF_RECORD_SAMPLE, .size = (uint16_t)length }, 8);
        memcpy(record + 8, &id, 8);
        memcpy(record + 16, &who, 16);
        memcpy(record + 32, &raw_size, 4);
        memcpy(record + 36, raw, sizeof(raw));
        assert_true(rig_put(rig, record, length));
        expect(x, rig, shape, event, record, length);
}

static void take_all(Expected *x, Rig *rig) {
        Batch *b;

        while ((b = queue_pop(&rig->reader.full))) {
                check_batch(b);
                for (size_t i = 0; i < b->n_entries; i++, x->n_seen++) {
                        const BatchEntry *e = &b->entries[i];

                        assert_true(x->n_seen < x->n);
                        assert_int_equal(e->length, x->lengths[x->n_seen]);
                        assert_memory_equal(b->arena + e->offset, x->bytes[x->n_seen], e->length);
                        assert_int_equal(e->time, x->times[x->n_seen]);
                        assert_int_equal(e->mask, x->masks[x->n_seen]);
                }
                queue_push(&rig->reader.free, b);
        }
}

static void drain(Expected *x, Rig *rig) {
        while (reader_drain(&rig->reader) == READER_E_STARVED)
                take_all(x, rig);
        assert_int_equal(rig->page->data_tail, rig->page->data_head);
        if (rig->reader.batch && random_below(2))
                assert_int_equal(reader_push_batch(&rig->reader), 0);
        take_all(x, rig);
}

static void play(Expected *x, const Shape *shape) {
        const Counter *lost;
        uint64_t delivered = 0, filtered = 0, undecodable = 0, doubled = 0;
        uint32_t raw_size;
        Rig rig;

        *x = (Expected){ .n = 0 };
        rig_init(&rig, 64 * 1024, 2 + random_below(3));
        set_snapshot(&rig, shape);
        raw_size = (uint32_t)(rig.reader.snapshot->events[RUN].event->plan->min_size + 4 + 7) / 8 * 8 - 4;
        for (size_t i = 0; i < RECORDS; i++) {
                if (random_below(100) == 0 || !rig_has_room(&rig, 36 + RAW_MAX))
                        drain(x, &rig);
                put_one(x, &rig, shape, 1000 + i, raw_size);
        }
        drain(x, &rig);
        if (rig.reader.batch)
                assert_int_equal(reader_push_batch(&rig.reader), 0);
        take_all(x, &rig);
        assert_int_equal(x->n_seen, x->n);
        for (size_t i = 0; i < N_EVENTS; i++) {
                delivered += counter_get(&rig_counters(&rig, i)->delivered);
                filtered += counter_get(&rig_counters(&rig, i)->filtered);
                doubled += counter_get(&rig_counters(&rig, i)->doubled);
                lost = rig_counters(&rig, i)->lost;
                undecodable += counter_get(&lost[LOSS_UNDECODABLE]);
        }
        assert_int_equal(delivered, x->delivered);
        assert_int_equal(filtered, x->filtered);
        assert_int_equal(undecodable, x->undecodable);
        assert_int_equal(doubled, x->doubled);
        assert_int_equal(counter_get(&rig.reader.counters.records), RECORDS);
        assert_int_equal(counter_get(&rig.reader.counters.samples), RECORDS);
        assert_true(x->others > 0 && x->undecodable > 0);
        rig_deinit(&rig);
}

static void test_runs(void **state) {
        static const struct {
                const char *format, *where;
        } events[] = { { "raw_syscalls.sys_enter", "id & 1 && args[0] != 2" }, { "sched.sched_switch", "prev_prio > 0" },
                       { "irq.softirq_entry", "vec & 1" } };
        static const uint32_t mixes[] = { 20, 3, 2 };
        _cleanup_free_ Expected *x = malloc(sizeof(*x));

        assert_non_null(x);
        for (unsigned i = 0; i < ARRAY_SIZE(events) * (_PAYLOAD_MAX + 1) * 16; i++) {
                unsigned event = i / 16 / (_PAYLOAD_MAX + 1);
                Shape shape = { .format = events[event].format, .payload = i / 16 % (_PAYLOAD_MAX + 1),
                                .mix = mixes[i % 3], .cpu = i & 1 ? 3 : 0, .exclude_self = i & 2, .is_unwanted = (i & 12) == 12,
                                .where = i & 4 ? events[event].where : NULL };

                seed = i;
                play(x, &shape);
                if (shape.where && !shape.is_unwanted && shape.payload < _PAYLOAD_MAX)
                        assert_true(x->filtered > RECORDS / 20 && x->delivered > RECORDS / 20);
        }
}

/* Times of one CPU that go back: the batch says so, and is put in order. is_mixed: two streams in turns. */
static void check_times_that_go_back(bool is_mixed) {
        const Shape shape = { .format = "irq.softirq_entry" };
        static const nsec_t times[] = { 10, 11, 14, 12, 13, 15 };
        uint32_t raw[3] = { 0 };
        Rig rig;
        Batch *b;

        rig_init(&rig, 64 * 1024, 2);
        set_snapshot(&rig, &shape);
        for (size_t i = 0; i < ARRAY_SIZE(times); i++)
                assert_true(rig_put_sample(&rig, stream_id(is_mixed ? i % 2 : RUN), WHO(1, 1, times[i]), raw, sizeof(raw)));
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_false(rig.reader.batch->sorted);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        b = queue_pop(&rig.reader.full);
        assert_int_equal(b->n_entries, ARRAY_SIZE(times));
        for (size_t i = 0; i < b->n_entries; i++)
                assert_int_equal(b->entries[i].time, 10 + i);
        queue_push(&rig.reader.free, b);
        rig_deinit(&rig);
}

static void test_times_that_go_back(void **state) {
        check_times_that_go_back(false);
        check_times_that_go_back(true);
}

/* Items so short that a batch is full of entries while there is room for bytes. */
static void check_full_of_entries(bool is_mixed) {
        const Shape shape = { .format = "irq.softirq_entry" };
        uint32_t raw[3] = { 0 };
        Rig rig;

        rig_init(&rig, 256 * 1024, 3);
        set_snapshot(&rig, &shape);
        for (size_t i = 0; i < 2 * BATCH_ENTRIES + 3; i++)
                assert_true(rig_put_sample(&rig, stream_id(is_mixed ? i % 2 : RUN), WHO(1, 1, 1 + i), raw, sizeof(raw)));
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        for (size_t i = 0; i < 3; i++) {
                Batch *b = queue_pop(&rig.reader.full);

                assert_non_null(b);
                check_batch(b);
                assert_int_equal(b->n_entries, i < 2 ? BATCH_ENTRIES : 3);
                assert_int_equal(b->entries[0].time, 1 + i * BATCH_ENTRIES);
                queue_push(&rig.reader.free, b);
        }
        rig_deinit(&rig);
}

static void test_full_of_entries(void **state) {
        check_full_of_entries(false);
        check_full_of_entries(true);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_runs),
                cmocka_unit_test(test_times_that_go_back),
                cmocka_unit_test(test_full_of_entries),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
