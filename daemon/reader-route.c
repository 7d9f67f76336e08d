/*
 * Samples of events that ask for names, or that somebody wants whose subscription is in another group than 0: apart from the
 * way of all others (reader-route.h), which costs nothing for it. An item is written once for all groups.
 */
#include "daemon/reader-route.h"

#include <errno.h>
#include <stdlib.h>

int reader_finish_routes(RouteTable *t) {
        route_table_finish(t);
        if (!t->is_grouped && !t->needs_comm)
                return 0;
        t->first = calloc(t->n_routes, sizeof(*t->first));
        if (!t->first)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < t->n_routes; i++) {
                const MatchProgram *program = t->routes[i].program;

                t->first[i] = program && program->n_ranges > 0 ? program->ranges[0] : (MatchRange){ .span = UINT64_MAX, .base = 1 };
        }
        return 0;
}

/*
 * Those of an encoding who want the record. Of thousands most say no to the first question, and these lie one behind the other,
 * where their programs are all over the memory.
 */
static void routes_ask(const RouteTable *t, size_t first, size_t end, const Record *record, SubscriptionSet *ret) {
        const uint8_t *const bases[] = { record->raw, (const uint8_t *)record };

        ret->groups = 0;
        for (size_t i = first; i < end; i++) {
                const MatchRange *q = &t->first[i];
                const Route *route = &t->routes[i];

                if (match_range_holds(q, bases[q->base] + q->at) && (!route->program || match_ask(route->program, record)))
                        subscription_set_add(ret, route->number);
        }
}

static int reader_encode_set(Batch *b, const EncodePlan *plan, const Record *record, const SubscriptionSet *set, bool is_first) {
        const size_t at = b->n_entries;
        size_t room, length = 0;
        uint8_t *to;

        if (!batch_has_room_for_more(b, subscription_set_count_groups(set)))
                return READER_E_NO_ROOM;
        to = batch_room(b, &room);
        if (item_encode_simple(plan, record, to, room, &length) != 0)
                return READER_E_NO_ROOM; /* its plan was checked */
        batch_append_set(b, record->time, set, plan->event_id, record->tid, length);
        b->entries[at].place |= is_first ? 0 : BATCH_MORE;
        return 0;
}

int reader_route_special(Reader *r, const SnapshotStream *stream, Record *record) {
        const RouteTable *t = stream->of->table;
        size_t first = 0;
        bool any = false;

        if (!batch_has_entry_room(r->batch))
                return READER_E_NO_ROOM;
        if (t->needs_comm)
                record->comm = reader_comm(r, record->tid, record->time);
        for (size_t i = 0; i < t->n_encodings; i++) {
                SubscriptionSet set;
                int n;

                if (t->ends[i] == 0)
                        continue; /* nobody uses it */
                routes_ask(t, first, t->ends[i], record, &set);
                first = t->ends[i];
                if (set.groups == 0)
                        continue;
                n = reader_encode_set(r->batch, t->encodings[i], record, &set, !any);
                if (n != 0)
                        return n;
                any = true;
        }
        counter_add(any ? &stream->counters->delivered : &stream->counters->filtered, 1);
        return 0;
}
