/* A stream by the socket: frames to packets. None that is whole may stay behind, because poll(2) would not tell of it. */
#include "client/stream/stream.h"

#define BYTES_PER_CALL ((size_t)1 << 20)

/* All whole frames that are here: none may stay behind, poll(2) would not tell of it. */
static int stream_take_frames(perfd_client *c) {
        const uint8_t *bytes;
        size_t length;
        int r;

        while (c->state == CLIENT_STREAMING) {
                r = frame_reader_next(&c->in, &bytes, &length);
                if (r == FRAME_E_NEED_MORE)
                        return 0;
                if (r != 0)
                        return stream_fail(c, PERFD_E_PROTOCOL, "a frame that is too long follows it");
                r = stream_take_message(c, bytes, length);
                if (r != 0)
                        return r;
        }
        return PERFD_E_ENDED;
}

int perfd_client_process(perfd_client *c) {
        size_t n;
        int r = 0;

        if (c->state == CLIENT_ENDED)
                return client_fail(c, PERFD_E_ENDED, "ended", "the stream has ended");
        if (c->state != CLIENT_STREAMING)
                return client_fail(c, PERFD_E_STATE, "state", "this connection is no stream, or is broken");
        if (ring_reader_is_open(&c->stream->ring)) {
                r = stream_process_ring(c);
                return r == PERFD_E_ENDED ? client_fail(c, r, "ended", "the stream has ended") : r;
        }
        for (size_t bytes = 0; r == 0 && bytes < BYTES_PER_CALL; bytes += n) {
                r = stream_send(c);
                if (r == 0)
                        r = client_receive(c, SIZE_MAX, &n);
                if (r == 0 && n == 0)
                        return 0;
                if (r == 0)
                        r = stream_take_frames(c);
        }
        return r == PERFD_E_ENDED ? client_fail(c, r, "ended", "the stream has ended") : r;
}

int perfd_stream_stop(perfd_client *c) {
        if (c->state == CLIENT_ENDED || (c->state == CLIENT_STREAMING && c->stream->stop_asked))
                return 0;
        if (c->state != CLIENT_STREAMING)
                return client_fail(c, PERFD_E_STATE, "state", "this connection is no stream, or is broken");
        c->stream->stop_asked = c->stream->stop_wanted = true;
        return stream_send(c);
}
