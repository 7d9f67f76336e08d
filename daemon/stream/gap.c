/*
 * Gaps: counted item by item, from the bytes of a packet when it is dropped, so that nothing is counted, nor kept to be
 * counted, for those that are not. Every item begins with its time and its event, as encode/ and PROTOCOL.md have it.
 */
#include "daemon/stream/gap.h"

#include <endian.h>
#include <errno.h>

#include "daemon/base/error-trail.h"
#include "proto/item-fields.h"
#include "proto/perfd.pb-c.h"

const char *gap_reason_name(GapReason reason, bool is_relayed) {
        static const char *const names[] = { [GAP_OUTBOX] = "outbox", [GAP_MEMORY] = "memory" };
        static const char *const relayed[] = { [GAP_OUTBOX] = "relay_queue", [GAP_MEMORY] = "memory" };

        return is_relayed ? relayed[reason] : names[reason];
}

void gap_deinit(Gap *g) {
        free(g->counts);
        *g = GAP_NULL;
}

/* Where the event's count is, or would be. */
static size_t gap_place(const Gap *g, uint32_t event) {
        size_t low = 0, high = g->n_counts;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (g->counts[middle].event < event)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static int gap_count(Gap *g, uint32_t event, uint64_t items) {
        size_t place = gap_place(g, event);

        if (place < g->n_counts && g->counts[place].event == event) {
                g->counts[place].items += items;
                return 0;
        }
        if (g->n_counts == g->capacity) {
                size_t capacity = g->capacity ? 2 * g->capacity : 4;
                GapCount *counts = reallocarray(g->counts, capacity, sizeof(*counts));

                if (!counts)
                        return error_origin(-ENOMEM);
                g->counts = counts;
                g->capacity = capacity;
        }
        memmove(g->counts + place + 1, g->counts + place, (g->n_counts - place) * sizeof(*g->counts));
        g->counts[place] = (GapCount){ .event = event, .items = items };
        g->n_counts++;
        return 0;
}

/* Our own encoder wrote it: a varint that is whole. */
static const uint8_t *read_varint(const uint8_t *at, uint64_t *ret) {
        uint64_t value = 0;
        unsigned shift = 0;

        for (; *at & 0x80; shift += 7)
                value |= (uint64_t)(*at++ & 0x7f) << shift;
        *ret = value | (uint64_t)*at << shift;
        return at + 1;
}

/*
 *     | key of Packet.items, length | key of Item.time, fixed64 | key of Item.event, fixed32 or varint | ...
 *
 * What is zero may be left out.
 */
static const uint8_t *read_item(const uint8_t *at, uint32_t *ret_event, nsec_t *ret_time) {
        const uint8_t *end;
        uint64_t length, event = 0, time = 0;
        uint32_t word;

        assert(*at == (PACKET_ITEMS << 3 | 2));
        at = read_varint(at + 1, &length);
        end = at + length;
        if (at < end && *at == (ITEM_TIME << 3 | 1)) {
                memcpy(&time, at + 1, sizeof(time));
                time = le64toh(time);
                at += 1 + sizeof(time);
        }
        if (at < end && *at == (ITEM_EVENT << 3 | 0)) {
                (void)read_varint(at + 1, &event);
        } else if (at < end && *at == (ITEM_EVENT << 3 | 5)) {
                memcpy(&word, at + 1, sizeof(word));
                event = le32toh(word);
        }
        *ret_event = (uint32_t)event;
        *ret_time = time;
        return end;
}

int gap_add(Gap *g, const Packet *p) {
        const uint8_t *at = p->bytes, *end = at + p->length;
        uint64_t run = 0, n_items = 0;
        uint32_t event = 0, next;
        nsec_t time;
        int r = 0;

        for (; at < end && r == 0; run++, n_items++) {
                at = read_item(at, &next, &time);
                if (run > 0 && next != event) {
                        r = gap_count(g, event, run);
                        run = 0;
                }
                event = next;
                g->from = time < g->from ? time : g->from;
                g->to = time > g->to ? time : g->to;
        }
        if (run > 0 && r == 0)
                r = gap_count(g, event, run);
        if (r < 0)
                return r;
        assert(n_items == p->n_items);
        g->n_packets++;
        g->n_items += n_items;
        return 0;
}

int gap_encode(const Gap *g, const char *reason, uint64_t first_sequence, Packet **ret_packet) {
        _cleanup_free_ Perfd__V1__GapEvent *events = calloc(g->n_counts + 1, sizeof(*events));
        _cleanup_free_ Perfd__V1__GapEvent **pointers = calloc(g->n_counts + 1, sizeof(*pointers));
        Perfd__V1__Gap gap = PERFD__V1__GAP__INIT, *gaps[] = { &gap };
        Perfd__V1__Packet message = PERFD__V1__PACKET__INIT;
        Packet *p;

        if (!events || !pointers)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < g->n_counts; i++) {
                pointers[i] = &events[i];
                perfd__v1__gap_event__init(&events[i]);
                events[i].event = g->counts[i].event;
                events[i].items = g->counts[i].items;
        }
        gap.reason = (char *)reason;
        gap.first_sequence = first_sequence;
        gap.last_sequence = first_sequence + g->n_packets - 1;
        gap.items = g->n_items;
        gap.from = g->n_items ? g->from : 0;
        gap.to = g->to;
        gap.n_events = g->n_counts;
        gap.events = pointers;
        message.n_gap = 1;
        message.gap = gaps;

        p = packet_new(perfd__v1__packet__get_packed_size(&message));
        if (!p)
                return error_origin(-ENOMEM);
        p->length = perfd__v1__packet__pack(&message, p->room);
        p->keep = true;
        packet_seal(p);
        *ret_packet = p;
        return 0;
}
