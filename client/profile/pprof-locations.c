/* Nearly all locations have one frame, whose id they take: only those with inlined functions have to be found by what is in them. */
#include "client/profile/pprof-locations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pprof_locations_init(PprofLocations *l, const Profile *p) {
        *l = (PprofLocations){ .is_alone = calloc((size_t)p->n_frames + 1, sizeof(*l->is_alone)) };
        return l->is_alone ? 0 : -ENOMEM;
}

void pprof_locations_deinit(PprofLocations *l) {
        free(l->is_alone);
        free(l->frames);
        free(l->spans);
        id_table_deinit(&l->ids);
        *l = (PprofLocations){ .frames = NULL };
}

static int make_room(PprofLocations *l, size_t n) {
        if (l->n_frames + n > l->frames_room) {
                const size_t room = 2 * (l->n_frames + n);
                uint32_t *grown = reallocarray(l->frames, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                l->frames = grown;
                l->frames_room = room;
        }
        if (l->n_spans == l->spans_room) {
                const uint32_t room = l->spans_room > 0 ? 2 * l->spans_room : 64;
                FrameSpan *grown = l->n_spans < PROFILE_IDS_MAX ? reallocarray(l->spans, room, sizeof(*grown)) : NULL;

                if (!grown)
                        return l->n_spans < PROFILE_IDS_MAX ? -ENOMEM : PROFILE_E_TOO_MANY;
                l->spans = grown;
                l->spans_room = room;
        }
        return 0;
}

static int find_or_add_span(PprofLocations *l, const Profile *p, const uint32_t *frames, size_t n, uint32_t *ret_span) {
        uint32_t hash = id_hash(p->seed, frames, n * sizeof(*frames)), id;
        size_t at = hash;
        int r;

        while (id_table_next(&l->ids, hash, &at, &id))
                if (l->spans[id].n == n && memcmp(&l->frames[l->spans[id].first], frames, n * sizeof(*frames)) == 0) {
                        *ret_span = id;
                        return 0;
                }
        r = make_room(l, n);
        if (r == 0)
                r = id_table_add(&l->ids, hash, l->n_spans);
        if (r != 0)
                return r;
        memcpy(&l->frames[l->n_frames], frames, n * sizeof(*frames));
        l->spans[l->n_spans] = (FrameSpan){ .first = l->n_frames, .n = (uint32_t)n };
        l->n_frames += n;
        *ret_span = l->n_spans++;
        return 0;
}

static bool is_inlined(const Profile *p, uint32_t frame) {
        return p->functions[p->frames[frame].function].kind == FRAME_INLINED;
}

int pprof_locations_add(PprofLocations *l, const Profile *p, const uint32_t *frames, size_t n_frames, size_t *ret_n, uint64_t *ret_id) {
        uint32_t span;
        size_t n = 1;
        int r = 0;

        while (n < n_frames && is_inlined(p, frames[n]))
                n++;
        *ret_n = n;
        if (n == 1) {
                l->is_alone[frames[0]] = true;
                *ret_id = 1 + (uint64_t)frames[0];
                return 0;
        }
        r = find_or_add_span(l, p, frames, n, &span);
        if (r == 0)
                *ret_id = 1 + (uint64_t)p->n_frames + span;
        return r;
}

size_t pprof_locations_get(const PprofLocations *l, const Profile *p, uint64_t id, uint32_t frame[static 1], const uint32_t **ret_frames) {
        const FrameSpan *span;

        if (id <= p->n_frames) {
                *frame = (uint32_t)(id - 1);
                *ret_frames = frame;
                return l->is_alone[*frame] ? 1 : 0;
        }
        span = &l->spans[id - 1 - p->n_frames];
        *ret_frames = &l->frames[span->first];
        return span->n;
}
