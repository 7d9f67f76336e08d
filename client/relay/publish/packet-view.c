#include "client/relay/publish/packet-view.h"

#include "client/wire/wire.h"

/* perfd.v1.ServerMessage, Packet, Item, Gap */
enum {
        MESSAGE_PACKET = 2,
        PACKET_SEQUENCE = 1,
        PACKET_START = 2,
        PACKET_EVENTS = 3,
        PACKET_ITEMS = 4,
        PACKET_GAP = 5,
        PACKET_REMOVED = 6,
        PACKET_END = 7,
        PACKET_WALL = 10,
        ITEM_TIME = 1,
        GAP_REASON = 1,
        GAP_ITEMS = 4,
};

bool packet_find(const uint8_t *message, size_t length, const uint8_t **ret_packet, size_t *ret_length) {
        Wire w = wire_of(message, length);
        WireField f = { .key = 0 };
        bool is_found = false;

        while (wire_next(&w, &f))
                if (f.key == WIRE_KEY(MESSAGE_PACKET, WIRE_BYTES)) {
                        is_found = true;
                        *ret_packet = f.bytes;
                        *ret_length = f.length;
                }
        return is_found && !w.malformed;
}

/* perfd writes the time first, so the rest of an item is not looked at. */
static bool item_time(const uint8_t *item, size_t length, uint64_t *ret_time) {
        Wire w = wire_of(item, length);
        WireField f = { .key = 0 };

        *ret_time = 0;
        while (wire_next(&w, &f))
                if (f.key == WIRE_KEY(ITEM_TIME, WIRE_FIXED64)) {
                        *ret_time = f.number;
                        return true;
                }
        return !w.malformed;
}

/* A part that is missing stays as it is. */
static bool gap_read(const WireField *gap, const char **reason, size_t *n, uint64_t *items) {
        Wire w = wire_of(gap->bytes, gap->length);
        WireField f = { .key = 0 };

        while (wire_next(&w, &f))
                if (f.key == WIRE_KEY(GAP_ITEMS, WIRE_VARINT)) {
                        *items = f.number;
                } else if (f.key == WIRE_KEY(GAP_REASON, WIRE_BYTES)) {
                        *reason = (const char *)f.bytes;
                        *n = f.length;
                }
        return !w.malformed;
}

void packet_each_gap(const uint8_t *packet, size_t length, void (*take)(void *userdata, const char *reason, size_t n, uint64_t items),
                     void *userdata) {
        Wire w = wire_of(packet, length);
        WireField f = { .key = 0 };

        while (wire_next(&w, &f))
                if (f.key == WIRE_KEY(PACKET_GAP, WIRE_BYTES)) {
                        const char *reason = "";
                        uint64_t items = 0;
                        size_t n = 0;

                        (void)gap_read(&f, &reason, &n, &items);
                        take(userdata, reason, n, items);
                }
}

bool packet_view(const uint8_t *packet, size_t length, PacketView *ret) {
        PacketView v = { .sequence = 0 };
        Wire w = wire_of(packet, length);
        WireField f = { .key = 0 };
        uint64_t time, items;
        const char *reason;
        size_t n;

        while (wire_next(&w, &f)) {
                v.has_start |= f.key == WIRE_KEY(PACKET_START, WIRE_BYTES);
                v.has_wall |= f.key == WIRE_KEY(PACKET_WALL, WIRE_BYTES);
                v.has_events |= f.key == WIRE_KEY(PACKET_EVENTS, WIRE_BYTES);
                v.has_removed |= f.key == WIRE_KEY(PACKET_REMOVED, WIRE_BYTES);
                v.has_end |= f.key == WIRE_KEY(PACKET_END, WIRE_BYTES);
                if (f.key == WIRE_KEY(PACKET_SEQUENCE, WIRE_VARINT))
                        v.sequence = f.number;
                if (f.key == WIRE_KEY(PACKET_GAP, WIRE_BYTES)) {
                        items = 0;
                        if (!gap_read(&f, &reason, &n, &items))
                                return false;
                        v.n_lost += items;
                }
                if (f.key != WIRE_KEY(PACKET_ITEMS, WIRE_BYTES))
                        continue;
                if (!item_time(f.bytes, f.length, &time))
                        return false;
                v.first = v.n_items == 0 || time < v.first ? time : v.first;
                v.last = time > v.last ? time : v.last;
                v.n_items++;
        }
        *ret = v;
        return !w.malformed && v.sequence > 0;
}
