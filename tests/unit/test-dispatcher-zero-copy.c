/*
 * What is written in place, from the turn's beginning to its end: one CPU, one subscriber, who sleeps beside its ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/dispatcher/cycle.h"

#define ITEM_SIZE ((size_t)8 << 10)
#define QUEUE_BYTES (4 * ITEM_SIZE)

/* What main does behind a look into a mailbox in which there was nothing, and then a reader. */
static struct {
        const Queue *messages; /* that was looked at; NULL: nothing more */
        Mailbox *mailbox;
        DispatcherCommand *command;
        Queue *queue; /* or NULL */
        Batch *batch;
} behind_look;

bool __real_queue_is_empty(const Queue *q);
bool __wrap_queue_is_empty(const Queue *q);

bool __wrap_queue_is_empty(const Queue *q) {
        bool is_empty = __real_queue_is_empty(q);

        if (is_empty && q == behind_look.messages) {
                behind_look.messages = NULL;
                assert_true(mailbox_post(behind_look.mailbox, behind_look.command));
                if (behind_look.queue)
                        assert_true(queue_push(behind_look.queue, behind_look.batch));
        }
        return is_empty;
}

typedef struct Rig {
        Queue full, free;
        atomic_bool needs_batch;
        Mailbox reader;
        _Atomic(nsec_t) reports_until;
        BatchPipe pipe;
        Dispatcher dispatcher;
        Subscriber *subscriber;
        RingReader ring;
        int peer;
        nsec_t time;
        bool is_due; /* its batches */
} Rig;

static bool has_no_bells; /* the kernel has no memory for them */

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags) {
        errno = ENOBUFS;
        return has_no_bells ? -1 : __real_send(fd, bytes, n, flags);
}

static void rig_init(Rig *r, Overflow overflow) {
        Subscriber *s = calloc(1, sizeof(*s));
        int fds[2];

        memset(r, 0, sizeof(*r));
        assert_non_null(s);
        assert_int_equal(queue_init(&r->full, 8), 0);
        assert_int_equal(queue_init(&r->free, 8), 0);
        assert_int_equal(mailbox_init(&r->reader, 2), 0);
        r->pipe = (BatchPipe){ .full = &r->full, .free = &r->free, .needs_batch = &r->needs_batch, .reader = &r->reader,
                          .reports_until = &r->reports_until };
        r->dispatcher = (Dispatcher){ .clock = CLOCK_MONOTONIC };
        assert_int_equal(dispatcher_init(&r->dispatcher, &r->pipe, 1, 1), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        r->peer = fds[1];
        *s = (Subscriber){ .id = 1, .fd = fds[0], .order = STREAM_BY_CPU, .since = 1, .overflow = overflow,
                           .queue_bytes = QUEUE_BYTES };
        assert_int_equal(shared_ring_new(STREAM_RING_MIN, &s->ring, NULL), 0);
        assert_int_equal(ring_reader_open(&r->ring, s->ring->fds, s->ring->size, s->ring->offset), 0);
        r->subscriber = s;
        assert_int_equal(dispatcher_subscribe(&r->dispatcher, s), 0);
        assert_int_equal(dispatcher_begin(&r->dispatcher, 1), 0);
        ring_reader_arm(&r->ring);
}

static void rig_deinit(Rig *r) {
        Batch *b;

        dispatcher_deinit(&r->dispatcher);
        while ((b = queue_pop(&r->free)))
                batch_free(b);
        queue_deinit(&r->full);
        queue_deinit(&r->free);
        mailbox_deinit(&r->reader);
        ring_reader_close(&r->ring);
        close_fd(r->peer);
}

/* A batch with one item. */
static Batch *rig_make(Rig *r) {
        static const uint8_t head[] = { 0x22, (ITEM_SIZE & 0x7f) | 0x80, ITEM_SIZE >> 7 }; /* field `items`, length */
        Batch *b = queue_pop(&r->free);
        uint8_t *to;
        size_t room;

        b = b ? b : batch_new(0);
        assert_non_null(b);
        batch_reset(b, 1);
        b->watermark = ++r->time;
        b->due = r->is_due ? 0 : UINT64_MAX;
        to = batch_room(b, &room);
        memset(to, 0, sizeof(head) + ITEM_SIZE);
        memcpy(to, head, sizeof(head));
        batch_append(b, r->time, 1, 0, 0, sizeof(head) + ITEM_SIZE);
        batch_seal(b);
        return b;
}

static void rig_push(Rig *r) {
        assert_true(queue_push(&r->full, rig_make(r)));
}

static void rig_turn(Rig *r) {
        rig_push(r);
        assert_int_equal(dispatcher_run_cycle(&r->dispatcher, true), 0);
}

static void assert_rung(Rig *r, ssize_t n) {
        uint8_t bells[8 * FRAME_HEADER_SIZE];

        assert_int_equal(recv(r->peer, bells, sizeof(bells), MSG_DONTWAIT), n > 0 ? n * FRAME_HEADER_SIZE : -1);
}

/* All that waits for it. */
static void rig_read(Rig *r) {
        const uint8_t *bytes;
        size_t n;

        do {
                assert_int_equal(ring_reader_peek(&r->ring, &bytes, &n), 0);
                if (ring_reader_consume(&r->ring, n))
                        assert_int_equal(subscriber_on_room(&r->dispatcher, r->subscriber), 0);
        } while (n > 0);
}

static void rig_close(Rig *r) {
        DispatcherCommand close = { .kind = DISPATCHER_CLOSE, .id = 1, .reason = "stopped", .bytes = (uint8_t *)"" };

        assert_int_equal(dispatcher_close(&r->dispatcher, &close), 0);
}

/* Once for each time that it slept, when the turn is over. */
static void test_bell(void **state) {
        Rig r;

        rig_init(&r, OVERFLOW_DROP_OLDEST);
        rig_turn(&r);
        assert_int_equal(r.subscriber->outbox.sent_items, 1);
        assert_rung(&r, 1);
        rig_turn(&r);
        assert_rung(&r, 0);
        ring_reader_arm(&r.ring);
        rig_turn(&r);
        assert_rung(&r, 1);
        rig_deinit(&r);
}

static void rig_sleep(Rig *r, nsec_t due) {
        rig_read(r);
        ring_reader_arm(&r->ring);
        ring_reader_set_due(&r->ring, due);
}

/* One who comes by itself at a tick is rung for what was due before that, or when the ring gets full. */
static void test_tick(void **state) {
        const nsec_t length = 4 * NSEC_PER_SEC, later = clock_now(CLOCK_MONOTONIC) + 3600 * NSEC_PER_SEC;
        const size_t most = STREAM_RING_MIN - STREAM_RING_MIN / 4;
        RingTick tick;
        Rig r;

        rig_init(&r, OVERFLOW_DROP_OLDEST);
        atomic_store(&r.dispatcher.dispatching.tick, length);
        r.dispatcher.told_tick_max = length;
        rig_turn(&r);
        assert_rung(&r, 1); /* it did not say that it comes */
        assert_int_equal(ring_reader_tick(&r.ring).length, 0); /* that was at no tick */
        r.is_due = true;
        rig_turn(&r);
        tick = ring_reader_tick(&r.ring);
        assert_int_equal(tick.length, length);
        assert_int_equal(tick.next % length, 0);
        assert_in_range(tick.next, later - 3600 * NSEC_PER_SEC, later);

        r.is_due = false;
        rig_sleep(&r, later);
        rig_turn(&r);
        assert_rung(&r, 0);
        r.is_due = true; /* and it has looked already */
        rig_turn(&r);
        assert_rung(&r, 1);

        tick = ring_reader_tick(&r.ring);
        rig_sleep(&r, tick.next - 1); /* that is where it will find it, if no tick goes by just now */
        rig_turn(&r);
        assert_rung(&r, ring_reader_tick(&r.ring).next == tick.next ? 0 : 1);

        r.is_due = false;
        rig_sleep(&r, 1); /* it has forgotten to come */
        rig_turn(&r);
        assert_rung(&r, 1);

        rig_sleep(&r, later);
        while (r.subscriber->ring->head - r.subscriber->ring->tail + ITEM_SIZE < most) {
                rig_turn(&r);
                assert_rung(&r, 0);
        }
        rig_turn(&r);
        rig_turn(&r);
        assert_rung(&r, 1);

        atomic_store(&r.dispatcher.dispatching.tick, 100 * NSEC_PER_USEC); /* too short to sleep until one */
        rig_sleep(&r, later);
        rig_turn(&r);
        assert_rung(&r, 1);
        assert_int_equal(ring_reader_tick(&r.ring).length, 0);
        rig_deinit(&r);
}

/* It overflows, reads all that waits before it can be told the end, and gets nothing more but that. */
static void test_over(void **state) {
        const Outbox *o;
        uint64_t sent;
        Rig r;

        rig_init(&r, OVERFLOW_DISCONNECT);
        o = &r.subscriber->outbox;
        while (outbox_dropped(o) == 0)
                rig_turn(&r);
        rig_read(&r);
        assert_true(outbox_is_empty(o));
        sent = o->sent_items;
        rig_turn(&r);
        assert_int_equal(o->sent_items, sent);
        assert_int_equal(outbox_dropped(o), 2);
        assert_int_equal(r.subscriber->matched, sent + 2);
        rig_deinit(&r);
}

/* It could not be rung for its end, is there still, and gets nothing behind it. */
static void test_ended(void **state) {
        uint64_t head;
        Rig r;

        rig_init(&r, OVERFLOW_DROP_OLDEST);
        has_no_bells = true;
        rig_close(&r);
        assert_int_equal(dispatcher_end_closing(&r.dispatcher), 0);
        assert_true(r.subscriber->ended && r.subscriber->wakeup_pending && outbox_is_empty(&r.subscriber->outbox));
        head = r.subscriber->ring->head;
        rig_turn(&r);
        assert_int_equal(r.subscriber->ring->head, head);
        assert_int_equal(r.subscriber->outbox.sent_items, 0);
        has_no_bells = false;
        assert_int_equal(subscriber_send(&r.dispatcher, r.subscriber), 0);
        assert_ptr_equal(r.dispatcher.channels->subscribers, r.subscriber); /* until it has read its end */
        assert_true(r.subscriber->is_draining);
        rig_read(&r);
        assert_int_equal(subscriber_send(&r.dispatcher, r.subscriber), 0);
        free(mailbox_pop(&r.dispatcher.notices));
        assert_int_equal(dispatcher_flush(&r.dispatcher), 0);
        assert_null(r.dispatcher.channels);
        rig_deinit(&r);
}

/* Another one with the same subscription; both have this pool from now on. */
static Subscriber *rig_join(Rig *r, BufferPool *pool, RingReader *ring, int *ret_peer) {
        Subscriber *s = calloc(1, sizeof(*s));
        int fds[2];

        assert_non_null(s);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        *ret_peer = fds[1];
        *s = (Subscriber){ .id = 2, .fd = fds[0], .order = STREAM_BY_CPU, .since = 1, .queue_bytes = QUEUE_BYTES };
        assert_int_equal(shared_ring_new(STREAM_RING_MIN, &s->ring, NULL), 0);
        assert_int_equal(ring_reader_open(ring, s->ring->fds, s->ring->size, s->ring->offset), 0);
        assert_true(shared_ring_share(s->ring, pool) && shared_ring_share(r->subscriber->ring, pool));
        assert_int_equal(dispatcher_subscribe(&r->dispatcher, s), 0);
        assert_int_equal(dispatcher_begin(&r->dispatcher, 2), 0);
        return s;
}

/*
 * Asleep, it is told of a buffer and of its end in one turn: that buffer is its own until it has read it, and it is there.
 * Meanwhile the other one is served as if it were alone.
 */
static void test_lingers(void **state) {
        RingReader ring;
        BufferPool *pool;
        Subscriber *other;
        uint8_t bell;
        int peer;
        Rig r;

        assert_int_equal(buffer_pool_new(&pool), 0);
        assert_int_equal(buffer_pool_fill(pool), 0);
        rig_init(&r, OVERFLOW_DROP_OLDEST);
        other = rig_join(&r, pool, &ring, &peer);
        rig_close(&r);
        rig_turn(&r);
        assert_true(r.subscriber->ended && r.subscriber->is_draining && outbox_is_empty(&r.subscriber->outbox));
        assert_int_equal(r.subscriber->ring->n_pins, 1);
        assert_int_equal(recv(r.peer, &bell, 1, MSG_DONTWAIT), 0); /* the end of the connection */
        atomic_store(&ring.own->tail, other->ring->head);
        assert_false(shared_ring_reclaim(other->ring));
        assert_int_equal(pool->n_free, POOL_BUFFERS - 1);

        rig_turn(&r);
        assert_int_equal(other->outbox.sent_items, 2);
        assert_int_equal(other->ring->n_pins, 0);
        assert_int_equal(other->ring->head - other->ring->tail > ITEM_SIZE, true);

        rig_read(&r);
        assert_int_equal(subscriber_send(&r.dispatcher, r.subscriber), 0);
        assert_ptr_equal(r.dispatcher.channels->subscribers, other);
        assert_null(other->next);
        assert_int_equal(pool->n_free, POOL_BUFFERS);
        free(mailbox_pop(&r.dispatcher.notices));
        ring_reader_close(&ring);
        rig_deinit(&r);
        close_fd(peer);
        buffer_pool_unref(pool);
}

static const uint8_t descriptor[] = { 0x1a, 0x05, 'e', 'v', 'e', 'n', 't' };

/* While it comes, main describes an event; two items in all. */
static void rig_describe_behind_look(Rig *r) {
        DispatcherCommand *describe = calloc(1, sizeof(*describe));

        assert_non_null(describe);
        *describe = (DispatcherCommand){ .kind = DISPATCHER_DESCRIBE, .bytes = malloc(sizeof(descriptor)),
                                      .n_bytes = sizeof(descriptor) };
        memcpy(describe->bytes, descriptor, sizeof(descriptor));
        behind_look.mailbox = &r->dispatcher.mailbox;
        behind_look.command = describe;
        behind_look.messages = &r->dispatcher.mailbox.messages;
}

static void assert_described_between_items(Rig *r) {
        const uint8_t *bytes, *described;
        size_t n;

        assert_null(behind_look.messages);
        assert_int_equal(r->subscriber->outbox.sent_items, 2);
        assert_int_equal(ring_reader_peek(&r->ring, &bytes, &n), 0);
        described = memmem(bytes, n, descriptor, sizeof(descriptor));
        assert_non_null(described);
        assert_true((size_t)(described - bytes) > ITEM_SIZE && n - (size_t)(described - bytes) > ITEM_SIZE);
}

/* An item lies in the ring, unfinished, when it turns out that there is something to say before the next one. */
static void test_described_in_turn(void **state) {
        Rig r;

        rig_init(&r, OVERFLOW_DROP_OLDEST);
        rig_read(&r);
        rig_push(&r);
        rig_push(&r);
        rig_describe_behind_look(&r);
        assert_int_equal(dispatcher_run_cycle(&r.dispatcher, true), 0);
        assert_described_between_items(&r);
        rig_deinit(&r);
}

/* The same while a ledger is asked for, which is to count all that was pushed before. */
static void test_described_before_report(void **state) {
        DispatcherCommand *report = calloc(1, sizeof(*report));
        DispatcherReport reported;
        sem_t done;
        Rig r;

        rig_init(&r, OVERFLOW_DROP_OLDEST);
        rig_read(&r);
        assert_int_equal(sem_init(&done, 0, 0), 0);
        *report = (DispatcherCommand){ .kind = DISPATCHER_REPORT, .report = &reported, .done = &done };
        dispatcher_post(&r.dispatcher, report);
        rig_push(&r);
        behind_look.queue = &r.full;
        behind_look.batch = rig_make(&r);
        rig_describe_behind_look(&r);
        assert_int_equal(dispatcher_run_cycle(&r.dispatcher, true), 0);
        assert_int_equal(sem_trywait(&done), 0);
        assert_int_equal(reported.subscribers[0].matched, 2);
        assert_described_between_items(&r);
        dispatcher_report_deinit(&reported);
        behind_look.queue = NULL;
        sem_destroy(&done);
        rig_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bell),
                cmocka_unit_test(test_tick),
                cmocka_unit_test(test_over),
                cmocka_unit_test(test_ended),
                cmocka_unit_test(test_lingers),
                cmocka_unit_test(test_described_in_turn),
                cmocka_unit_test(test_described_before_report),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
