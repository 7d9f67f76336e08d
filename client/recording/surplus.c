/*
 * Some side records are longer than what the kernel has written: for each event that it writes them for, one after the other, Linux lets the
 * header of KSYMBOL, BPF_EVENT and TEXT_POKE grow by another sample id, and what is behind the first one was in the ring before. perf writes
 * them as they are. Where their content ends they say themselves; there the sample id is.
 */
#include <linux/perf_event.h>
#include <string.h>

#include "client/recording/sample.h"
#include "client/recording/surplus.h"

#define KSYMBOL_NAME_AT ((size_t)16)
#define BPF_EVENT_SIZE ((size_t)16)
#define TEXT_POKE_BYTES_AT ((size_t)12)

static size_t align(size_t n) {
        return (n + 7) & ~(size_t)7;
}

/* Of a record's bytes without its header. SIZE_MAX: it does not say it, or what it says is not there. */
static size_t content_end(const perfd_recording *r, const perfd_recorded *record) {
        Bytes b = { .at = record->bytes, .end = (const uint8_t *)record->bytes + record->size, .swap = r->is_swapped };
        const uint8_t *zero;
        size_t n = SIZE_MAX;

        switch (record->type) {
        case PERF_RECORD_KSYMBOL:
                zero = record->size > KSYMBOL_NAME_AT ? memchr(b.at + KSYMBOL_NAME_AT, 0, record->size - KSYMBOL_NAME_AT) : NULL;
                n = zero ? align((size_t)(zero - b.at) + 1) : SIZE_MAX;
                break;
        case PERF_RECORD_BPF_EVENT:
                n = BPF_EVENT_SIZE;
                break;
        case PERF_RECORD_TEXT_POKE:
                (void)bytes_u64(&b);
                n = bytes_u16(&b);
                n = align(TEXT_POKE_BYTES_AT + n + bytes_u16(&b));
                n = b.failed ? SIZE_MAX : n;
                break;
        default:
                break;
        }
        return n <= record->size ? n : SIZE_MAX;
}

void recording_drop_surplus(const perfd_recording *r, perfd_recorded *record) {
        const size_t end = content_end(r, record);

        for (size_t i = 0; i < r->n_events && end != SIZE_MAX; i++) {
                const Event *e = &r->events[i];
                const size_t n = (e->shown.flags & PERFD_ATTR_SAMPLE_ID_ALL) != 0 ? record_id_size(e->shown.sample_type) : 0;

                if (end + n <= record->size && (r->n_events == 1 || record_is_of(r, record, end + n, e))) {
                        record->size = end + n;
                        return;
                }
        }
}
