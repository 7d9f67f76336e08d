#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/outbox-line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/perfd.pb-c.h"

#define N_EVENTS 5

static uint32_t event_of(uint64_t item) {
        return (uint32_t)(item * item % N_EVENTS + 1);
}

void line_init(Line *l, size_t limit, Overflow overflow, int socket_bytes) {
        int fds[2];

        memset(l, 0, sizeof(*l));
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &socket_bytes, sizeof(socket_bytes)), 0);
        l->out = fds[0];
        l->in = fds[1];
        outbox_init(&l->outbox, limit, overflow);
        frame_reader_init(&l->peer.in, FRAME_MAX_SERVER);
}

void line_init_ring(Line *l, size_t limit, Overflow overflow, size_t size) {
        line_init(l, limit, overflow, 1);
        assert_int_equal(shared_ring_new(size, &l->ring, NULL), 0);
        assert_int_equal(ring_reader_open(&l->reader, l->ring->fds, size, l->ring->offset), 0);
}

void line_share(Line *l, BufferPool *pool) {
        assert_true(shared_ring_share(l->ring, pool));
        assert_int_equal(pool_reader_open(&l->pool, l->ring->fds[STREAM_RING_FDS], POOL_BYTES), 0);
}

int line_send(Line *l) {
        int code = l->ring ? outbox_send_shared(&l->outbox, l->ring) : outbox_send(&l->outbox, l->out);

        return code == OUTBOX_E_FULL ? OUTBOX_E_AGAIN : code;
}

void line_deinit(Line *l) {
        ring_reader_close(&l->reader);
        pool_reader_close(&l->pool);
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

static void packet_fill(Packet *p, uint64_t first, size_t n, size_t raw_size) {
        assert_non_null(p);
        for (uint64_t i = first; i < first + n; i++) {
                size_t length;
                _cleanup_free_ uint8_t *item = item_new(i, raw_size, &length);

                assert_true(packet_append(p, item, length, 1));
        }
        packet_seal(p);
}

Packet *packet_of(uint64_t first, size_t n, size_t raw_size) {
        Packet *p = packet_new(n * (raw_size + 64));

        packet_fill(p, first, n, raw_size);
        return p;
}

Packet *packet_in_pool(BufferPool *pool, uint64_t first, size_t n, size_t raw_size) {
        Packet *p = packet_new_buffered(pool);

        if (p)
                packet_fill(p, first, n, raw_size);
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

void line_check(const Line *l) {
        const Outbox *o = &l->outbox;

        assert_int_equal(l->pushed, o->sent_items + outbox_dropped(o) + o->queued_items);
        assert_true(o->sent_items >= l->peer.items); /* the socket may hold some */
}

int line_push_items(Line *l, size_t n, size_t raw_size) {
        Packet *p = packet_of(l->pushed + 1, n, raw_size);
        int code = outbox_push(&l->outbox, p);

        packet_unref(p);
        l->pushed += n;
        line_check(l);
        return code;
}

bool line_place_items(Line *l, size_t n, size_t raw_size) {
        size_t least = n * (raw_size + 64), room = 0;
        uint8_t *to = outbox_reserve(&l->outbox, l->ring, least, &room);
        Packet *p;

        if (!to)
                return false;
        assert_true(outbox_is_empty(&l->outbox) && room >= least);
        p = packet_new_reserved(to, room);
        packet_fill(p, l->pushed + 1, n, raw_size);
        outbox_send_reserved(&l->outbox, l->ring, p);
        packet_unref(p);
        l->pushed += n;
        line_check(l);
        return true;
}

bool line_refer_items(Line *l, Packet *p, size_t n) {
        bool is_referred = outbox_send_ref(&l->outbox, l->ring, p);

        if (!is_referred)
                assert_int_equal(outbox_push(&l->outbox, p), 0);
        l->pushed += n;
        line_check(l);
        return is_referred;
}

void line_push_kept(Line *l) {
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

        assert_string_equal(gap->reason, strcmp(gap->reason, "memory") == 0 ? "memory" : peer->is_relayed ? "relay_queue" : "outbox");
        peer->missing_for[strcmp(gap->reason, "memory") == 0 ? GAP_MEMORY : GAP_OUTBOX] += gap->items;
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

/* At most n bytes out of the ring, which are the daemon's again when they were looked at. */
static ssize_t line_take(const Line *l, uint8_t *to, size_t n) {
        const uint8_t *bytes;
        size_t there;

        assert_int_equal(ring_reader_peek(&l->reader, &bytes, &there), 0);
        n = n < there ? n : there;
        memcpy(to, bytes, n);
        errno = EAGAIN;
        return (ssize_t)n;
}

static void line_check_pooled(Line *l, const Perfd__V1__PooledPacket *m) {
        const uint8_t *bytes = pool_reader_at(&l->pool, m->offset, m->length);
        Perfd__V1__Packet *p;

        assert_non_null(bytes);
        p = perfd__v1__packet__unpack(NULL, m->length, bytes);
        assert_non_null(p);
        assert_int_equal(p->sequence, 0);
        p->sequence = m->sequence;
        peer_check(&l->peer, p);
        perfd__v1__packet__free_unpacked(p, NULL);
}

size_t line_read(Line *l, size_t n) {
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
                if (m->body_case == PERFD__V1__SERVER_MESSAGE__BODY_POOLED)
                        line_check_pooled(l, m->pooled);
                else {
                        assert_int_equal(m->body_case, PERFD__V1__SERVER_MESSAGE__BODY_PACKET);
                        peer_check(&l->peer, m->packet);
                }
                perfd__v1__server_message__free_unpacked(m, NULL);
        }
        if (l->ring && ring_reader_consume(&l->reader, (size_t)got))
                assert_int_equal(shared_ring_hear(l->ring), 0);
        return (size_t)got;
}

void line_finish(Line *l) {
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
        assert_int_equal(l->peer.missing, outbox_dropped(&l->outbox));
        for (GapReason reason = 0; reason < _GAP_REASON_MAX; reason++)
                assert_int_equal(l->peer.missing_for[reason], l->outbox.dropped_items[reason]);
        assert_int_equal(l->outbox.gap_bytes, 0);
        assert_int_equal(l->outbox.charged, 0);
        assert_int_equal(l->peer.items + l->peer.missing, l->pushed);
        assert_int_equal(l->peer.kept, l->kept);
        assert_int_equal(l->peer.sequence, l->outbox.next_sequence - 1);
}
