/*
 * For the messages inside of an item: which field is which member of a structure, said by a table. Pure; nothing is
 * allocated, texts point into the bytes.
 */
#pragma once

#include "client/perfd.h"
#include "client/wire/wire.h"

/* Field i + 1 of a message: where it goes, and by its size what it is: bool, uint32_t, uint64_t or perfd_text. */
typedef struct Member {
        uint16_t offset;
        uint8_t size;
        uint8_t type; /* WIRE_* */
} Member;

#define MEMBER(Type, member, wire_type)                                                                                \
        { .offset = offsetof(Type, member), .size = sizeof(((Type *)0)->member), .type = (wire_type) }
#define NUMBER(Type, member) MEMBER(Type, member, WIRE_VARINT)
#define WORD(Type, member) MEMBER(Type, member, WIRE_FIXED64)
#define TEXT(Type, member) MEMBER(Type, member, WIRE_BYTES)

/* `to` is all zeros. Fields that the table does not have, or has with another type, are skipped. PERFD_E_PROTOCOL. */
int message_decode(const WireField *field, const Member *members, size_t n, void *to);

#define MESSAGE_DECODE(field, members, to)                                                                             \
        message_decode((field), (members), sizeof(members) / sizeof((members)[0]), (to))

static inline perfd_text wire_text(const WireField *f) {
        return (perfd_text){ .bytes = (const char *)f->bytes, .length = f->length };
}
