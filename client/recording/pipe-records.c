/* A pipe has no header: attrs, names and features come as records before they are needed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/recording/attr.h"
#include "client/recording/damage.h"
#include "client/recording/features.h"
#include "client/recording/pipe-records.h"
#include "client/recording/tracing.h"

#define EVENT_UPDATE_NAME 2 /* PERF_EVENT_UPDATE__NAME */

#define LATE_NAMES_MAX 64  /* perf writes attrs together: whoever writes them one by one does not make us read all names for each */

static void keep_feature(perfd_recording *r, unsigned bit) {
        r->features[bit / 64] |= UINT64_C(1) << bit % 64;
}

static int append(perfd_recording *r, Piece *p, const uint8_t *bytes, size_t n, uint64_t offset) {
        uint8_t *larger = realloc(p->bytes, p->n + n + 1); /* not 0 */

        if (!larger)
                return recording_fail(r, -ENOMEM, "no memory");
        memcpy(larger + p->n, bytes, n);
        if (p->n == 0)
                p->offset = offset;
        p->bytes = larger;
        p->n += n;
        return 0;
}

/* More of it: build ids come one by one, each with the header that a section has before it. */
static int piece_add(perfd_recording *r, unsigned bit, const uint8_t *bytes, size_t n, uint64_t offset) {
        int code = append(r, &r->pieces[bit], bytes, n, offset);

        if (code == 0)
                keep_feature(r, bit);
        return code;
}

static int name_by_types(perfd_recording *r) {
        const Piece *p = &r->event_types;
        Bytes b;

        if (p->n == 0)
                return 0;
        b = (Bytes){ .at = p->bytes, .end = p->bytes + p->n, .offset = p->offset, .swap = r->is_swapped };
        return events_name_types(r, &b);
}

/* Some perfs of Linux before 4.18 write features before the attrs which they name. */
int pipe_name_events(perfd_recording *r) {
        const size_t from = r->n_named;
        Bytes b;
        int code = 0;

        r->n_named = r->n_events;
        if (from == r->n_events || r->n_late_names++ >= LATE_NAMES_MAX)
                return 0;
        if (recording_has(r, PERF_DATA_FEATURE_EVENT_DESC)) {
                code = feature_get(r, PERF_DATA_FEATURE_EVENT_DESC, &b);
                if (code == 0)
                        code = events_name(r, &b, from);
        }
        if (code == 0)
                code = tracing_name_events(r);
        return code != 0 ? code : name_by_types(r);
}

static int take_event_type(perfd_recording *r, Bytes b) {
        int code = bytes_left(&b) < PERF_DATA_EVENT_TYPE ? 0 : append(r, &r->event_types, b.at, PERF_DATA_EVENT_TYPE, b.offset);

        return code != 0 ? code : events_name_types(r, &b);
}

/* The attr says its own size; ids fill what is left. */
static int take_attr(perfd_recording *r, Bytes b) {
        Bytes size = b;
        uint32_t n;
        int code;

        (void)bytes_u32(&size);
        n = bytes_u32(&size);
        if (n == 0) /* of Linux before it had a size */
                n = 64;
        if (n < 64 || n > bytes_left(&b))
                return recording_damage(r, b.offset, "a record HEADER_ATTR: the size of its attr: found %u, expected 64 to %zu", n, bytes_left(&b));
        code = events_add(r, &b, n);
        return code != 0 ? code : events_take_ids(r, &b);
}

static int take_feature(perfd_recording *r, Bytes b) {
        const uint64_t bit = bytes_u64(&b);
        Bytes desc;
        int code;

        if (b.failed || bit >= PERF_DATA_FEATURES)
                return recording_damage(r, b.offset, "a record HEADER_FEATURE: found no number of a feature below %d", PERF_DATA_FEATURES);
        if (bytes_left(&b) == 0 && bit != PERF_DATA_FEATURE_BRANCH_STACK && bit != PERF_DATA_FEATURE_STAT)
                return 0; /* behind the last one perf writes the first number that it knows none of, which a later perf has given to one */
        r->pieces[bit].n = 0; /* once more: the last one is right */
        code = piece_add(r, (unsigned)bit, b.at, bytes_left(&b), b.offset);
        if (code != 0 || bit != PERF_DATA_FEATURE_EVENT_DESC)
                return code;
        desc = b;
        return events_name(r, &desc, 0);
}

/* u64 type, u64 id, and by the type a text. */
static int take_update(perfd_recording *r, Bytes b) {
        const uint64_t type = bytes_u64(&b), id = bytes_u64(&b);

        if (b.failed)
                return recording_damage_of(r, &b, "a record EVENT_UPDATE");
        return type == EVENT_UPDATE_NAME ? events_name_id(r, id, (const char *)b.at, bytes_left(&b)) : 0;
}

int pipe_tracing_take(perfd_recording *r, const Bytes *b) {
        int code;

        r->pieces[PERF_DATA_FEATURE_TRACING_DATA].n = 0;
        code = piece_add(r, PERF_DATA_FEATURE_TRACING_DATA, b->at, bytes_left(b), b->offset);
        return code != 0 ? code : tracing_name_events(r);
}

int event_update_take(perfd_recording *r, const Bytes *b) {
        return take_update(r, *b);
}

int pipe_record_take(perfd_recording *r, uint32_t type, const Bytes *b) {
        int code = type == PERF_DATA_HEADER_ATTR ? 0 : pipe_name_events(r);

        if (code != 0)
                return code;
        switch (type) {
        case PERF_DATA_HEADER_ATTR:
                return take_attr(r, *b);
        case PERF_DATA_HEADER_EVENT_TYPE:
                return take_event_type(r, *b);
        case PERF_DATA_HEADER_FEATURE:
                return take_feature(r, *b);
        case PERF_DATA_EVENT_UPDATE:
                return take_update(r, *b);
        case PERF_DATA_HEADER_BUILD_ID:
                return piece_add(r, PERF_DATA_FEATURE_BUILD_ID, b->at - PERF_DATA_RECORD_HEADER, bytes_left(b) + PERF_DATA_RECORD_HEADER,
                                 b->offset - PERF_DATA_RECORD_HEADER);
        }
        return 0;
}
