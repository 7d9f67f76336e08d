/*
 * Samples of events that ask for names, or that somebody wants whose subscription is in another group than 0: apart from the
 * way of all others (reader/route.h), which costs nothing for it. An item is written once for all groups.
 */
#include "daemon/reader/route.h"

#include <errno.h>
#include <stdlib.h>

int reader_finish_routes(RouteTable *t) {
        route_table_finish(t);
        t->encoding = ITEM_ONE_COPY;
        for (size_t i = 0; i < t->n_encodings; i++)
                if (t->ends[i] > 0 && t->encodings[i]->encoding < t->encoding)
                        t->encoding = t->encodings[i]->encoding;
        if (!t->is_grouped && !t->needs_comm) /* those of conditional groups are grouped */
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

/* In how many of them the dispatcher has to decide. */
static size_t count_conditional(const RouteTable *t, const SubscriptionSet *set) {
        size_t n = 0;

        FOR_EACH_BIT(group, set->groups & t->conditional_groups)
                n += (size_t)__builtin_popcountll(set->masks[group]);
        return n;
}

/* Routes from `first` on are of one encoding, by number. */
static void batch_add_words(Batch *b, const RouteTable *t, size_t first, const Record *record, const SubscriptionSet *set) {
        size_t i = first;

        FOR_EACH_BIT(group, set->groups & t->conditional_groups)
                FOR_EACH_BIT(bit, set->masks[group]) {
                        const uint32_t number = (uint32_t)(group * BATCH_BITS + bit);
                        ConditionWord word;

                        while (t->routes[i].number != number)
                                i++;
                        word = match_run_parts(t->routes[i].program, record, number);
                        batch_add_word(b, &word);
                }
}

static int reader_encode_set(Batch *b, const RouteTable *t, size_t encoding, size_t first, const Record *record,
                             const SubscriptionSet *set, bool is_first) {
        const size_t at = b->n_entries, n_words = t->conditional_groups ? count_conditional(t, set) : 0;
        const EncodePlan *plan = t->encodings[encoding];
        size_t room, length = 0;
        uint8_t *to;

        if (!batch_has_room_for_more(b, subscription_set_count_groups(set)))
                return READER_E_NO_ROOM;
        to = batch_room(b, &room);
        if (item_encode_fast(plan, record, to, room, &length) != 0)
                return READER_E_NO_ROOM; /* its plan was checked */
        if (room - length < n_words * sizeof(ConditionWord))
                return READER_E_NO_ROOM;
        batch_append_set(b, record->time, set, plan->event_id, record->tid, length);
        if (n_words > 0) {
                batch_mark_conditional(b, at, t->conditional_groups);
                batch_add_words(b, t, first, record, set);
        }
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
                const size_t begin = first;
                SubscriptionSet set;
                int n;

                if (t->ends[i] == 0)
                        continue; /* nobody uses it */
                routes_ask(t, first, t->ends[i], record, &set);
                first = t->ends[i];
                if (set.groups == 0)
                        continue;
                n = reader_encode_set(r->batch, t, i, begin, record, &set, !any);
                if (n != 0)
                        return n;
                any = true;
        }
        counter_add(any ? &stream->counters->delivered : &stream->counters->filtered, 1);
        return 0;
}
