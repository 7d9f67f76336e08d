/*
 * A file that fits in memory is read there in one piece, and its records stay where they are: what is sorted are their times and places.
 * Nothing has to be asked of rounds then, because all is read before the first record is given.
 */
#include "client/recording/damage.h"
#include "client/recording/memory.h"
#include "client/recording/next.h"
#include "client/recording/sample.h"
#include "client/recording/whole.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#define ENTRIES 3 /* for each record: sorted ones, others, and while they are sorted */

/* How many records there are, as next.c reads them; false: some are compressed, and become others, or have what is no record behind them. */
static bool count_records(const perfd_recording *r, const uint8_t *bytes, uint64_t n, size_t *ret) {
        *ret = 0;
        while (n >= PERF_DATA_RECORD_HEADER) {
                Bytes b = { .at = bytes, .end = bytes + PERF_DATA_RECORD_HEADER, .swap = r->is_swapped };
                const uint32_t type = bytes_u32(&b);
                uint16_t size;

                (void)bytes_u16(&b);
                size = bytes_u16(&b);
                if (type == PERF_DATA_COMPRESSED || type == PERF_DATA_COMPRESSED2 || type == PERF_DATA_AUXTRACE)
                        return false;
                if (size < PERF_DATA_RECORD_HEADER || size > n)
                        break;
                ++*ret;
                bytes += size;
                n -= size;
        }
        return true;
}

static bool is_held(const perfd_recording *r, size_t limit, size_t *ret_n) {
        const Source *s = &r->source;

        return count_records(r, s->held, s->n_held, ret_n) && *ret_n <= (limit - s->n_held) / (ENTRIES * sizeof(Entry));
}

int whole_new(perfd_recording *r, size_t limit, Whole **ret) {
        const uint64_t n = r->end - r->at;
        Whole *w = NULL;
        size_t n_records = 0;
        int code = 0;

        *ret = NULL;
        if (r->is_pipe || !source_is_seekable(&r->source) || n > limit || source_hold(&r->source, r->at, (size_t)n) != 0)
                return 0; /* it is read piece by piece, which tells what is wrong with it */
        if (is_held(r, limit, &n_records)) {
                w = calloc(1, sizeof(*w));
                code = w ? memory_init_entries(&w->memory, n_records) : -ENOMEM;
        }
        if (code != 0)
                w = whole_free(w);
        if (!w)
                source_drop(&r->source);
        *ret = w;
        return code == 0 ? 0 : recording_fail(r, code, "no memory");
}

Whole *whole_free(Whole *w) {
        if (w)
                memory_deinit(&w->memory);
        free(w);
        return NULL;
}

/* All records. 0; -ENOMEM, -errno */
static int read_all(perfd_recording *r, Whole *w) {
        const bool is_by_time = r->order_kind == PERFD_RECORDING_ORDER_TIME;
        const perfd_recorded *record;
        int code;

        for (;;) {
                uint64_t time;

                if (memory_skim(r, &w->memory, is_by_time) > 0)
                        continue;
                code = recording_read(r, &record);
                if (code != 0)
                        break;
                time = recording_time(r, record);
                memory_note(&w->memory, time > 0 ? time : STORED_NO_TIME, record->offset | IN_PLACE,
                            time > 0 && (is_by_time || record_is_state(record->type)));
        }
        if (code != PERFD_E_ENDED)
                return code;
        w->is_read = true;
        memory_sort(&w->memory);
        return 0;
}

static bool is_sorted_first(const Entry *sorted, const Entry *rest) {
        return sorted->at < rest->at || (rest->time != STORED_NO_TIME && sorted->time <= rest->time);
}

int whole_next(perfd_recording *r, Whole *w, const perfd_recorded **ret) {
        Memory *m = &w->memory;
        int code = w->is_read ? 0 : read_all(r, w);
        const Entry *e;

        if (code != 0)
                return code;
        if (m->sorted_at < m->n_sorted && (m->rest_at == m->n_rest || is_sorted_first(&m->entries[m->sorted_at], &m->rest[m->rest_at])))
                e = &m->entries[m->sorted_at++];
        else if (m->rest_at < m->n_rest)
                e = &m->rest[m->rest_at++];
        else
                return PERFD_E_ENDED;
        memory_show(r, m, e);
        *ret = &r->shown;
        return 0;
}
