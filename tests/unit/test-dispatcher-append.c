/*
 * What becomes of batches, against what everybody should have got: random batches of two CPUs, short and long items in
 * random order, wanted by random streams in both orders, read by peers that are quick, slow or asleep, from sockets and from
 * rings. A batch that has come back is overwritten at once, as its reader would. Each peer gets exactly its items, in its
 * order; what it does not get is in a gap at its place, event by event; and no item of a known thread comes before that
 * thread's description.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "daemon/dispatcher/cycle.h"

#define N_PIPES 2
#define N_PEERS 5
#define N_BITS 3
#define N_EVENTS 4
#define N_KNOWN 20 /* threads that can be described; as many others cannot */
#define ITEMS_MAX 200000

typedef struct Expected {
        uint64_t time;
        uint32_t event;
} Expected;

typedef struct Peer {
        int fd;
        RingReader ring;
        Subscriber *subscriber;
        unsigned chance; /* that it reads in a turn, of 8 */
        FrameReader in;
        Expected *expected;
        size_t n_expected, n_seen, n_missed, n_gaps;
        uint64_t sequence;
        bool knows[N_KNOWN];
} Peer;

typedef struct Rig {
        Queue full[N_PIPES], free[N_PIPES];
        atomic_bool needs_batch[N_PIPES];
        Mailbox readers[N_PIPES];
        _Atomic(nsec_t) reports_until[N_PIPES];
        BatchPipe pipes[N_PIPES];
        Dispatcher dispatcher;
        Peer peers[N_PEERS];
        Batch *batches[N_PIPES];
        nsec_t time;
        unsigned seed;
} Rig;

/* Of the subscriptions that bits of a mask stand for here: in one group, or in several. */
static const uint32_t layouts[][N_BITS] = {
        { 0, 1, 2 }, { 3 * BATCH_BITS, 3 * BATCH_BITS + 9, 4 * BATCH_BITS - 1 }, { 63, 64, 65 }, { 5, 70, SUBSCRIPTIONS_MAX - 1 },
};
static const uint32_t *numbers;

static unsigned n_placed; /* packets that were never copied */

static const struct {
        StreamOrder order;
        unsigned bit, chance;
        size_t queue_bytes;
} streams[N_PEERS] = {
        { STREAM_BY_CPU, 0, 8, 64 << 20 }, { STREAM_BY_CPU, 0, 1, 1 << 20 },  { STREAM_BY_CPU, 1, 4, 1 << 19 },
        { STREAM_BY_TIME, 0, 7, 1 << 20 }, { STREAM_BY_TIME, 2, 0, 1 << 18 },
};

static unsigned chance(Rig *r, unsigned n) {
        return (unsigned)rand_r(&r->seed) % n;
}

void __real_outbox_send_reserved(Outbox *o, SharedRing *ring, const Packet *p);
void __wrap_outbox_send_reserved(Outbox *o, SharedRing *ring, const Packet *p);
void __wrap_outbox_send_reserved(Outbox *o, SharedRing *ring, const Packet *p) {
        n_placed++;
        assert_true(p->n_items > 0 && p->length <= PACKET_SIZE);
        __real_outbox_send_reserved(o, ring, p);
}

static void peer_share(Rig *r, Peer *p) {
        SharedRing **ring = &p->subscriber->ring;

        assert_int_equal(shared_ring_new(STREAM_RING_MIN << chance(r, 4), ring, NULL), 0);
        assert_int_equal(ring_reader_open(&p->ring, (*ring)->fds, (*ring)->size, (*ring)->offset), 0);
}

static void peer_init(Rig *r, size_t i) {
        Subscriber *s = calloc(1, sizeof(*s));
        Peer *p = &r->peers[i];
        int fds[2];

        assert_non_null(s);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        *s = (Subscriber){ .id = i + 1, .fd = fds[0], .order = streams[i].order, .number = numbers[streams[i].bit], .since = 1,
                           .queue_bytes = streams[i].queue_bytes };
        *p = (Peer){ .fd = fds[1], .subscriber = s, .chance = streams[i].chance,
                     .expected = calloc(ITEMS_MAX, sizeof(Expected)) };
        assert_non_null(p->expected);
        if (chance(r, 2))
                peer_share(r, p);
        frame_reader_init(&p->in, FRAME_MAX_SERVER);
        assert_int_equal(dispatcher_subscribe(&r->dispatcher, s), 0);
        assert_int_equal(dispatcher_begin(&r->dispatcher, s->id), 0);
}

static void peer_deinit(Peer *p) {
        close_fd(p->fd);
        ring_reader_close(&p->ring);
        frame_reader_deinit(&p->in);
        free(p->expected);
}

static void rig_init(Rig *r, unsigned seed) {
        memset(r, 0, sizeof(*r));
        r->seed = seed;
        for (int i = 0; i < N_PIPES; i++) {
                assert_int_equal(queue_init(&r->full[i], 8), 0);
                assert_int_equal(queue_init(&r->free[i], 8), 0);
                assert_int_equal(mailbox_init(&r->readers[i], 2), 0);
                r->pipes[i] = (BatchPipe){ .full = &r->full[i], .free = &r->free[i], .needs_batch = &r->needs_batch[i],
                                      .reader = &r->readers[i], .reports_until = &r->reports_until[i] };
        }
        r->dispatcher = (Dispatcher){ .clock = CLOCK_MONOTONIC };
        assert_int_equal(dispatcher_init(&r->dispatcher, r->pipes, N_PIPES, N_PEERS), 0);
        for (uint32_t tid = 1; tid <= N_KNOWN; tid++)
                for (int order = 0; order < _STREAM_ORDER_MAX; order++) {
                        TaskNote n = { .kind = TASK_NOTE_COMM, .pid = tid, .tid = tid, .text = "task", .n_text = 4 };

                        assert_int_equal(task_table_apply(&r->dispatcher.tasks[order], 0, &n), 0);
                }
        for (size_t i = 0; i < N_PEERS; i++)
                peer_init(r, i);
}

static void rig_deinit(Rig *r) {
        Batch *b;

        dispatcher_deinit(&r->dispatcher);
        for (int i = 0; i < N_PIPES; i++) {
                while ((b = queue_pop(&r->free[i])))
                        batch_free(b);
                queue_deinit(&r->full[i]);
                queue_deinit(&r->free[i]);
                mailbox_deinit(&r->readers[i]);
        }
        for (size_t i = 0; i < N_PEERS; i++)
                peer_deinit(&r->peers[i]);
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static size_t put_item(uint8_t *to, nsec_t time, uint32_t event, uint32_t tid, size_t n_raw) {
        static uint8_t raw[40000];
        Perfd__V1__Item item = PERFD__V1__ITEM__INIT, *items[] = { &item };
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;

        item.time = time;
        item.event = event;
        item.tid = tid;
        item.raw = (ProtobufCBinaryData){ .data = raw, .len = n_raw };
        packet.items = items;
        packet.n_items = 1;
        return perfd__v1__packet__pack(&packet, to);
}

static void expect(Rig *r, StreamOrder order, const SubscriptionSet *set, nsec_t time, uint32_t event) {
        for (size_t i = 0; i < N_PEERS; i++) {
                uint32_t number = numbers[streams[i].bit], group = BATCH_GROUP(number);
                Peer *p = &r->peers[i];

                if (streams[i].order != order || !(set->groups >> group & 1) || !(set->masks[group] & BATCH_BIT(number)))
                        continue;
                assert_true(p->n_expected < ITEMS_MAX);
                p->expected[p->n_expected++] = (Expected){ time, event };
        }
}

static void begin(Rig *r, uint32_t slot) {
        Batch *b = queue_pop(&r->free[slot]);

        b = b ? b : batch_new(slot);
        assert_non_null(b);
        memset(b->arena, 0xee, BATCH_ARENA);
        batch_reset(b, chance(r, 8) ? 1 : 2); /* of readers that have the newest snapshot, and of those that have not */
        r->batches[slot] = b;
}

static void begin_all(Rig *r) {
        for (uint32_t slot = 0; slot < N_PIPES; slot++)
                begin(r, slot);
}

static bool append(Rig *r, uint32_t slot, uint64_t mask, uint32_t event, uint32_t tid, size_t n_raw) {
        SubscriptionSet set = { .groups = 0 };
        Batch *b = r->batches[slot];
        size_t room, length;
        uint8_t *to = batch_room(b, &room);

        if (!batch_has_room_for(b, N_BITS) || room < n_raw + 64)
                return false;
        r->time++;
        FOR_EACH_BIT(bit, mask)
                subscription_set_add(&set, numbers[bit]);
        length = put_item(to, r->time, event, tid, n_raw);
        if (mask)
                batch_append_set(b, r->time, &set, event, tid, length);
        else
                batch_append(b, r->time, 0, event, tid, length);
        expect(r, STREAM_BY_TIME, &set, r->time, event);
        return true;
}

/* Long stretches of one kind, as a flood makes them, and whatever comes. */
static void fill(Rig *r) {
        bool is_even = chance(r, 2), one_cpu = chance(r, 2), has_room = true;
        uint64_t mask = chance(r, 1 << N_BITS);
        uint32_t tid = 1 + chance(r, 2 * N_KNOWN);
        size_t n = chance(r, 3) ? chance(r, 1200) : chance(r, 20), n_raw = chance(r, 120);

        begin_all(r);
        for (size_t i = 0; i < n && has_room; i++) {
                if (!is_even) {
                        mask = chance(r, 1 << N_BITS);
                        n_raw = chance(r, 100) ? chance(r, 300) : chance(r, 40000);
                }
                if (chance(r, is_even ? 100 : 3) == 0)
                        tid = 1 + chance(r, 2 * N_KNOWN);
                has_room = append(r, one_cpu ? 0 : chance(r, N_PIPES), mask, chance(r, N_EVENTS), tid, n_raw);
        }
}

/* What was filled goes its way, as far as packets that wait to become full. */
static void give(Rig *r) {
        for (uint32_t slot = 0; slot < N_PIPES; slot++) {
                Batch *b = TAKE_PTR(r->batches[slot]);

                for (const BatchEntry *e = b->entries; e < b->entries + b->n_entries; e++) {
                        SubscriptionSet set = { .groups = 0 };

                        subscription_set_add_mask(&set, entry_group(e), e->mask);
                        expect(r, STREAM_BY_CPU, &set, e->time, e->event);
                }
                b->watermark = r->time;
                batch_seal(b);
                assert_int_equal(dispatcher_take_batch(&r->dispatcher, b), 0);
                if (chance(r, 2)) {
                        Batch *back = queue_pop(&r->free[slot]);

                        if (back)
                                memset(back->arena, 0xee, BATCH_ARENA);
                        batch_free(back);
                }
        }
        assert_int_equal(dispatcher_release(&r->dispatcher), 0);
}

static void turn(Rig *r) {
        fill(r);
        give(r);
        assert_int_equal(dispatcher_flush(&r->dispatcher), 0);
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

static void peer_check_gap(Peer *p, const Perfd__V1__Gap *gap) {
        uint64_t counts[N_EVENTS] = { 0 };

        assert_int_equal(gap->first_sequence, p->sequence + 1);
        assert_true(p->n_seen + gap->items <= p->n_expected);
        for (size_t i = 0; i < gap->items; i++)
                counts[p->expected[p->n_seen + i].event]++;
        for (size_t i = 0; i < gap->n_events; i++) {
                assert_int_equal(gap->events[i]->items, counts[gap->events[i]->event]);
                counts[gap->events[i]->event] = 0;
        }
        for (size_t i = 0; i < N_EVENTS; i++)
                assert_int_equal(counts[i], 0);
        assert_int_equal(gap->from, p->expected[p->n_seen].time);
        assert_int_equal(gap->to, p->expected[p->n_seen + gap->items - 1].time);
        p->n_seen += gap->items;
        p->n_missed += gap->items;
        p->n_gaps++;
        p->sequence = gap->last_sequence;
}

static void peer_check(Peer *p, const Perfd__V1__Packet *packet) {
        for (size_t i = 0; i < packet->n_gap; i++)
                peer_check_gap(p, packet->gap[i]);
        assert_int_equal(packet->sequence, p->sequence + 1);
        p->sequence = packet->sequence;
        for (size_t i = 0; i < packet->n_tasks; i++)
                p->knows[packet->tasks[i]->tid - 1] = true;
        for (size_t i = 0; i < packet->n_items; i++) {
                const Perfd__V1__Item *item = packet->items[i];
                const Expected *e = &p->expected[p->n_seen++];

                assert_true(p->n_seen <= p->n_expected);
                assert_int_equal(item->time, e->time);
                assert_int_equal(item->event, e->event);
                assert_true(item->tid > N_KNOWN || p->knows[item->tid - 1]);
        }
}

/* Out of the ring; the dispatcher may write again. */
static ssize_t peer_take(Rig *r, Peer *p, uint8_t *to, size_t size) {
        const uint8_t *bytes;
        size_t n;

        assert_int_equal(ring_reader_peek(&p->ring, &bytes, &n), 0);
        n = n < size ? n : size;
        memcpy(to, bytes, n);
        if (ring_reader_consume(&p->ring, n))
                assert_int_equal(subscriber_on_room(&r->dispatcher, p->subscriber), 0);
        return (ssize_t)n;
}

/* What is in the socket, or the ring; whether there was something. */
static bool peer_read(Rig *r, Peer *p) {
        const uint8_t *message;
        uint8_t *room;
        size_t size, length;
        ssize_t n;

        assert_int_equal(frame_reader_room(&p->in, &room, &size), 0);
        n = ring_reader_is_open(&p->ring) ? peer_take(r, p, room, size) : recv(p->fd, room, size, MSG_DONTWAIT);
        if (n <= 0)
                return false;
        frame_reader_fed(&p->in, (size_t)n);
        while (frame_reader_next(&p->in, &message, &length) == 0) {
                Perfd__V1__ServerMessage *m = perfd__v1__server_message__unpack(NULL, length, message);

                assert_non_null(m);
                peer_check(p, m->packet);
                perfd__v1__server_message__free_unpacked(m, NULL);
        }
        return true;
}

static void peer_finish(Rig *r, Peer *p) {
        const Outbox *o = &p->subscriber->outbox;

        do {
                while (peer_read(r, p))
                        ;
                assert_int_equal(subscriber_send(&r->dispatcher, p->subscriber), 0);
        } while (!outbox_is_empty(o));
        while (peer_read(r, p))
                ;
        assert_int_equal(p->n_seen, p->n_expected);
        assert_int_equal(p->n_missed, outbox_dropped(o));
        assert_int_equal(p->n_seen, p->subscriber->matched);
        assert_int_equal(o->sent_items + outbox_dropped(o), p->subscriber->matched);
}

/* Instead of this one comes another one, which may hear nothing yet. */
static void peer_renew(Rig *r, size_t i) {
        subscriber_drop(&r->dispatcher, r->peers[i].subscriber, NULL);
        free(mailbox_pop(&r->dispatcher.notices));
        peer_deinit(&r->peers[i]);
        peer_init(r, i);
        r->peers[i].subscriber->is_corked = chance(r, 2);
}

/* In the middle of a turn; who comes sees nothing of what was before. */
static void test_come_and_go(void **state) {
        unsigned n_open = 0;
        Rig r;

        rig_init(&r, 1);
        for (int i = 0; i < 400; i++) {
                size_t k = chance(&r, N_PEERS);
                const Packet *open;

                fill(&r);
                give(&r);
                open = r.peers[k].subscriber->channel->open;
                n_open += open && open->is_reserved;
                peer_renew(&r, k);
                fill(&r);
                give(&r);
                assert_int_equal(dispatcher_flush(&r.dispatcher), 0);
                assert_true(!r.peers[k].subscriber->is_corked || r.peers[k].subscriber->outbox.sent_items == 0);
                assert_int_equal(dispatcher_begin(&r.dispatcher, k + 1), 0);
                for (k = 0; k < N_PEERS; k++)
                        if (chance(&r, 2))
                                peer_finish(&r, &r.peers[k]);
        }
        assert_true(n_open > 20);
        for (size_t k = 0; k < N_PEERS; k++)
                peer_finish(&r, &r.peers[k]);
        rig_deinit(&r);
}

static void test_random(void **state) {
        n_placed = 0;
        for (unsigned seed = 1; seed <= 8; seed++) {
                Rig r;

                rig_init(&r, seed);
                for (int i = 0; i < 150; i++) {
                        turn(&r);
                        for (size_t k = 0; k < N_PEERS; k++)
                                if (chance(&r, 8) < r.peers[k].chance) {
                                        while (peer_read(&r, &r.peers[k]))
                                                ;
                                        assert_int_equal(subscriber_send(&r.dispatcher, r.peers[k].subscriber), 0);
                                }
                }
                for (size_t k = 0; k < N_PEERS; k++)
                        peer_finish(&r, &r.peers[k]);
                assert_int_equal(r.peers[0].n_missed, 0);
                assert_true(r.peers[4].n_gaps > 0 && r.peers[0].n_expected > 10000);
                rig_deinit(&r);
        }
        assert_true(n_placed > 500);
}

static void finish(Rig *r) {
        assert_int_equal(dispatcher_flush(&r->dispatcher), 0);
        for (size_t k = 0; k < N_PEERS; k++)
                peer_finish(r, &r->peers[k]);
        rig_deinit(r);
}

/* What a stream knows of one thread says nothing of another one, nor of another stream, whichever came last. */
static void test_described(void **state) {
        static const struct {
                uint32_t tid, mask;
        } items[2][4] = { { { 1, 1 }, { 2, 2 }, { 1, 1 }, { 2, 2 } }, { { 1, 1 }, { 2, 2 }, { 2, 1 }, { 1, 2 } } };
        Rig r;

        rig_init(&r, 1);
        for (size_t i = 0; i < 2; i++) {
                begin_all(&r);
                for (size_t k = 0; k < 4; k++)
                        assert_true(append(&r, 0, items[i][k].mask, 0, items[i][k].tid, 8));
                give(&r);
        }
        finish(&r);
}

/* Items of two streams fill packets of which one, either of both, had something already. */
static void test_full(void **state) {
        for (unsigned other = 1; other <= 4; other *= 4) {
                unsigned n = 0;
                Rig r;

                rig_init(&r, 1);
                begin_all(&r);
                while (append(&r, n % N_PIPES, n < 100 ? other : 5, 0, 1, 100))
                        n++;
                assert_true(n > 900); /* of both, more than a packet has room for */
                give(&r);
                finish(&r);
        }
}

static int begin_layout(void **state) {
        numbers = *state;
        return 0;
}

/* Each is run in every layout. */
#define IN_LAYOUT(i, test) { #test ", layout " #i, test, begin_layout, NULL, (void *)layouts[i] }
#define ALL_IN_LAYOUT(i) \
        IN_LAYOUT(i, test_random), IN_LAYOUT(i, test_come_and_go), IN_LAYOUT(i, test_described), IN_LAYOUT(i, test_full)

int main(void) {
        const struct CMUnitTest tests[] = { ALL_IN_LAYOUT(0), ALL_IN_LAYOUT(1), ALL_IN_LAYOUT(2), ALL_IN_LAYOUT(3) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
