/*
 * What is in a file of the spool. All numbers are little-endian, all begins at a multiple of 8 bytes.
 *
 *   file     header, records
 *   header   "perfdspl"  version u32  salt u32  number u64  first u64  machine 24 (16 of them the id)  0 u32  checksum u32
 *   record   "pmsg" u32  length u32  number u64  checksum of the body u32  checksum of what is before it u32  body  0 to 7 zeros
 *   body     lengths of subject, id: u16 each  number of headers u16  0 u16  subject  id  headers  the bytes of the message
 *   header of a message   lengths of name, value: u16 each  name  value
 *
 * Checksums are CRC-32C. Those of records are seeded with the salt, a random number: bytes of a message, which somebody may have
 * chosen, cannot look like a record behind a place that is damaged. Pure, one thread.
 */
#pragma once

#include <stdbool.h>

#include "client/relay/publish/message.h"

#define SPOOL_VERSION 1
#define SPOOL_HEADER_SIZE 64
#define SPOOL_RECORD_HEADER_SIZE 24
#define SPOOL_ALIGNMENT 8
/* Of a whole record: bytes, header, and the texts of a message. */
#define SPOOL_RECORD_MAX (MESSAGE_BYTES_MAX + SPOOL_RECORD_HEADER_SIZE + ((size_t)4 << 10))

typedef struct SpoolHeader {
        uint64_t number;  /* of the file */
        uint64_t first;   /* number of its first message */
        uint32_t salt;
        char machine[33];
} SpoolHeader;

enum {
        SPOOL_HEADER_E_DAMAGED = 1,
        SPOOL_HEADER_E_VERSION, /* it is whole, and of another version */
};

void spool_header_put(uint8_t to[SPOOL_HEADER_SIZE], const SpoolHeader *h);
int spool_header_get(const uint8_t *bytes, size_t length, SpoolHeader *ret);

/* Of a record with this message. */
size_t spool_record_size(const Message *m);
void spool_record_put(uint8_t *to, const Message *m, uint64_t number, uint32_t salt);

typedef enum SpoolFound {
        SPOOL_RECORD,  /* a whole one, of ret->length bytes and with ret->number */
        SPOOL_DAMAGE,  /* ret->length bytes are none, of which 8 at least */
        SPOOL_MORE,    /* more bytes have to be there to tell */
        SPOOL_END,     /* there are none */
} SpoolFound;

typedef struct SpoolPlace {
        size_t length;
        uint64_t number;
} SpoolPlace;

/*
 * What the bytes begin with. `is_all`: they go on to the end of the file; SPOOL_RECORD_MAX bytes are always enough. Numbers of records
 * rise: one that is not above `after` is damage.
 */
SpoolFound spool_find(const uint8_t *bytes, size_t length, bool is_all, uint32_t salt, uint64_t after, SpoolPlace *ret);
/* The message of a whole record; REFUSED_INVALID: its checksum is right and what it says is impossible; -ENOMEM. */
int spool_record_get(const uint8_t *record, const SpoolPlace *place, Message **ret);
