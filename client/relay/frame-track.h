/* Where the frames (proto/frame.h) begin and end in bytes that are passed on without being parsed. Pure, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

typedef struct FrameTrack {
        uint8_t header[FRAME_HEADER_SIZE];
        unsigned n_header;  /* bytes of the header that have passed */
        uint32_t remaining; /* bytes of the message that have not */
} FrameTrack;

#define FRAME_TRACK_NULL ((FrameTrack){ .n_header = 0 })

/* These bytes have passed. */
void frame_track_pass(FrameTrack *t, const uint8_t *bytes, size_t n);
/* Between two frames: only here something else may be inserted. */
static inline bool frame_track_is_at_boundary(const FrameTrack *t) {
        return t->n_header == 0 && t->remaining == 0;
}
/* How many of these bytes, which come next, belong to the frame that has begun; n if it does not end in them, 0 at a boundary. */
size_t frame_track_rest(const FrameTrack *t, const uint8_t *bytes, size_t n);
/* At most so many bytes can be taken next without going beyond the end of the frame that has begun; 0 at a boundary. */
size_t frame_track_room(const FrameTrack *t);
