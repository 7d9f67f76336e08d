/* What a repair leaves out, by its place in the recording; samples among it are said as LOST_SAMPLES, so that no sum is wrong in silence. */
#include <byteswap.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/recording/damage.h"
#include "client/recording/left-out.h"
#include "client/recording/sample.h"

#define TYPES_MAX 256 /* the kernel's begin at 1, perf's at 64: neither has come far */

int left_out_add(perfd_recording *r, const perfd_recorded *record) {
        LeftOut *l = &r->left_out;
        Section *last = l->n > 0 ? &l->list[l->n - 1] : NULL;

        if (r->order || record->is_compressed || record->offset != r->shown.offset || (last && record->offset < last->offset + last->size))
                return 0; /* of the last one more than one thing is wrong */
        l->n_samples += record->type == PERF_RECORD_SAMPLE;
        if (last && record->offset == last->offset + last->size) {
                last->size = r->at - last->offset;
                return 0;
        }
        if (l->n == l->room) {
                Section *larger = reallocarray(l->list, 2 * l->room + 8, sizeof(*larger));

                if (!larger)
                        return recording_fail(r, -ENOMEM, "no memory");
                l->list = larger;
                l->room = 2 * l->room + 8;
        }
        l->list[l->n++] = (Section){ .offset = record->offset, .size = r->at - record->offset };
        return 0;
}

int left_out_add_unknown(perfd_recording *r, const perfd_recorded *record) {
        const bool is_never = record->type == 0 || record->type >= TYPES_MAX;
        int code = is_never ? recording_damage(r, record->offset, "a record of type %u, which neither the kernel nor perf has", record->type) : 0;

        return code == 0 ? left_out_add(r, record) : code;
}

static void put(const perfd_recording *r, uint8_t *to, uint64_t number, size_t n) {
        const uint16_t half = (uint16_t)(r->is_swapped ? bswap_16((uint16_t)number) : number);
        const uint32_t word = r->is_swapped ? bswap_32((uint32_t)number) : (uint32_t)number;
        const uint64_t whole = r->is_swapped ? bswap_64(number) : number;

        if (n == sizeof(half))
                memcpy(to, &half, n);
        else if (n == sizeof(word))
                memcpy(to, &word, n);
        else
                memcpy(to, &whole, n);
}

/* Of the first event, as records are that perf makes up: its sample id is 0, and has no time. */
size_t left_out_record(const perfd_recording *r, uint8_t to[static LEFT_OUT_MAX]) {
        const perfd_recorded_event *e = r->n_events > 0 ? &r->events[0].shown : NULL;
        const size_t n_id = e && (e->flags & PERFD_ATTR_SAMPLE_ID_ALL) != 0 ? record_id_size(e->sample_type) : 0;
        const size_t n = PERF_DATA_RECORD_HEADER + sizeof(uint64_t) + n_id;

        if (r->left_out.n_samples == 0)
                return 0;
        memset(to, 0, LEFT_OUT_MAX);
        put(r, to, PERF_RECORD_LOST_SAMPLES, sizeof(uint32_t));
        put(r, to + 6, n, sizeof(uint16_t));
        put(r, to + PERF_DATA_RECORD_HEADER, r->left_out.n_samples, sizeof(uint64_t));
        return n;
}
