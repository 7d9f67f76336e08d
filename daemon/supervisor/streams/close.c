/*
 * The ends of streams, as main sees them. The dispatcher is told the number of the next cut before it is taken, so that it
 * gives nobody what lies behind the end of his stream; then the numbers of the cut go into his closing ledger, to which the
 * dispatcher adds the row of the stream when all that lies before the cut has left the merge.
 */
#include "daemon/supervisor/streams/close.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/readers/budgets.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/wait.h"
#include "daemon/supervisor/subscriptions/subscription.h"

static const Event *get_event(const void *userdata, size_t i) {
        const Subscription *u = userdata;

        return i < u->n_routes ? u->routes[i].registration->event : NULL;
}

static bool has_event(const void *userdata, const Event *event) {
        return subscription_selects(userdata, event);
}

LedgerWants subscription_wants(const Subscription *u) {
        return (LedgerWants){ .userdata = u, .get = get_event, .has = has_event };
}

static void add_routes(CutScope *c, const Subscription *u) {
        for (size_t i = 0; i < u->n_routes; i++)
                cut_scope_add(c, u->routes[i].registration->event->id);
}

int subscription_cut_scope(const Subscription *u, CutScope **ret) {
        CutScope *c = cut_scope_new(u->n_routes);

        if (!c)
                return error_origin(-ENOMEM);
        add_routes(c, u);
        cut_scope_finish(c);
        *ret = c;
        return 0;
}

/* Whether it has asked for one of the events that the ledger is of. */
bool streams_has_subscriber(const void *userdata, const LedgerScope *scope, uint64_t id) {
        const Streams *s = userdata;
        const SubscriberEntry *a = s->subscriptions->subscribers;
        const Subscription *u;
        bool any = scope->is_all;

        while (a && a->id != id)
                a = a->next;
        u = a ? s->subscriptions->by_number[a->number] : NULL;
        for (size_t i = 0; u && i < u->n_routes && !any; i++)
                any = ledger_has(scope, u->routes[i].registration->event);
        return any;
}

static int post_cut(Streams *s, uint64_t id) {
        DispatcherCommand *command = calloc(1, sizeof(*command));

        if (!command)
                return error_origin(-ENOMEM);
        *command = (DispatcherCommand){ .kind = DISPATCHER_CUT, .id = id, .cut = s->readers->n_cuts + 1 };
        dispatcher_post(&s->readers->dispatcher, command);
        return 0;
}

/* A long ledger takes as long to be packed as to be freed: others are served before each. */
static int post_close(Streams *s, const StreamEnd *end, const Perfd__V1__Ledger *ledger) {
        int r = operations_serve_sometimes(s->operations);
        DispatcherCommand *command = r >= 0 ? calloc(1, sizeof(*command)) : NULL;

        if (r < 0)
                return r;
        if (!command)
                return error_origin(-ENOMEM);
        *command = (DispatcherCommand){ .kind = DISPATCHER_CLOSE, .id = end->id, .reason = end->reason,
                                  .at = clock_now(s->readers->attr.clock), .n_bytes = perfd__v1__ledger__get_packed_size(ledger) };
        command->bytes = malloc(command->n_bytes ? command->n_bytes : 1);
        if (!command->bytes) {
                free(command);
                return error_origin(-ENOMEM);
        }
        perfd__v1__ledger__pack(ledger, command->bytes);
        dispatcher_post(&s->readers->dispatcher, command);
        return operations_serve_sometimes(s->operations);
}

static int close_stream(Streams *s, const SubscriberEntry *a, const DispatcherReport *report, bool is_unreported,
                        const StreamEnd *end) {
        _cleanup_free_ uint32_t *ids = NULL;
        const Subscription *u = s->subscriptions->by_number[a->number];
        const LedgerStream stream = {
                .id = a->id, .base = a->base, .wants = subscription_wants(u), .has_records = u->records != 0,
                .is_limited = u->grant && (u->grant->where || u->grant->within_where)
        };
        LedgerScope scope = { .stream = &stream, .is_unreported = is_unreported };
        Perfd__V1__Ledger *ledger;
        int r;

        ids = calloc(u->n_routes + 1, sizeof(*ids));
        if (!ids)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < u->n_routes; i++)
                ids[i] = u->routes[i].registration->event->id;
        ledger_sort_ids(ids, u->n_routes);
        scope.ids = ids;
        scope.n_ids = u->n_routes;
        r = ledger_make(s->ledger, &scope, report, &ledger);
        if (r != 0)
                return r;
        r = post_close(s, end, ledger);
        perfd__v1__ledger__free_unpacked(ledger, NULL);
        return r;
}

static const SubscriberEntry *find_subscriber(const Streams *s, uint64_t id) {
        const SubscriberEntry *a = s->subscriptions->subscribers;

        while (a && a->id != id)
                a = a->next;
        return a;
}

/* Of all events of all of them; what has been removed since had its last cut then. */
static int ends_cut_scope(const Streams *s, const StreamEnd *ends, size_t n, CutScope **ret) {
        const SubscriberEntry *a;
        CutScope *c;
        size_t n_ids = 0;

        for (size_t i = 0; i < n; i++)
                n_ids += (a = find_subscriber(s, ends[i].id)) ? s->subscriptions->by_number[a->number]->n_routes : 0;
        c = cut_scope_new(n_ids);
        if (!c)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                if ((a = find_subscriber(s, ends[i].id)))
                        add_routes(c, s->subscriptions->by_number[a->number]);
        cut_scope_finish(c);
        *ret = c;
        return 0;
}

static int close_streams(Streams *s, const StreamEnd *ends, size_t n) {
        _cleanup_(cut_scope_unrefp) CutScope *scope = NULL;
        DispatcherReport report = { .n_subscribers = 0 };
        Explanation e = EXPLANATION_NULL;
        bool is_unreported;
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = post_cut(s, ends[i].id);
        if (r == 0)
                r = ends_cut_scope(s, ends, n, &scope);
        if (r == 0)
                r = readers_cut(s->readers, scope);
        if (r == 0)
                /* refused: without it, and the rows say so; it is sent when the dispatcher goes on */
                r = readers_report(s->readers, &report, &e);
        is_unreported = r > 0;
        for (size_t i = 0; i < n && r >= 0; i++) {
                const SubscriberEntry *a = find_subscriber(s, ends[i].id);

                r = a ? close_stream(s, a, &report, is_unreported, &ends[i]) : 0;
        }
        dispatcher_report_deinit(&report);
        return r < 0 ? r : 0;
}

static uid_t find_uid(const Streams *s, const StreamEnd *end) {
        const SubscriberEntry *a = find_subscriber(s, end->id);

        return a ? a->memory->uid : 0; /* gone meanwhile: nothing is asked for it */
}

/* Those of one uid end at one cut, which is charged to it. */
int streams_close(Streams *s, const StreamEnd *ends, size_t n) {
        _cleanup_free_ StreamEnd *rest = malloc((2 * n + 1) * sizeof(*rest));
        StreamEnd *same = rest + n;
        int r = 0;

        if (!rest)
                return error_origin(-ENOMEM);
        memcpy(rest, ends, n * sizeof(*rest));
        while (n > 0 && r == 0) {
                const uid_t uid = find_uid(s, &rest[0]);
                size_t n_same = 0, n_rest = 0;
                uint64_t before;

                for (size_t i = 0; i < n; i++)
                        if (find_uid(s, &rest[i]) == uid)
                                same[n_same++] = rest[i];
                        else
                                rest[n_rest++] = rest[i];
                n = n_rest;
                before = readers_charge(s->readers, uid);
                r = close_streams(s, same, n_same);
                (void)readers_charge(s->readers, before);
        }
        return r;
}

static int post_close_all(Streams *s) {
        DispatcherCommand *command = calloc(1, sizeof(*command));

        if (!command)
                return error_origin(-ENOMEM);
        *command = (DispatcherCommand){ .kind = DISPATCHER_CLOSE_ALL };
        dispatcher_post(&s->readers->dispatcher, command);
        return 0;
}

int streams_close_all(Streams *s, const char *reason) {
        DispatcherReport report = { .n_subscribers = 0 };
        Explanation e = EXPLANATION_NULL;
        bool is_unreported;
        int r = post_close_all(s);

        if (r == 0)
                r = post_cut(s, 0);
        if (r == 0)
                r = readers_cut(s->readers, NULL);
        if (r == 0)
                /* refused: without it, and the rows say so; it is sent when the dispatcher goes on */
                r = readers_report(s->readers, &report, &e);
        is_unreported = r > 0;
        for (const SubscriberEntry *a = s->subscriptions->subscribers; a && r >= 0; a = a->next)
                r = close_stream(s, a, &report, is_unreported, &(StreamEnd){ .id = a->id, .reason = reason });
        dispatcher_report_deinit(&report);
        return r < 0 ? r : 0;
}
