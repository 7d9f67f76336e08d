/* The last step of each sample, whether it was taken in place or not: conditions and encoding. */
#pragma once

#include "daemon/encode/item-fixed.h"
#include "daemon/reader/cycle.h"
#include "daemon/route/match-program.h"

/* more: BATCH_MORE, or 0 for the first item of a sample. */
static inline int reader_encode(Batch *b, const EncodePlan *plan, const Record *record, uint64_t mask, uint32_t more) {
        size_t room, length = 0;
        uint8_t *to;

        if (!batch_has_entry_room(b))
                return READER_E_NO_ROOM;
        to = batch_room(b, &room);
        if (item_encode_fast(plan, record, to, room, &length) != 0)
                return READER_E_NO_ROOM; /* the event's plan was checked, so only room can be missing */
        batch_append(b, record->time, mask, plan->event_id, record->tid, length);
        b->entries[b->n_entries - 1].place |= more;
        return 0;
}

/* reader/route.c: the same for a stream with groups above 0, or with names. */
int reader_route_special(Reader *r, const SnapshotStream *stream, Record *record);

/* Appends the items of a whole sample, one for each encoding. READER_E_NO_ROOM: the caller removes the items that were appended. */
static inline int reader_route(Reader *r, const SnapshotStream *stream, Record *record) {
        const Route *route = stream->routes, *end = route + stream->n_routes;
        EventCounters *counters = stream->counters;
        uint32_t more = 0; /* none was appended yet */

        if (route == end || (stream->exclude_self && record->pid == r->own_pid)) {
                counter_add(&counters->filtered, 1);
                return 0;
        }
        if (stream->is_special)
                return reader_route_special(r, stream, record);

        while (route < end) {
                const EncodePlan *plan = route->plan;
                uint64_t mask = 0;
                int n;

                for (; route < end && route->plan == plan; route++)
                        if (!route->program || match_ask(route->program, record))
                                mask |= route->bit;
                if (mask == 0)
                        continue;
                n = reader_encode(r->batch, plan, record, mask, more);
                if (n != 0)
                        return n;
                more = BATCH_MORE;
        }
        counter_add(more ? &counters->delivered : &counters->filtered, 1);
        return 0;
}
