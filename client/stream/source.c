/*
 * Where messages come from. By the socket they lie in the buffer of the connection, of which none that is whole may stay behind when
 * it is said that there are none, because poll(2) would not tell of it; nor may the rest of a record of TLS, which is 16 KiB at most.
 */
#include "client/stream/stream.h"

#define BYTES_AT_ONCE ((size_t)1 << 20)

static int next_by_socket(perfd_client *c, bool *ret_any) {
        Look *look = &c->stream->look;
        const uint8_t *bytes;
        size_t length, n;
        int r;

        look->is_awake = true;
        for (;;) {
                r = frame_reader_next(&c->in, &bytes, &length);
                *ret_any = r == 0;
                if (r == 0)
                        return stream_open_message(c, bytes, length);
                if (r != FRAME_E_NEED_MORE)
                        return stream_fail(c, PERFD_E_PROTOCOL, "a frame that is too long follows it");
                r = 0;
                n = 0;
                if (look->bytes < BYTES_AT_ONCE)
                        r = stream_send(c);
                if (r == 0 && (look->bytes < BYTES_AT_ONCE || client_has_pending(c)))
                        r = client_receive(c, SIZE_MAX, &n);
                if (r != 0 || n == 0) {
                        *look = (Look){ .is_awake = false };
                        return r;
                }
                look->bytes += n;
        }
}

int stream_next_message(perfd_client *c, bool *ret_any) {
        if (c->state != CLIENT_STREAMING)
                return PERFD_E_ENDED;
        return ring_reader_is_open(&c->stream->ring) ? stream_next_in_ring(c, ret_any) : next_by_socket(c, ret_any);
}

int stream_end_message(perfd_client *c) {
        int r = stream_close_packet(c);

        return r == 0 && ring_reader_is_open(&c->stream->ring) ? stream_release_ring(c) : r;
}
