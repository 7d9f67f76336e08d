/*
 * For the format of pprof: a location is an address, with all functions that are there. Frames of a stack that were inlined at the address
 * of the one before them are of the same location as that one. One thread.
 */
#pragma once

#include "client/profile/profile.h"

typedef struct FrameSpan {
        size_t first;
        uint32_t n;
} FrameSpan;

typedef struct PprofLocations {
        bool *is_alone;      /* by frame: it is a location with no other one */
        uint32_t *frames;    /* of those with more, one behind the other, each from its outermost frame on */
        size_t n_frames, frames_room;
        FrameSpan *spans;
        uint32_t n_spans, spans_room;
        IdTable ids;
} PprofLocations;

/* 0; -ENOMEM. */
int pprof_locations_init(PprofLocations *l, const Profile *p);
void pprof_locations_deinit(PprofLocations *l);

/*
 * That of the first of these frames of a stack, which go from the outermost to the innermost: its id, and how many of them it has. 0; a
 * negative errno of memory; PROFILE_E_TOO_MANY.
 */
int pprof_locations_add(PprofLocations *l, const Profile *p, const uint32_t *frames, size_t n_frames, size_t *ret_n, uint64_t *ret_id);

/* Of ids below pprof_locations_end(): its frames, from the outermost on. 0: no sample has it. */
static inline uint64_t pprof_locations_end(const PprofLocations *l, const Profile *p) {
        return 1 + (uint64_t)p->n_frames + l->n_spans;
}
size_t pprof_locations_get(const PprofLocations *l, const Profile *p, uint64_t id, uint32_t frame[static 1], const uint32_t **ret_frames);
