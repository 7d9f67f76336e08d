/*
 * For the library: protobuf wire bytes read in place, without a copy or an allocation. What the daemon sent is not
 * trusted: nothing is read outside of the bytes given.
 */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
        WIRE_VARINT = 0,
        WIRE_FIXED64 = 1,
        WIRE_BYTES = 2,
        WIRE_FIXED32 = 5,
};

#define WIRE_KEY(field, type) ((uint32_t)(field) << 3 | (uint32_t)(type))

typedef struct Wire {
        const uint8_t *at, *end;
        bool malformed;
} Wire;

typedef struct WireField {
        uint32_t key;         /* WIRE_KEY() */
        uint64_t number;      /* of a varint or a fixed one */
        const uint8_t *bytes; /* of WIRE_BYTES */
        size_t length;
} WireField;

static inline Wire wire_of(const uint8_t *bytes, size_t length) {
        return (Wire){ .at = bytes, .end = bytes + length };
}

/* False: it does not end inside of the bytes, or is longer than 64 bits need. */
static inline bool wire_get_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret_number) {
        const uint8_t *p = *at;
        uint64_t number = 0;

        if (p < end && *p < 0x80) {
                *ret_number = *p;
                *at = p + 1;
                return true;
        }
        for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
                uint8_t byte = *p++;

                number |= (uint64_t)(byte & 0x7f) << shift;
                if (byte < 0x80) {
                        *ret_number = number;
                        *at = p;
                        return true;
                }
        }
        return false;
}

static inline uint64_t wire_get_fixed64(const uint8_t *at) {
        uint64_t number;

        memcpy(&number, at, sizeof(number));
        return le64toh(number);
}

static inline bool wire_fail(Wire *w) {
        w->malformed = true;
        return false;
}

/* The next field; false at the end, or with `malformed` set. */
static inline bool wire_next(Wire *w, WireField *ret) {
        uint64_t number;

        if (w->at == w->end)
                return false;
        if (!wire_get_varint(&w->at, w->end, &number) || number > UINT32_MAX || number < WIRE_KEY(1, 0))
                return wire_fail(w);
        ret->key = (uint32_t)number;
        switch (number & 7) {
        case WIRE_VARINT:
                if (!wire_get_varint(&w->at, w->end, &ret->number))
                        return wire_fail(w);
                return true;
        case WIRE_BYTES:
                if (!wire_get_varint(&w->at, w->end, &number) || number > (uint64_t)(w->end - w->at))
                        return wire_fail(w);
                ret->bytes = w->at;
                ret->length = (size_t)number;
                w->at += number;
                return true;
        case WIRE_FIXED64:
                if (w->end - w->at < 8)
                        return wire_fail(w);
                ret->number = wire_get_fixed64(w->at);
                w->at += 8;
                return true;
        case WIRE_FIXED32:
                if (w->end - w->at < 4)
                        return wire_fail(w);
                ret->number = (uint64_t)w->at[0] | (uint64_t)w->at[1] << 8 | (uint64_t)w->at[2] << 16 |
                              (uint64_t)w->at[3] << 24;
                w->at += 4;
                return true;
        default: /* groups are not of proto3 */
                return wire_fail(w);
        }
}
