/*
 * For tests: the least perf.data that perf-script(1) opens, so that perf can be asked what it makes of the same bytes.
 *
 *     header (104) | attr, ids section | ... | ids | records
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define RECORDING_MAGIC 0x32454c4946524550ULL /* "PERFILE2" */
#define RECORDING_MAX_ATTRS 16

typedef struct RecordingSection {
        uint64_t offset, size;
} RecordingSection;

typedef struct RecordingHeader {
        uint64_t magic, size, attr_size;
        RecordingSection attrs, data, event_types;
        uint64_t features[4];
} RecordingHeader;

typedef struct RecordingAttr {
        struct perf_event_attr attr;
        RecordingSection ids;
} RecordingAttr;

/* n_ids of each attr in a row in `ids`. */
static inline bool recording_write(FILE *f, const struct perf_event_attr *attrs, size_t n_attrs, const uint64_t *ids,
                                   const size_t *n_ids, const void *records, size_t size) {
        RecordingHeader h = { .magic = RECORDING_MAGIC, .size = sizeof(h), .attr_size = sizeof(RecordingAttr) };
        size_t all_ids = 0;

        h.attrs = (RecordingSection){ sizeof(h), n_attrs * sizeof(RecordingAttr) };
        for (size_t i = 0; i < n_attrs; i++)
                all_ids += n_ids[i];
        h.data = (RecordingSection){ h.attrs.offset + h.attrs.size + all_ids * sizeof(*ids), size };
        if (fwrite(&h, sizeof(h), 1, f) != 1)
                return false;
        all_ids = 0;
        for (size_t i = 0; i < n_attrs; i++) {
                RecordingAttr a = { .attr = attrs[i] };

                a.attr.size = sizeof(a.attr);
                a.ids.offset = h.attrs.offset + h.attrs.size + all_ids * sizeof(*ids);
                a.ids.size = n_ids[i] * sizeof(*ids);
                all_ids += n_ids[i];
                if (fwrite(&a, sizeof(a), 1, f) != 1)
                        return false;
        }
        return fwrite(ids, sizeof(*ids), all_ids, f) == all_ids && fwrite(records, 1, size, f) == size;
}
