/*
 * What a request means: one table of request kind to handler and privilege, and the one place where what a handler
 * says becomes a response. Handlers return 0 with the response filled, a Refusal with an explanation, or a negative,
 * which is fatal.
 */
#include "daemon/supervisor.h"

#include <fnmatch.h>
#include <string.h>
#include <sys/utsname.h>
#include "daemon/base/log.h"

#include "daemon/encode/descriptor.h"
#include "daemon/kernel/tasks.h"

typedef struct Asking {
        Supervisor *supervisor;
        Connection *connection;
        const Perfd__V1__Request *request;
        Perfd__V1__Response *response; /* what it points to is freed as by free_unpacked() */
        bool answered;                 /* the handler has done it itself */
} Asking;

typedef int (*Handler)(Asking *a, Explanation *e);

/* ---- small talk -------------------------------------------------------------------------------------------------- */

static int handle_hello(Asking *a, Explanation *e) {
        const Perfd__V1__Hello *hello = a->request->hello;
        Perfd__V1__HelloReply *reply;

        if (hello->protocol != PERFD_PROTOCOL) {
                a->response->status = PERFD__V1__STATUS__STATUS_VERSION;
                return refuse(e, REFUSED_UNSUPPORTED, "version", "this daemon speaks protocol %d, you speak %u",
                              PERFD_PROTOCOL, hello->protocol);
        }
        connection_set_program(a->connection, hello->program ? hello->program : "");
        reply = malloc(sizeof(*reply));
        if (!reply)
                return -ENOMEM;
        perfd__v1__hello_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_HELLO;
        a->response->hello = reply;
        reply->protocol = PERFD_PROTOCOL;
        reply->may_change = connection_peer(a->connection)->may_change;
        reply->max_request = FRAME_MAX_REQUEST;
        reply->version = strdup(PERFD_VERSION);
        return reply->version ? 0 : -ENOMEM;
}

/* Bytes of resident memory without the rings. */
static uint64_t own_rss(const Supervisor *s) {
        _cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
        uint64_t rings = s->n_cpus * (s->config->ring_size + (uint64_t)sysconf(_SC_PAGESIZE)), rss = 0;
        unsigned long size, resident;

        if (f && fscanf(f, "%lu %lu", &size, &resident) == 2)
                rss = resident * (uint64_t)sysconf(_SC_PAGESIZE);
        return rss > rings ? rss - rings : rss;
}

static int status_add_cpus(const Supervisor *s, Perfd__V1__StatusReply *reply) {
        reply->cpus = calloc(s->n_cpus + 1, sizeof(*reply->cpus));
        if (!reply->cpus)
                return -ENOMEM;
        for (size_t i = 0; i < s->n_cpus; i++) {
                const Reader *r = &s->readers[i];
                Perfd__V1__CpuStatus *cpu = malloc(sizeof(*cpu));

                if (!cpu)
                        return -ENOMEM;
                perfd__v1__cpu_status__init(cpu);
                reply->cpus[reply->n_cpus++] = cpu;
                cpu->cpu = r->cpu;
                cpu->n_records = counter_get(&r->counters.records);
                cpu->n_wakeups = counter_get(&r->counters.wakeups);
                cpu->n_batches = counter_get(&r->counters.batches);
                cpu->cpu_time = atomic_load_explicit(&r->cpu_time, memory_order_relaxed);
                reply->n_samples += counter_get(&r->counters.samples);
        }
        return 0;
}

static int handle_status(Asking *a, Explanation *e) {
        Supervisor *s = a->supervisor;
        Perfd__V1__StatusReply *reply = malloc(sizeof(*reply));
        struct utsname uts;
        int r;

        if (!reply)
                return -ENOMEM;
        perfd__v1__status_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_DAEMON;
        a->response->daemon = reply;
        r = supervisor_order(s, READER_CUT, NULL); /* losses as of now */
        if (r < 0)
                return r;
        uname(&uts);
        reply->pid = (uint32_t)getpid();
        reply->uptime = clock_now(CLOCK_MONOTONIC) - s->started;
        reply->n_events = (uint32_t)s->n_registrations;
        for (const Registration *g = s->registrations; g; g = g->next) {
                EventCut t = supervisor_event_totals(g);

                reply->n_enabled += g->enabled;
                for (int i = 0; i < _LOSS_MAX; i++)
                        reply->n_lost += t.lost[i];
        }
        reply->n_subscribers = (uint32_t)s->n_subscribers;
        reply->n_connections = s->control.n_connections;
        reply->ring_size = s->config->ring_size;
        reply->rss = own_rss(s);
        reply->n_fds = (uint32_t)supervisor_count_fds(s);
        reply->loss_exact = s->attr.has_lost;
        reply->version = strdup(PERFD_VERSION);
        reply->clock = strdup(config_clock_name(s->config));
        reply->kernel = strdup(uts.release);
        reply->config = strdup(s->config_path ? s->config_path : "");
        if (!reply->version || !reply->clock || !reply->kernel || !reply->config)
                return -ENOMEM;
        return status_add_cpus(s, reply);
}

static int handle_ledger(Asking *a, Explanation *e) {
        Perfd__V1__Ledger *ledger;
        int r = supervisor_ledger(a->supervisor, true, &ledger);

        if (r < 0)
                return r;
        a->response->body_case = PERFD__V1__RESPONSE__BODY_LEDGER;
        a->response->ledger = ledger;
        return 0;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static int string_set(char **to, const char *from) {
        if (!from)
                return 0;
        *to = strdup(from);
        return *to ? 0 : -ENOMEM;
}

static int numbers_set(uint32_t **to, size_t *ret_n, const uint32_t *from, size_t n) {
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

static int handle_list(Asking *a, Explanation *e) {
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
                t = supervisor_event_totals(g);
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
        const SoftwareEvent *events = software_events(&n);

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

static int handle_available(Asking *a, Explanation *e) {
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

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static int refs_message(const EventRefs *from, Perfd__V1__EventRef ***ret, size_t *ret_n) {
        Perfd__V1__EventRef **refs = calloc(from->n + 1, sizeof(*refs));

        if (!refs)
                return -ENOMEM;
        *ret = refs;
        for (size_t i = 0; i < from->n; i++) {
                refs[i] = malloc(sizeof(**refs));
                if (!refs[i])
                        return -ENOMEM;
                perfd__v1__event_ref__init(refs[i]);
                (*ret_n)++;
                refs[i]->id = from->refs[i].id;
                if (!(refs[i]->name = strdup(from->refs[i].name)))
                        return -ENOMEM;
        }
        return 0;
}

static int target_from_config(const Supervisor *s, const char *name, EventSpec *to, Explanation *e) {
        for (size_t i = 0; i < s->config->n_targets; i++)
                if (strcmp(s->config->targets[i].name, name) == 0)
                        return spec_set_target(to, &s->config->targets[i]);
        return refuse(e, REFUSED_NOT_FOUND, "bad-target", "the configuration has no target called %s", name);
}

static int target_from_message(const Supervisor *s, const Perfd__V1__Target *m, EventSpec *to, Explanation *e) {
        int r;

        if (!m)
                return 0;
        if (m->name && *m->name) {
                if (m->n_pids || m->n_tids || (m->cpus && *m->cpus))
                        return refuse(e, REFUSED_INVALID, "bad-target", "a target's name (%s) goes without pids, tids and "
                                      "cpus: its configuration has them", m->name);
                return target_from_config(s, m->name, to, e);
        }
        for (size_t i = 0; i < m->n_pids + m->n_tids; i++) {
                uint32_t id = i < m->n_pids ? m->pids[i] : m->tids[i - m->n_pids];

                if (id == 0 || id > INT32_MAX)
                        return refuse(e, REFUSED_INVALID, "bad-target", "%u is no pid or tid", id);
        }
        to->no_inherit = m->no_inherit;
        if ((r = string_set(&to->cpus, m->cpus && *m->cpus ? m->cpus : NULL)) < 0 ||
            (r = numbers_set(&to->pids, &to->n_pids, m->pids, m->n_pids)) < 0)
                return r;
        return numbers_set(&to->tids, &to->n_tids, m->tids, m->n_tids);
}

static int spec_from_message(const Supervisor *s, const Perfd__V1__EventSpec *m, EventSpec *to, Explanation *e) {
        int r;

        if (m->callchain > CALLCHAIN_KERNEL + CALLCHAIN_USER)
                return refuse(e, REFUSED_INVALID, "bad-request", "callchain %d is not known", (int)m->callchain);
        to->period = m->period;
        to->frequency = m->frequency;
        to->callchain = m->callchain;
        to->disabled = m->disabled;
        to->include_self = m->include_self;
        if ((r = string_set(&to->event, m->event)) < 0 ||
            (r = string_set(&to->name, m->name && *m->name ? m->name : NULL)) < 0 ||
            (r = string_set(&to->filter, m->filter && *m->filter ? m->filter : NULL)) < 0)
                return r;
        return target_from_message(s, m->target, to, e);
}

static int handle_add(Asking *a, Explanation *e) {
        const Perfd__V1__AddRequest *q = a->request->add;
        EventSpec *specs = calloc(q->n_events + 1, sizeof(*specs));
        EventRefs refs = { .n = 0 };
        int r = 0;

        if (!specs)
                return -ENOMEM;
        if (q->n_events == 0)
                r = refuse(e, REFUSED_INVALID, "bad-request", "no event is named");
        for (size_t i = 0; i < q->n_events && r == 0; i++)
                r = spec_from_message(a->supervisor, q->events[i], &specs[i], e);
        if (r == 0)
                r = supervisor_add(a->supervisor, specs, q->n_events, &refs, e);
        if (r == 0) {
                Perfd__V1__AddReply *reply = malloc(sizeof(*reply));

                if (!reply)
                        r = -ENOMEM;
                else {
                        perfd__v1__add_reply__init(reply);
                        a->response->body_case = PERFD__V1__RESPONSE__BODY_ADDED;
                        a->response->added = reply;
                        r = refs_message(&refs, &reply->events, &reply->n_events);
                }
        }
        for (size_t i = 0; i < q->n_events; i++)
                event_spec_deinit(&specs[i]);
        free(specs);
        event_refs_deinit(&refs);
        return r;
}

static int answer_selected(Asking *a, EventRefs *refs) {
        Perfd__V1__SelectReply *reply = malloc(sizeof(*reply));
        int r;

        if (!reply)
                return -ENOMEM;
        perfd__v1__select_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_SELECTED;
        a->response->selected = reply;
        r = refs_message(refs, &reply->events, &reply->n_events);
        event_refs_deinit(refs);
        return r;
}

static int handle_remove(Asking *a, Explanation *e) {
        const Perfd__V1__SelectRequest *q = a->request->remove;
        EventRefs refs = { .n = 0 };
        int r = supervisor_remove(a->supervisor, q->names, q->n_names, &refs, e);

        return r == 0 ? answer_selected(a, &refs) : r;
}

static int handle_enable(Asking *a, Explanation *e) {
        bool on = a->request->body_case == PERFD__V1__REQUEST__BODY_ENABLE;
        const Perfd__V1__SelectRequest *q = on ? a->request->enable : a->request->disable;
        EventRefs refs = { .n = 0 };
        int r = supervisor_enable(a->supervisor, q->names, q->n_names, on, &refs, e);

        return r == 0 ? answer_selected(a, &refs) : r;
}

static int handle_set_filter(Asking *a, Explanation *e) {
        const Perfd__V1__SetFilterRequest *q = a->request->set_filter;

        return supervisor_set_filter(a->supervisor, q->name ? q->name : "", q->filter && *q->filter ? q->filter : NULL, e);
}

static int handle_validate(Asking *a, Explanation *e) {
        ConfigMistakes mistakes = CONFIG_MISTAKES_NULL;
        Perfd__V1__ValidateReply *reply = malloc(sizeof(*reply));
        const char *yaml = a->request->validate->yaml ? a->request->validate->yaml : "";
        int r;

        if (!reply)
                return -ENOMEM;
        perfd__v1__validate_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_VALIDATED;
        a->response->validated = reply;
        r = supervisor_validate(a->supervisor, yaml, &mistakes);
        reply->mistakes = calloc(mistakes.n_items + 1, sizeof(*reply->mistakes));
        if (!reply->mistakes)
                r = -ENOMEM;
        for (size_t i = 0; i < mistakes.n_items && r >= 0; i++) {
                const ConfigMistake *from = &mistakes.items[i];
                Perfd__V1__ConfigMistake *m;

                if (from->warning)
                        continue;
                m = malloc(sizeof(*m));
                if (!m) {
                        r = -ENOMEM;
                        break;
                }
                perfd__v1__config_mistake__init(m);
                reply->mistakes[reply->n_mistakes++] = m;
                m->line = from->line;
                m->column = from->column;
                m->path = strdup(from->path ? from->path : "");
                m->text = strdup(from->text);
                if (!m->path || !m->text)
                        r = -ENOMEM;
        }
        config_mistakes_deinit(&mistakes);
        return r < 0 ? r : 0;
}

static int handle_reload(Asking *a, Explanation *e) {
        Perfd__V1__ReloadReply *reply = malloc(sizeof(*reply));

        if (!reply)
                return -ENOMEM;
        perfd__v1__reload_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_RELOADED;
        a->response->reloaded = reply;
        return supervisor_reload(a->supervisor, reply, e);
}

static int handle_subscribe(Asking *a, Explanation *e) {
        int r = supervisor_subscribe(a->supervisor, a->connection, a->request, e);

        a->answered = r == 0;
        return r;
}

static int handle_stop(Asking *a, Explanation *e) {
        return refuse(e, REFUSED_INVALID, "bad-request", "stop ends a subscription, and this connection has none");
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const struct {
        Perfd__V1__Request__BodyCase kind;
        const char *name;
        bool changes; /* only on the control socket, and logged */
        Handler handle;
} requests[] = {
        { PERFD__V1__REQUEST__BODY_HELLO, "hello", false, handle_hello },
        { PERFD__V1__REQUEST__BODY_STATUS, "status", false, handle_status },
        { PERFD__V1__REQUEST__BODY_LIST, "list", false, handle_list },
        { PERFD__V1__REQUEST__BODY_AVAILABLE, "available", false, handle_available },
        { PERFD__V1__REQUEST__BODY_ADD, "add", true, handle_add },
        { PERFD__V1__REQUEST__BODY_REMOVE, "remove", true, handle_remove },
        { PERFD__V1__REQUEST__BODY_ENABLE, "enable", true, handle_enable },
        { PERFD__V1__REQUEST__BODY_DISABLE, "disable", true, handle_enable },
        { PERFD__V1__REQUEST__BODY_SET_FILTER, "set-filter", true, handle_set_filter },
        { PERFD__V1__REQUEST__BODY_SUBSCRIBE, "subscribe", false, handle_subscribe },
        { PERFD__V1__REQUEST__BODY_STOP, "stop", false, handle_stop },
        { PERFD__V1__REQUEST__BODY_LEDGER, "ledger", false, handle_ledger },
        { PERFD__V1__REQUEST__BODY_VALIDATE, "validate", false, handle_validate },
        { PERFD__V1__REQUEST__BODY_RELOAD, "reload", true, handle_reload },
};

static int dispatch(Asking *a, Explanation *e) {
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                const Peer *peer = connection_peer(a->connection);
                int r;

                if (requests[i].kind != a->request->body_case)
                        continue;
                if (requests[i].changes && !peer->may_change)
                        return refuse(e, REFUSED_DENIED, "read-only",
                                      "%s changes what perfd does: that is for the control socket, this is the stream "
                                      "socket", requests[i].name);
                r = requests[i].handle(a, e);
                if (requests[i].changes && r >= 0)
                        log_print(LOG_INFO, "%s by %s: %s", requests[i].name, peer->text, r == 0 ? "done" : e->text);
                return r;
        }
        return refuse(e, REFUSED_INVALID, "bad-request", "the request has no body that this daemon knows");
}

int supervisor_on_request(void *userdata, Connection *c, const Perfd__V1__Request *request) {
        Perfd__V1__Response *response = malloc(sizeof(*response));
        Asking a = { .supervisor = userdata, .connection = c, .request = request, .response = response };
        Explanation e = EXPLANATION_NULL;
        int r;

        if (!response)
                return -ENOMEM;
        perfd__v1__response__init(response);
        response->id = request->id;
        r = a.supervisor->stopping ? refuse(&e, REFUSED_EXHAUSTED, "shutting-down", "perfd is stopping") : dispatch(&a, &e);
        if (r >= 0 && !a.answered) {
                Perfd__V1__Response answer = *response;

                if (r > 0) {
                        answer.body_case = PERFD__V1__RESPONSE__BODY__NOT_SET;
                        if (response->status == PERFD__V1__STATUS__STATUS_OK)
                                answer.status = status_of_refusal(r);
                        answer.message = e.text;
                        answer.reason = (char *)(e.reason ? e.reason : "");
                        answer.position = e.position;
                }
                r = connection_respond(c, &answer);
        }
        perfd__v1__response__free_unpacked(response, NULL);
        return r < 0 ? r : 0;
}
