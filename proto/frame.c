/*
 * Frames out of a byte stream. The buffer grows with the bytes that came, never with the length that was announced:
 * an announcement costs a peer four bytes, and must not cost us a million.
 */
#include "proto/frame.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST ((size_t)4 << 10)  /* what an idle connection holds after its first request */
#define ROOM_KEPT ((size_t)256 << 10) /* a larger buffer is given back as soon as it is empty */

void frame_reader_init(FrameReader *r, size_t limit) {
        assert(limit <= UINT32_MAX);
        *r = FRAME_READER_NULL;
        r->limit = limit;
}

void frame_reader_deinit(FrameReader *r) {
        free(r->buffer);
        *r = FRAME_READER_NULL;
}

/* Moves what is held to the front. */
static void frame_reader_compact(FrameReader *r) {
        size_t held = r->end - r->begin;

        if (held > 0)
                memmove(r->buffer, r->buffer + r->begin, held);
        r->begin = 0;
        r->end = held;
}

static int frame_reader_grow(FrameReader *r) {
        size_t most = FRAME_HEADER_SIZE + r->limit, size = r->size ? 2 * r->size : ROOM_FIRST;
        uint8_t *buffer;

        if (size > most)
                size = most;
        if (size == r->size)
                return 0; /* whole frames that the caller did not take */
        buffer = realloc(r->buffer, size);
        if (!buffer)
                return -ENOMEM;
        r->buffer = buffer;
        r->size = size;
        return 0;
}

int frame_reader_room(FrameReader *r, uint8_t **ret_room, size_t *ret_size) {
        size_t held = r->end - r->begin;
        int code;

        if (held == 0 && r->size > ROOM_KEPT) {
                free(r->buffer);
                frame_reader_init(r, r->limit);
        }
        if (r->begin >= held || r->end == r->size) /* the first: it moves less than was taken since the last time */
                frame_reader_compact(r);
        if (r->end == r->size) {
                code = frame_reader_grow(r);
                if (code < 0)
                        return code;
        }
        *ret_room = r->buffer + r->end;
        *ret_size = r->size - r->end;
        return 0;
}

void frame_reader_fed(FrameReader *r, size_t n) {
        assert(n <= r->size - r->end);
        r->end += n;
}

int frame_reader_next(FrameReader *r, const uint8_t **ret_message, size_t *ret_length) {
        size_t held = r->end - r->begin, length = 0;

        if (held < FRAME_HEADER_SIZE)
                return FRAME_E_NEED_MORE;
        for (int i = 0; i < FRAME_HEADER_SIZE; i++)
                length |= (size_t)r->buffer[r->begin + i] << (8 * i);
        if (length > r->limit)
                return FRAME_E_TOO_LONG;
        if (held - FRAME_HEADER_SIZE < length)
                return FRAME_E_NEED_MORE;
        *ret_message = r->buffer + r->begin + FRAME_HEADER_SIZE;
        *ret_length = length;
        r->begin += FRAME_HEADER_SIZE + length;
        return 0;
}

bool frame_reader_is_empty(const FrameReader *r) {
        return r->begin == r->end;
}
