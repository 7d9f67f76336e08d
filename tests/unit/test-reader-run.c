/*
 * Runs of samples, and mixtures, with all that may end one in their middle: what arrives is compared, byte by byte, with
 * what record_decode() and item_encode() make of each record alone.
 */
#include "tests/unit/reader-run-shapes.h"

#include "daemon/decode/record.h"

#define RECORDS 1500
#define ITEMS (RECORDS * 4) /* one for each route */
#define ITEM_MAX 1024
#define RAW_MAX 384

typedef struct Expected {
        size_t n, n_seen;
        uint64_t delivered, filtered, undecodable, duplicates, others;
        size_t lengths[ITEMS];
        nsec_t times[ITEMS];
        uint32_t tids[ITEMS];
        uint8_t events[ITEMS];
        uint64_t masks[ITEMS];
        uint32_t groups[ITEMS];
        uint8_t bytes[ITEMS][ITEM_MAX];
} Expected;

static uint64_t seed;

static uint32_t random_below(uint32_t n) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        return (uint32_t)(((seed >> 33) * n) >> 31);
}

static SubscriptionSet set_of(const SnapshotEvent *e, uint32_t encoding, const Record *record) {
        SubscriptionSet set = { .groups = 0 };

        for (size_t i = 0; i < e->n_routes; i++)
                if (e->routes[i].encoding == encoding && (!e->routes[i].program || match_run(e->routes[i].program, record)))
                        subscription_set_add(&set, e->routes[i].number);
        return set;
}

/* What must come of the record that was put last. */
static void expect(Expected *x, Rig *rig, const Shape *shape, size_t event, const uint8_t *bytes, size_t length) {
        const SnapshotEvent *e = &rig->reader.snapshot->events[event];
        size_t before = x->n;
        Record record;

        x->others += event != RUN;
        if (event == MUTED) {
                x->duplicates++;
                return;
        }
        if (record_decode(&rig->plain, bytes, length, &record) != 0 || record.raw_size < e->event->plan->min_size) {
                x->undecodable++;
                return;
        }
        record.cpu = shape->cpu;
        for (uint32_t k = 0; k < e->table->n_encodings && !(shape->exclude_self && record.pid == RIG_OWN_PID); k++) {
                SubscriptionSet set = set_of(e, k, &record);

                FOR_EACH_BIT(group, set.groups) {
                        assert_int_equal(item_encode(e->table->encodings[k], &record, x->bytes[x->n], ITEM_MAX, &x->lengths[x->n]), 0);
                        x->masks[x->n] = set.masks[group];
                        x->groups[x->n] = (uint32_t)group;
                        x->tids[x->n] = record.tid;
                        x->events[x->n] = (uint8_t)event;
                        x->times[x->n++] = record.time;
                }
        }
        x->delivered += x->n > before;
        x->filtered += x->n == before;
}

static void put_one(Expected *x, Rig *rig, const Shape *shape, nsec_t time, uint32_t raw_size) {
        size_t event = random_below(shape->mix) == 0 ? OTHER + random_below(N_EVENTS - OTHER) : RUN, length;
        RigWho who = WHO(1 + random_below(3), 1 + random_below(5), time);
        uint8_t raw[RAW_MAX], record[44 + RAW_MAX];
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
        switch (random_below(100)) {
        case 0: raw_size -= 4; break; /* the same length, fewer bytes that count */
        case 1: raw_size += 8; break; /* or more than there are */
        case 2: length += 8; break;   /* or the same bytes in a longer record */
        default: break;
        }
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
                        assert_memory_equal(b->arena + entry_offset(e), x->bytes[x->n_seen], e->length);
                        assert_int_equal(e->time, x->times[x->n_seen]);
                        assert_int_equal(e->mask, x->masks[x->n_seen]);
                        assert_int_equal(entry_group(e), x->groups[x->n_seen]);
                        assert_int_equal(e->event, RIG_EVENT_ID(x->events[x->n_seen]));
                        assert_int_equal(e->tid, x->tids[x->n_seen]);
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
        uint64_t delivered = 0, filtered = 0, undecodable = 0, duplicates = 0;
        uint32_t raw_size;
        Rig rig;

        memset(x, 0, offsetof(Expected, lengths));
        rig_init(&rig, 64 * 1024, 2 + random_below(3));
        set_snapshot(&rig, shape);
        raw_size = (uint32_t)(rig.reader.snapshot->events[RUN].event->plan->min_size + 4 + 7) / 8 * 8 - 4;
        for (size_t i = 0; i < RECORDS; i++) {
                if (random_below(100) == 0 || !rig_has_room(&rig, 44 + RAW_MAX))
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
                duplicates += counter_get(&rig_counters(&rig, i)->duplicates);
                lost = rig_counters(&rig, i)->lost;
                undecodable += counter_get(&lost[LOSS_UNDECODABLE]);
        }
        assert_int_equal(delivered, x->delivered);
        assert_int_equal(filtered, x->filtered);
        assert_int_equal(undecodable, x->undecodable);
        assert_int_equal(duplicates, x->duplicates);
        assert_int_equal(counter_get(&rig.reader.counters.records), RECORDS);
        assert_int_equal(counter_get(&rig.reader.counters.samples), RECORDS);
        assert_true(x->others > 0 && x->undecodable > 0);
        rig_deinit(&rig);
}

#define WHERES 6

/*
 * Conditions that are ranges of raw bytes, and of what each record has; that go on as something else behind such ranges,
 * in a record or not; that are more ranges than a program keeps, and none.
 */
static const struct {
        const char *format, *where[WHERES];
} events[] = {
        { "raw_syscalls.sys_enter",
          { "id & 1 && args[0] != 2", "tid != 3 && id & 1 && time != 1007 && pid != 2", "id & 1 && cpu < 5 && args[5] & 1",
            "id & 3 && (args[0] & 1 || tid == 4)",
            "id != 1 && args[0] != 1 && args[1] & 1 && args[2] != 2 && args[3] & 1 && args[4] & 3",
            "id & 1 || args[1] & 1" } },
        { "sched.sched_switch",
          { "prev_prio > 0", "prev_prio > 0 && next_pid < 0", "sample.pid > 1 && prev_pid <= 3 && sample.tid & 1",
            "next_prio != 2 && prev_comm ~ \"?*\" && prev_comm != next_comm", "prev_comm ~ \"?*\"", "next_prio > prev_prio" } },
        { "irq.softirq_entry",
          { "vec & 1", "cpu < 5 && vec & 2 && pid == 2", "time & 4 && time > 1000 && vec != 1", "vec & 1 && (tid == 1 || vec & 2)",
            "!(vec & 1)", "vec & 1 && time > 1000 && tid > 1 && pid > 1 && tid < 4" } },
        { "widths",
          { "u8 > 1", "s8 < 2 && u8 != 2", "u16 & 1 && u16 > 0x100", "s16 < 0", "u32 >= 0x80000000 && s64 != 2", "s32 < 0 || u64 & 1" } },
        { "words", { "list[0] & 1", "list[3] & 1", "name != \"\"", "list[1] > list[2]", "list[3] & 3 != 1 && tid != 2", "list[2] & 3" } },
        { "many", { "list[0] & 1", "list[32] & 1", "list[7] < list[8]", "1", "list[3] & 1 && list[4] & 1", "list[32] & 3 != 3" } },
};

static void check_runs(unsigned layout) {
        static const unsigned mixes[] = { 20, 3, 2 }, payloads[] = { PAYLOAD_FIELDS, PAYLOAD_RAW, PAYLOAD_BOTH, ALL, TWICE };
        _cleanup_free_ Expected *x = malloc(sizeof(*x));

        assert_non_null(x);
        for (unsigned i = 0; i < ARRAY_SIZE(events) * WHERES * ARRAY_SIZE(payloads) * 16; i += layout > 0 ? 7 : 1) {
                unsigned where = i / 16 / ARRAY_SIZE(payloads) % WHERES, event = i / 16 / ARRAY_SIZE(payloads) / WHERES;
                Shape shape = { .format = events[event].format, .payload = payloads[i / 16 % ARRAY_SIZE(payloads)],
                                .mix = mixes[i % 3], .cpu = i & 1 ? 3 : 0, .exclude_self = i & 2, .is_unwanted = (i & 12) == 12,
                                .layout = layout,
                                .where = i & 4 ? events[event].where[where] : NULL };

                if (where > 0 && (!shape.where || shape.is_unwanted))
                        continue; /* was played with the first one */
                seed = i;
                play(x, &shape);
                if (shape.where && strcmp(shape.where, "1") != 0 && !shape.is_unwanted && shape.payload < ALL)
                        assert_true(x->filtered > RECORDS / 20 && x->delivered > RECORDS / 20);
        }
}

static void test_runs(void **state) {
        check_runs(0);
}

/* Subscriptions of other groups get what those of the first one do, in items that groups share. */
static void test_groups(void **state) {
        for (unsigned layout = 1; layout < LAYOUTS; layout++)
                check_runs(layout);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_runs), cmocka_unit_test(test_groups) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
