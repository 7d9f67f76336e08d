/*
 * For the library: protobuf wire bytes read in place, without a copy or an allocation. What the daemon sent is not
 * trusted: nothing is read outside of the bytes given. They may lie in memory that it can change at any time: each length is
 * loaded once, and what was loaded is checked and used.
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

/* Not twice, whatever the compiler thinks of it. */
static inline uint8_t wire_load(const uint8_t *at) {
        return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/* False: it does not end inside of the bytes, or is longer than 64 bits need. */
static inline bool wire_get_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret_number) {
        const uint8_t *p = *at;
        uint64_t number = 0;

        for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
                uint8_t byte = wire_load(p++);

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

static inline uint32_t wire_get_fixed32(const uint8_t *at) {
        uint32_t number;

        memcpy(&number, at, sizeof(number));
        return le32toh(number);
}

static inline bool wire_fail(Wire *w) {
        w->malformed = true;
        return false;
}

/* A field of WIRE_BYTES as one before it: many of those that follow each other have the same length. */
typedef struct WireLike {
        uint32_t mask, head; /* its key and length */
        uint32_t begin;      /* bytes of these */
        size_t size;         /* of all, at least those of a word */
} WireLike;

#define WIRE_LIKE_NULL ((WireLike){ .size = SIZE_MAX })

/*
 * If a field of WIRE_BYTES with this key of one byte lies here, as most of them are, and is whole: what is in it, up to the next
 * field. False: wire_next() says what it is.
 */
static inline bool wire_take(Wire *w, uint8_t key, WireLike *like, const uint8_t **ret_content) {
        const uint8_t *at = w->at;
        size_t left = (size_t)(w->end - at), length;
        uint32_t head;

        if (left < sizeof(head))
                return false;
        head = wire_get_fixed32(at);
        if (left >= like->size && (head & like->mask) == like->head) {
                *ret_content = at + like->begin;
                w->at = at + like->size;
                return true;
        }
        if ((uint8_t)head != key || (head & 0x808000) == 0x808000)
                return false;
        like->begin = head & 0x8000 ? 3 : 2;
        like->mask = head & 0x8000 ? 0xffffff : 0xffff;
        like->head = head & like->mask;
        length = (head >> 8 & 0x7f) | (head & 0x8000 ? head >> 9 & 0x3f80 : 0);
        like->size = like->begin + length;
        if (left < like->size || like->size < sizeof(head)) {
                *like = WIRE_LIKE_NULL;
                return false;
        }
        *ret_content = at + like->begin;
        w->at = at + like->size;
        return true;
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
                ret->number = wire_get_fixed32(w->at);
                w->at += 4;
                return true;
        default: /* groups are not of proto3 */
                return wire_fail(w);
        }
}
