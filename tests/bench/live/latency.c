/* The clock is read once for each frame: that is when its bytes were there, for all of its items. */
#include "tests/bench/live/latency.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };           /* wire types */
enum { MESSAGE_PACKET = 2, PACKET_ITEMS = 4, ITEM_TIME = 1 };        /* fields */

typedef struct Field {
        unsigned number, type;
        const uint8_t *value;
        size_t length;
} Field;

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret) {
        uint64_t value = 0;

        for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
                uint8_t byte = *(*at)++;

                value |= (uint64_t)(byte & 0x7f) << shift;
                if (byte < 0x80) {
                        *ret = value;
                        return true;
                }
        }
        return false;
}

static bool read_field(const uint8_t **at, const uint8_t *end, Field *ret) {
        uint64_t tag, length;

        if (!read_varint(at, end, &tag))
                return false;
        *ret = (Field){ .number = (unsigned)(tag >> 3), .type = tag & 7, .value = *at };
        if (ret->type == VARINT)
                return read_varint(at, end, &length);
        if (ret->type == LENGTH) {
                if (!read_varint(at, end, &length))
                        return false;
                ret->value = *at;
        } else
                length = ret->type == FIXED64 ? 8 : ret->type == FIXED32 ? 4 : SIZE_MAX;
        if (length > (size_t)(end - *at))
                return false;
        ret->length = (size_t)length;
        *at += length;
        return true;
}

static size_t bucket_of(uint64_t ns) {
        unsigned power = ns >> LATENCY_STEP_BITS ? 63 - (unsigned)__builtin_clzll(ns) - LATENCY_STEP_BITS : 0;

        return ((size_t)power << LATENCY_STEP_BITS) + (size_t)(ns >> power);
}

/* The middle of what is in a bucket. */
static uint64_t bucket_middle(size_t bucket) {
        size_t power = bucket >> LATENCY_STEP_BITS, step = bucket & ((1 << LATENCY_STEP_BITS) - 1);

        if (power > 0) {
                power--;
                step += 1 << LATENCY_STEP_BITS;
        }
        return ((uint64_t)step << power) + ((uint64_t)1 << power) / 2;
}

void latency_add(Latency *l, uint64_t time, uint64_t now) {
        uint64_t age = now > time ? now - time : 0;

        if (l->first == 0)
                l->first = time;
        if (time < l->first + LATENCY_BEGIN) {
                if (age > l->begin_max)
                        l->begin_max = age;
                return;
        }
        l->n_items++;
        l->buckets[bucket_of(age)]++;
        if (age > l->max)
                l->max = age;
}

static bool latency_add_item(Latency *l, const uint8_t *at, const uint8_t *end, nsec_t now) {
        Field field;

        while (at < end) {
                uint64_t time;

                if (!read_field(&at, end, &field))
                        return false;
                if (field.number != ITEM_TIME || field.type != FIXED64)
                        continue;
                memcpy(&time, field.value, sizeof(time));
                latency_add(l, time, now);
                return true;
        }
        return false; /* an item without a time */
}

static bool latency_add_packet(Latency *l, const uint8_t *at, const uint8_t *end, nsec_t now) {
        Field field;

        while (at < end) {
                if (!read_field(&at, end, &field))
                        return false;
                if (field.number == PACKET_ITEMS && field.type == LENGTH &&
                    !latency_add_item(l, field.value, field.value + field.length, now))
                        return false;
        }
        return true;
}

bool latency_add_frame(Latency *l, const uint8_t *message, size_t length) {
        const uint8_t *at = message, *end = message + length;
        nsec_t now = clock_now(CLOCK_MONOTONIC);
        Field field;

        while (at < end) {
                if (!read_field(&at, end, &field))
                        return false;
                if (field.number == MESSAGE_PACKET && field.type == LENGTH &&
                    !latency_add_packet(l, field.value, field.value + field.length, now))
                        return false;
        }
        return true;
}

static uint64_t percentile(const Latency *l, double part) {
        uint64_t below = 0, wanted = (uint64_t)((double)l->n_items * part);

        for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
                below += l->buckets[i];
                if (below > wanted)
                        return bucket_middle(i) < l->max ? bucket_middle(i) : l->max;
        }
        return l->max;
}

void latency_print(const Latency *l) {
        printf("\"items\":%llu,\"p50_ns\":%llu,\"p99_ns\":%llu,\"max_ns\":%llu,\"begin_max_ns\":%llu,",
               (unsigned long long)l->n_items, (unsigned long long)percentile(l, 0.50),
               (unsigned long long)percentile(l, 0.99), (unsigned long long)l->max, (unsigned long long)l->begin_max);
}
