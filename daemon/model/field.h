/*
 * For readers, in matching and in encoding: one field of a Plan, read out of a tracepoint's raw bytes. Pure and
 * inline; every place, the dynamic ones too, is checked against raw_size before it is read. Bytes are the host's own,
 * in its byte order, at any alignment.
 */
#pragma once

#include <string.h>

#include "daemon/model/plan.h"

enum {
        FIELD_E_OUTSIDE = 1, /* the field, or element i of it, does not lie whole in the raw bytes */
};

/* A number of 1, 2, 4 or 8 bytes; signed ones widened to 64 bits, two's complement. */
static inline uint64_t field_load(const uint8_t *from, uint32_t element_size, bool is_signed) {
        uint64_t u64;
        uint32_t u32;
        uint16_t u16;

        switch (element_size) {
        case 8:
                memcpy(&u64, from, sizeof(u64));
                return u64;
        case 4:
                memcpy(&u32, from, sizeof(u32));
                return is_signed ? (uint64_t)(int64_t)(int32_t)u32 : u32;
        case 2:
                memcpy(&u16, from, sizeof(u16));
                return is_signed ? (uint64_t)(int64_t)(int16_t)u16 : u16;
        default:
                return is_signed ? (uint64_t)(int64_t)(int8_t)*from : *from;
        }
}

/*
 * Where the field's bytes lie and how many they are: of a dynamic number array always a multiple of element_size.
 * 0 or FIELD_E_OUTSIDE.
 */
static inline int field_locate(const PlanField *f, const uint8_t *raw, size_t raw_size, const uint8_t **ret_bytes,
                               uint32_t *ret_size) {
        uint64_t begin = f->offset, size = (uint64_t)f->element_size * f->count;

        if (f->place != PLACE_FIXED) {
                uint32_t place;

                if (begin + sizeof(place) > raw_size)
                        return FIELD_E_OUTSIDE;
                memcpy(&place, raw + begin, sizeof(place));
                begin = (place & 0xffff) + (f->place == PLACE_REL_LOC ? begin + sizeof(place) : 0);
                size = place >> 16;
                if (f->element_size > 1 && size % f->element_size != 0)
                        return FIELD_E_OUTSIDE;
        }
        if (begin + size > raw_size)
                return FIELD_E_OUTSIDE;
        *ret_bytes = raw + begin;
        *ret_size = (uint32_t)size;
        return 0;
}

/* Elements of a number field: 1 for a scalar, what the record says for a dynamic array. 0 or FIELD_E_OUTSIDE. */
static inline int field_count(const PlanField *f, const uint8_t *raw, size_t raw_size, uint32_t *ret_count) {
        const uint8_t *bytes;
        uint32_t size;

        if (field_locate(f, raw, raw_size, &bytes, &size) != 0)
                return FIELD_E_OUTSIDE;
        *ret_count = size / f->element_size;
        return 0;
}

/* Element i of a number field. 0 or FIELD_E_OUTSIDE, also when the array ends before i. */
static inline int field_number(const PlanField *f, const uint8_t *raw, size_t raw_size, uint32_t i,
                               uint64_t *ret_number) {
        const uint8_t *bytes;
        uint32_t size;

        if (field_locate(f, raw, raw_size, &bytes, &size) != 0 || i >= size / f->element_size)
                return FIELD_E_OUTSIDE;
        *ret_number = field_load(bytes + (size_t)i * f->element_size, f->element_size, f->kind == FIELD_SIGNED);
        return 0;
}

/* A text without its terminating zero (which need not be there), or all of FIELD_BYTES. 0 or FIELD_E_OUTSIDE. */
static inline int field_text(const PlanField *f, const uint8_t *raw, size_t raw_size, const uint8_t **ret_text,
                             size_t *ret_length) {
        const uint8_t *bytes;
        uint32_t size;

        if (field_locate(f, raw, raw_size, &bytes, &size) != 0)
                return FIELD_E_OUTSIDE;
        *ret_text = bytes;
        *ret_length = f->kind == FIELD_TEXT ? strnlen((const char *)bytes, size) : size;
        return 0;
}
