/*
 * The frame reader against the plainest possible decoder. The first byte chooses the limit, the second how the rest is
 * cut; the rest is the stream.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

typedef struct Plain {
        const uint8_t *bytes;
        size_t length, at, limit;
} Plain;

/* What the whole stream says, read with no buffer at all. */
static int plain_next(Plain *p, size_t known, const uint8_t **ret_message, size_t *ret_length) {
        uint32_t n;

        if (known - p->at < 4)
                return FRAME_E_NEED_MORE;
        n = (uint32_t)p->bytes[p->at] | (uint32_t)p->bytes[p->at + 1] << 8 | (uint32_t)p->bytes[p->at + 2] << 16 |
            (uint32_t)p->bytes[p->at + 3] << 24;
        if (n > p->limit)
                return FRAME_E_TOO_LONG;
        if (known - p->at - 4 < n)
                return FRAME_E_NEED_MORE;
        *ret_message = p->bytes + p->at + 4;
        *ret_length = n;
        p->at += 4 + (size_t)n;
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        static const size_t limits[] = { 0, 1, 60, 5000, 70000, (size_t)1 << 20, UINT32_MAX };
        Plain plain;
        FrameReader r;
        unsigned cut;
        int code = 0;

        if (length < 2)
                return 0;
        plain = (Plain){ .bytes = bytes + 2, .length = length - 2, .limit = limits[bytes[0] % 7] };
        cut = bytes[1];
        frame_reader_init(&r, plain.limit);
        for (size_t fed = 0; fed < plain.length && code != FRAME_E_TOO_LONG;) {
                const uint8_t *message = NULL, *expected = NULL;
                size_t n = 0, n_expected = 0, size;
                uint8_t *room;
                int taken = 0;

                if (frame_reader_room(&r, &room, &size) < 0)
                        abort();
                assert(size > 0);
                n = 1 + (cut ? (cut = cut * 73 + 41) % (bytes[1] * 7U) : plain.length);
                n = n < size ? n : size;
                n = n < plain.length - fed ? n : plain.length - fed;
                memcpy(room, plain.bytes + fed, n);
                frame_reader_fed(&r, n);
                fed += n;
                do {
                        code = frame_reader_next(&r, &message, &n);
                        assert(code == plain_next(&plain, fed, &expected, &n_expected));
                        if (code == 0)
                                assert(n == n_expected && memcmp(message, expected, n) == 0);
                } while (code == 0 && ++taken < 100000);
                assert(r.end - r.begin == fed - plain.at);
                assert(r.size <= 4 + plain.limit && (r.size <= 4096 || r.size <= 2 * fed));
        }
        assert(frame_reader_is_empty(&r) == (r.begin == r.end));
        frame_reader_deinit(&r);
        return 0;
}
