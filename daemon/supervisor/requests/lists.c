/* What runs, as messages. Strings and arrays are malloc'ed, for free_unpacked(). */
#include "daemon/supervisor/events/name-pattern.h"
#include "daemon/supervisor/requests/requests.h"

#include <string.h>

#include "daemon/encode/descriptor.h"
#include "daemon/supervisor/changes/kept.h"
#include "daemon/supervisor/ledger/events.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/events/own.h"
#include "daemon/supervisor/events/specs.h"
#include "daemon/supervisor/readers/publish.h"

/* Tasks or cgroups with fds: each has one for the event on the same CPUs, so those of one CPU are counted. */
static uint64_t registration_count_targets(const Registration *g) {
        uint64_t n = 0;

        for (size_t i = 0; i < g->opened.n; i++) {
                const PerfFd *a = &g->opened.fds[i];

                n += a->target_id != 0 && a->member == 0 && a->slot == g->opened.fds[0].slot;
        }
        return n;
}

/* A copy by its wire image: free_unpacked() is to own it. */
static int spec_message_copy(const Perfd__V1__EventSpec *from, Perfd__V1__EventSpec **ret) {
        size_t n = perfd__v1__event_spec__get_packed_size(from);
        _cleanup_free_ uint8_t *bytes = malloc(n + 1);

        if (!bytes)
                return error_origin(-ENOMEM);
        perfd__v1__event_spec__pack(from, bytes);
        *ret = perfd__v1__event_spec__unpack(NULL, n, bytes);
        return *ret ? 0 : error_origin(-ENOMEM);
}

/* What one may have samples of, or emit. */
static bool may_see(const RequestContext *a, const char *name) {
        return access_has_status(&a->access) || access_has_samples(&a->access, name) || access_may_emit(&a->access, name);
}

static int list_pending(const RequestContext *a, const NamePattern *pattern, Perfd__V1__ListReply *reply) {
        const Requests *s = a->requests;
        int r = 0;

        for (const PendingEvent *w = s->events->pending.first; w && r == 0; w = w->next) {
                Perfd__V1__EventState *m;

                if (!name_pattern_selects_pending(pattern, w) || !may_see(a, w->spec->name))
                        continue;
                m = malloc(sizeof(*m));
                if (!m)
                        return error_origin(-ENOMEM);
                perfd__v1__event_state__init(m);
                reply->events[reply->n_events++] = m;
                m->kept = !w->is_configured;
                m->configured = w->is_configured;
                r = string_set(&m->waiting, w->why);
                if (r == 0)
                        r = spec_message_copy(w->spec, &m->spec);
        }
        return r;
}

/* Of a probe by address its name says which, and the place would say of which function: where the kernel lies. */
static bool may_see_place(const RequestContext *a, const Probe *probe) {
        const Peer *peer = connection_peer(a->connection);

        return peer->may_change || peer->uid == 0 || strncmp(probe_text(probe), "0x", 2) != 0;
}

int handle_list(RequestContext *a, Explanation *e) {
        const char *glob = a->request->list->glob && *a->request->list->glob ? a->request->list->glob : "*";
        _cleanup_(name_pattern_deinit) NamePattern pattern = { .glob = NULL };
        Requests *s = a->requests;
        Perfd__V1__ListReply *reply = malloc(sizeof(*reply));
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__list_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_LIST;
        a->response->list = reply;
        reply->events = calloc(s->events->n_registrations + events_count_pending(s->events) + 1, sizeof(*reply->events));
        if (!reply->events)
                return error_origin(-ENOMEM);
        r = name_pattern_init(&pattern, glob, e);
        if (r != 0)
                return r;
        r = operations_is_between(s->operations) ? 0 : readers_cut_at_once(s->readers);
        for (const Registration *g = s->events->registrations; g && r >= 0; g = g->next) {
                Perfd__V1__EventState *m;
                EventCut t;

                if (!name_pattern_selects(&pattern, g->event) ||
                    !(may_see(a, g->event->spec.name) || own_is_of(&g->event->spec, a->access.uid)))
                        continue;
                m = malloc(sizeof(*m));
                if (!m)
                        return error_origin(-ENOMEM);
                perfd__v1__event_state__init(m);
                reply->events[reply->n_events++] = m;
                m->id = g->event->id;
                m->enabled = g->enabled;
                m->configured = g->event->spec.configured;
                m->kept = g->kept;
                m->n_fds = (uint32_t)g->opened.n;
                t = ledger_event_totals(s->ledger, g);
                m->delivered = t.delivered;
                for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                        m->lost += t.lost[i];
                r = ledger_some_losses_new(t.lost, &m->losses, &m->n_losses);
                if (r < 0)
                        return r;
                m->fallen_back = g->fallen_back;
                m->n_targets = registration_count_targets(g);
                if (g->probe && may_see_place(a, g->probe) && (r = string_set(&m->place, probe_text(g->probe))) < 0)
                        return r;
                if (a->request->list->fields && (r = field_descriptors_new(g->event->plan, &m->fields, &m->n_fields)) < 0)
                        return r;
                r = string_set(&m->absent, g->absent);
                if (r == 0)
                        r = spec_message(&g->event->spec, &m->spec);
        }
        return r >= 0 ? list_pending(a, &pattern, reply) : r;
}
