/*
 * What a packet has beside its items, to callbacks: cold, and read by protobuf-c. A packet is walked for each kind of it, because
 * protobuf promises no order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/result/result.h"
#include "client/stream/part.h"
#include "client/wire/wire.h"

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
        s->wall.offset = m->wall_offset;
        s->wall.drifts = strcmp(m->clock, "monotonic-raw") == 0;
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

const char stream_expired[] = "expired";

void stream_tell_expired(perfd_client *c, uint64_t last) {
        Stream *s = c->stream;
        perfd_gap gap = { .reason = stream_expired, .first_sequence = s->sequence + 1, .last_sequence = last };

        if (s->sequence > 0 && s->callbacks.gap)
                s->callbacks.gap(s->userdata, &gap);
        s->sequence = last;
}

/* Gaps lie one behind the other and end where this packet begins: together they explain the whole jump. */
static int tell_gap(perfd_client *c, const Perfd__V1__Gap *m) {
        Stream *s = c->stream;
        perfd_gap_event *events;
        perfd_gap gap;

        if (s->is_fed && m->first_sequence > s->sequence + 1)
                stream_tell_expired(c, m->first_sequence - 1);
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

static int take_wall(perfd_client *c, const uint8_t *bytes, size_t length) {
        Perfd__V1__WallReading *m = perfd__v1__wall_reading__unpack(NULL, length, bytes);
        Stream *s = c->stream;
        perfd_wall_reading reading;

        if (!m)
                return stream_fail(c, PERFD_E_PROTOCOL, "an unreadable reading of wall time");
        reading = (perfd_wall_reading){
                .time = m->time, .wall = m->wall, .error = m->error, .since = m->since, .host_error = m->host_error,
                .synchronized = m->synchronized,
        };
        perfd__v1__wall_reading__free_unpacked(m, NULL);
        wall_times_add(&s->wall, &reading);
        if (s->callbacks.wall)
                s->callbacks.wall(s->userdata, &reading);
        return 0;
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

/* protobuf-c goes over a message twice, and takes for granted that it is the same: it gets one that nobody else can write. */
static int take_copy(perfd_client *c, const WireField *f, TakePart take) {
        Stream *s = c->stream;

        if (!ring_reader_is_open(&s->ring))
                return take(c, f->bytes, f->length);
        if (f->length > s->part_room && list_grow(&s->part, &s->part_room, f->length, 1) < 0)
                return stream_fail(c, -ENOMEM, "");
        if (f->length > 0)
                memcpy(s->part, f->bytes, f->length);
        return take(c, s->part, f->length);
}

static int packet_walk(perfd_client *c, const PacketReading *p, unsigned part, TakePart take) {
        Wire w = { .at = p->bytes, .end = p->end };
        WireField f = { .key = 0 };
        WireLike like = WIRE_LIKE_NULL;
        const uint8_t *content;
        int r = 0;

        while (r == 0)
                if (wire_take(&w, ITEMS_KEY, &like, &content))
                        continue;
                else if (!wire_next(&w, &f))
                        break;
                else if (f.key == WIRE_KEY(part, WIRE_BYTES))
                        r = take_copy(c, &f, take);
        return r != 0 || !w.malformed ? r : stream_fail(c, PERFD_E_PROTOCOL, CHANGED);
}

/* A list of numbers may come packed or number by number. */
static int walk_forgotten(perfd_client *c, const PacketReading *p) {
        Wire w = { .at = p->bytes, .end = p->end };
        WireField f = { .key = 0 };

        while (wire_next(&w, &f))
                if (f.key == WIRE_KEY(PACKET_FORGOTTEN_TASKS, WIRE_VARINT))
                        tasks_forget(&c->stream->tasks, (uint32_t)f.number);
        return packet_walk(c, p, PACKET_FORGOTTEN_TASKS, take_forgotten);
}

int packet_take_part(perfd_client *c, unsigned part) {
        static const TakePart take[PACKET_FIELDS] = {
                [PACKET_GAP] = take_gap, [PACKET_START] = take_start, [PACKET_EVENTS] = take_event, [PACKET_TASKS] = take_task,
                [PACKET_REMOVED] = take_removed, [PACKET_END] = take_end, [PACKET_WALL] = take_wall,
        };
        const PacketReading *p = &c->stream->packet;

        if (!(p->parts & 1U << part))
                return 0;
        return part == PACKET_FORGOTTEN_TASKS ? walk_forgotten(c, p) : packet_walk(c, p, part, take[part]);
}
