/* What runs, and what this kernel offers, as messages. Strings and arrays are malloc'ed, for free_unpacked(). */
#include "daemon/supervisor-requests.h"

#include <fnmatch.h>
#include <string.h>

#include "daemon/encode/descriptor.h"

int string_set(char **to, const char *from) {
        if (!from)
                return 0;
        *to = strdup(from);
        return *to ? 0 : -ENOMEM;
}

int numbers_set(uint32_t **to, size_t *ret_n, const uint32_t *from, size_t n) {
        if (n == 0)
                return 0;
        *to = malloc(n * sizeof(**to));
        if (!*to)
                return -ENOMEM;
        memcpy(*to, from, n * sizeof(**to));
        *ret_n = n;
        return 0;
}

static int target_message(const EventSpec *from, Perfd__V1__Target **ret) {
        Perfd__V1__Target *t;
        int r;

        if (!from->target && !from->n_pids && !from->n_tids && !from->cpus)
                return 0;
        t = malloc(sizeof(*t));
        if (!t)
                return -ENOMEM;
        perfd__v1__target__init(t);
        *ret = t;
        t->no_inherit = from->no_inherit;
        if ((r = string_set(&t->name, from->target)) < 0 || (r = string_set(&t->cpus, from->cpus)) < 0 ||
            (r = numbers_set(&t->pids, &t->n_pids, from->pids, from->n_pids)) < 0)
                return r;
        return numbers_set(&t->tids, &t->n_tids, from->tids, from->n_tids);
}

static int spec_message(const EventSpec *from, Perfd__V1__EventSpec **ret) {
        Perfd__V1__EventSpec *m = malloc(sizeof(*m));
        int r;

        if (!m)
                return -ENOMEM;
        perfd__v1__event_spec__init(m);
        *ret = m;
        m->period = from->period;
        m->frequency = from->frequency;
        m->callchain = (Perfd__V1__Callchain)from->callchain; /* the same bits */
        m->disabled = from->disabled;
        m->include_self = from->include_self;
        if ((r = string_set(&m->event, from->event)) < 0 || (r = string_set(&m->name, from->name)) < 0 ||
            (r = string_set(&m->filter, from->filter)) < 0)
                return r;
        return target_message(from, &m->target);
}

int handle_list(Asking *a, Explanation *e) {
        const char *glob = a->request->list->glob && *a->request->list->glob ? a->request->list->glob : "*";
        Supervisor *s = a->supervisor;
        Perfd__V1__ListReply *reply = malloc(sizeof(*reply));
        int r;

        if (!reply)
                return -ENOMEM;
        perfd__v1__list_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_LIST;
        a->response->list = reply;
        reply->events = calloc(s->n_registrations + 1, sizeof(*reply->events));
        if (!reply->events)
                return -ENOMEM;
        r = supervisor_order(s, READER_CUT, NULL);
        for (const Registration *g = s->registrations; g && r >= 0; g = g->next) {
                Perfd__V1__EventState *m;
                EventCut t;

                if (fnmatch(glob, g->event->spec.name, 0) != 0)
                        continue;
                m = malloc(sizeof(*m));
                if (!m)
                        return -ENOMEM;
                perfd__v1__event_state__init(m);
                reply->events[reply->n_events++] = m;
                m->id = g->event->id;
                m->enabled = g->enabled;
                m->configured = g->event->spec.configured;
                m->n_fds = (uint32_t)g->opened.n;
                t = supervisor_event_totals(s, g);
                m->delivered = t.delivered;
                for (int i = 0; i < _LOSS_MAX; i++)
                        m->lost += t.lost[i];
                r = spec_message(&g->event->spec, &m->spec);
        }
        return r;
}

static int available_add(Perfd__V1__AvailableReply *reply, const char *event, const char *kind, const Plan *plan) {
        Perfd__V1__AvailableEvent *m, **more = reallocarray(reply->events, reply->n_events + 1, sizeof(*more));

        if (!more)
                return -ENOMEM;
        reply->events = more;
        m = malloc(sizeof(*m));
        if (!m)
                return -ENOMEM;
        perfd__v1__available_event__init(m);
        more[reply->n_events++] = m;
        m->event = strdup(event);
        m->kind = strdup(kind);
        if (!m->event || !m->kind)
                return -ENOMEM;
        return plan ? field_descriptors_new(plan, &m->fields, &m->n_fields) : 0;
}

static int available_add_software(const char *glob, Perfd__V1__AvailableReply *reply) {
        size_t n;
        const NumberedEvent *events = software_events(&n);

        for (size_t i = 0; i < n; i++)
                if (fnmatch(glob, events[i].name, 0) == 0 || (events[i].alias && fnmatch(glob, events[i].alias, 0) == 0)) {
                        int r = available_add(reply, events[i].name, event_name_kind(EVENT_NAME_SOFTWARE), NULL);

                        if (r < 0)
                                return r;
                }
        return 0;
}

static int available_add_tracepoints(const Supervisor *s, const char *glob, bool fields,
                                     Perfd__V1__AvailableReply *reply, Explanation *e) {
        size_t n, size = 0;
        char **names;
        int r = tracing_match(&s->tracing, "*", "*", &names, &n, e);

        if (r != 0)
                return r;
        for (size_t i = 0; i < n && r >= 0; i++) {
                _cleanup_(plan_unrefp) Plan *plan = NULL;
                char *colon = strchr(names[i], ':');

                if (fnmatch(glob, names[i], 0) != 0)
                        continue;
                if (fields) {
                        *colon = '\0';
                        r = tracing_load(&s->tracing, names[i], colon + 1, &plan, NULL);
                        *colon = ':';
                        if (r > 0)
                                r = 0; /* it went away, or its format is beyond us: listed without fields */
                }
                if (r == 0)
                        r = available_add(reply, names[i], event_name_kind(EVENT_NAME_TRACEPOINT), plan);
                if (r == 0)
                        size += perfd__v1__available_event__get_packed_size(reply->events[reply->n_events - 1]);
                if (size > FRAME_MAX_SERVER / 2) {
                        reply->truncated = true;
                        break;
                }
        }
        tracing_names_free(names);
        return r;
}

int handle_available(Asking *a, Explanation *e) {
        const Perfd__V1__AvailableRequest *q = a->request->available;
        const char *glob = q->glob && *q->glob ? q->glob : "*";
        Perfd__V1__AvailableReply *reply = malloc(sizeof(*reply));
        int r;

        if (!reply)
                return -ENOMEM;
        perfd__v1__available_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_AVAILABLE;
        a->response->available = reply;
        r = available_add_software(glob, reply);
        if (r == 0)
                r = available_add_tracepoints(a->supervisor, glob, q->fields, reply, e);
        return r;
}
