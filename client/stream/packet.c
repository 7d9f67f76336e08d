/*
 * Packets to callbacks and to batches. A packet is walked over its wire bytes: first for its sequence number and for what it has,
 * then for each kind of that, in the order in which it is meant (gaps, start, descriptors, tasks, items, removals, end), because
 * protobuf promises no order. Items are read in place, all that is cold goes through protobuf-c (part.c).
 */
#include "client/stream/batch.h"
#include "client/stream/part.h"
#include "client/wire/wire.h"

enum {
        MESSAGE_PACKET = 2,
        MESSAGE_POOLED = 3,

        POOLED_SEQUENCE = 1,
        POOLED_OFFSET = 2,
        POOLED_LENGTH = 3,
};

/* What is wrong with an item is found when the callback asks for it. */
int stream_take_items(perfd_client *c) {
        Stream *s = c->stream;
        Wire w = s->packet.rest;
        WireField f = { .key = 0 };
        WireLike like = WIRE_LIKE_NULL;
        struct perfd_item *item = &s->item;

        if (!(s->packet.parts & 1U << PACKET_ITEMS))
                return 0;
        for (;;) {
                if (!wire_take(&w, ITEMS_KEY, &like, &f.bytes)) {
                        if (!wire_next(&w, &f))
                                break;
                        if (f.key != ITEMS_KEY)
                                continue;
                }
                s->received++;
                if (!s->callbacks.item)
                        continue;
                item_set(item, f.bytes, w.at);
                s->callbacks.item(s->userdata, item);
                if (__builtin_expect(item->state == ITEM_WRONG, 0))
                        return stream_fail(c, item->error, WRONG_ITEM);
        }
        return w.malformed ? stream_fail(c, PERFD_E_PROTOCOL, CHANGED) : 0;
}

static void packet_add_part(PacketReading *p, const WireField *f, uint64_t *sequence) {
        if (f->key == WIRE_KEY(PACKET_SEQUENCE, WIRE_VARINT))
                *sequence = f->number;
        else if (f->key == WIRE_KEY(PACKET_FORGOTTEN_TASKS, WIRE_VARINT))
                p->parts |= 1U << PACKET_FORGOTTEN_TASKS;
        else if ((f->key & 7) == WIRE_BYTES && f->key >> 3 < PACKET_FIELDS)
                p->parts |= 1U << (f->key >> 3);
}

static bool skip_items(Wire *w) {
        const uint8_t *const begin = w->at, *bytes;
        WireLike like = WIRE_LIKE_NULL;
        Wire own = *w;

        while (wire_take(&own, ITEMS_KEY, &like, &bytes))
                ;
        w->at = own.at;
        return own.at > begin;
}

/* Which parts there are; the sequence number, if it is in it. A batch takes its items on the way, as far as there is room. */
static int packet_scan(perfd_client *c, uint64_t *sequence) {
        PacketReading *p = &c->stream->packet;
        Batch *batch = c->stream->batch;
        Wire w = { .at = p->bytes, .end = p->end };
        WireLike like = WIRE_LIKE_NULL;
        WireField f = { .key = 0 };
        const uint8_t *field;

        p->rest = (Wire){ .at = batch ? p->end : p->bytes, .end = p->end };
        for (;;) {
                if (batch ? batch_take(batch, &w) > 0 : skip_items(&w))
                        p->parts |= 1U << PACKET_ITEMS;
                field = w.at;
                if (!wire_take(&w, ITEMS_KEY, &like, &f.bytes)) {
                        if (!wire_next(&w, &f))
                                break;
                        packet_add_part(p, &f, sequence);
                        if (f.key != ITEMS_KEY)
                                continue;
                }
                p->parts |= 1U << PACKET_ITEMS;
                if (batch && !batch_add(batch, field, f.bytes, w.at) && p->rest.at == p->end)
                        p->rest.at = field;
        }
        return w.malformed ? stream_fail(c, PERFD_E_PROTOCOL, "the next one is no perfd.v1.Packet") : 0;
}

int stream_fill_batch(perfd_client *c) {
        PacketReading *p = &c->stream->packet;
        Batch *batch = c->stream->batch;
        WireField f = { .key = 0 };
        Wire w = p->rest;
        const uint8_t *field;

        batch_begin(batch, p->end);
        p->rest.at = p->end;
        for (;;) {
                (void)batch_take(batch, &w);
                field = w.at;
                if (!wire_next(&w, &f))
                        break;
                if (f.key == ITEMS_KEY && !batch_add(batch, field, f.bytes, w.at)) {
                        p->rest.at = field;
                        break;
                }
        }
        return w.malformed ? stream_fail(c, PERFD_E_PROTOCOL, CHANGED) : 0;
}

static int packet_open(perfd_client *c, uint64_t *sequence) {
        Stream *s = c->stream;
        int r = packet_scan(c, sequence);

        if (r == 0)
                r = packet_take_part(c, PACKET_GAP);
        if (r == 0 && s->is_fed && *sequence == 0)
                return 0;
        if (r == 0 && s->is_fed && *sequence > s->sequence + 1)
                stream_tell_expired(c, *sequence - 1);
        if (r == 0 && *sequence != s->sequence + 1)
                r = stream_fail(c, PERFD_E_PROTOCOL, "the sequence jumps behind it, and no gap says what is missing");
        if (r != 0)
                return r;
        s->sequence = *sequence;
        if (!s->started && !s->is_fed && !(s->packet.parts & 1U << PACKET_START))
                return stream_fail(c, PERFD_E_PROTOCOL, "the stream has no start");
        return packet_take_part(c, PACKET_START);
}

int stream_open_packet(perfd_client *c, const uint8_t *packet, size_t length, uint64_t sequence) {
        Stream *s = c->stream;
        int r;

        s->packet = (PacketReading){ .bytes = packet, .end = packet + length, .is_open = true };
        if (s->batch)
                batch_begin(s->batch, s->packet.end);
        r = packet_open(c, &sequence);
        if (r == 0)
                r = packet_take_part(c, PACKET_WALL);
        if (r == 0)
                r = packet_take_part(c, PACKET_EVENTS);
        if (r == 0)
                r = packet_take_part(c, PACKET_FORGOTTEN_TASKS);
        if (r == 0)
                r = packet_take_part(c, PACKET_TASKS);
        if (r == 0 && s->batch && s->packet.parts & 1U << PACKET_EVENTS) { /* they may say something else of its items */
                s->packet.rest.at = packet;
                r = stream_fill_batch(c);
        }
        return r;
}

int stream_close_packet(perfd_client *c) {
        int r;

        c->stream->packet.is_open = false;
        r = packet_take_part(c, PACKET_REMOVED);
        return r == 0 ? packet_take_part(c, PACKET_END) : r;
}

/* It is the daemon's again when the ring's tail is behind the message that told of it, and so not before it was taken. */
static int stream_open_pooled(perfd_client *c, const uint8_t *bytes, size_t length) {
        uint64_t numbers[POOLED_LENGTH + 1] = { 0 };
        Wire w = wire_of(bytes, length);
        WireField f = { .key = 0 };
        const uint8_t *packet;

        while (wire_next(&w, &f))
                if ((f.key & 7) == WIRE_VARINT && f.key >> 3 <= POOLED_LENGTH)
                        numbers[f.key >> 3] = f.number;
        packet = pool_reader_at(&c->stream->pool, numbers[POOLED_OFFSET], numbers[POOLED_LENGTH]);
        if (w.malformed || !packet)
                return stream_fail(c, PERFD_E_PROTOCOL, "the next one does not lie in the pool");
        c->stream->n_pooled += numbers[POOLED_LENGTH];
        return stream_open_packet(c, packet, numbers[POOLED_LENGTH], numbers[POOLED_SEQUENCE]);
}

int stream_open_message(perfd_client *c, const uint8_t *bytes, size_t length) {
        Wire w = wire_of(bytes, length);
        WireField f = { .key = 0 }, packet = { .key = 0 };

        while (wire_next(&w, &f))
                if (f.key == WIRE_KEY(MESSAGE_PACKET, WIRE_BYTES) || f.key == WIRE_KEY(MESSAGE_POOLED, WIRE_BYTES))
                        packet = f;
        if (w.malformed || packet.key == 0) {
                int r = client_take_last_word(c, bytes, length);

                return r != 0 ? r : stream_fail(c, PERFD_E_PROTOCOL, "something else than a packet follows it");
        }
        return packet.key >> 3 == MESSAGE_PACKET ? stream_open_packet(c, packet.bytes, packet.length, 0)
                                                 : stream_open_pooled(c, packet.bytes, packet.length);
}
