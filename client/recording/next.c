/*
 * The records, one after the other. A header that cannot be right ends them, because nothing says where the next one begins; what follows
 * some of perf's own records without being one (tracing data, AUX areas) is stepped over.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>

#include "client/recording/damage.h"
#include "client/recording/decompress.h"
#include "client/recording/ids.h"
#include "client/recording/left-out.h"
#include "client/recording/next.h"
#include "client/recording/pipe-records.h"
#include "client/recording/surplus.h"

#define TRACING_MAX ((size_t)64 << 20) /* bytes of a pipe's tracing data that are kept */

/* What lies behind the record there. */
static uint64_t bytes_behind(const perfd_recording *r, uint32_t type, const Bytes *body) {
        Bytes b = *body;
        uint64_t n = 0;

        if (type == PERF_DATA_AUXTRACE)
                n = bytes_u64(&b);
        else if (type == PERF_DATA_HEADER_TRACING_DATA && r->is_pipe)
                n = ((uint64_t)bytes_u32(&b) + 7) & ~UINT64_C(7);
        return n;
}

/*
 * perf of Linux 6.16 and later pads COMPRESSED2 to 8 bytes, and the largest ones become 64 KiB that way, which their header's 16 bits cannot
 * say: it says 0, and the length of what is compressed says the rest.
 */
static int size_of_overflown(perfd_recording *r, uint64_t at, uint64_t *size) {
        Bytes b;
        int code = recording_get(r, at + PERF_DATA_RECORD_HEADER, sizeof(uint64_t), &b);
        uint64_t n;

        if (code != 0)
                return code;
        n = bytes_u64(&b);
        if (!b.failed && n >= RECORD_MAX - 2 * PERF_DATA_RECORD_HEADER - 7 && n <= RECORD_MAX)
                *size = PERF_DATA_RECORD_HEADER + sizeof(uint64_t) + n;
        return 0;
}

static int end(perfd_recording *r) {
        int code = pipe_name_events(r);

        if (code != 0)
                return code;
        r->has_ended = true;
        return decompress_end(r) != 0 ? -ENOMEM : PERFD_E_ENDED;
}

/* 0; PERFD_E_ENDED; -ENOMEM, -errno */
static int read_header(perfd_recording *r, uint32_t *type, uint16_t *misc, uint64_t *size) {
        const uint64_t left = r->end - r->at;
        Bytes b;
        int code;

        if (left == 0)
                return end(r);
        code = recording_get(r, r->at, left < PERF_DATA_RECORD_HEADER ? (size_t)left : PERF_DATA_RECORD_HEADER, &b);
        if (code != 0)
                return code;
        if (r->is_pipe && bytes_left(&b) == 0)
                return end(r);
        *type = bytes_u32(&b);
        *misc = bytes_u16(&b);
        *size = bytes_u16(&b);
        if (b.failed) {
                code = recording_damage(r, r->at, "the recording ends in the header of a record");
                return code != 0 ? code : end(r);
        }
        if (*type == PERF_DATA_COMPRESSED2 && *size < PERF_DATA_RECORD_HEADER)
                code = size_of_overflown(r, r->at, size);
        if (code == 0 && *size < PERF_DATA_RECORD_HEADER) {
                code = recording_damage(r, r->at, "a record of type %u: its size: found %" PRIu64 ", expected at least %d; nothing behind it "
                                        "can be read", *type, *size, PERF_DATA_RECORD_HEADER);
                return code != 0 ? code : end(r);
        }
        return code;
}

static int read_body(perfd_recording *r, uint32_t type, uint64_t size, Bytes *ret) {
        const uint64_t left = r->end - r->at;
        const char *name = perfd_recorded_name(type);
        int code = recording_get(r, r->at, (size_t)(size < left ? size : left), ret);
        const size_t got = code == 0 ? bytes_left(ret) : 0;

        if (code == 0)
                (void)bytes_take(ret, PERF_DATA_RECORD_HEADER); /* which pipe-records.c may look back at */
        if (code != 0 || got == size)
                return code;
        code = recording_damage(r, r->at, "a record %s of type %u: found %zu bytes, expected %" PRIu64, name ? name : "of no known kind", type,
                                got, size);
        return code != 0 ? code : end(r);
}

static int step(perfd_recording *r, uint32_t type, uint64_t size, const Bytes *body) {
        const uint64_t behind = bytes_behind(r, type, body), at = r->at;
        int code = 0;

        if (behind > r->end - at - size) {
                code = recording_damage(r, at, "%" PRIu64 " bytes behind a record %s: found %" PRIu64, behind, perfd_recorded_name(type),
                                        r->end - at - size);
                r->at = r->end;
        } else {
                r->at += size + behind;
                r->whole = r->at;
        }
        if (code == 0 && (type == PERF_DATA_COMPRESSED || type == PERF_DATA_COMPRESSED2))
                code = decompress_feed(r, type, body, at);
        else if (code == 0 && r->is_pipe)
                code = pipe_record_take(r, type, body);
        else if (code == 0 && type == PERF_DATA_EVENT_UPDATE)
                code = event_update_take(r, body);
        return code;
}

/* What lies behind the record of a pipe is read together with it, because a pipe does not go back. */
static int keep_tracing(perfd_recording *r, uint64_t size, Bytes *body) {
        Bytes n_bytes = *body, all;
        const uint64_t n = bytes_u32(&n_bytes);
        int code;

        if (n == 0 || n > TRACING_MAX)
                return n > 0 ? recording_damage(r, r->at, "tracing data: found %" PRIu64 " bytes, expected at most %zu: its events have no fields",
                                                n, TRACING_MAX) : 0;
        code = recording_get(r, r->at, (size_t)(size + n), &all);
        if (code != 0)
                return code;
        if (bytes_left(&all) < size + n)
                code = recording_damage(r, r->at, "tracing data: found %" PRIu64 " bytes, expected %" PRIu64, bytes_left(&all) - size, n);
        *body = (Bytes){ .at = all.at + PERF_DATA_RECORD_HEADER, .end = all.at + size, .offset = r->at + PERF_DATA_RECORD_HEADER, .swap = all.swap };
        (void)bytes_take(&all, size);
        return code != 0 ? code : pipe_tracing_take(r, &all);
}

/* Nearly all: records of the kernel that are here, and whole. */
static bool read_here(perfd_recording *r) {
        uint64_t n;
        const uint8_t *at = source_here(&r->source, r->at, &n);
        Bytes b;
        uint32_t type;
        uint16_t misc, size;

        if (n > r->end - r->at)
                n = r->end - r->at;
        if (r->is_pipe || n < PERF_DATA_RECORD_HEADER)
                return false;
        b = (Bytes){ .at = at, .end = at + PERF_DATA_RECORD_HEADER, .swap = r->is_swapped };
        type = bytes_u32(&b);
        misc = bytes_u16(&b);
        size = bytes_u16(&b);
        if (type >= PERF_DATA_HEADER_ATTR || size < PERF_DATA_RECORD_HEADER || size > n)
                return false;
        r->shown = (perfd_recorded){ .type = type, .misc = misc, .offset = r->at, .bytes = b.at, .size = size - PERF_DATA_RECORD_HEADER };
        r->whole = r->at += size;
        return true;
}

static int read_next(perfd_recording *r, perfd_recorded **ret) {
        uint32_t type = 0;
        uint16_t misc = 0;
        uint64_t size = 0;
        Bytes body;
        int code;

        if (r->has_ended)
                return PERFD_E_ENDED;
        code = r->decompress ? decompress_next(r, ret) : PERFD_E_ENDED;
        if (code != PERFD_E_ENDED)
                return code;
        *ret = &r->shown;
        if (read_here(r))
                return 0;
        code = read_header(r, &type, &misc, &size);
        if (code == 0)
                code = read_body(r, type, size, &body);
        if (code == 0 && type == PERF_DATA_HEADER_TRACING_DATA && r->is_pipe)
                code = keep_tracing(r, size, &body);
        if (code != 0)
                return code;
        r->shown = (perfd_recorded){ .type = type, .misc = misc, .offset = r->at, .bytes = body.at, .size = bytes_left(&body) };
        return step(r, type, size, &body);
}

int recording_read(perfd_recording *r, const perfd_recorded **ret) {
        perfd_recorded *record;
        int code = read_next(r, &record);

        if (code == 0 && record->type != PERF_RECORD_SAMPLE && !perfd_recorded_name(record->type))
                code = left_out_add_unknown(r, record);
        if (code == 0 && record->type < PERF_DATA_HEADER_ATTR) {
                code = ids_build(r);
                if (record->type != PERF_RECORD_SAMPLE)
                        recording_drop_surplus(r, record);
        }
        if (code == 0)
                *ret = record;
        return code;
}
