/*
 * Routes samples of events that need names, or that a subscription of another group than 0 selects. This is separate from the
 * fast path of all others (reader/route.h), which costs nothing for it.
 */
#include "daemon/reader/route.h"

#include "daemon/reader/route-sample.h"

int reader_route_special(Reader *r, const SnapshotStream *stream, Record *record) {
        const RouteTable *t = stream->of->table;
        RouteCursor at = { 0 };

        if (t->conditional_groups != 0)
                record->is_comm_sure = record->tid == 0;
        if (t->needs_comm || (record->tid == 0 && t->conditional_groups != 0))
                record->comm = reader_comm(r, stream->of->event->plan, record);
        if (route_sample(r->batch, t, record, &at) != 0)
                return READER_E_NO_ROOM;
        counter_add(at.is_wanted ? &stream->counters->delivered : &stream->counters->filtered, 1);
        return 0;
}
