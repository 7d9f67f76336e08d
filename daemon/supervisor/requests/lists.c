/*
 * What runs, as messages. Strings and arrays are malloc'ed, for free_unpacked().
 *
 * A list of few events is made at once. One of many takes main as long as a change may, and so it is an operation: others are served
 * behind each event, and since nothing that is registered changes until it is over, the list is of one moment. Each event goes into
 * the response as bytes: all of them as messages would take hundreds of megabytes, and long to be freed.
 */
#include "daemon/supervisor/events/name-pattern.h"
#include "daemon/supervisor/requests/requests.h"

#include <string.h>

#include "daemon/base/checkpoint.h"
#include "daemon/control/long-response.h"
#include "daemon/encode/descriptor.h"
#include "daemon/supervisor/changes/persistent.h"
#include "daemon/supervisor/ledger/events.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/events/holders.h"
#include "daemon/supervisor/events/own.h"
#include "daemon/supervisor/events/specs.h"
#include "daemon/supervisor/events/task-lives.h"
#include "daemon/supervisor/readers/publish.h"

#define LIST_REPLY_EVENTS 1 /* ListReply.events: perfd.proto */
#define AT_ONCE_EVENTS ((size_t)256)
#define AT_ONCE_COST ((size_t)12000) /* measured: 5 ms */

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

static int pending_message(const PendingEvent *w, Perfd__V1__EventState *m) {
        int r;

        m->persistent = !w->is_configured;
        m->configured = w->is_configured;
        r = string_set(&m->pending, w->why);
        return r == 0 ? spec_message_copy(w->spec, &m->spec) : r;
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
static int find_listed(const RequestContext *a, const NamePattern *pattern, const Registration ***ret, size_t *ret_n, Explanation *e) {
        const Requests *s = a->requests;
        int r = 0;

        *ret = calloc(s->events->n_registrations + 1, sizeof(**ret));
        if (!*ret)
                return error_origin(-ENOMEM);
        for (const Registration *g = s->events->registrations; g && r == 0; g = g->next) {
                if (is_listed(a, pattern, g))
                        (*ret)[(*ret_n)++] = g;
                r = checkpoint(e);
        }
        return r;
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

/* The message goes. */
static int add_state(LongResponse *list, Perfd__V1__EventState *m, Explanation *e) {
        int r = long_response_add(list, LIST_REPLY_EVENTS, &m->base);

        perfd__v1__event_state__free_unpacked(m, NULL);
        if (r == RESPONSE_E_TOO_LONG)
                return refuse(e, REFUSED_EXHAUSTED, "too-long", TOO_LONG_FOR_FRAME);
        return r == 0 ? checkpoint(e) : r;
}

static Perfd__V1__EventState *state_new(void) {
        Perfd__V1__EventState *m = malloc(sizeof(*m));

        if (m)
                perfd__v1__event_state__init(m);
        return m;
}

static int list_running(const RequestContext *a, const Registration *const *listed, size_t n, LongResponse *list, Explanation *e) {
        TaskLives lives = { .clock = a->requests->readers->attr.clock };
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                Perfd__V1__EventState *m = state_new();

                r = m ? state_message(a, &lives, listed[i], m) : error_origin(-ENOMEM);
                if (r == 0)
                        r = add_state(list, m, e);
                else if (m)
                        perfd__v1__event_state__free_unpacked(m, NULL);
        }
        return r;
}

static int list_pending(const RequestContext *a, const NamePattern *pattern, LongResponse *list, Explanation *e) {
        int r = 0;

        for (const PendingEvent *w = a->requests->events->pending.first; w && r == 0; w = w->next) {
                Perfd__V1__EventState *m;

                if (!name_pattern_selects_pending(pattern, w) || !may_see(a, w->spec->name))
                        continue;
                m = state_new();
                r = m ? pending_message(w, m) : error_origin(-ENOMEM);
                if (r == 0)
                        r = add_state(list, m, e);
                else if (m)
                        perfd__v1__event_state__free_unpacked(m, NULL);
        }
        return r;
}

/* What it costs to list this one, in fields: each takes about as long as the rest of an event without any. */
static size_t cost_of(const Registration *g, bool with_fields) {
        size_t n_fields = with_fields && g->event->plan ? g->event->plan->n_fields : 0;

        return 1 + g->event->spec.fields.n + n_fields + g->opened.n;
}

bool list_takes_long(const Requests *s, const Perfd__V1__ListRequest *q) {
        const char *glob = q->glob ? q->glob : "";
        size_t cost = 0;

        if (*glob && *glob != '@' && !text_is_glob(glob))
                return false;
        if (s->events->n_registrations + events_count_pending(s->events) > AT_ONCE_EVENTS)
                return true;
        for (const Registration *g = s->events->registrations; g; g = g->next)
                cost += cost_of(g, q->fields);
        return cost > AT_ONCE_COST;
}

int handle_list(RequestContext *a, Explanation *e) {
        const char *glob = a->request->list->glob && *a->request->list->glob ? a->request->list->glob : "*";
        _cleanup_(name_pattern_deinit) NamePattern pattern = { .glob = NULL };
        _cleanup_(long_response_deinit) LongResponse list = LONG_RESPONSE_NULL;
        _cleanup_free_ const Registration **listed = NULL;
        size_t n = 0;
        int r = name_pattern_init(&pattern, glob, e);

        if (r == 0)
                r = find_listed(a, &pattern, &listed, &n, e);
        if (r == 0)
                r = cut_listed(a->requests, listed, n);
        if (r == 0)
                r = list_running(a, listed, n, &list, e);
        if (r == 0)
                r = list_pending(a, &pattern, &list, e);
        if (r == 0)
                r = connection_respond_long(a->connection, a->request->id, PERFD__V1__RESPONSE__BODY_LIST, &list);
        a->answered = r == 0;
        return r;
}
