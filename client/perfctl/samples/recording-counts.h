/* For `info`: what a recording has, counted. */
#pragma once

#include "client/perfctl/base/perfctl.h"

typedef struct TypeCount {
        uint32_t type;
        uint64_t n;
} TypeCount;

typedef struct RecordingCounts {
        TypeCount *types; /* in the order in which they came */
        size_t n_types, types_room;
        uint64_t *samples_of; /* by the index of the event */
        size_t n_events;
        uint64_t n_samples, n_damaged; /* those that are whole, and others */
        uint64_t n_unknown; /* records that neither the kernel nor perf has */
        uint64_t n_lost, n_lost_samples; /* what LOST and LOST_SAMPLES say: records for which the kernel had no room, and samples of them or filtered */
        uint64_t first, last; /* of samples, ns of their clock; last 0: none has a time */
} RecordingCounts;

#define RECORDING_COUNTS_NULL ((RecordingCounts){ .n_types = 0 })

void recording_counts_deinit(RecordingCounts *c);
/* Of the record that perfd_recording_next() gave last, which is read as views read it, so that what they find damaged is. 0; -ENOMEM, -errno */
int recording_counts_add(RecordingCounts *c, perfd_recording *r, const perfd_recorded *record);
/* Of the event with that index. */
uint64_t recording_counts_of(const RecordingCounts *c, size_t event);

/* What LOST or LOST_SAMPLES says; 0: it is neither, or has not got it. */
uint64_t recorded_losses(const perfd_recording *r, const perfd_recorded *record);
