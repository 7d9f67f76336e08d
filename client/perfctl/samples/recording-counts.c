#include "client/perfctl/samples/recording-counts.h"

#include <endian.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

void recording_counts_deinit(RecordingCounts *c) {
        free(c->types);
        free(c->samples_of);
        *c = RECORDING_COUNTS_NULL;
}

static void count_type(RecordingCounts *c, uint32_t type) {
        size_t i = 0;

        while (i < c->n_types && c->types[i].type != type)
                i++;
        if (i == c->n_types) {
                if (c->n_types == c->types_room) {
                        c->types_room = 2 * c->types_room + 16;
                        c->types = must_have(reallocarray(c->types, c->types_room, sizeof(*c->types)));
                }
                c->types[c->n_types++] = (TypeCount){ .type = type };
        }
        c->types[i].n++;
}

/* Of a pipe they come one by one. */
static void look_at_events(RecordingCounts *c, const perfd_recording *r) {
        const size_t n = perfd_recording_n_events(r);

        if (n <= c->n_events)
                return;
        c->samples_of = must_have(reallocarray(c->samples_of, n, sizeof(*c->samples_of)));
        memset(c->samples_of + c->n_events, 0, (n - c->n_events) * sizeof(*c->samples_of));
        c->n_events = n;
}

static void count_sample(RecordingCounts *c, perfd_recording *r, const perfd_recorded *record) {
        perfd_recorded_id id = { .event = NULL };

        c->n_samples++;
        look_at_events(c, r);
        if (perfd_recording_id(r, record, &id) != 0 || !id.event)
                return; /* which has become a damage */
        c->samples_of[id.index]++;
        if (!(id.has & PERF_SAMPLE_TIME))
                return;
        if (c->last == 0 || id.time < c->first)
                c->first = id.time;
        if (id.time > c->last)
                c->last = id.time;
}

/* Both begin with a number; LOST has that of an fd before it. */
uint64_t recorded_losses(const perfd_recording *r, const perfd_recorded *record) {
        const size_t at = record->type == PERF_RECORD_LOST ? sizeof(uint64_t) : 0;
        uint64_t n;

        if ((record->type != PERF_RECORD_LOST && record->type != PERF_RECORD_LOST_SAMPLES) || record->size < at + sizeof(n))
                return 0;
        memcpy(&n, (const uint8_t *)record->bytes + at, sizeof(n));
        return perfd_recording_byte_order(r) == PERFD_BIG_ENDIAN ? be64toh(n) : le64toh(n);
}

void recording_counts_add(RecordingCounts *c, perfd_recording *r, const perfd_recorded *record) {
        count_type(c, record->type);
        if (record->type == PERF_RECORD_SAMPLE)
                count_sample(c, r, record);
        else if (record->type == PERF_RECORD_LOST)
                c->n_lost += recorded_losses(r, record);
        else if (record->type == PERF_RECORD_LOST_SAMPLES)
                c->n_lost_samples += recorded_losses(r, record);
}

uint64_t recording_counts_of(const RecordingCounts *c, size_t event) {
        return event < c->n_events ? c->samples_of[event] : 0;
}
