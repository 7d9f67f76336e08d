/*
 * Any bytes as what is behind the header of a file of the spool. The first byte says how they are read: as they are, in windows of some
 * length; or as a body whose checksums are right, which damage never has, so that what it says is looked at.
 */
#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/relay/publish/checksum.h"
#include "client/relay/publish/spool-record.h"
#include "daemon/base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define SALT 0 /* which the corpus has: others are found as rarely */

static void must_be(int yes) {
        if (!yes)
                abort();
}

/* What is read can be written, and is the same then. */
static void check_message(const uint8_t *record, const SpoolPlace *place) {
        uint8_t *again;
        uint32_t n;
        Message *m = NULL;
        int r = spool_record_get(record, place, &m);

        must_be(r == 0 || r == REFUSED_INVALID);
        if (r != 0)
                return;
        must_be(m->length <= MESSAGE_BYTES_MAX && m->n_headers <= MESSAGE_HEADERS_MAX && m->spooled == place->number);
        must_be(spool_record_size(m) == place->length);
        again = malloc(place->length);
        must_be(again != NULL);
        spool_record_put(again, m, place->number, SALT);
        memcpy(&n, record + 4, sizeof(n)); /* bytes of the body; the first 8 of them have room for more than is used */
        must_be(memcmp(again + SPOOL_RECORD_HEADER_SIZE + 8, record + SPOOL_RECORD_HEADER_SIZE + 8, le32toh(n) - 8) == 0);
        free(again);
        message_free(m);
}

/* As a reader with a window does; what it takes as a whole is all of it. */
static void check_file(const uint8_t *bytes, size_t length, size_t window) {
        uint64_t after = 0;
        size_t at = 0, n = 0;

        for (;;) {
                SpoolPlace place;
                SpoolFound found = spool_find(bytes + at, n, at + n == length, SALT, after, &place);

                if (found == SPOOL_END)
                        break;
                if (found == SPOOL_MORE) {
                        must_be(at + n < length);
                        n += length - at - n < window ? length - at - n : window;
                        continue;
                }
                must_be(place.length > 0 && place.length <= n);
                if (found == SPOOL_RECORD) {
                        must_be(place.number > after);
                        after = place.number;
                        check_message(bytes + at, &place);
                } else {
                        must_be(place.length >= SPOOL_ALIGNMENT || at + place.length == length);
                }
                at += place.length;
                n -= place.length;
        }
        must_be(at == length);
}

static void put32(uint8_t *to, uint32_t n) {
        for (int i = 0; i < 4; i++)
                to[i] = (uint8_t)(n >> 8 * i);
}

static void check_body(const uint8_t *bytes, size_t length) {
        size_t size = SPOOL_RECORD_HEADER_SIZE + (length + 7) / 8 * 8;
        uint8_t *record = calloc(1, size);
        SpoolPlace place;
        SpoolFound found;

        must_be(record != NULL);
        memcpy(record, "pmsg", 4);
        put32(record + 4, (uint32_t)length);
        record[8] = 1;
        if (length > 0)
                memcpy(record + SPOOL_RECORD_HEADER_SIZE, bytes, length);
        put32(record + 16, checksum(SALT, record + SPOOL_RECORD_HEADER_SIZE, length));
        put32(record + 20, checksum(SALT, record, 20));
        found = spool_find(record, size, true, SALT, 0, &place);
        must_be((found == SPOOL_RECORD) == (length >= 8 && length <= SPOOL_RECORD_MAX - SPOOL_RECORD_HEADER_SIZE));
        if (found == SPOOL_RECORD)
                check_message(record, &place);
        free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        SpoolHeader h;

        (void)spool_header_get(bytes, length, &h);
        if (length == 0)
                return 0;
        if (bytes[0] & 1)
                check_body(bytes + 1, length - 1);
        else
                check_file(bytes + 1, length - 1, (size_t)1 + bytes[0] * 8U);
        return 0;
}
