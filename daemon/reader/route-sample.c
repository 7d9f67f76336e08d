/*
 * Samples that are matched and written for all who want them, whatever their groups: those of events that ask for names, those
 * of subscriptions in another group than 0 (reader/route.h takes all others, without this cost), and those that clients emit.
 * An item is written once for all groups.
 */
#include "daemon/reader/route-sample.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/encode/item-fixed.h"
#include "daemon/route/match-program.h"

int route_table_prepare(RouteTable *t, bool is_emitted) {
        route_table_finish(t);
        t->encoding = ITEM_ONE_COPY;
        for (size_t i = 0; i < t->n_encodings; i++)
                if (t->ends[i] > 0 && t->encodings[i]->encoding < t->encoding)
                        t->encoding = t->encodings[i]->encoding;
        if (!t->is_grouped && !t->needs_comm && !is_emitted) /* those of conditional groups are grouped */
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
 * Which subscriptions of one encoding want the record. Of thousands, most are rejected by their first comparison, and these
 * comparisons are contiguous in memory, unlike the programs.
 */
static inline __attribute__((always_inline)) void routes_ask(const RouteTable *t, size_t first, size_t end, const Record *record,
                                                             SubscriptionSet *ret) {
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

static int encode_set(Batch *b, const RouteTable *t, const RouteCursor *at, const Record *record, const SubscriptionSet *set) {
        const size_t entry = b->n_entries, n_words = t->conditional_groups ? count_conditional(t, set) : 0;
        const EncodePlan *plan = t->encodings[at->encoding];
        size_t room, length = 0;
        uint8_t *to;

        if (!batch_has_room_for_more(b, subscription_set_count_groups(set)))
                return ROUTE_E_NO_ROOM;
        to = batch_room(b, &room);
        if (item_encode_fast(plan, record, to, room, &length) != 0)
                return ROUTE_E_NO_ROOM; /* its plan was checked */
        if (room - length < n_words * sizeof(ConditionWord))
                return ROUTE_E_NO_ROOM;
        batch_append_set(b, record->time, set, plan->event_id, record->tid, length);
        if (n_words > 0) {
                batch_mark_conditional(b, entry, t->conditional_groups);
                batch_add_words(b, t, at->route, record, set);
        }
        b->entries[entry].place |= at->is_wanted ? BATCH_MORE : 0;
        return 0;
}

bool route_wants(const RouteTable *t, const Record *record) {
        SubscriptionSet set;

        routes_ask(t, 0, t->n_routes, record, &set);
        return set.groups != 0;
}

int route_sample(Batch *b, const RouteTable *t, const Record *record, RouteCursor *at) {
        if (!batch_has_entry_room(b))
                return ROUTE_E_NO_ROOM;
        for (; at->encoding < t->n_encodings; at->encoding++) {
                const size_t end = t->ends[at->encoding];
                SubscriptionSet set;

                if (end == 0)
                        continue; /* nobody uses it */
                routes_ask(t, at->route, end, record, &set);
                if (set.groups != 0) {
                        if (encode_set(b, t, at, record, &set) != 0)
                                return ROUTE_E_NO_ROOM;
                        at->is_wanted = true;
                }
                at->route = end;
        }
        return 0;
}
