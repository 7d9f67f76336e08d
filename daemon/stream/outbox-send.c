/*
 * How packets leave an outbox: framed, numbered, as many at a time as the socket or the ring takes.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "daemon/base/thread.h"
#include "daemon/stream/outbox-queue.h"

#define FRAMES_PER_CALL 64
#define CALLS_PER_SEND 16
#define SHARED_PER_SEND ((size_t)4 << 20)
#define LENGTH_BYTES 4 /* of a varint: 28 bits */
#define SEQUENCE_AT ((size_t)FRAME_HEADER_SIZE + 1 + LENGTH_BYTES)
#define HEADER_MAX (SEQUENCE_AT + 1 + 10)

_Static_assert(PACKET_MAX + HEADER_MAX < (size_t)1 << 7 * LENGTH_BYTES, "the length of a packet");

enum {
        SERVER_MESSAGE_PACKET = 2 << 3 | 2, /* keys of perfd.v1, field << 3 | wire type */
        PACKET_SEQUENCE = 1 << 3 | 0,
        SERVER_MESSAGE_POOLED = 3 << 3 | 2,
        POOLED_SEQUENCE = 1 << 3 | 0,
        POOLED_OFFSET = 2 << 3 | 0,
        POOLED_LENGTH = 3 << 3 | 0,
};

#define REFER_FROM ((size_t)2 << 10) /* bytes: a shorter packet is copied, and read where its message is */
#define REFERENCE_MAX ((size_t)FRAME_HEADER_SIZE + 2 + 3 * (1 + 10))

/* Nothing is before it any more, so its numbers are known: now it is a packet like others. */
static int outbox_settle_gap(Outbox *o) {
        OutboxEntry *e = o->head;
        int r;

        r = gap_encode(&e->gap, gap_reason_name(e->gap.reason, o->is_relayed), o->next_sequence, &e->packet);
        if (r < 0)
                return r;
        o->next_sequence += e->gap.n_packets;
        gap_deinit(&e->gap);
        outbox_charge_gap(o, e, 0);
        outbox_charge(o, e->packet, true);
        return 0;
}

static uint8_t *put_varint(uint8_t *at, uint64_t value) {
        for (; value >= 0x80; value >>= 7)
                *at++ = (uint8_t)(value | 0x80);
        *at++ = (uint8_t)value;
        return at;
}

static size_t header_size(uint64_t sequence) {
        size_t n = SEQUENCE_AT + 2;

        for (; sequence >= 0x80; sequence >>= 7)
                n++;
        return n;
}

/*
 *     | length (4) | key of ServerMessage.packet, length (4) | key of Packet.sequence, sequence |   then the packet's bytes
 *
 * The second length is a varint in four bytes however short it is, so that what is behind it can be written before it is known.
 * How long this is.
 */
static size_t put_header(uint8_t header[static HEADER_MAX], uint64_t sequence, size_t length) {
        const size_t size = header_size(sequence);
        uint8_t *at = header + FRAME_HEADER_SIZE;

        frame_header_put(header, (uint32_t)(size - FRAME_HEADER_SIZE + length));
        length += size - SEQUENCE_AT;
        *at++ = SERVER_MESSAGE_PACKET;
        for (int i = 0; i < LENGTH_BYTES; i++, length >>= 7)
                *at++ = (uint8_t)((length & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
        *at++ = PACKET_SEQUENCE;
        (void)put_varint(at, sequence);
        return size;
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

uint8_t *outbox_reserve(const Outbox *o, SharedRing *ring, size_t least, size_t *ret_n) {
        const size_t header = header_size(o->next_sequence);
        uint8_t *at;

        thread_assert(THREAD_DISPATCHER);
        if (o->head || outbox_is_over(o))
                return NULL;
        at = shared_ring_room(ring, header + least, ret_n);
        if (!at)
                return NULL;
        *ret_n -= header;
        return at + header;
}

void outbox_send_reserved(Outbox *o, SharedRing *ring, const Packet *p) {
        const size_t header = header_size(o->next_sequence);

        thread_assert(THREAD_DISPATCHER);
        assert(p->is_reserved && !o->head);
        put_header(p->room - header, o->next_sequence++, p->length);
        o->sent_items += p->n_items;
        shared_ring_advance(ring, p->room - header, header + p->length);
}

/*
 *     | length (4) | key of ServerMessage.pooled, length | key of PooledPacket.sequence, sequence | offset | length of the packet |
 */
static size_t put_reference(uint8_t frame[static REFERENCE_MAX], uint64_t sequence, const Packet *p) {
        uint8_t *const body = frame + FRAME_HEADER_SIZE, *at = body + 2;

        *at++ = POOLED_SEQUENCE;
        at = put_varint(at, sequence);
        *at++ = POOLED_OFFSET;
        at = put_varint(at, p->buffer * POOL_BUFFER);
        *at++ = POOLED_LENGTH;
        at = put_varint(at, p->length);
        body[0] = SERVER_MESSAGE_POOLED;
        body[1] = (uint8_t)(at - body - 2); /* less than 128 */
        frame_header_put(frame, (uint32_t)(at - body));
        return (size_t)(at - frame);
}

bool outbox_send_ref(Outbox *o, SharedRing *ring, const Packet *p) {
        uint8_t frame[REFERENCE_MAX];

        thread_assert(THREAD_DISPATCHER);
        if (!p->buffers || p->buffers != ring->pool || p->length < REFER_FROM || o->head || outbox_is_over(o))
                return false;
        if (!shared_ring_send_ref(ring, frame, put_reference(frame, o->next_sequence, p), p->buffer))
                return false;
        o->next_sequence++;
        o->sent_items += p->n_items;
        return true;
}
