/* Where samples are and when they were, for who keeps no more of them: most of what an order asks of a record, so nothing is called for it. */
#include <linux/perf_event.h>

#include "client/recording/sample.h"
#include "client/recording/stored.h"

typedef struct Head {
        uint32_t type;
        uint16_t size;
} Head;

static Head head_at(const uint8_t *at, bool swap) {
        Bytes b = { .at = at, .end = at + PERF_DATA_RECORD_HEADER, .swap = swap };
        Head head = { .type = bytes_u32(&b) };

        (void)bytes_u16(&b); /* misc */
        head.size = bytes_u16(&b);
        return head;
}

/* Of a body of n bytes; 0: it has none. */
static uint64_t time_of(const perfd_recording *r, const Event *only, const uint8_t *body, size_t n) {
        const perfd_recorded record = { .type = PERF_RECORD_SAMPLE, .bytes = body, .size = n };
        uint64_t time;

        if (!only)
                return recording_time(r, &record);
        if (n < sizeof(time) || only->time_at > n - sizeof(time))
                return 0;
        memcpy(&time, body + only->time_at, sizeof(time));
        time = r->is_swapped ? bswap_64(time) : time;
        return time == UINT64_MAX ? 0 : time;
}

size_t recording_skim(perfd_recording *r, Entry *to, size_t n) {
        const bool is_known = r->ids.slots && r->ids.n_events == r->n_events && !r->is_pipe && !r->decompress && !r->has_ended;
        const Event *only = r->n_events == 1 ? &r->events[0] : NULL;
        uint64_t here;
        const uint8_t *first = source_here(&r->source, r->at, &here), *at = first, *end;
        size_t n_found = 0;

        if (!is_known || !first)
                return 0;
        end = first + (here < r->end - r->at ? here : r->end - r->at);
        while (n_found < n && (size_t)(end - at) >= PERF_DATA_RECORD_HEADER) {
                const Head head = head_at(at, r->is_swapped);
                uint64_t time;

                if (head.type != PERF_RECORD_SAMPLE || head.size < PERF_DATA_RECORD_HEADER || head.size > (size_t)(end - at))
                        break;
                time = time_of(r, only, at + PERF_DATA_RECORD_HEADER, head.size - (size_t)PERF_DATA_RECORD_HEADER);
                if (time == 0)
                        break;
                to[n_found++] = (Entry){ .time = time, .at = (r->at + (uint64_t)(at - first)) | IN_PLACE };
                at += head.size;
        }
        if (n_found > 0)
                r->whole = r->at += (uint64_t)(at - first);
        return n_found;
}
