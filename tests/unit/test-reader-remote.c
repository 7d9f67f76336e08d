/*
 * A reader that does not run on its ring's CPU: what it says, and when. The clock, the guard's sleep and the read(2) of
 * counts are the test's, so that what the other CPU does meanwhile is done in the middle of them.
 */
#include "tests/unit/reader-checks.h"

#include "daemon/kernel/event/open.h"

#define GUARD (5 * NSEC_PER_MSEC)
#define NUMBERS_FD 1000 /* of stream 1: what is read of others is 0 */
#define OTHER_FD 1001   /* of an event that is read behind it */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *rest);
int __wrap_open_read(int fd, uint64_t read_format, ReadCount *ret);
int __wrap_open_read_patiently(int fd, uint64_t read_format, ReadCount *ret);
int __wrap_open_read_group(int fd, uint64_t read_format, ReadCount *ret, size_t n);

typedef struct World {
        Rig rig;
        nsec_t now;
        unsigned n_sleeps, n_reads;
        uint64_t put;         /* records of NUMBERS */
        unsigned each_sleep;  /* so many come while the reader sleeps */
        unsigned while_other; /* and, once, while the count of the other event is read */
        unsigned before_read, after_read; /* and before and behind the place at which a count is taken */
        uint64_t unwritten;   /* counted besides */
        uint64_t calls;       /* that each member of a group has counted, */
        unsigned busy_reads;  /* and so many reads of it meet one between two members */
} World;

static World w;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
        *ret = (struct timespec){ .tv_sec = (time_t)(w.now / NSEC_PER_SEC), .tv_nsec = (long)(w.now % NSEC_PER_SEC) };
        return 0;
}

static void put(unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                w.now += 10;
                assert_true(rig_put_number(&w.rig, 1, WHO(1, 1, w.now), 2, 0));
                w.put++;
        }
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *rest) {
        nsec_t end = timespec_nsec(*until);

        w.n_sleeps++;
        put(w.each_sleep);
        assert_true(w.now <= end);
        w.now = end;
        return 0;
}

int __wrap_open_read(int fd, uint64_t read_format, ReadCount *ret) {
        *ret = (ReadCount){ .value = 0 };
        if (fd == OTHER_FD) {
                put(w.while_other);
                w.while_other = 0;
        }
        if (fd != NUMBERS_FD)
                return 0;
        w.n_reads++;
        put(w.before_read);
        ret->value = w.put + w.unwritten;
        put(w.after_read);
        return 0;
}

int __wrap_open_read_patiently(int fd, uint64_t read_format, ReadCount *ret) {
        return __wrap_open_read(fd, read_format, ret);
}

/* As perf_read_group() does it, one member after the other. */
int __wrap_open_read_group(int fd, uint64_t read_format, ReadCount *ret, size_t n) {
        bool is_busy = w.n_reads++ < w.busy_reads;

        assert_int_equal(fd, NUMBERS_FD);
        for (size_t i = 0; i < n; i++)
                ret[i] = (ReadCount){ .value = w.calls += is_busy && i > 0 };
        return 0;
}

static void world_init(nsec_t guard, size_t n_batches) {
        w = (World){ .now = NSEC_PER_SEC };
        rig_init(&w.rig, 1 << 20, n_batches);
        w.rig.reader.guard = guard;
        w.rig.reader.snapshot->cpus[0].streams[0].fd = NUMBERS_FD;
}

static const EventCut *cut(void) {
        assert_int_equal(reader_cut(&w.rig.reader, NULL), 0);
        return &rig_counters(&w.rig, RIG_NUMBERS)->cut;
}

static void test_cut_of_a_quiet_cpu(void **state) {
        const EventCut *c;

        world_init(GUARD, 4);
        put(7);
        c = cut();
        assert_true(c->is_consistent && !c->is_approximate);
        assert_int_equal(c->delivered, 7);
        assert_int_equal(c->count, 7);
        assert_int_equal(w.n_sleeps, 0); /* even: nothing can be under way */

        w.unwritten = 1; /* counted, and not there: it may be under way, until a guard is over */
        c = cut();
        assert_true(c->is_consistent && !c->is_approximate);
        assert_int_equal(c->delivered, 7);
        assert_int_equal(c->count, 8);
        assert_int_equal(w.n_sleeps, 1);
        rig_deinit(&w.rig);
}

/* What is counted comes into the ring only during the guard: that was no occurrence without its record. */
static void test_cut_waits_for_what_is_under_way(void **state) {
        const EventCut *c;

        world_init(GUARD, 4);
        put(3);
        w.unwritten = 1;
        w.each_sleep = 1;
        assert_int_equal(reader_drain(&w.rig.reader), 0);
        assert_false(reader_is_quiescent(&w.rig.reader));
        w.unwritten = w.each_sleep = 0;
        c = cut();
        assert_true(c->is_consistent && !c->is_approximate);
        assert_int_equal(c->delivered, 4);
        rig_deinit(&w.rig);
}

static void test_cut_of_a_busy_cpu(void **state) {
        const EventCut *c;

        world_init(GUARD, 4);
        put(3);
        w.before_read = w.after_read = 1;
        w.each_sleep = 2;
        c = cut();
        assert_true(c->is_consistent && c->is_approximate);
        assert_int_equal(w.n_reads, 8);
        assert_int_equal(w.n_sleeps, 1);
        assert_int_equal(c->delivered, w.put);
        assert_int_equal(c->count, w.put - 3); /* the last read, and what came after it */

        w.unwritten = 1000; /* more than can be under way: as a child has whose records nobody gets */
        c = cut();
        assert_true(c->is_approximate && c->is_consistent);
        assert_int_equal(c->delivered, w.put);

        w.before_read = w.after_read = w.each_sleep = 0; /* a quiet CPU shows how many they are */
        c = cut();
        assert_true(c->is_consistent && !c->is_approximate);
        assert_int_equal(c->count, c->delivered + 1000);
        rig_deinit(&w.rig);
}

static void test_cut_on_the_own_cpu(void **state) {
        const EventCut *c;

        world_init(0, 4);
        put(3);
        w.unwritten = 1;
        c = cut();
        assert_true(c->is_consistent && !c->is_approximate);
        assert_int_equal(c->count, 4);
        assert_int_equal(w.n_sleeps, 0);
        rig_deinit(&w.rig);
}

static void test_watermarks(void **state) {
        Reader *r = &w.rig.reader;
        nsec_t began, newest = 0;
        Batch *b;

        world_init(GUARD, 2);
        put(1);
        began = w.now;
        assert_int_equal(reader_drain(r), 0);
        assert_int_equal(reader_push_batch(r), 0);
        b = queue_pop(&r->full);
        assert_int_equal(b->watermark, began - GUARD);
        queue_push(&r->free, b);

        /* the last free batch leaves when all that is in batches is older than what it can say */
        while (!r->needs_batch) {
                put(100);
                if (reader_drain(r) == READER_E_STARVED)
                        break;
        }
        assert_int_equal(w.n_sleeps, 1);
        for (size_t i = 0; (b = queue_pop(&r->full)); i++) {
                nsec_t last = b->entries[b->n_entries - 1].time;

                newest = last > newest ? last : newest;
                assert_int_equal(b->watermark, i == 0 ? 0 : b->watermark);
                if (queue_is_empty(&r->full))
                        assert_true(b->watermark >= newest && b->watermark <= w.now - GUARD);
                batch_free(b);
        }
        rig_deinit(&w.rig);
}

/* Of all events one place is cut, at the end of a batch: what comes while the last is read has the first one read again. */
static void test_cut_at_one_place(void **state) {
        Reader *r = &w.rig.reader;
        const EventCut *c;
        size_t n = 0;
        Batch *b;

        world_init(0, 4);
        r->snapshot->cpus[0].streams[2].fd = OTHER_FD;
        put(7);
        w.while_other = 3;
        c = cut();
        assert_true(c->is_consistent);
        assert_int_equal(c->delivered, 10);
        assert_int_equal(c->count, 10);
        assert_int_equal(w.n_reads, 2);
        assert_true(rig_counters(&w.rig, RIG_SOFTWARE)->cut.is_consistent);
        assert_int_equal(reader_push_batch(r), 0);
        while ((b = queue_pop(&r->full))) {
                n += b->n_entries;
                batch_free(b);
        }
        assert_int_equal(n, 10);
        rig_deinit(&w.rig);
}

/* ---- groups that are read at an interval -------------------------------------------------------------------------- */

#define MEMBERS 3

static void group_init(nsec_t guard, unsigned busy_reads) {
        SnapshotEvent *e;

        world_init(guard, 2);
        w.calls = 100;
        w.busy_reads = busy_reads;
        e = &w.rig.reader.snapshot->events[RIG_NUMBERS];
        for (unsigned i = 0; i < MEMBERS; i++)
                assert_int_equal(event_add_member((Event *)e->event, "member", "", 1), 0);
        e->closed = calloc(MEMBERS, sizeof(*e->closed));
        assert_non_null(e->closed);
        for (unsigned i = 0; i < MEMBERS; i++)
                e->closed[i].value = 7;
        e->interval = NSEC_PER_MSEC;
        ((SnapshotStream *)w.rig.reader.snapshot->cpus[0].streams)[0].read_format = PERF_FORMAT_GROUP;
        rig_counters(&w.rig, RIG_NUMBERS)->next_read = w.now;
}

/* What the members have; all 0: nothing was read. */
static void take_group(uint64_t *ret_values) {
        Reader *r = &w.rig.reader;
        Batch *b;

        memset(ret_values, 0, MEMBERS * sizeof(*ret_values));
        assert_int_equal(reader_push_batch(r), 0);
        b = queue_pop(&r->full);
        assert_in_range(b->n_entries, 0, 1);
        if (b->n_entries > 0) {
                Perfd__V1__Packet *p = perfd__v1__packet__unpack(NULL, b->entries[0].length, b->arena + entry_offset(&b->entries[0]));
                const Perfd__V1__ReadValues *values = p->items[0]->read->values;

                assert_int_equal(values->n_values, MEMBERS);
                for (size_t i = 0; i < MEMBERS; i++)
                        ret_values[i] = values->values[i]->value;
                perfd__v1__packet__free_unpacked(p, NULL);
        }
        batch_free(b);
        rig_deinit(&w.rig);
}

static void read_group(uint64_t *ret_values) {
        nsec_t next;

        assert_int_equal(reader_read_intervals(&w.rig.reader, &next), 0);
        assert_int_equal(next, w.now / NSEC_PER_MSEC * NSEC_PER_MSEC + NSEC_PER_MSEC);
        take_group(ret_values);
}

static void check_group(unsigned n_reads, uint64_t value) {
        uint64_t values[MEMBERS];

        read_group(values);
        for (size_t i = 0; i < MEMBERS; i++)
                assert_int_equal(values[i], value);
        assert_int_equal(w.n_reads, n_reads);
}

/* It is read until two reads say the same. */
static void test_group_is_read_at_one_moment(void **state) {
        group_init(GUARD, 0);
        check_group(2, 107);
        group_init(GUARD, 3);
        check_group(5, 107 + 3 * (MEMBERS - 1));
        group_init(0, 0);
        check_group(1, 107); /* on its CPU the kernel lets nothing in between */
}

/* One that never stops: who may run in a moment reads it, and who does not has what there is. */
static void test_group_never_stops(void **state) {
        uint64_t values[MEMBERS];

        group_init(GUARD, UINT32_MAX);
        read_group(values);
        assert_int_equal(w.n_reads, 9);
        assert_int_equal(values[MEMBERS - 1], 107 + w.calls - 100);

        for (int i = 0; i < 2; i++) {
                group_init(0, UINT32_MAX);
                w.rig.reader.away_guard = GUARD;
                w.rig.reader.is_backup = true;
                w.rig.reader.failed_over_at = i ? w.now - NSEC_PER_SEC : w.now;
                read_group(values);
                assert_int_equal(w.n_reads, 9);
                assert_int_equal(values[MEMBERS - 1], i ? 107 + w.calls - 100 : 0);
        }
}

/* Its last counts are read when a snapshot comes in which it is not read any more: not if it still is, nor if it is not there. */
static void test_group_is_disabled(void **state) {
        uint64_t values[MEMBERS];

        for (int i = 0; i < 3; i++) {
                Snapshot *next;

                group_init(0, 0);
                next = rig_snapshot_new(&w.rig, 2);
                if (i == 1)
                        next->events[RIG_NUMBERS].interval = NSEC_PER_SEC;
                if (i == 2)
                        w.rig.reader.snapshot->cpus[0].streams[0].id = UINT64_MAX;
                assert_int_equal(reader_need_batch(&w.rig.reader), 0);
                assert_int_equal(reader_read_disabled(&w.rig.reader, next), 0);
                snapshot_unref(next);
                take_group(values);
                for (size_t k = 0; k < MEMBERS; k++)
                        assert_int_equal(values[k], i == 0 ? 107 : 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_group_is_read_at_one_moment),
                cmocka_unit_test(test_group_is_disabled),
                cmocka_unit_test(test_group_never_stops),
                cmocka_unit_test(test_cut_at_one_place),
                cmocka_unit_test(test_cut_of_a_quiet_cpu),
                cmocka_unit_test(test_cut_waits_for_what_is_under_way),
                cmocka_unit_test(test_cut_of_a_busy_cpu),
                cmocka_unit_test(test_cut_on_the_own_cpu),
                cmocka_unit_test(test_watermarks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
