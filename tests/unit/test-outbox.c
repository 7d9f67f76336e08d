/*
 * Outboxes over a real socket, and into a ring, read with the frame codec and protobuf-c: whatever was dropped, and however the bytes
 * were cut, what arrives and what the gaps say is together exactly what was pushed, in its order.
 *
 * Items are numbered from 1 by their time; item i belongs to event_of(i).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/stream/outbox.h"
#include "proto/frame.h"
#include "proto/perfd.pb-c.h"

#define N_EVENTS 5

static uint32_t event_of(uint64_t item) {
        return (uint32_t)(item * item % N_EVENTS + 1);
}

/* What the peer has seen, and is checked against. */
typedef struct Peer {
        FrameReader in;
        uint64_t sequence;       /* of the last packet */
        uint64_t items, missing; /* received, and told by gaps */
        uint64_t kept, gaps;
        uint64_t kept_at[4096]; /* items pushed before the n-th kept packet: set by the pusher */
} Peer;

typedef struct Line {
        int out, in;
        SharedRing *ring; /* instead of the socket, or NULL */
        RingReader reader;
        Outbox outbox;
        Peer peer;
        uint64_t pushed; /* items */
        uint64_t kept;   /* packets */
} Line;

static void line_init(Line *l, size_t limit, Overflow overflow, int socket_bytes) {
        int fds[2];

        memset(l, 0, sizeof(*l));
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &socket_bytes, sizeof(socket_bytes)), 0);
        l->out = fds[0];
        l->in = fds[1];
        outbox_init(&l->outbox, limit, overflow);
        frame_reader_init(&l->peer.in, FRAME_MAX_SERVER);
}

/* The same into a ring. */
static void line_init_ring(Line *l, size_t limit, Overflow overflow, size_t size) {
        line_init(l, limit, overflow, 1);
        assert_int_equal(shared_ring_new(size, &l->ring, NULL), 0);
        assert_int_equal(ring_reader_open(&l->reader, l->ring->fds, size, l->ring->offset), 0);
}

static int line_send(Line *l) {
        int code = l->ring ? outbox_send_shared(&l->outbox, l->ring) : outbox_send(&l->outbox, l->out);

        return code == OUTBOX_E_FULL ? OUTBOX_E_AGAIN : code;
}

static void line_deinit(Line *l) {
        ring_reader_close(&l->reader);
        shared_ring_free(l->ring);
        outbox_deinit(&l->outbox);
        outbox_deinit(&l->outbox);
        frame_reader_deinit(&l->peer.in);
        close_fd(l->out);
        close_fd(l->in);
}

/* One item as a complete field of Packet; malloc. */
static uint8_t *item_new(uint64_t i, size_t raw_size, size_t *ret_length) {
        _cleanup_free_ uint8_t *raw = calloc(1, raw_size + 1);
        Perfd__V1__Item item = PERFD__V1__ITEM__INIT, *items[] = { &item };
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        uint8_t *bytes;

        item.time = i;
        item.event = event_of(i);
        item.raw = (ProtobufCBinaryData){ .data = raw, .len = raw_size };
        packet.n_items = 1;
        packet.items = items;
        bytes = malloc(perfd__v1__packet__get_packed_size(&packet));
        assert_non_null(raw);
        assert_non_null(bytes);
        *ret_length = perfd__v1__packet__pack(&packet, bytes);
        return bytes;
}

/* n items from `first` on, each with raw_size bytes; sealed. */
static Packet *packet_of(uint64_t first, size_t n, size_t raw_size) {
        Packet *p = packet_new(n * (raw_size + 64));

        assert_non_null(p);
        for (uint64_t i = first; i < first + n; i++) {
                size_t length;
                _cleanup_free_ uint8_t *item = item_new(i, raw_size, &length);

                assert_true(packet_append(p, item, length, 1));
        }
        packet_seal(p);
        return p;
}

/* A kept one: says that event `n` was removed. */
static Packet *packet_kept(uint32_t n) {
        Perfd__V1__EventRef ref = PERFD__V1__EVENT_REF__INIT, *refs[] = { &ref };
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        uint8_t bytes[64];
        size_t length;
        Packet *p;

        ref.id = n;
        packet.n_removed = 1;
        packet.removed = refs;
        length = perfd__v1__packet__pack(&packet, bytes);
        p = packet_new(length);
        assert_non_null(p);
        assert_true(packet_append_field(p, bytes, length));
        assert_false(packet_append_field(p, bytes, 1));
        packet_seal(p);
        return p;
}

static void line_check(const Line *l) {
        const Outbox *o = &l->outbox;

        assert_int_equal(l->pushed, o->sent_items + o->dropped_items + o->queued_items);
        assert_true(o->sent_items >= l->peer.items); /* the socket may hold some */
}

static int line_push_items(Line *l, size_t n, size_t raw_size) {
        Packet *p = packet_of(l->pushed + 1, n, raw_size);
        int code = outbox_push(&l->outbox, p);

        packet_unref(p);
        l->pushed += n;
        line_check(l);
        return code;
}

static void line_push_kept(Line *l) {
        Packet *p = packet_kept((uint32_t)l->kept + 1);

        l->peer.kept_at[l->kept++] = l->pushed;
        assert_int_equal(outbox_push(&l->outbox, p), 0);
        packet_unref(p);
        line_check(l);
}

/* A gap stands exactly where its items would have been. */
static void peer_check_gap(Peer *peer, const Perfd__V1__Gap *gap, uint64_t sequence) {
        uint64_t counts[N_EVENTS + 1] = { 0 }, before = peer->items + peer->missing;
        uint32_t last = 0;

        assert_string_equal(gap->reason, "outbox");
        assert_int_equal(gap->first_sequence, peer->sequence + 1);
        assert_int_equal(gap->last_sequence, sequence - 1);
        assert_int_equal(gap->from, before + 1);
        assert_int_equal(gap->to, before + gap->items);
        for (uint64_t i = before + 1; i <= before + gap->items; i++)
                counts[event_of(i)]++;
        for (size_t i = 0; i < gap->n_events; i++) {
                assert_true(gap->events[i]->event > last && gap->events[i]->event <= N_EVENTS);
                last = gap->events[i]->event;
                assert_int_equal(gap->events[i]->items, counts[last]);
                counts[last] = 0;
        }
        for (size_t i = 0; i <= N_EVENTS; i++)
                assert_int_equal(counts[i], 0);
        peer->missing += gap->items;
        peer->gaps++;
}

static void peer_check(Peer *peer, const Perfd__V1__Packet *p) {
        assert_int_equal(p->n_gap, p->sequence == peer->sequence + 1 ? 0 : 1);
        if (p->n_gap > 0)
                peer_check_gap(peer, p->gap[0], p->sequence);
        peer->sequence = p->sequence;
        for (size_t i = 0; i < p->n_items; i++) {
                peer->items++;
                assert_int_equal(p->items[i]->time, peer->items + peer->missing);
                assert_int_equal(p->items[i]->event, event_of(p->items[i]->time));
        }
        for (size_t i = 0; i < p->n_removed; i++) {
                assert_int_equal(p->removed[i]->id, peer->kept + 1);
                assert_int_equal(peer->items + peer->missing, peer->kept_at[peer->kept++]);
        }
}

/* At most n bytes out of the ring. */
static ssize_t line_take(Line *l, uint8_t *to, size_t n) {
        const uint8_t *bytes;
        size_t there;

        assert_int_equal(ring_reader_peek(&l->reader, &bytes, &there), 0);
        n = n < there ? n : there;
        memcpy(to, bytes, n);
        if (ring_reader_consume(&l->reader, n))
                assert_int_equal(shared_ring_hear(l->ring), 0);
        errno = EAGAIN;
        return (ssize_t)n;
}

/* At most n bytes out of the socket or the ring; how many there were. */
static size_t line_read(Line *l, size_t n) {
        const uint8_t *message;
        uint8_t *room;
        size_t size, length;
        ssize_t got;

        assert_int_equal(frame_reader_room(&l->peer.in, &room, &size), 0);
        got = l->ring ? line_take(l, room, size < n ? size : n) : read(l->in, room, size < n ? size : n);
        if (got <= 0) {
                assert_int_equal(errno, EAGAIN);
                return 0;
        }
        frame_reader_fed(&l->peer.in, (size_t)got);
        while (frame_reader_next(&l->peer.in, &message, &length) == 0) {
                Perfd__V1__ServerMessage *m = perfd__v1__server_message__unpack(NULL, length, message);

                assert_non_null(m);
                assert_int_equal(m->body_case, PERFD__V1__SERVER_MESSAGE__BODY_PACKET);
                peer_check(&l->peer, m->packet);
                perfd__v1__server_message__free_unpacked(m, NULL);
        }
        return (size_t)got;
}

/* All that is there arrives, and adds up. */
static void line_finish(Line *l) {
        int code;

        do {
                code = line_send(l);
                assert_true(code == 0 || code == OUTBOX_E_AGAIN);
                line_check(l);
                while (line_read(l, 100000) > 0)
                        ;
        } while (code != 0);
        assert_true(outbox_is_empty(&l->outbox));
        assert_true(frame_reader_is_empty(&l->peer.in));
        assert_int_equal(l->outbox.queued_items, 0);
        assert_int_equal(l->outbox.queued_bytes, 0);
        assert_int_equal(l->outbox.kept_bytes, 0);
        assert_int_equal(l->peer.items, l->outbox.sent_items);
        assert_int_equal(l->peer.missing, l->outbox.dropped_items);
        assert_int_equal(l->peer.items + l->peer.missing, l->pushed);
        assert_int_equal(l->peer.kept, l->kept);
        assert_int_equal(l->peer.sequence, l->outbox.next_sequence - 1);
}

/* A packet of one item of 1000 raw bytes, and room for exactly two of them. */
static size_t limit_of_two(void) {
        Packet *p = packet_of(1, 1, 1000);
        size_t limit = 2 * (p->length + OUTBOX_PACKET_COST);

        packet_unref(p);
        return limit;
}

static void test_drop_oldest(void **state) {
        Line l;

        line_init(&l, limit_of_two(), OVERFLOW_DROP_OLDEST, 1 << 20);
        line_push_kept(&l);
        for (int i = 0; i < 4; i++)
                assert_int_equal(line_push_items(&l, 1, 1000), 0); /* the first two are dropped */
        line_push_kept(&l);
        assert_int_equal(l.outbox.dropped_items, 2);
        assert_int_equal(l.outbox.queued_items, 2);
        assert_int_equal(l.outbox.queued_bytes, limit_of_two());
        line_finish(&l);
        assert_int_equal(l.peer.gaps, 1);
        assert_int_equal(l.peer.sequence, 7); /* kept, two missing, their gap, two, kept */
        line_deinit(&l);
}

static void test_drop_newest(void **state) {
        Line l;

        line_init(&l, limit_of_two(), OVERFLOW_DROP_NEWEST, 1 << 20);
        for (int i = 0; i < 5; i++)
                assert_int_equal(line_push_items(&l, 1, 1000), 0); /* the last three are dropped */
        assert_int_equal(l.outbox.dropped_items, 3);
        line_push_kept(&l);
        assert_int_equal(line_push_items(&l, 1, 1000), 0); /* and one more behind the kept one */
        line_finish(&l);
        assert_int_equal(l.peer.items, 2);
        assert_int_equal(l.peer.gaps, 2);
        assert_int_equal(l.peer.sequence, 9); /* two, three missing, their gap, kept, one missing, its gap */
        assert_int_equal(line_push_items(&l, 1, 1000), 0);
        line_finish(&l);
        assert_int_equal(l.peer.sequence, 10);
        line_deinit(&l);
}

static void test_disconnect(void **state) {
        Line l;

        line_init(&l, limit_of_two(), OVERFLOW_DISCONNECT, 1 << 20);
        assert_int_equal(line_push_items(&l, 1, 1000), 0);
        assert_int_equal(line_push_items(&l, 1, 1000), 0);
        assert_int_equal(line_push_items(&l, 1, 1000), OUTBOX_E_OVERFLOW);
        assert_int_equal(outbox_send(&l.outbox, l.out), 0);
        assert_int_equal(line_push_items(&l, 1, 1), OUTBOX_E_OVERFLOW); /* what would fit again is behind the end too */
        line_push_kept(&l); /* the end can still be said */
        line_finish(&l);
        assert_int_equal(l.peer.items, 2);
        assert_int_equal(l.peer.sequence, 7); /* two gaps of one packet each are packets too */
        line_deinit(&l);
}

/* Whatever the limit is, something gets through; and what has begun to leave is not dropped. */
static void test_larger_than_limit(void **state) {
        Line l;

        line_init(&l, 0, OVERFLOW_DROP_OLDEST, 1);
        assert_int_equal(line_push_items(&l, 3, 200000), 0);
        assert_int_equal(outbox_send(&l.outbox, l.out), OUTBOX_E_AGAIN);
        assert_true(l.outbox.head_sent > 0);
        assert_int_equal(line_push_items(&l, 1, 10), 0);
        assert_int_equal(line_push_items(&l, 1, 10), 0);
        assert_int_equal(l.outbox.dropped_items, 2);
        assert_int_equal(l.outbox.queued_items, 3);
        line_finish(&l);
        assert_int_equal(l.peer.items, 3);
        assert_int_equal(l.peer.sequence, 4);

        assert_int_equal(line_push_items(&l, 2, 10), 0);
        assert_int_equal(line_push_items(&l, 2, 10), 0); /* nothing of the one before had left */
        line_finish(&l);
        assert_int_equal(l.peer.items, 5);
        assert_int_equal(l.peer.sequence, 7);
        line_deinit(&l);
}

/* Kept packets are bounded too, in the only way that is left. */
static void test_kept_bound(void **state) {
        const size_t size = (size_t)1 << 20;
        _cleanup_free_ uint8_t *bytes = calloc(1, size);
        Packet *p = packet_new(size);
        Outbox o;
        size_t n = 0;

        assert_non_null(bytes);
        assert_non_null(p);
        assert_true(packet_append_field(p, bytes, size));
        packet_seal(p);
        outbox_init(&o, 0, OVERFLOW_DROP_OLDEST);
        while (outbox_push(&o, p) == 0)
                n++;
        assert_int_equal(n, OUTBOX_KEPT_MAX / (size + OUTBOX_PACKET_COST));
        assert_int_equal(outbox_push(&o, p), OUTBOX_E_OVERFLOW);
        assert_int_equal(p->n_refs, 1 + n);
        outbox_deinit(&o);
        assert_int_equal(p->n_refs, 1);
        packet_unref(p);
}

static void test_peer_gone(void **state) {
        Line l;

        line_init(&l, 1 << 20, OVERFLOW_DROP_OLDEST, 1 << 20);
        assert_int_equal(line_push_items(&l, 4, 100), 0);
        assert_int_equal(outbox_send(&l.outbox, -1), -EBADF);
        l.in = close_fd(l.in);
        assert_int_equal(outbox_send(&l.outbox, l.out), OUTBOX_E_GONE);
        assert_int_equal(l.outbox.queued_items, 4);
        line_check(&l);
        line_deinit(&l);
}

/* A frame may be larger than the ring; a subscriber that breaks its rules is found. */
static void test_ring(void **state) {
        Line l;

        line_init_ring(&l, 1 << 20, OVERFLOW_DROP_OLDEST, STREAM_RING_MIN);
        assert_int_equal(line_push_items(&l, 3, 200000), 0);
        assert_int_equal(outbox_send_shared(&l.outbox, l.ring), OUTBOX_E_FULL);
        assert_int_equal(l.outbox.head_sent, STREAM_RING_MIN);
        assert_int_equal(outbox_send_shared(&l.outbox, l.ring), OUTBOX_E_FULL);
        assert_int_equal(line_push_items(&l, 1, 10), 0);
        line_finish(&l);
        assert_int_equal(l.peer.items, 4);

        assert_int_equal(line_push_items(&l, 1, 10), 0);
        atomic_fetch_add(&l.reader.own->tail, 1);
        assert_int_equal(outbox_send_shared(&l.outbox, l.ring), OUTBOX_E_BROKEN);
        assert_int_equal(l.outbox.queued_items, 1);
        line_check(&l);
        line_deinit(&l);
}

/* Two subscribers share packets, by sockets or rings; one reads at random, the other not at all, then all. Fixed seeds. */
static void run_random(Overflow overflow, unsigned seed, bool by_ring) {
        Line fast, slow, *lines[] = { &fast, &slow };

        print_message("seed %u\n", seed);
        if (by_ring) {
                line_init_ring(&fast, 60000, overflow, STREAM_RING_MIN);
                line_init_ring(&slow, 20000, overflow, STREAM_RING_MIN);
        } else {
                line_init(&fast, 60000, overflow, 20000);
                line_init(&slow, 20000, overflow, 1);
        }
        for (int turn = 0; turn < 3000; turn++) {
                unsigned dice = (unsigned)rand_r(&seed) % 16;
                size_t n = 1 + (size_t)rand_r(&seed) % 40, raw_size = (size_t)rand_r(&seed) % 300;
                Packet *p;

                if (dice < 7) {
                        p = packet_of(fast.pushed + 1, n, raw_size);
                        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                                assert_int_equal(outbox_push(&lines[i]->outbox, p), 0);
                                lines[i]->pushed += n;
                                line_check(lines[i]);
                                assert_true(lines[i]->outbox.queued_bytes <= lines[i]->outbox.limit);
                        }
                        packet_unref(p);
                } else if (dice == 7) {
                        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                                line_push_kept(lines[i]);
                } else if (dice < 12) {
                        int code = line_send(&fast);

                        assert_true(code == 0 || code == OUTBOX_E_AGAIN);
                        assert_int_equal(code == 0, outbox_is_empty(&fast.outbox));
                        line_check(&fast);
                        (void)line_send(&slow);
                        line_check(&slow);
                } else {
                        line_read(&fast, 1 + (size_t)rand_r(&seed) % 15000);
                        if (turn % 8 == 0)
                                line_read(&slow, 1 + (size_t)rand_r(&seed) % 3000);
                }
        }
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                line_finish(lines[i]);
                assert_true(lines[i]->peer.gaps > 1 && lines[i]->peer.items > 0);
                line_deinit(lines[i]);
        }
}

static void test_random_oldest(void **state) {
        for (unsigned seed = 1; seed <= 5; seed++)
                run_random(OVERFLOW_DROP_OLDEST, seed, seed % 2);
}

static void test_random_newest(void **state) {
        for (unsigned seed = 6; seed <= 10; seed++)
                run_random(OVERFLOW_DROP_NEWEST, seed, seed % 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_drop_oldest),
                cmocka_unit_test(test_drop_newest),
                cmocka_unit_test(test_disconnect),
                cmocka_unit_test(test_larger_than_limit),
                cmocka_unit_test(test_kept_bound),
                cmocka_unit_test(test_peer_gone),
                cmocka_unit_test(test_ring),
                cmocka_unit_test(test_random_oldest),
                cmocka_unit_test(test_random_newest),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
