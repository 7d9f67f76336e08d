/*
 * Encodes each record as the Item of proto/perfd.proto that perfd makes of it, and writes blocks of 64 KiB to a socket.
 * It knows this one event by heart: there are no plans, no filters, no order, and no account.
 */
#include "tests/bench/live/bare.h"

enum {
        FIXED64 = 1, LENGTH = 2, FIXED32 = 5, /* wire types */
        PACKET_ITEMS = 4,
        ITEM_TIME = 1, ITEM_EVENT = 2, ITEM_CPU = 3, ITEM_PID = 4, ITEM_TID = 5, ITEM_NUMBERS = 7,
        NUMBERS_LENGTH = BARE_N_NUMBERS * 8,
        ITEM_LENGTH = 9 + 4 * 5 + 2 + NUMBERS_LENGTH, /* below 128: one byte */
};

static uint8_t *put_tag(uint8_t *to, unsigned field, unsigned type) {
        *to = (uint8_t)(field << 3 | type);
        return to + 1;
}

static uint8_t *put(uint8_t *to, unsigned field, unsigned type, const uint8_t *value, size_t size) {
        to = put_tag(to, field, type);
        memcpy(to, value, size);
        return to + size;
}

static size_t encode(uint8_t *to, const uint8_t *record) {
        static const uint32_t event = 1;
        uint8_t *at = put_tag(to, PACKET_ITEMS, LENGTH);

        *at++ = ITEM_LENGTH;
        at = put(at, ITEM_TIME, FIXED64, record + BARE_TIME, 8);
        at = put(at, ITEM_EVENT, FIXED32, (const uint8_t *)&event, 4);
        at = put(at, ITEM_CPU, FIXED32, record + BARE_CPU, 4);
        at = put(at, ITEM_PID, FIXED32, record + BARE_PID, 4);
        at = put(at, ITEM_TID, FIXED32, record + BARE_TID, 4);
        at = put_tag(at, ITEM_NUMBERS, LENGTH);
        *at++ = NUMBERS_LENGTH;
        memcpy(at, record + BARE_NUMBERS, NUMBERS_LENGTH);
        return (size_t)(at - to) + NUMBERS_LENGTH;
}

static void flush(Bare *b) {
        bare_write(b, b->block, b->used);
        b->used = 0;
}

static void encode_and_write(Bare *b) {
        const uint8_t *record;
        size_t length;

        while ((record = bare_next(b, &length))) {
                if (((const struct perf_event_header *)record)->type != PERF_RECORD_SAMPLE)
                        continue;
                b->used += encode(b->block + b->used, record);
                if (b->used >= BARE_BLOCK)
                        flush(b);
        }
        flush(b);
}

int main(int argc, char **argv) {
        return bare_run(argc, argv, NULL, encode_and_write);
}
