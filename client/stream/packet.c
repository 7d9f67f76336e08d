/*
 * Packets to callbacks. A packet is walked field by field over its wire bytes: first for its sequence number, then once
 * for each kind of content that it has, in the order in which it is meant (gaps, start, descriptors, tasks, items,
 * removals, end), because protobuf promises no order. Items are read in place, all that is cold goes through protobuf-c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/result/result.h"
#include "client/stream/stream.h"
#include "client/wire/wire.h"

enum {
        MESSAGE_PACKET = 2,
        MESSAGE_POOLED = 3,

        POOLED_SEQUENCE = 1,
        POOLED_OFFSET = 2,
        POOLED_LENGTH = 3,

        PACKET_SEQUENCE = 1,
        PACKET_START = 2,
        PACKET_EVENTS = 3,
        PACKET_ITEMS = 4,
        PACKET_GAP = 5,
        PACKET_REMOVED = 6,
        PACKET_END = 7,
        PACKET_TASKS = 8,
        PACKET_FORGOTTEN_TASKS = 9,
        PACKET_FIELDS = 10,
};

int stream_fail(perfd_client *c, int code, const char *what) {
        char text[160];

        if (code == -ENOMEM) {
                c->state = CLIENT_BROKEN; /* items would be missing from here on */
                return client_fail_memory(c);
        }
        (void)snprintf(text, sizeof(text), "packet %" PRIu64 " of the stream: %s", c->stream->sequence, what);
        return client_fail_protocol(c, text);
}

static int take_start(perfd_client *c, const uint8_t *bytes, size_t length) {
        Perfd__V1__StreamStart *m = perfd__v1__stream_start__unpack(NULL, length, bytes);
        Stream *s = c->stream;
        perfd_start start;

        if (!m || s->started) {
                if (m)
                        perfd__v1__stream_start__free_unpacked(m, NULL);
                return stream_fail(c, PERFD_E_PROTOCOL, "an unreadable or second start");
        }
        s->started = true;
        start = (perfd_start){
                .clock = m->clock,
                .wall_offset = m->wall_offset,
                .host = m->host,
                .kernel = m->kernel,
                .n_cpus = m->n_cpus,
                .order = (perfd_order)m->order,
                .payload = (perfd_payload)m->payload,
                .overflow = (perfd_overflow)m->overflow,
                .queue_bytes = m->queue_bytes,
                .ring_bytes = (uint32_t)s->ring.size,
        };
        if (s->callbacks.start)
                s->callbacks.start(s->userdata, &start);
        perfd__v1__stream_start__free_unpacked(m, NULL);
        return 0;
}

static int take_event(perfd_client *c, const uint8_t *bytes, size_t length) {
        Perfd__V1__EventDescriptor *m = perfd__v1__event_descriptor__unpack(NULL, length, bytes);
        Stream *s = c->stream;
        const perfd_event *event;
        int r;

        if (!m)
                return stream_fail(c, PERFD_E_PROTOCOL, "an unreadable descriptor");
        r = descriptors_add(&s->descriptors, m, &event);
        if (r != 0)
                return stream_fail(c, r, "a descriptor of an event that cannot be");
        if (s->callbacks.event)
                s->callbacks.event(s->userdata, event);
        return 0;
}

static int take_task(perfd_client *c, const uint8_t *bytes, size_t length) {
        Perfd__V1__Task *m = perfd__v1__task__unpack(NULL, length, bytes);
        int r;

        if (!m)
                return stream_fail(c, PERFD_E_PROTOCOL, "an unreadable description of a task");
        r = tasks_add(&c->stream->tasks, m);
        return r == 0 ? 0 : stream_fail(c, r, "it describes more tasks than there can be");
}

static int take_forgotten(perfd_client *c, const uint8_t *bytes, size_t length) {
        const uint8_t *end = bytes + length;
        uint64_t tid;

        while (bytes < end) {
                if (!wire_get_varint(&bytes, end, &tid))
                        return stream_fail(c, PERFD_E_PROTOCOL, "an unreadable list of tasks");
                tasks_forget(&c->stream->tasks, (uint32_t)tid);
        }
        return 0;
}

static int take_item(perfd_client *c, const uint8_t *bytes, size_t length) {
        Stream *s = c->stream;
        int r;

        r = item_decode(&s->item, &s->descriptors, bytes, length);
        if (r != 0)
                return stream_fail(c, r, "an item that is not what its descriptor says");
        s->item.who = tasks_find(&s->tasks, s->item.tid);
        s->received++;
        if (s->callbacks.item)
                s->callbacks.item(s->userdata, &s->item);
        return 0;
}

/* Gaps lie one behind the other and end where this packet begins: together they explain the whole jump. */
static int tell_gap(perfd_client *c, const Perfd__V1__Gap *m) {
        Stream *s = c->stream;
        perfd_gap_event *events;
        perfd_gap gap;

        if (m->first_sequence != s->sequence + 1 || m->last_sequence < m->first_sequence)
                return stream_fail(c, PERFD_E_PROTOCOL, "the gap behind it is not where the sequence jumps");
        s->sequence = m->last_sequence;
        s->missed += m->items;
        events = calloc(m->n_events + 1, sizeof(*events));
        if (!events)
                return stream_fail(c, -ENOMEM, "");
        for (size_t i = 0; i < m->n_events; i++) {
                const Descriptor *d = descriptors_find(&s->descriptors, m->events[i]->event);

                events[i] = (perfd_gap_event){
                        .id = m->events[i]->event, .name = d ? d->event.name : "", .items = m->events[i]->items
                };
        }
        gap = (perfd_gap){
                .reason = m->reason,
                .first_sequence = m->first_sequence,
                .last_sequence = m->last_sequence,
                .items = m->items,
                .from = m->from,
                .to = m->to,
                .events = events,
                .n_events = m->n_events,
        };
        if (s->callbacks.gap)
                s->callbacks.gap(s->userdata, &gap);
        free(events);
        return 0;
}

static int take_gap(perfd_client *c, const uint8_t *bytes, size_t length) {
        Perfd__V1__Gap *m = perfd__v1__gap__unpack(NULL, length, bytes);
        int r;

        if (!m)
                return stream_fail(c, PERFD_E_PROTOCOL, "an unreadable gap");
        r = tell_gap(c, m);
        perfd__v1__gap__free_unpacked(m, NULL);
        return r;
}

static int take_removed(perfd_client *c, const uint8_t *bytes, size_t length) {
        Perfd__V1__EventRef *m = perfd__v1__event_ref__unpack(NULL, length, bytes);
        Stream *s = c->stream;

        if (!m)
                return stream_fail(c, PERFD_E_PROTOCOL, "an unreadable removal");
        if (s->callbacks.removed)
                s->callbacks.removed(s->userdata, m->id, m->name);
        descriptors_remove(&s->descriptors, m->id);
        perfd__v1__event_ref__free_unpacked(m, NULL);
        return 0;
}

static int tell_end(perfd_client *c, const Perfd__V1__StreamEnd *m) {
        static const Perfd__V1__Ledger empty = PERFD__V1__LEDGER__INIT;
        Stream *s = c->stream;
        perfd_result *ledger;
        perfd_end end;

        if (result_new_ledger(m->ledger ? m->ledger : &empty, &ledger) < 0)
                return stream_fail(c, -ENOMEM, "");
        end = (perfd_end){ .reason = m->reason, .received = s->received, .missed = s->missed, .ledger = ledger };
        if (ledger->n_subscriber_ledgers > 0)
                end.own = &ledger->subscriber_ledgers[ledger->n_subscriber_ledgers - 1];
        if (result_sum_losses(ledger, &end.lost, &end.n_lost) < 0) {
                perfd_result_free(ledger);
                return stream_fail(c, -ENOMEM, "");
        }
        c->state = CLIENT_ENDED;
        if (s->callbacks.end)
                s->callbacks.end(s->userdata, &end);
        perfd_result_free(ledger);
        return 0;
}

static int take_end(perfd_client *c, const uint8_t *bytes, size_t length) {
        Perfd__V1__StreamEnd *m = perfd__v1__stream_end__unpack(NULL, length, bytes);
        int r;

        if (!m)
                return stream_fail(c, PERFD_E_PROTOCOL, "an unreadable end");
        r = tell_end(c, m);
        perfd__v1__stream_end__free_unpacked(m, NULL);
        return r;
}

typedef int (*TakePart)(perfd_client *c, const uint8_t *bytes, size_t length);

static int packet_walk(perfd_client *c, const uint8_t *packet, size_t length, unsigned part, TakePart take) {
        Wire w = wire_of(packet, length);
        WireField f = { .key = 0 };

        while (wire_next(&w, &f))
                if (f.key == WIRE_KEY(part, WIRE_BYTES)) {
                        int r = take(c, f.bytes, f.length);

                        if (r != 0)
                                return r;
                }
        return 0;
}

/* Before all descriptions. A list of numbers may come packed or number by number. */
static int packet_walk_forgotten(perfd_client *c, const uint8_t *packet, size_t length) {
        Wire w = wire_of(packet, length);
        WireField f = { .key = 0 };

        while (wire_next(&w, &f))
                if (f.key == WIRE_KEY(PACKET_FORGOTTEN_TASKS, WIRE_VARINT))
                        tasks_forget(&c->stream->tasks, (uint32_t)f.number);
        return packet_walk(c, packet, length, PACKET_FORGOTTEN_TASKS, take_forgotten);
}

/* Which parts there are, one bit for each; and the sequence number. */
static int packet_scan(perfd_client *c, const uint8_t *packet, size_t length, uint64_t *ret_sequence, unsigned *ret_parts) {
        Wire w = wire_of(packet, length);
        WireField f = { .key = 0 };
        uint64_t sequence = 0;
        unsigned parts = 0;

        while (wire_next(&w, &f)) {
                if (f.key == WIRE_KEY(PACKET_SEQUENCE, WIRE_VARINT))
                        sequence = f.number;
                else if (f.key == WIRE_KEY(PACKET_FORGOTTEN_TASKS, WIRE_VARINT))
                        parts |= 1U << PACKET_FORGOTTEN_TASKS;
                else if ((f.key & 7) == WIRE_BYTES && f.key >> 3 < PACKET_FIELDS)
                        parts |= 1U << (f.key >> 3);
        }
        if (w.malformed)
                return stream_fail(c, PERFD_E_PROTOCOL, "the next one is no perfd.v1.Packet");
        *ret_sequence = sequence;
        *ret_parts = parts;
        return 0;
}

/* sequence: of one that does not say it itself; 0: it does. */
static int stream_take_packet(perfd_client *c, const uint8_t *packet, size_t length, uint64_t sequence) {
        static const struct {
                unsigned part;
                TakePart take;
        } order[] = {
                { PACKET_START, take_start }, { PACKET_EVENTS, take_event },    { PACKET_TASKS, take_task },
                { PACKET_ITEMS, take_item },  { PACKET_REMOVED, take_removed }, { PACKET_END, take_end },
        };
        Stream *s = c->stream;
        uint64_t own = 0;
        unsigned parts = 0;
        int r;

        r = packet_scan(c, packet, length, &own, &parts);
        if (own > 0)
                sequence = own;
        if (r == 0 && parts & 1U << PACKET_GAP)
                r = packet_walk(c, packet, length, PACKET_GAP, take_gap);
        if (r == 0 && sequence != s->sequence + 1)
                r = stream_fail(c, PERFD_E_PROTOCOL, "the sequence jumps behind it, and no gap says what is missing");
        if (r != 0)
                return r;
        s->sequence = sequence;
        if (!s->started && !(parts & 1U << PACKET_START))
                return stream_fail(c, PERFD_E_PROTOCOL, "the stream has no start");
        if (parts & 1U << PACKET_FORGOTTEN_TASKS)
                r = packet_walk_forgotten(c, packet, length);
        for (size_t i = 0; r == 0 && i < sizeof(order) / sizeof(order[0]); i++)
                if (parts & 1U << order[i].part)
                        r = packet_walk(c, packet, length, order[i].part, order[i].take);
        return r;
}

/* It is the daemon's again when the ring's tail is behind the message that told of it, and so not before it was taken. */
static int stream_take_pooled(perfd_client *c, const uint8_t *bytes, size_t length) {
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
        return stream_take_packet(c, packet, numbers[POOLED_LENGTH], numbers[POOLED_SEQUENCE]);
}

int stream_take_message(perfd_client *c, const uint8_t *bytes, size_t length) {
        Wire w = wire_of(bytes, length);
        WireField f = { .key = 0 }, packet = { .key = 0 };

        while (wire_next(&w, &f))
                if (f.key == WIRE_KEY(MESSAGE_PACKET, WIRE_BYTES) || f.key == WIRE_KEY(MESSAGE_POOLED, WIRE_BYTES))
                        packet = f;
        if (w.malformed || packet.key == 0)
                return stream_fail(c, PERFD_E_PROTOCOL, "something else than a packet follows it");
        return packet.key >> 3 == MESSAGE_PACKET ? stream_take_packet(c, packet.bytes, packet.length, 0)
                                                 : stream_take_pooled(c, packet.bytes, packet.length);
}
