/* Four bytes of each frame are looked at: what is in it costs nothing. */
#include "client/relay/frame-track.h"

/* The next piece that is all header or all message. */
static size_t pass_piece(FrameTrack *t, const uint8_t *bytes, size_t n) {
        size_t piece = n < t->remaining ? n : t->remaining;

        if (piece > 0) {
                t->remaining -= (uint32_t)piece;
                return piece;
        }
        t->header[t->n_header++] = bytes[0];
        if (t->n_header < FRAME_HEADER_SIZE)
                return 1;
        for (int i = 0; i < FRAME_HEADER_SIZE; i++)
                t->remaining |= (uint32_t)t->header[i] << (8 * i);
        t->n_header = 0;
        return 1;
}

void frame_track_pass(FrameTrack *t, const uint8_t *bytes, size_t n) {
        while (n > 0) {
                size_t piece = pass_piece(t, bytes, n);

                bytes += piece;
                n -= piece;
        }
}

size_t frame_track_rest(const FrameTrack *t, const uint8_t *bytes, size_t n) {
        FrameTrack ahead = *t;
        size_t at = 0;

        while (at < n && !frame_track_is_at_boundary(&ahead))
                at += pass_piece(&ahead, bytes + at, n - at);
        return at;
}

size_t frame_track_room(const FrameTrack *t) {
        return t->remaining > 0 ? t->remaining : t->n_header > 0 ? FRAME_HEADER_SIZE - t->n_header : 0;
}
