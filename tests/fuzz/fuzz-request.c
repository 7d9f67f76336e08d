/*
 * What a peer may send as a request: any bytes are refused or become a message, and a message that was packed and
 * unpacked again is the same, byte for byte.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/perfd.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static uint8_t *pack(const Perfd__V1__Request *request, size_t *ret_length) {
        size_t size = perfd__v1__request__get_packed_size(request);
        uint8_t *packed = malloc(size ? size : 1); /* exactly: a sanitizer sees one byte more */

        if (!packed)
                abort();
        *ret_length = perfd__v1__request__pack(request, packed);
        assert(*ret_length == size);
        return packed;
}

/* Packed again, it is the same message. protobuf-c keeps unknown fields, also of number 0, which it then refuses. */
static void check_again(const Perfd__V1__Request *request, const uint8_t *packed, size_t n) {
        Perfd__V1__Request *again = perfd__v1__request__unpack(NULL, n, packed);
        uint8_t *packed_again;
        size_t n_again;

        if (!again)
                return;
        assert(again->id == request->id && again->body_case == request->body_case);
        packed_again = pack(again, &n_again);
        assert(n_again == n && memcmp(packed, packed_again, n) == 0);
        free(packed_again);
        perfd__v1__request__free_unpacked(again, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        Perfd__V1__Request *request;
        uint8_t *packed;
        size_t n;

        if (length > FRAME_MAX_REQUEST)
                return 0; /* the frame reader refuses it */
        request = perfd__v1__request__unpack(NULL, length, bytes);
        if (!request)
                return 0;
        packed = pack(request, &n);
        check_again(request, packed, n);
        free(packed);
        perfd__v1__request__free_unpacked(request, NULL);
        return 0;
}
