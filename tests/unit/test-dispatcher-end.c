/*
 * How streams begin and end, without the dispatcher's thread: each has what is before its cut, or behind it, and nothing else; and
 * what its last packet says is what came.
 */
#include "tests/unit/dispatcher-rig.h"

static Batch *batch_behind(uint64_t cut, Batch *b) {
        b->cut = cut;
        return b;
}

static void rig_cut(Rig *r, uint64_t id, uint64_t cut, nsec_t at) {
        Perfd__V1__Ledger empty = PERFD__V1__LEDGER__INIT;
        DispatcherCommand command = { .kind = DISPATCHER_CLOSE, .id = id, .cut = cut, .reason = "stopped", .at = at };
        uint8_t bytes[16];

        command.bytes = bytes;
        command.n_bytes = perfd__v1__ledger__pack(&empty, bytes);
        assert_int_equal(dispatcher_close(&r->dispatcher, &command), 0);
}

static Subscriber *rig_subscribe(Rig *r, uint64_t id, StreamOrder order, uint64_t from, int *ret_peer) {
        Subscriber *s = calloc(1, sizeof(*s));
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        *ret_peer = fds[1];
        *s = (Subscriber){ .id = id, .fd = fds[0], .order = order, .since = 1, .from = from, .queue_bytes = 1 << 20 };
        assert_int_equal(dispatcher_subscribe(&r->dispatcher, s), 0);
        return s;
}

/* Items in the packets that came, and the row of the closing ledger if that came too. */
static size_t count_items(int peer, bool *ret_ended, uint64_t *ret_matched, uint64_t *ret_sent, uint64_t *ret_queued) {
        static uint8_t bytes[1 << 16];
        ssize_t length = recv(peer, bytes, sizeof(bytes), MSG_DONTWAIT);
        size_t items = 0;

        *ret_ended = false;
        for (ssize_t at = 0; at < length;) {
                uint32_t n;
                Perfd__V1__ServerMessage *m;

                memcpy(&n, bytes + at, sizeof(n));
                m = perfd__v1__server_message__unpack(NULL, n, bytes + at + 4);
                assert_non_null(m);
                items += m->packet->n_items;
                if (m->packet->end) {
                        const Perfd__V1__SubscriberLedger *row = m->packet->end->ledger->subscribers[0];

                        *ret_ended = true;
                        *ret_matched = row->matched;
                        *ret_sent = row->sent;
                        *ret_queued = row->queued;
                }
                perfd__v1__server_message__free_unpacked(m, NULL);
                at += 4 + n;
        }
        return items;
}

#define CUT_BATCH(slot, cut, watermark, ...)                                                                           \
        batch_behind(cut, make_batch(slot, watermark, (const nsec_t[]){ __VA_ARGS__ }, sizeof((const nsec_t[]){ __VA_ARGS__ }) / 8))

/*
 * Two CPUs are cut one after the other, and go on: who ends there has what is before, in whatever turns it comes, and all of
 * it; who shares its packets has everything; who begins there has what is behind.
 */
static void test_ends_and_begins_at_a_cut(void **state) {
        uint64_t matched = 0, sent = 0, queued = 0;
        int peers[2];
        bool ended;
        Rig r;

        for (int order = 0; order < _STREAM_ORDER_MAX; order++) {
                rig_init(&r);
                rig_subscribe(&r, 2, (StreamOrder)order, 0, &peers[0]);
                assert_int_equal(dispatcher_begin(&r.dispatcher, 2), 0);
                rig_take_batch(&r, CUT_BATCH(0, 4, 12, 10));
                dispatcher_cut(&r.dispatcher, 2, 5);
                rig_subscribe(&r, 3, (StreamOrder)order, 5, &peers[1]);
                rig_take_batch(&r, CUT_BATCH(0, 4, 20, 18));
                rig_take_batch(&r, CUT_BATCH(0, 5, 50, 25, 26)); /* this CPU was cut at 20, */
                rig_take_batch(&r, CUT_BATCH(1, 4, 30, 19, 24, 28)); /* and that one at 30 */
                rig_take_batch(&r, CUT_BATCH(1, 5, 31, 31));
                assert_int_equal(dispatcher_begin(&r.dispatcher, 3), 0);
                dispatcher_pass_beginnings(&r.dispatcher);
                rig_cut(&r, 2, 5, 35);
                assert_int_equal(dispatcher_end_closing(&r.dispatcher), 0);
                assert_int_equal(count_items(peers[0], &ended, &matched, &sent, &queued), 5);
                assert_true(ended);
                assert_true(matched == 5 && sent == 5 && queued == 0);
                rig_take_batch(&r, CUT_BATCH(0, 5, 60, 40));
                rig_take_batch(&r, CUT_BATCH(1, 5, 60, 41));
                dispatcher_pass_beginnings(&r.dispatcher);
                assert_int_equal(count_items(peers[1], &ended, &matched, &sent, &queued), 5);
                assert_false(ended);
                assert_int_equal(count_items(r.peer, &ended, &matched, &sent, &queued), 10); /* in the order of time */
                assert_int_equal(r.dispatcher.n_edges, 0);
                close_fd(peers[0]);
                close_fd(peers[1]);
                rig_deinit(&r);
        }
}

/* An item of 1,000 bytes, which no field of Item has a use for. */
static Batch *make_large_batch(nsec_t watermark, nsec_t first, size_t n) {
        static const uint8_t head[] = { 0x22, 0xe5, 0x07, 0xba, 0x3e, 0xe1, 0x07 }; /* `items`; field 999 in it; 993 bytes */
        Batch *b = batch_new(0);

        assert_non_null(b);
        batch_reset(b, 1);
        b->watermark = watermark;
        for (size_t i = 0; i < n; i++) {
                size_t room;
                uint8_t *to = batch_room(b, &room);

                assert_true(room >= 1000);
                memset(to, 0, 1000);
                memcpy(to, head, sizeof(head));
                batch_append(b, first + i, 1, EVENT, 0, 1000);
        }
        batch_seal(b);
        return b;
}

typedef struct Told {
        uint64_t items, missed;         /* what came, and what gaps said */
        uint64_t matched, sent, dropped; /* what the last packet says */
        bool ended;
} Told;

static void hear_packet(Told *t, const Perfd__V1__Packet *p) {
        t->items += p->n_items;
        for (size_t i = 0; i < p->n_gap; i++)
                t->missed += p->gap[i]->items;
        if (!p->end)
                return;
        t->ended = true;
        t->matched = p->end->ledger->subscribers[0]->matched;
        t->sent = p->end->ledger->subscribers[0]->sent;
        for (size_t i = 0; i < p->end->ledger->subscribers[0]->n_dropped; i++)
                t->dropped += p->end->ledger->subscribers[0]->dropped[i]->count;
}

static bool has_subscriber(Rig *r) {
        DispatcherReport report;
        size_t n;

        assert_int_equal(dispatcher_report(&r->dispatcher, 1, &report), 0);
        n = report.n_subscribers;
        dispatcher_report_deinit(&report);
        return n > 0;
}

/* A peer that did not read until now reads all that there is, and what follows. */
static Told hear_all(Rig *r) {
        _cleanup_free_ uint8_t *bytes = malloc(1 << 23);
        size_t length = 0;
        Told t = { .ended = false };
        ssize_t n;

        assert_non_null(bytes);
        do {
                if (has_subscriber(r))
                        assert_int_equal(subscriber_send(&r->dispatcher, r->subscriber), 0);
                n = recv(r->peer, bytes + length, (1 << 23) - length, MSG_DONTWAIT);
                length += n > 0 ? (size_t)n : 0;
        } while (n > 0);
        for (size_t at = 0; at + 4 <= length;) {
                Perfd__V1__ServerMessage *m;
                uint32_t size;

                memcpy(&size, bytes + at, sizeof(size));
                m = perfd__v1__server_message__unpack(NULL, size, bytes + at + 4);
                assert_non_null(m);
                hear_packet(&t, m->packet);
                perfd__v1__server_message__free_unpacked(m, NULL);
                at += 4 + size;
        }
        return t;
}

/* The queues have no memory left when a stream ends: some of its own items go for its last packet, which says so. */
static void test_last_packet_says_what_went_for_it(void **state) {
        Told t;
        Rig r;

        rig_init(&r);
        dispatcher_cut(&r.dispatcher, 1, 5);
        for (nsec_t time = 100; time < 1300; time += 60) {
                rig_take_batch(&r, batch_behind(4, make_large_batch(time + 60, time, 60)));
                rig_take_batch(&r, batch_behind(4, make_batch(1, time + 60, NULL, 0)));
                rig_free_batches(&r);
        }
        assert_true(queue_account_used(&r.dispatcher.queues) > 500000);
        queue_account_set_limit(&r.dispatcher.queues, queue_account_used(&r.dispatcher.queues));
        rig_cut(&r, 1, 5, 1300);
        assert_int_equal(dispatcher_end_closing(&r.dispatcher), 0);
        queue_account_set_limit(&r.dispatcher.queues, SIZE_MAX);
        t = hear_all(&r);
        assert_true(t.ended);
        assert_int_equal(t.matched, 1200);
        assert_true(t.dropped > 0);
        assert_int_equal(t.missed, t.dropped);
        assert_int_equal(t.items, t.sent);
        assert_int_equal(t.sent + t.dropped, t.matched);
        rig_deinit(&r);
}

/* What is before the cut waits for what the other CPU has to say, behind the cut too; only then it is the end. */
static void test_end_waits_for_the_merge(void **state) {
        uint64_t matched = 0, sent = 0, queued = 0;
        bool ended;
        Rig r;

        rig_init(&r);
        dispatcher_cut(&r.dispatcher, 1, 5);
        rig_take_batch(&r, CUT_BATCH(0, 4, 30, 10, 29));
        rig_take_batch(&r, CUT_BATCH(1, 4, 20, 15));
        rig_cut(&r, 1, 5, 35);
        assert_int_equal(dispatcher_end_closing(&r.dispatcher), 0);
        assert_int_equal(count_items(r.peer, &ended, &matched, &sent, &queued), 2);
        assert_false(ended);
        rig_take_batch(&r, CUT_BATCH(1, 5, 30, 22));
        assert_int_equal(dispatcher_end_closing(&r.dispatcher), 0);
        assert_int_equal(count_items(r.peer, &ended, &matched, &sent, &queued), 1); /* 29, and not 22 */
        assert_true(ended);
        assert_true(matched == 3 && sent == 3 && queued == 0);
        rig_deinit(&r);
}

static void rig_post(Rig *r, DispatcherCommandKind kind, uint32_t slot) {
        DispatcherCommand *command = calloc(1, sizeof(*command));

        assert_non_null(command);
        *command = (DispatcherCommand){ .kind = kind, .slot = slot };
        dispatcher_post(&r->dispatcher, command);
}

/* Two: what is read in the middle of a turn follows in the next one. */
static void rig_turns(Rig *r) {
        for (int i = 0; i < 2; i++)
                assert_int_equal(dispatcher_run_cycle(&r->dispatcher, false), 0);
}

static void rig_push(Rig *r, uint32_t slot, Batch *b) {
        assert_true(queue_push(&r->full[slot], b));
}

/*
 * The reader of CPU 1 misses the cut at which a stream begins. When it goes on it brings what is before that, some of which it has
 * yet to read; the newcomer shares its packets with one who was there, and gets what is behind the cut that the reader takes then.
 */
static void test_begins_while_a_reader_misses_the_cut(void **state) {
        uint64_t matched = 0, sent = 0, queued = 0;
        int peers[2];
        bool ended;
        Rig r;

        for (int order = 0; order < _STREAM_ORDER_MAX; order++) {
                rig_init(&r);
                rig_subscribe(&r, 2, (StreamOrder)order, 0, &peers[0]);
                assert_int_equal(dispatcher_begin(&r.dispatcher, 2), 0);
                rig_push(&r, 0, CUT_BATCH(0, 4, 10, 10));
                rig_post(&r, DISPATCHER_PIPE_STALLED, 1);
                rig_turns(&r);
                rig_subscribe(&r, 3, (StreamOrder)order, 5, &peers[1]);
                rig_push(&r, 0, CUT_BATCH(0, 5, 12, 12));
                assert_int_equal(dispatcher_begin(&r.dispatcher, 3), 0);
                rig_turns(&r);
                dispatcher_set_pipe(&r.dispatcher, 1, true, true); /* as PIPE_ON, which somebody waits for */
                rig_push(&r, 1, CUT_BATCH(1, 4, 20, 13, 14));
                rig_turns(&r);
                rig_push(&r, 1, CUT_BATCH(1, 4, 21, 21));
                rig_push(&r, 1, CUT_BATCH(1, 6, 30, 23, 24));
                rig_post(&r, DISPATCHER_PIPE_CUT, 1);
                rig_turns(&r);
                rig_push(&r, 0, CUT_BATCH(0, 6, 40, 31));
                rig_push(&r, 1, CUT_BATCH(1, 6, 40, 32));
                rig_turns(&r);
                assert_int_equal(count_items(peers[0], &ended, &matched, &sent, &queued), 9);
                assert_int_equal(count_items(peers[1], &ended, &matched, &sent, &queued), 5); /* 12, 23, 24, 31, 32 */
                assert_int_equal(r.dispatcher.n_edges, 0);
                close_fd(peers[0]);
                close_fd(peers[1]);
                rig_deinit(&r);
        }
}

/* A stalled reader goes on, and has more to push than it has batches: they come back, and it hears of it. It holds nobody up. */
static void test_takes_what_a_stalled_reader_pushes(void **state) {
        Rig r;

        rig_init(&r);
        rig_post(&r, DISPATCHER_PIPE_STALLED, 1);
        rig_turns(&r);
        rig_push(&r, 0, make_batch(0, 10, (const nsec_t[]){ 10 }, 1));
        rig_turns(&r);
        assert_int_equal(queue_count(&r.free[0]), 1);
        for (unsigned i = 0; i < 3; i++) {
                atomic_store(&r.needs_batch[1], true);
                rig_push(&r, 1, make_batch(1, 0, (const nsec_t[]){ 5, 11 + i }, 2));
                assert_true(dispatcher_has_work(&r.dispatcher));
                rig_turns(&r);
                rig_push(&r, 0, make_batch(0, 20 + i, (const nsec_t[]){ 20 + i }, 1));
                rig_turns(&r);
                assert_int_equal(queue_count(&r.free[1]), i + 1);
                assert_false(atomic_load(&r.needs_batch[1]));
                assert_int_equal(mailbox_take_asks(&r.readers[1]), READER_ASK_BATCHES);
        }
        assert_int_equal(queue_count(&r.free[0]), 4);
        assert_int_equal(r.subscriber->late, 5); /* three of 5; 12 and 13 are behind 20 */
        rig_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ends_and_begins_at_a_cut),
                cmocka_unit_test(test_end_waits_for_the_merge),
                cmocka_unit_test(test_begins_while_a_reader_misses_the_cut),
                cmocka_unit_test(test_takes_what_a_stalled_reader_pushes),
                cmocka_unit_test(test_last_packet_says_what_went_for_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
