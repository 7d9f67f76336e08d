/*
 * Outboxes. A packet gets its number when it leaves and not when it is pushed: what is dropped before it then needs no
 * number of its own kept anywhere, and a gap becomes a packet, with final numbers, when it reaches the head. So the
 * n-th packet of a run without gaps has the number next_sequence + n, and nothing else has to be remembered.
 */
#include "daemon/stream/outbox.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "daemon/base/thread.h"
#include "daemon/stream/gap.h"

#define FRAMES_PER_CALL 64
#define CALLS_PER_SEND 16
#define SHARED_PER_SEND ((size_t)4 << 20)
#define HEADER_MAX (FRAME_HEADER_SIZE + 1 + 5 + 1 + 10)

enum {
        SERVER_MESSAGE_PACKET = 2 << 3 | 2, /* keys of perfd.v1, field << 3 | wire type */
        PACKET_SEQUENCE = 1 << 3 | 0,
};

struct OutboxEntry {
        OutboxEntry *previous, *next;
        Packet *packet; /* NULL: a gap */
        Gap gap;
};

void outbox_init(Outbox *o, size_t limit, Overflow overflow) {
        assert(overflow < _OVERFLOW_MAX);
        *o = OUTBOX_NULL;
        o->limit = limit;
        o->overflow = overflow;
        o->next_sequence = 1;
}

static OutboxEntry *outbox_add(Outbox *o) {
        OutboxEntry *e = malloc(sizeof(*e));

        if (!e)
                return NULL;
        *e = (OutboxEntry){ .previous = o->tail, .gap = GAP_NULL };
        if (o->tail)
                o->tail->next = e;
        else
                o->head = e;
        o->tail = e;
        return e;
}

static void outbox_remove(Outbox *o, OutboxEntry *e) {
        if (e->previous)
                e->previous->next = e->next;
        else
                o->head = e->next;
        if (e->next)
                e->next->previous = e->previous;
        else
                o->tail = e->previous;
        packet_unref(e->packet);
        gap_deinit(&e->gap);
        free(e);
}

void outbox_deinit(Outbox *o) {
        while (o->head)
                outbox_remove(o, o->head);
        *o = OUTBOX_NULL;
}

/* A packet comes into the queue, or leaves it. */
static void outbox_charge(Outbox *o, const Packet *p, bool comes) {
        size_t cost = p->length + OUTBOX_PACKET_COST, *bytes = p->keep ? &o->kept_bytes : &o->queued_bytes;

        *bytes = comes ? *bytes + cost : *bytes - cost;
        o->queued_items = comes ? o->queued_items + p->n_items : o->queued_items - p->n_items;
        if (o->queued_bytes + o->kept_bytes > o->most_bytes)
                o->most_bytes = o->queued_bytes + o->kept_bytes;
}

/* `oldest` was sent, dropped or begun: the next one is behind it, if there is one. */
static void outbox_pass_oldest(Outbox *o) {
        do
                o->oldest = o->oldest->next;
        while (o->oldest && (!o->oldest->packet || o->oldest->packet->keep));
}

static int outbox_append(Outbox *o, Packet *p) {
        OutboxEntry *e = outbox_add(o);

        if (!e)
                return -ENOMEM;
        e->packet = packet_ref(p);
        if (!p->keep && !o->oldest)
                o->oldest = e;
        outbox_charge(o, p, true);
        return 0;
}

/* It becomes a gap, or part of the gap before it. */
static int outbox_drop_oldest(Outbox *o) {
        OutboxEntry *e = o->oldest, *before = e->previous;
        bool joins = before && !before->packet;
        Packet *p = e->packet;
        int r;

        r = gap_add(joins ? &before->gap : &e->gap, p);
        if (r < 0)
                return r;
        outbox_pass_oldest(o);
        outbox_charge(o, p, false);
        o->dropped_items += p->n_items;
        e->packet = packet_unref(p);
        if (joins)
                outbox_remove(o, e);
        return 0;
}

/* It never comes in, and is missing behind all that waits. */
static int outbox_drop_newest(Outbox *o, const Packet *p) {
        OutboxEntry *e = o->tail && !o->tail->packet ? o->tail : outbox_add(o);
        int r;

        if (!e)
                return -ENOMEM;
        r = gap_add(&e->gap, p);
        if (r < 0)
                return r;
        o->dropped_items += p->n_items;
        return o->overflow == OVERFLOW_DISCONNECT ? OUTBOX_E_OVERFLOW : 0;
}

int outbox_push(Outbox *o, Packet *p) {
        size_t cost = p->length + OUTBOX_PACKET_COST;

        thread_assert(THREAD_DISPATCHER);
        assert(p->sealed);
        if (p->keep)
                return o->kept_bytes + cost > OUTBOX_KEPT_MAX ? OUTBOX_E_OVERFLOW : outbox_append(o, p);
        if (o->overflow == OVERFLOW_DISCONNECT && o->dropped_items > 0)
                return outbox_drop_newest(o, p); /* the stream is over: what would still fit as well */
        while (o->queued_bytes > 0 && o->queued_bytes + cost > o->limit) {
                int r;

                if (o->overflow != OVERFLOW_DROP_OLDEST || !o->oldest)
                        return outbox_drop_newest(o, p);
                r = outbox_drop_oldest(o);
                if (r < 0)
                        return r;
        }
        return outbox_append(o, p);
}

/* Nothing is before it any more, so its numbers are known: now it is a packet like others. */
static int outbox_settle_gap(Outbox *o) {
        OutboxEntry *e = o->head;
        int r;

        r = gap_encode(&e->gap, o->next_sequence, &e->packet);
        if (r < 0)
                return r;
        o->next_sequence += e->gap.n_packets;
        gap_deinit(&e->gap);
        outbox_charge(o, e->packet, true);
        return 0;
}

static uint8_t *put_varint(uint8_t *to, uint64_t value) {
        for (; value >= 0x80; value >>= 7)
                *to++ = (uint8_t)(value | 0x80);
        *to++ = (uint8_t)value;
        return to;
}

/*
 *     | length (4) | key of ServerMessage.packet, length | key of Packet.sequence, sequence |   then the packet's bytes
 *
 * How long this is.
 */
static size_t put_header(uint8_t header[static HEADER_MAX], uint64_t sequence, size_t length) {
        uint8_t number[11], *number_end, *at = header + FRAME_HEADER_SIZE;

        number[0] = PACKET_SEQUENCE;
        number_end = put_varint(number + 1, sequence);
        length += (size_t)(number_end - number);
        *at++ = SERVER_MESSAGE_PACKET;
        at = put_varint(at, length);
        frame_header_put(header, (uint32_t)((size_t)(at - header) - FRAME_HEADER_SIZE + length));
        memcpy(at, number, (size_t)(number_end - number));
        return (size_t)(at - header) + (size_t)(number_end - number);
}

typedef struct Frames {
        uint8_t headers[FRAMES_PER_CALL][HEADER_MAX];
        size_t sizes[FRAMES_PER_CALL];
        struct iovec parts[2 * FRAMES_PER_CALL];
        size_t n, n_parts;
} Frames;

/* The head and what follows it up to a gap, without what was sent of the head already. */
static void outbox_collect(const Outbox *o, Frames *f) {
        size_t skip = o->head_sent;

        f->n = f->n_parts = 0;
        for (OutboxEntry *e = o->head; e && e->packet && f->n < FRAMES_PER_CALL; e = e->next) {
                size_t header = put_header(f->headers[f->n], o->next_sequence + f->n, e->packet->length);
                struct iovec parts[] = { { f->headers[f->n], header }, { (uint8_t *)e->packet->bytes, e->packet->length } };

                for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                        size_t sent = skip < parts[i].iov_len ? skip : parts[i].iov_len;

                        skip -= sent;
                        if (parts[i].iov_len > sent)
                                f->parts[f->n_parts++] = (struct iovec){ (uint8_t *)parts[i].iov_base + sent,
                                                                         parts[i].iov_len - sent };
                }
                f->sizes[f->n++] = header + e->packet->length;
        }
}

/* n more bytes of these frames left. */
static void outbox_advance(Outbox *o, const Frames *f, size_t n) {
        n += o->head_sent;
        for (size_t i = 0; i < f->n && n >= f->sizes[i]; i++) {
                n -= f->sizes[i];
                o->sent_items += o->head->packet->n_items;
                outbox_charge(o, o->head->packet, false);
                o->next_sequence++;
                if (o->oldest == o->head)
                        outbox_pass_oldest(o);
                outbox_remove(o, o->head);
        }
        o->head_sent = n;
        if (n > 0 && o->oldest == o->head)
                outbox_pass_oldest(o);
}

/* What sendmsg(2) said, once for all. */
static int send_code(int error) {
        switch (error) {
        case EAGAIN:
        case ENOBUFS:
        case ENOMEM:
                return OUTBOX_E_AGAIN;
        case EBADF:
        case EFAULT:
        case EINVAL:
        case EMSGSIZE:
        case ENOTSOCK:
        case EOPNOTSUPP:
                return -error;
        default: /* EPIPE, ECONNRESET, and what else a network has */
                return OUTBOX_E_GONE;
        }
}

/* The next frames, of which there is at least one. */
static int outbox_next(Outbox *o, Frames *f) {
        int r = o->head->packet ? 0 : outbox_settle_gap(o);

        if (r == 0)
                outbox_collect(o, f);
        return r;
}

int outbox_send(Outbox *o, int fd) {
        thread_assert(THREAD_DISPATCHER);
        for (int i = 0; o->head && i < CALLS_PER_SEND; i++) {
                struct msghdr message = { .msg_name = NULL };
                Frames frames;
                ssize_t n;
                int r = outbox_next(o, &frames);

                if (r < 0)
                        return r;
                message.msg_iov = frames.parts;
                message.msg_iovlen = frames.n_parts;
                do
                        n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
                while (n < 0 && errno == EINTR);
                if (n < 0)
                        return send_code(errno);
                outbox_advance(o, &frames, (size_t)n);
        }
        return o->head ? OUTBOX_E_AGAIN : 0;
}

int outbox_send_shared(Outbox *o, SharedRing *ring) {
        size_t sent = 0;

        thread_assert(THREAD_DISPATCHER);
        while (o->head && sent < SHARED_PER_SEND) {
                Frames frames;
                size_t n;
                int r = outbox_next(o, &frames);

                if (r < 0)
                        return r;
                if (shared_ring_write(ring, frames.parts, frames.n_parts, &n) != 0)
                        return OUTBOX_E_BROKEN;
                if (n == 0 && shared_ring_wait(ring))
                        return OUTBOX_E_FULL;
                outbox_advance(o, &frames, n);
                sent += n;
        }
        return o->head ? OUTBOX_E_AGAIN : 0;
}
