/*
 * What a client reads that has asked for compression. The first byte chooses how the rest is cut, the second how much is taken at once;
 * what is not compressed comes out as it is, and the frames in what comes out are read.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/compression.h"
#include "proto/frame.h"

#define MADE_MOST ((size_t)4 << 20) /* of a bomb; what is made is linear in time */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* False: nothing more is read of it. */
static bool take(Decompressor *d, FrameReader *frames, size_t most, size_t *made) {
        for (;;) {
                const uint8_t *message;
                size_t n = 0, size;
                uint8_t *room;
                int r;

                if (frame_reader_room(frames, &room, &size) < 0)
                        abort();
                size = size < most ? size : most;
                r = decompressor_next(d, room, size, &n);
                assert(r >= 0);
                if (r != 0) {
                        assert(!decompressor_has_pending(d));
                        return r == DECOMPRESSOR_E_NEED_MORE;
                }
                assert(n > 0 && n <= size);
                frame_reader_fed(frames, n);
                *made += n;
                while ((r = frame_reader_next(frames, &message, &n)) == 0)
                        ;
                if (r == FRAME_E_TOO_LONG || *made > MADE_MOST)
                        return false;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        Decompressor *d = decompressor_new();
        FrameReader frames;
        size_t made = 0, cut, most;
        bool goes_on = true;

        if (!d)
                abort();
        frame_reader_init(&frames, (size_t)1 << 20);
        cut = length > 1 && bytes[0] ? bytes[0] : SIZE_MAX;
        most = length > 1 && bytes[1] ? bytes[1] : SIZE_MAX;
        for (size_t at = 2; at < length && goes_on;) {
                uint8_t *room;
                size_t n = decompressor_room(d, &room);

                assert(n > 0);
                n = n < cut ? n : cut;
                n = n < length - at ? n : length - at;
                memcpy(room, bytes + at, n);
                decompressor_fed(d, n);
                at += n;
                goes_on = take(d, &frames, most, &made);
                assert(decompressor_is_compressed(d) || !goes_on || at < 6 || made == at - 2);
        }
        frame_reader_deinit(&frames);
        decompressor_free(d);
        return 0;
}
