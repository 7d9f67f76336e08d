/*
 * What comes too late for streams in the order of time, and is counted: each stream counts items, the event samples, each once,
 * in whatever number of encodings, and none that another stream got.
 */
#include "tests/unit/dispatcher-rig.h"

#define MANY 70 /* a subscription of another group than 0 */

typedef struct Peers {
        Rig rig;
        int fds[4];
        size_t n_fds;
} Peers;

static Subscriber *add_subscriber(Peers *p, uint32_t number, StreamOrder order) {
        Subscriber *s = calloc(1, sizeof(*s));
        int fds[2];

        assert_non_null(s);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        p->fds[p->n_fds++] = fds[1];
        *s = (Subscriber){ .id = 1 + p->n_fds, .number = number, .fd = fds[0], .order = order, .since = 1, .queue_bytes = 1 << 20 };
        assert_int_equal(dispatcher_subscribe(&p->rig.dispatcher, s), 0);
        assert_int_equal(dispatcher_begin(&p->rig.dispatcher, s->id), 0);
        return s;
}

static void peers_init(Peers *p) {
        p->n_fds = 0;
        rig_init(&p->rig);
        TAKE(&p->rig, 1, 100, 60);
        TAKE(&p->rig, 0, 100, 70); /* what is older than 70 is late from here on */
}

static void peers_deinit(Peers *p) {
        rig_deinit(&p->rig);
        for (size_t i = 0; i < p->n_fds; i++)
                close_fd(p->fds[i]);
}

static Batch *late_batch(uint64_t cut) {
        Batch *b = batch_new(0);

        assert_non_null(b);
        batch_reset(b, 1);
        b->watermark = 200;
        b->cut = cut;
        return b;
}

/* One item of a sample, for the subscriptions `a` and `b`. */
static void put(Batch *batch, nsec_t time, uint32_t a, uint32_t b, bool continues) {
        static const uint8_t item[] = { 0x22, 0x00 }; /* field `items`, empty */
        SubscriptionSet set = { .groups = 0 };
        size_t at = batch->n_entries, room;

        subscription_set_add(&set, a);
        subscription_set_add(&set, b);
        memcpy(batch_room(batch, &room), item, sizeof(item));
        batch_append_set(batch, time, &set, EVENT, 0, sizeof(item));
        batch->entries[at].place |= continues ? BATCH_MORE : 0;
}

static void take(Peers *p, Batch *b) {
        batch_seal(b);
        rig_take_batch(&p->rig, b);
}

static uint64_t late_before(Peers *p, uint64_t cut) {
        DispatcherReport report;
        const LateRow *row;
        uint64_t count;

        assert_int_equal(dispatcher_report(&p->rig.dispatcher, cut, &report), 0);
        row = late_rows_find(report.late, report.n_late, EVENT, 0);
        count = row ? row->count : 0;
        dispatcher_report_deinit(&report);
        return count;
}

/* Two encodings, and then samples of one moment that are not the same. */
static void test_encodings(void **state) {
        Peers p;
        Subscriber *second;
        Batch *b;

        peers_init(&p);
        second = add_subscriber(&p, 1, STREAM_BY_TIME);
        b = late_batch(0);
        put(b, 50, 0, 0, false);
        put(b, 50, 1, 1, true);
        put(b, 50, 1, 1, false);
        put(b, 50, 0, 0, false);
        put(b, 51, 0, 0, false);
        put(b, 51, 1, 1, true);
        take(&p, b);
        assert_int_equal(late_before(&p, 1), 4);
        assert_int_equal(p.rig.subscriber->late, 3);
        assert_int_equal(second->late, 3);
        peers_deinit(&p);
}

static void test_groups(void **state) {
        Peers p;
        Subscriber *second, *third;
        Batch *b;

        peers_init(&p);
        second = add_subscriber(&p, MANY, STREAM_BY_TIME);
        third = add_subscriber(&p, MANY + 1, STREAM_BY_TIME);
        b = late_batch(0);
        put(b, 50, 0, MANY, false);
        put(b, 50, MANY + 1, MANY + 1, true);
        put(b, 50, MANY, MANY, false);
        put(b, 52, MANY + 1, MANY + 1, false);
        take(&p, b);
        assert_int_equal(late_before(&p, 1), 3);
        assert_int_equal(p.rig.subscriber->late, 1);
        assert_int_equal(second->late, 2);
        assert_int_equal(third->late, 2);
        peers_deinit(&p);
}

/* A stream in the order of each CPU gets one of the encodings, be it the first, the second or one in the next batch. */
static void test_by_cpu(void **state) {
        Peers p;
        Batch *b;

        peers_init(&p);
        (void)add_subscriber(&p, 1, STREAM_BY_CPU);
        (void)add_subscriber(&p, 2, STREAM_BY_TIME);
        b = late_batch(0);
        put(b, 50, 1, 1, false);
        put(b, 50, 0, 0, true);
        put(b, 51, 0, 0, false);
        put(b, 51, 1, 1, true);
        put(b, 51, 2, 2, true);
        put(b, 52, 0, 0, false);
        put(b, 52, 2, 2, true);
        put(b, 53, 0, 0, false);
        take(&p, b);
        assert_int_equal(late_before(&p, 1), 2); /* 52 and, for now, 53 */
        b = late_batch(0);
        put(b, 53, 2, 2, true);
        put(b, 53, 1, 1, true);
        put(b, 54, 2, 2, false);
        take(&p, b);
        assert_int_equal(late_before(&p, 1), 2); /* 52 and 54 */
        assert_int_equal(p.rig.subscriber->late, 4);
        peers_deinit(&p);
}

/* What came to its reader behind the cut of a ledger belongs to a later one. */
static void test_cuts(void **state) {
        Peers p;
        Batch *b;

        peers_init(&p);
        b = late_batch(4);
        put(b, 50, 0, 0, false);
        put(b, 51, 0, 0, false);
        take(&p, b);
        assert_int_equal(late_before(&p, 4), 0);
        assert_int_equal(late_before(&p, 5), 2);
        b = late_batch(5);
        put(b, 52, 0, 0, false);
        take(&p, b);
        assert_int_equal(late_before(&p, 5), 2);
        assert_int_equal(late_before(&p, 6), 3);
        peers_deinit(&p);
}

/* The youngest of a full batch are carried over to the next one, and stay what they are. */
static void test_moved(void **state) {
        Peers p;
        Batch *b, *next;

        peers_init(&p);
        (void)add_subscriber(&p, 1, STREAM_BY_TIME);
        b = late_batch(0);
        next = late_batch(0);
        put(b, 50, 0, 0, false);
        put(b, 51, 0, 0, false);
        put(b, 51, 1, 1, true);
        batch_seal(b);
        batch_move_last(b, 2, next);
        take(&p, b);
        take(&p, next);
        assert_int_equal(late_before(&p, 1), 2);
        peers_deinit(&p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_encodings), cmocka_unit_test(test_groups), cmocka_unit_test(test_by_cpu),
                cmocka_unit_test(test_cuts),      cmocka_unit_test(test_moved),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
