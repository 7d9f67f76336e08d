/*
 * Samples of events that ask for names, or that somebody wants whose subscription is in another group than 0: apart from the
 * way of all others (reader-route.h), which costs nothing for it. An item is written once for all groups.
 */
#include "daemon/reader-route.h"

/* Those of one encoding, from `route` on, who want the record. Where the next encoding's begin. */
static const Route *routes_ask(const Route *route, const Route *end, const Record *record, SubscriptionSet *ret) {
        const EncodePlan *plan = route->plan;

        ret->groups = 0;
        while (route < end && route->plan == plan) {
                uint32_t group = BATCH_GROUP(route->number);
                uint64_t mask = 0;

                for (; route < end && route->plan == plan && BATCH_GROUP(route->number) == group; route++)
                        if (!route->program || match_ask(route->program, record))
                                mask |= route->bit;
                if (mask)
                        subscription_set_add_mask(ret, group, mask);
        }
        return route;
}

static int reader_encode_set(Batch *b, const EncodePlan *plan, const Record *record, const SubscriptionSet *set) {
        size_t room, length = 0;
        uint8_t *to;

        if (!batch_has_room_for(b, subscription_set_count_groups(set)))
                return READER_E_NO_ROOM;
        to = batch_room(b, &room);
        if (item_encode_simple(plan, record, to, room, &length) != 0)
                return READER_E_NO_ROOM; /* its plan was checked */
        batch_append_set(b, record->time, set, plan->event_id, record->tid, length);
        return 0;
}

int reader_route_special(Reader *r, const SnapshotStream *stream, Record *record) {
        const Route *route = stream->routes, *end = route + stream->n_routes;
        bool any = false;

        if (stream->of->needs_comm)
                record->comm = reader_comm(r, record->tid, record->time);
        while (route < end) {
                const EncodePlan *plan = route->plan;
                SubscriptionSet set;
                int n;

                route = routes_ask(route, end, record, &set);
                if (set.groups == 0)
                        continue;
                any = true;
                n = reader_encode_set(r->batch, plan, record, &set);
                if (n != 0)
                        return n;
        }
        counter_add(any ? &stream->counters->delivered : &stream->counters->filtered, 1);
        return 0;
}
