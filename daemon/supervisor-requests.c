/*
 * What a request means: one table of request kind to handler and privilege, and the one place where what a handler
 * says becomes a response.
 */
#include "daemon/supervisor-requests.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include "daemon/base/fd-limit.h"
#include "daemon/base/log.h"
#include "daemon/supervisor-ledger.h"

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
        WITH_FD_RESERVE;
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
                cpu->n_pool_waits = counter_get(&r->counters.pool_waits);
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
        r = supervisor_cut(s); /* losses as of now */
        if (r < 0)
                return r;
        uname(&uts);
        reply->pid = (uint32_t)getpid();
        reply->uptime = clock_now(CLOCK_MONOTONIC) - s->started;
        reply->n_events = (uint32_t)s->n_registrations;
        for (const Registration *g = s->registrations; g; g = g->next) {
                EventCut t = supervisor_event_totals(s, g);

                reply->n_enabled += g->enabled;
                reply->n_fallen_back += g->fallen_back;
                for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                        reply->n_lost += t.lost[i];
        }
        reply->n_subscribers = (uint32_t)s->n_subscribers;
        reply->n_connections = s->control.n_connections;
        reply->ring_size = s->config->ring_size;
        reply->rss = own_rss(s);
        reply->n_fds = (uint32_t)supervisor_count_fds(s);
        reply->n_closing = (uint32_t)atomic_load_explicit(&s->closer.n_pending, memory_order_relaxed);
        reply->n_tasks_forgotten = counter_get(&s->dispatcher.tasks_forgotten);
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
        int r = supervisor_ledger(a->supervisor, &ledger);

        if (r < 0)
                return r;
        a->response->body_case = PERFD__V1__RESPONSE__BODY_LEDGER;
        a->response->ledger = ledger;
        return 0;
}

static int handle_subscribe(Asking *a, Explanation *e) {
        int r = supervisor_subscribe(a->supervisor, a->connection, a->request, e);

        a->answered = r == 0;
        return r;
}

static int handle_stop(Asking *a, Explanation *e) {
        return refuse(e, REFUSED_INVALID, "bad-request", "stop and room are for a subscription, and this connection has none");
}

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
        { PERFD__V1__REQUEST__BODY_ROOM, "room", false, handle_stop },
        { PERFD__V1__REQUEST__BODY_LEDGER, "ledger", false, handle_ledger },
        { PERFD__V1__REQUEST__BODY_DOCTOR, "doctor", false, handle_doctor },
        { PERFD__V1__REQUEST__BODY_VALIDATE, "validate", false, handle_validate },
        { PERFD__V1__REQUEST__BODY_PLAN, "plan", false, handle_plan },
        { PERFD__V1__REQUEST__BODY_APPLY, "apply", true, handle_apply },
        { PERFD__V1__REQUEST__BODY_SET_PERIOD, "set-period", true, handle_set_period },
        { PERFD__V1__REQUEST__BODY_RELOAD, "reload", true, handle_reload },
        { PERFD__V1__REQUEST__BODY_EMIT, "emit", true, handle_emit },
};

static void log_change(const char *request, const Peer *peer, const char *outcome) {
        char what[128];

        (void)snprintf(what, sizeof(what), "%s by %s", request, peer->text);
        log_print_lines(LOG_INFO, what, outcome); /* an invalid configuration has a line for each mistake */
}

static int dispatch(Asking *a, Explanation *e) {
        int refused = request_check_texts(a->request, e);

        if (refused)
                return refused;
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
                if (requests[i].changes && r >= 0 && requests[i].handle != handle_emit) /* samples are no change */
                        log_change(requests[i].name, peer, r == 0 ? "done" : e->text);
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
