/*
 * The ends of streams, as main sees them. The dispatcher is told the number of the next cut before it is taken, so that it
 * gives nobody what lies behind the end of his stream; then the numbers of the cut go into his closing ledger, to which the
 * dispatcher adds the row of the stream when all that lies before the cut has left the merge.
 */
#include "daemon/supervisor/streams/close.h"

#include <stdlib.h>

#include "daemon/supervisor/ledger/ledger.h"
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

/* Whether it has asked for one of the events that the ledger is of. */
bool streams_has_subscriber(const void *userdata, const LedgerScope *scope, uint64_t id) {
        const Streams *s = userdata;
        const Admission *a = s->subscriptions->admissions;
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
        DispatcherCommand *mail = calloc(1, sizeof(*mail));

        if (!mail)
                return error_origin(-ENOMEM);
        *mail = (DispatcherCommand){ .kind = DISPATCHER_CUT, .id = id, .cut = s->readers->n_cuts + 1 };
        dispatcher_post(&s->readers->dispatcher, mail);
        return 0;
}

static int post_close(Streams *s, const StreamEnd *end, const Perfd__V1__Ledger *ledger) {
        DispatcherCommand *mail = calloc(1, sizeof(*mail));

        if (!mail)
                return error_origin(-ENOMEM);
        *mail = (DispatcherCommand){ .kind = DISPATCHER_CLOSE, .id = end->id, .reason = end->reason,
                                  .at = clock_now(s->readers->attr.clock), .n_bytes = perfd__v1__ledger__get_packed_size(ledger) };
        mail->bytes = malloc(mail->n_bytes ? mail->n_bytes : 1);
        if (!mail->bytes) {
                free(mail);
                return error_origin(-ENOMEM);
        }
        perfd__v1__ledger__pack(ledger, mail->bytes);
        dispatcher_post(&s->readers->dispatcher, mail);
        return 0;
}

static int close_stream(Streams *s, const Admission *a, const DispatcherReport *report, bool is_unreported,
                        const StreamEnd *end) {
        _cleanup_free_ uint32_t *ids = NULL;
        const Subscription *u = s->subscriptions->by_number[a->number];
        const LedgerStream stream = {
                .id = a->id, .base = a->base, .wants = subscription_wants(u), .has_records = u->records != 0
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
        if (r < 0)
                return r;
        r = post_close(s, end, ledger);
        perfd__v1__ledger__free_unpacked(ledger, NULL);
        return r;
}

static const Admission *find_admission(const Streams *s, uint64_t id) {
        const Admission *a = s->subscriptions->admissions;

        while (a && a->id != id)
                a = a->next;
        return a;
}

int streams_close(Streams *s, const StreamEnd *ends, size_t n) {
        DispatcherReport report = { .n_subscribers = 0 };
        Explanation e = EXPLANATION_NULL;
        bool is_unreported;
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = post_cut(s, ends[i].id);
        if (r == 0)
                r = readers_cut(s->readers);
        if (r == 0)
                r = readers_report(s->readers, &report, &e); /* refused: without it, and the rows say so; it is sent when the dispatcher goes on */
        is_unreported = r > 0;
        for (size_t i = 0; i < n && r >= 0; i++) {
                const Admission *a = find_admission(s, ends[i].id);

                r = a ? close_stream(s, a, &report, is_unreported, &ends[i]) : 0;
        }
        dispatcher_report_deinit(&report);
        return r < 0 ? r : 0;
}

static int post_close_all(Streams *s) {
        DispatcherCommand *mail = calloc(1, sizeof(*mail));

        if (!mail)
                return error_origin(-ENOMEM);
        *mail = (DispatcherCommand){ .kind = DISPATCHER_CLOSE_ALL };
        dispatcher_post(&s->readers->dispatcher, mail);
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
                r = readers_cut(s->readers);
        if (r == 0)
                r = readers_report(s->readers, &report, &e); /* refused: without it, and the rows say so; it is sent when the dispatcher goes on */
        is_unreported = r > 0;
        for (const Admission *a = s->subscriptions->admissions; a && r >= 0; a = a->next)
                r = close_stream(s, a, &report, is_unreported, &(StreamEnd){ .id = a->id, .reason = reason });
        dispatcher_report_deinit(&report);
        return r < 0 ? r : 0;
}
