/* What runs, as messages. Strings and arrays are malloc'ed, for free_unpacked(). */
#include "daemon/supervisor/events/name-pattern.h"
#include "daemon/supervisor/requests/requests.h"

#include <string.h>

#include "daemon/encode/descriptor.h"
#include "daemon/supervisor/changes/persistent.h"
#include "daemon/supervisor/ledger/events.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/events/holders.h"
#include "daemon/supervisor/events/own.h"
#include "daemon/supervisor/events/specs.h"
#include "daemon/supervisor/events/task-lives.h"
#include "daemon/supervisor/readers/publish.h"

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
                m->persistent = !w->is_configured;
                m->configured = w->is_configured;
                r = string_set(&m->pending, w->why);
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

static uint64_t count_postponed(const Event *event) {
        uint64_t n = 0;

        for (uint32_t slot = 0; slot < event->n_slots; slot++)
                n += counter_get(&event->counters[slot].n_postponed);
        return n;
}

static bool is_listed(const RequestContext *a, const NamePattern *pattern, const Registration *g) {
        return name_pattern_selects(pattern, g->event) &&
               (may_see(a, g->event->spec.name) || (!a->access.limit && own_is_of(&g->event->spec, a->access.uid)));
}

/* Each name is compared once: a glob can be dear. */
static int find_listed(const RequestContext *a, const NamePattern *pattern, const Registration ***ret, size_t *ret_n) {
        const Requests *s = a->requests;

        *ret = calloc(s->events->n_registrations + 1, sizeof(**ret));
        if (!*ret)
                return error_origin(-ENOMEM);
        for (const Registration *g = s->events->registrations; g; g = g->next)
                if (is_listed(a, pattern, g))
                        (*ret)[(*ret_n)++] = g;
        return 0;
}

/* Of what it lists: who has one event has no cut of all. */
static int cut_listed(const Requests *s, const Registration *const *listed, size_t n) {
        _cleanup_(cut_scope_unrefp) CutScope *scope = NULL;

        if (n == 0 || operations_is_between(s->operations))
                return 0;
        scope = cut_scope_new(n);
        if (!scope)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                cut_scope_add(scope, listed[i]->event->id);
        cut_scope_finish(scope);
        return readers_cut_at_once(s->readers, scope);
}

/* How often it occurred, for who may know. */
static int add_counts(const RequestContext *a, const Registration *g, Perfd__V1__EventState *m) {
        const Event *event = g->event;
        EventCut t;

        m->limited = !access_has_counts(&a->access, event->spec.name) && (a->access.limit || !own_is_of(&event->spec, a->access.uid));
        if (m->limited)
                return 0;
        t = ledger_event_totals(a->requests->ledger, g);
        m->delivered = t.delivered;
        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                m->lost += t.lost[i];
        m->n_postponed = count_postponed(event);
        return ledger_some_losses_new(t.lost, &m->losses, &m->n_losses);
}

static int state_message(const RequestContext *a, TaskLives *lives, const Registration *g, Perfd__V1__EventState *m) {
        int r;

        m->id = g->event->id;
        m->enabled = g->enabled;
        m->configured = g->event->spec.configured;
        m->persistent = g->is_persistent;
        m->n_fds = (uint32_t)g->opened.n;
        r = add_counts(a, g, m);
        if (r < 0)
                return r;
        m->fallen_back = g->fallen_back;
        m->n_targets = task_lives_count(lives, g, &m->n_ended);
        if (g->probe && may_see_place(a, g->probe) && (r = string_set(&m->place, probe_text(g->probe))) < 0)
                return r;
        if (a->request->list->fields && (r = field_descriptors_new(g->event->plan, &m->fields, &m->n_fields)) < 0)
                return r;
        m->while_connected = g->is_temporary;
        r = string_set(&m->absent, g->absent);
        if (r == 0)
                r = spec_message(&g->event->spec, &m->spec);
        if (r == 0 && g->is_temporary)
                (void)registration_has_uid(g, &m->spec->uid);
        return r;
}

int handle_list(RequestContext *a, Explanation *e) {
        const char *glob = a->request->list->glob && *a->request->list->glob ? a->request->list->glob : "*";
        _cleanup_(name_pattern_deinit) NamePattern pattern = { .glob = NULL };
        _cleanup_free_ const Registration **listed = NULL;
        const Requests *s = a->requests;
        TaskLives lives = { .clock = s->readers->attr.clock };
        Perfd__V1__ListReply *reply = malloc(sizeof(*reply));
        size_t n = 0;
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__list_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_LIST;
        a->response->list = reply;
        r = name_pattern_init(&pattern, glob, e);
        if (r == 0)
                r = find_listed(a, &pattern, &listed, &n);
        if (r != 0)
                return r;
        reply->events = calloc(n + events_count_pending(s->events) + 1, sizeof(*reply->events));
        if (!reply->events)
                return error_origin(-ENOMEM);
        r = cut_listed(s, listed, n);
        for (size_t i = 0; i < n && r >= 0; i++) {
                Perfd__V1__EventState *m = malloc(sizeof(*m));

                if (!m)
                        return error_origin(-ENOMEM);
                perfd__v1__event_state__init(m);
                reply->events[reply->n_events++] = m;
                r = state_message(a, &lives, listed[i], m);
        }
        return r >= 0 ? list_pending(a, &pattern, reply) : r;
}
