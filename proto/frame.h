/*
 * For daemon and client: how messages lie on a stream socket. A frame is a 32-bit little-endian length and that many
 * bytes of one protobuf message:
 *
 *     | length (4) | message (length) | length (4) | ...
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_SIZE 4
#define FRAME_MAX_REQUEST ((size_t)1 << 20) /* bytes of message that the daemon reads: HelloReply.max_request */
#define FRAME_MAX_SERVER ((size_t)16 << 20) /* bytes of message that the daemon ever sends */
#define PERFD_PROTOCOL 1

enum {
        FRAME_E_NEED_MORE = 1, /* no whole frame yet */
        FRAME_E_TOO_LONG,      /* the announced length is above the limit: the stream cannot be followed any more */
};

/* An incremental decoder: feed what was read, take whole messages out. One owner, no thread. */
typedef struct FrameReader {
        uint8_t *buffer;
        size_t size, begin, end; /* bytes allocated; begin..end is what is not yet taken */
        size_t limit;            /* longest message accepted */
} FrameReader;

#define FRAME_READER_NULL ((FrameReader){ .buffer = NULL })

void frame_reader_init(FrameReader *r, size_t limit);
void frame_reader_deinit(FrameReader *r);

/*
 * Room to read(2) into, then frame_reader_fed() says how many bytes came. At least one byte, if all whole messages
 * were taken before; never for more than one longest frame in all, and never for more than twice what has come,
 * whatever length was announced (but 4 KiB to begin with). -ENOMEM.
 */
int frame_reader_room(FrameReader *r, uint8_t **ret_room, size_t *ret_size);
void frame_reader_fed(FrameReader *r, size_t n);

/* The next whole message, valid until the next call of room; 0, FRAME_E_NEED_MORE or, then for ever, FRAME_E_TOO_LONG. */
int frame_reader_next(FrameReader *r, const uint8_t **ret_message, size_t *ret_length);
/* False: there are whole messages not yet taken, or a part of one. */
bool frame_reader_is_empty(const FrameReader *r);

static inline void frame_header_put(uint8_t to[static FRAME_HEADER_SIZE], uint32_t length) {
        for (int i = 0; i < FRAME_HEADER_SIZE; i++)
                to[i] = (uint8_t)(length >> (8 * i));
}
