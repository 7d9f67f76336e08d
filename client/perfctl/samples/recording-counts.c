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

/* The event of an item is that of perfd_recording_event(id - 1). */
static void count_sample(RecordingCounts *c, const perfd_recording *r, const perfd_item *item) {
        const size_t index = perfd_item_event(item)->id - 1;
        const uint64_t time = perfd_item_time(item);

        c->n_samples++;
        look_at_events(c, r);
        c->samples_of[index]++;
        if (!(perfd_recording_event(r, index)->sample_type & PERF_SAMPLE_TIME))
                return;
        if (c->last == 0 || time < c->first)
                c->first = time;
        if (time > c->last)
                c->last = time;
}

/* Whose ids views ask for. */
static bool is_of_tasks(uint32_t type) {
        return type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2 || type == PERF_RECORD_COMM || type == PERF_RECORD_FORK ||
               type == PERF_RECORD_EXIT || type == PERF_RECORD_KSYMBOL;
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

int recording_counts_add(RecordingCounts *c, perfd_recording *r, const perfd_recorded *record) {
        const perfd_item *item = NULL;
        perfd_recorded_id id;
        int code;

        count_type(c, record->type);
        if (record->type == PERF_RECORD_LOST)
                c->n_lost += recorded_losses(r, record);
        else if (record->type == PERF_RECORD_LOST_SAMPLES)
                c->n_lost_samples += recorded_losses(r, record);
        else if (!perfd_recorded_name(record->type))
                c->n_unknown++;
        code = perfd_recording_item(r, record, &item);
        if (code == 0 && item)
                count_sample(c, r, item);
        else if (code == 0 && is_of_tasks(record->type))
                code = perfd_recording_id(r, record, &id);
        else if (code == PERFD_E_INVALID)
                c->n_damaged++;
        return code == PERFD_E_INVALID ? 0 : code; /* which has become a damage */
}

uint64_t recording_counts_of(const RecordingCounts *c, size_t event) {
        return event < c->n_events ? c->samples_of[event] : 0;
}
