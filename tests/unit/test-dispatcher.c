/*
 * The dispatcher without its thread: batches by hand, one subscriber in the order of time. What has to be released is,
 * nothing before its time, and a reader that can not go on without its batches does not stop everybody.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "daemon/dispatcher.h"

#define N_LANES 2
#define EVENT 7

typedef struct Rig {
        Queue full[N_LANES], free[N_LANES];
        atomic_bool starving[N_LANES];
        Mailbox readers[N_LANES];
        Lane lanes[N_LANES];
        Dispatcher dispatcher;
        Subscriber *subscriber;
        int peer;
} Rig;

static void rig_init(Rig *r) {
        Subscriber *s = calloc(1, sizeof(*s));
        int fds[2];

        memset(r, 0, sizeof(*r));
        for (int i = 0; i < N_LANES; i++) {
                assert_int_equal(queue_init(&r->full[i], 8), 0);
                assert_int_equal(queue_init(&r->free[i], 8), 0);
                assert_int_equal(mailbox_init(&r->readers[i], 2), 0);
                r->lanes[i] = (Lane){ &r->full[i], &r->free[i], &r->starving[i], &r->readers[i] };
        }
        r->dispatcher = (Dispatcher){ .clock = CLOCK_MONOTONIC };
        assert_int_equal(dispatcher_init(&r->dispatcher, r->lanes, N_LANES, 1), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        r->peer = fds[1];
        *s = (Subscriber){ .id = 1, .fd = fds[0], .order = STREAM_BY_TIME, .since = 1, .queue_bytes = 1 << 20 };
        r->subscriber = s;
        assert_int_equal(dispatcher_subscribe(&r->dispatcher, s), 0);
        assert_int_equal(dispatcher_begin(&r->dispatcher, 1), 0);
}

/* What came back. */
static void rig_free_batches(Rig *r) {
        Batch *b;

        for (int i = 0; i < N_LANES; i++)
                while ((b = queue_pop(&r->free[i])))
                        batch_free(b);
}

static void rig_deinit(Rig *r) {
        dispatcher_deinit(&r->dispatcher);
        rig_free_batches(r);
        for (int i = 0; i < N_LANES; i++) {
                queue_deinit(&r->full[i]);
                queue_deinit(&r->free[i]);
                mailbox_deinit(&r->readers[i]);
        }
        close_fd(r->peer);
}

/* What a reader does behind a look into its queue. */
static struct {
        Queue *queue;
        Batch *batch;
        atomic_bool *starving;
} behind_look;

bool __real_queue_is_empty(const Queue *q);
bool __wrap_queue_is_empty(const Queue *q);

bool __wrap_queue_is_empty(const Queue *q) {
        bool is_empty = __real_queue_is_empty(q);

        if (q == behind_look.queue) {
                assert_true(queue_push(behind_look.queue, behind_look.batch));
                atomic_store(behind_look.starving, true);
                behind_look.queue = NULL;
        }
        return is_empty;
}

/* A batch of one item for each time, of which the subscriber wants every one. */
static Batch *make_batch(uint32_t slot, nsec_t watermark, const nsec_t *times, size_t n) {
        static const uint8_t item[] = { 0x22, 0x00 }; /* field `items`, empty */
        Batch *b = batch_new(slot);

        assert_non_null(b);
        batch_reset(b, 1);
        b->watermark = watermark;
        for (size_t i = 0; i < n; i++) {
                size_t room;

                memcpy(batch_room(b, &room), item, sizeof(item));
                batch_append(b, times[i], 1, EVENT, 0, sizeof(item));
        }
        batch_seal(b);
        return b;
}

static void rig_take_batch(Rig *r, Batch *b) {
        assert_int_equal(dispatcher_take_batch(&r->dispatcher, b), 0);
        assert_int_equal(dispatcher_release(&r->dispatcher), 0);
        assert_int_equal(dispatcher_flush(&r->dispatcher), 0);
}

static void rig_take(Rig *r, uint32_t slot, nsec_t watermark, const nsec_t *times, size_t n) {
        rig_take_batch(r, make_batch(slot, watermark, times, n));
}

#define TAKE(r, slot, watermark, ...)                                                                                  \
        rig_take(r, slot, watermark, (const nsec_t[]){ __VA_ARGS__ }, sizeof((const nsec_t[]){ __VA_ARGS__ }) / 8)

static SubscriberRow rig_row(Rig *r) {
        DispatcherReport report;
        SubscriberRow row;

        assert_int_equal(dispatcher_report(&r->dispatcher, &report), 0);
        assert_int_equal(report.n_subscribers, 1);
        row = report.subscribers[0];
        dispatcher_report_deinit(&report);
        assert_true(row.balanced);
        return row;
}

static void test_watermarks(void **state) {
        Rig r;

        rig_init(&r);
        TAKE(&r, 0, 30, 10, 20, 40);
        assert_int_equal(rig_row(&r).sent, 0); /* nothing is known of the other CPU */
        TAKE(&r, 1, 20, 15);
        assert_int_equal(rig_row(&r).sent, 3); /* 10, 15, 20 */
        assert_int_equal(rig_row(&r).queued, 1);
        TAKE(&r, 1, 100, 35);
        assert_int_equal(rig_row(&r).sent, 3); /* 35 is newer than what CPU 0 has said */
        TAKE(&r, 0, 100, 50);
        assert_int_equal(rig_row(&r).sent, 6);
        assert_int_equal(rig_row(&r).queued, 0);
        rig_deinit(&r);
}

/* As a turn begins: until `next` nobody has to be woken. */
static void rig_tell_tick(Rig *r, nsec_t next) {
        r->dispatcher.tick_told = (SharedTick){ .next = next, .length = 10 };
}

static void rig_take_due(Rig *r, uint32_t slot, nsec_t watermark, nsec_t time, nsec_t due) {
        Batch *b = make_batch(slot, watermark, &time, 1);

        b->due = due;
        rig_take_batch(r, b);
}

/* What came at a tick of its own and leaves in a later turn, released by what nobody waits for, is late for who comes by himself. */
static void test_due_before(void **state) {
        Rig r;

        rig_init(&r);
        rig_tell_tick(&r, 100);
        rig_take_due(&r, 0, 30, 10, 90);
        assert_true(r.dispatcher.tick_told.is_due);
        assert_int_equal(rig_row(&r).sent, 0);
        rig_tell_tick(&r, 110);
        rig_take_due(&r, 1, 5, 4, 200);
        assert_int_equal(rig_row(&r).sent, 1); /* another one than that of the tick */
        assert_false(r.dispatcher.tick_told.is_due);
        rig_take_due(&r, 1, 30, 20, 200);
        assert_int_equal(rig_row(&r).sent, 3);
        assert_true(r.dispatcher.tick_told.is_due);
        rig_tell_tick(&r, 120);
        rig_take_due(&r, 0, 50, 40, 200);
        rig_take_due(&r, 1, 50, 45, 200);
        assert_int_equal(rig_row(&r).sent, 5);
        assert_false(r.dispatcher.tick_told.is_due);
        rig_deinit(&r);
}

static void test_late_is_counted(void **state) {
        DispatcherReport report;
        Rig r;

        rig_init(&r);
        TAKE(&r, 1, 100, 60);
        TAKE(&r, 0, 100, 70);
        TAKE(&r, 0, 200, 65, 80); /* CPU 0 had said that nothing older than 100 would come */
        TAKE(&r, 1, 200, 90);
        assert_int_equal(rig_row(&r).late, 1);
        assert_int_equal(rig_row(&r).sent, 4);
        assert_int_equal(dispatcher_report(&r.dispatcher, &report), 0);
        assert_int_equal(report.n_late, 1);
        assert_int_equal(report.late[0].event, EVENT);
        assert_int_equal(report.late[0].slot, 0);
        assert_int_equal(report.late[0].count, 1);
        dispatcher_report_deinit(&report);
        rig_deinit(&r);
}

static void test_unblock(void **state) {
        Rig r;

        rig_init(&r);
        TAKE(&r, 1, 1000);
        TAKE(&r, 0, 5, 20, 30); /* its reader has still one of 5 to read */
        dispatcher_unblock(&r.dispatcher);
        assert_int_equal(dispatcher_release(&r.dispatcher), 0);
        assert_int_equal(rig_row(&r).sent, 0); /* it has batches: it will go on */
        atomic_store(&r.starving[0], true);
        dispatcher_unblock(&r.dispatcher);
        assert_int_equal(dispatcher_release(&r.dispatcher), 0);
        assert_int_equal(dispatcher_flush(&r.dispatcher), 0);
        assert_int_equal(rig_row(&r).sent, 2);
        assert_false(atomic_load(&r.starving[0])); /* and asked to go on */
        assert_int_equal(mailbox_take_asks(&r.readers[0]) & READER_ASK_BATCHES, READER_ASK_BATCHES);
        TAKE(&r, 0, 1000, 5, 40);
        assert_int_equal(rig_row(&r).late, 1);
        assert_int_equal(rig_row(&r).sent, 3);
        rig_deinit(&r);
}

/* A reader pushes its last batch, and has none left, just when it is looked whether it is blocked: it is not. */
static void test_unblock_behind_last_batch(void **state) {
        Batch *last = make_batch(0, 25, (const nsec_t[]){ 25, 35 }, 2);
        Rig r;

        rig_init(&r);
        TAKE(&r, 1, 1000);
        TAKE(&r, 0, 15);
        TAKE(&r, 0, 0, 20, 30);
        behind_look.queue = &r.full[0];
        behind_look.batch = last;
        behind_look.starving = &r.starving[0];
        dispatcher_unblock(&r.dispatcher);
        assert_int_equal(dispatcher_release(&r.dispatcher), 0);
        if (behind_look.queue) /* nobody looked: it comes now */
                assert_true(queue_push(TAKE_PTR(behind_look.queue), last));
        rig_take_batch(&r, queue_pop(&r.full[0]));
        TAKE(&r, 0, 1000, 40);
        assert_int_equal(rig_row(&r).late, 0);
        assert_int_equal(rig_row(&r).sent, 5);
        rig_deinit(&r);
}

/* All batches of a reader are younger than what clients are waited for: it could say nothing more, and wait for ever. */
static void test_unblock_window(void **state) {
        Rig r;

        rig_init(&r);
        atomic_store(&r.dispatcher.window, 100);
        TAKE(&r, 1, 1000, 950);
        TAKE(&r, 0, 980, 920, 930, 970);
        dispatcher_unblock(&r.dispatcher);
        assert_int_equal(dispatcher_release(&r.dispatcher), 0);
        assert_int_equal(rig_row(&r).sent, 0); /* in a window's time they will be */
        atomic_store(&r.starving[0], true);
        dispatcher_unblock(&r.dispatcher);
        assert_int_equal(dispatcher_release(&r.dispatcher), 0);
        assert_int_equal(dispatcher_flush(&r.dispatcher), 0);
        assert_int_equal(rig_row(&r).sent, 4);
        assert_false(atomic_load(&r.starving[0]));
        TAKE(&r, 0, 1050, 990, 1040); /* the window is there again */
        TAKE(&r, 1, 1150, 1100);
        assert_int_equal(rig_row(&r).sent, 4);
        TAKE(&r, 0, 1150, 1120);
        assert_int_equal(rig_row(&r).sent, 6);
        assert_int_equal(rig_row(&r).late, 0);
        rig_deinit(&r);
}

/* A sample with a time to come, as a client may emit it: it leaves at its time, and until then nothing wakes for it. */
static void test_ahead_of_the_clock(void **state) {
        nsec_t now = clock_now(CLOCK_MONOTONIC), wait;
        Rig r;

        rig_init(&r);
        TAKE(&r, 0, now, now + 800 * NSEC_PER_MSEC);
        TAKE(&r, 1, now, now - 1);
        assert_int_equal(rig_row(&r).sent, 1);
        wait = dispatcher_ask(&r.dispatcher);
        assert_true(wait <= 800 * NSEC_PER_MSEC && now + 800 * NSEC_PER_MSEC <= clock_now(CLOCK_MONOTONIC) + wait);
        TAKE(&r, 0, now + NSEC_PER_SEC);
        TAKE(&r, 1, now + NSEC_PER_SEC);
        assert_int_equal(rig_row(&r).sent, 2);
        assert_true(dispatcher_ask(&r.dispatcher) == UINT64_MAX);
        TAKE(&r, 0, now + NSEC_PER_SEC, now + 3600 * NSEC_PER_SEC);
        assert_int_equal(dispatcher_ask(&r.dispatcher), NSEC_PER_SEC); /* the clock may be set */
        rig_deinit(&r);
}

/* What is past already, and waits for clients: somebody may have to be unblocked. */
static void test_wait_in_window(void **state) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);
        Rig r;

        rig_init(&r);
        atomic_store(&r.dispatcher.window, 60 * NSEC_PER_SEC);
        TAKE(&r, 0, now, now - 1);
        TAKE(&r, 1, now);
        assert_int_equal(dispatcher_ask(&r.dispatcher), 3500 * NSEC_PER_USEC);
        rig_deinit(&r);
}

static Batch *batch_behind(uint64_t cut, Batch *b) {
        b->cut = cut;
        return b;
}

static void rig_cut(Rig *r, uint64_t id, uint64_t cut, nsec_t at) {
        Perfd__V1__Ledger empty = PERFD__V1__LEDGER__INIT;
        DispatcherMail mail = { .order = DISPATCHER_CLOSE, .id = id, .cut = cut, .reason = "stopped", .at = at };
        uint8_t bytes[16];

        mail.bytes = bytes;
        mail.n_bytes = perfd__v1__ledger__pack(&empty, bytes);
        assert_int_equal(dispatcher_close(&r->dispatcher, &mail), 0);
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

        assert_int_equal(dispatcher_report(&r->dispatcher, &report), 0);
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_watermarks),
                cmocka_unit_test(test_ends_and_begins_at_a_cut),
                cmocka_unit_test(test_end_waits_for_the_merge),
                cmocka_unit_test(test_last_packet_says_what_went_for_it),
                cmocka_unit_test(test_due_before),
                cmocka_unit_test(test_late_is_counted),
                cmocka_unit_test(test_unblock),
                cmocka_unit_test(test_unblock_behind_last_batch),
                cmocka_unit_test(test_unblock_window),
                cmocka_unit_test(test_ahead_of_the_clock),
                cmocka_unit_test(test_wait_in_window),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
