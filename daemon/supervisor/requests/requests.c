/*
 * What a request means: one table of request kind to handler and privilege, and the one place where what a handler
 * says becomes a response.
 */
#include "daemon/supervisor/requests/requests.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include "daemon/base/fd-limit.h"
#include "daemon/base/log.h"
#include "daemon/supervisor/events/room.h"
#include "daemon/supervisor/ledger/events.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/readers/budgets.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/wait.h"
#include "daemon/supervisor/streams/close.h"
#include "daemon/supervisor/streams/subscribe.h"

static int handle_hello(RequestContext *a, Explanation *e) {
        const Perfd__V1__Hello *hello = a->request->hello;
        Perfd__V1__HelloReply *reply;

        if (hello->protocol != PERFD_PROTOCOL) {
                a->response->status = PERFD__V1__STATUS__STATUS_VERSION;
                return refuse(e, REFUSED_UNSUPPORTED, "version", "this daemon supports protocol %d, the client uses %u: update "
                        "the older of the two",
                              PERFD_PROTOCOL, hello->protocol);
        }
        if (hello->limit) {
                int r = access_check_limit(hello->limit, e) ?: connection_set_limit(a->connection, hello->limit, e);

                if (r != 0)
                        return r;
        }
        connection_set_program(a->connection, hello->program ? hello->program : "");
        reply = malloc(sizeof(*reply));
        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__hello_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_HELLO;
        a->response->hello = reply;
        reply->protocol = PERFD_PROTOCOL;
        reply->may_change = connection_peer(a->connection)->may_change && !connection_limit(a->connection);
        reply->max_request = FRAME_MAX_REQUEST;
        reply->version = strdup(PERFD_VERSION);
        return reply->version ? 0 : error_origin(-ENOMEM);
}

/* Bytes, as ps(1) and VmRSS say it: whether the rings are a part of it is the kernel's affair, and another one's another. */
static uint64_t own_rss(void) {
        WITH_FD_RESERVE;
        _cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
        unsigned long size, resident;

        return f && fscanf(f, "%lu %lu", &size, &resident) == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static int status_add_cpus(const Requests *s, Perfd__V1__StatusReply *reply) {
        reply->cpus = calloc(s->readers->n_cpus + 1, sizeof(*reply->cpus));
        if (!reply->cpus)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < s->readers->n_cpus; i++) {
                const Reader *r = &s->readers->by_slot[i];
                const Answering *a = &s->readers->answering.readers[i];
                const nsec_t since = reader_is_stalled(a) ? a->stalled_since : a->catches_up_since;
                Perfd__V1__CpuStatus *cpu = malloc(sizeof(*cpu));

                if (!cpu)
                        return error_origin(-ENOMEM);
                perfd__v1__cpu_status__init(cpu);
                reply->cpus[reply->n_cpus++] = cpu;
                cpu->cpu = r->cpu;
                cpu->n_records = counter_get(&r->counters.records);
                cpu->n_wakeups = counter_get(&r->counters.wakeups);
                cpu->n_batches = counter_get(&r->counters.batches);
                cpu->n_pool_waits = counter_get(&r->counters.pool_waits);
                cpu->n_failovers = counter_get(&r->counters.failovers);
                if (since > 0)
                        cpu->stalled = clock_now(CLOCK_MONOTONIC) - since;
                cpu->cpu_time = atomic_load_explicit(&r->cpu_time, memory_order_relaxed);
                reply->n_samples += counter_get(&r->counters.samples);
        }
        return 0;
}

/* What everybody is told. */
static int status_say_access(const Requests *s, const Access *access, Perfd__V1__StatusReply *reply) {
        reply->version = strdup(PERFD_VERSION);
        reply->clock = strdup(config_clock_name(s->settings->started_with));
        if (!reply->version || !reply->clock)
                return error_origin(-ENOMEM);
        return access_message(access, &reply->access);
}

/* A text that was applied has no files, and its rules are nobody's: configuration/reload.c. */
static int status_say_config(const Settings *s, Perfd__V1__StatusReply *reply) {
        const Config *c = s->config;
        bool is_applied = c->n_paths > 0 && c->stamps.n == 0;

        reply->config_read = c->read_at;
        reply->config_changed = !config_is_current(c);
        reply->applied = strdup(is_applied ? c->paths[0] : "");
        reply->applied_without = strdup(is_applied && settings_lack_rules(s) ? "access.rules" : "");
        if (!reply->applied || !reply->applied_without)
                return error_origin(-ENOMEM);
        return configuration_add_restart_settings(s, &reply->needs_restart, &reply->n_needs_restart);
}

/*
 * Losses of all events as of now, or, where all that ask for them but root have used up what they have together, as of the last cut: it
 * is no business of the one who asks how dear the events of others are to read.
 */
static int cut_for_status(const Requests *s, uid_t uid) {
        uint64_t before;
        nsec_t until;
        int r;

        if (uid != 0 && readers_postpone(s->readers, (uid_t)BUDGET_OF_ALL, clock_now(CLOCK_MONOTONIC), &until))
                return 0;
        before = readers_charge(s->readers, uid != 0 ? BUDGET_OF_ALL : 0);
        r = readers_cut_at_once(s->readers, NULL);
        (void)readers_charge(s->readers, before);
        return r;
}

static int status_say_state(Requests *s, uid_t uid, Perfd__V1__StatusReply *reply) {
        uint64_t lost[_LOSS_EVENT_MAX];
        struct utsname uts;
        int r;

        if (!operations_is_between(s->operations)) {
                r = cut_for_status(s, uid);
                if (r == 0)
                        r = readers_look_at_dispatcher(s->readers);
                if (r < 0)
                        return r;
        }
        if (s->readers->unanswered.since > 0)
                reply->dispatcher_stalled = clock_now(CLOCK_MONOTONIC) - s->readers->unanswered.since;
        uname(&uts);
        reply->pid = (uint32_t)getpid();
        reply->uptime = clock_now(CLOCK_MONOTONIC) - s->settings->started;
        reply->n_events = (uint32_t)s->events->n_registrations;
        reply->n_pending = (uint32_t)events_count_pending(s->events);
        memcpy(lost, s->ledger->losses.removed, sizeof(lost));
        for (const Registration *g = s->events->registrations; g; g = g->next) {
                EventCut t = ledger_event_totals(s->ledger, g);

                reply->n_enabled += g->enabled;
                reply->n_fallen_back += g->fallen_back;
                for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                        lost[i] += t.lost[i];
        }
        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                reply->n_lost += lost[i];
        reply->n_subscribers = (uint32_t)s->readers->n_subscribers;
        reply->n_connections = s->events->control->n_connections;
        reply->ring_size = s->settings->config->ring_size;
        reply->rss = own_rss();
        reply->n_fds = (uint32_t)events_count_fds(s->events);
        reply->n_closing = (uint32_t)(atomic_load_explicit(&s->operations->closer->n_pending, memory_order_relaxed) +
                                      s->readers->answering.n_fds);
        reply->n_tasks_forgotten = counter_get(&s->readers->dispatcher.tasks_forgotten);
        reply->loss_exact = s->readers->attr.has_lost;
        reply->kernel = strdup(uts.release);
        reply->config = strdup(s->settings->config_path ? s->settings->config_path : "");
        reply->state_unstored = strdup(s->changes->state_unstored ? s->changes->state_unstored : "");
        if (!reply->kernel || !reply->config || !reply->state_unstored)
                return error_origin(-ENOMEM);
        if ((r = status_say_config(s->settings, reply)) < 0)
                return r;
        r = ledger_some_losses_new(lost, &reply->losses, &reply->n_losses);
        return r < 0 ? r : status_add_cpus(s, reply);
}

static int handle_status(RequestContext *a, Explanation *e) {
        Requests *s = a->requests;
        Perfd__V1__StatusReply *reply = malloc(sizeof(*reply));
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__status_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_DAEMON;
        a->response->daemon = reply;
        r = status_say_access(s, &a->access, reply);
        if (r == 0 && access_has_status(&a->access))
                r = status_say_state(s, connection_peer(a->connection)->uid, reply);
        reply->time = clock_now(s->readers->attr.clock); /* at the very end: who asks compares it with its own clock */
        return r;
}

static int handle_ledger(RequestContext *a, Explanation *e) {
        const Perfd__V1__LedgerRequest *q = a->request->ledger;
        Perfd__V1__Ledger *ledger;
        int r = ledger_answer(a->requests->ledger, q->events, q->n_events, streams_has_subscriber, a->requests->streams, &ledger, e);

        if (r != 0)
                return r;
        a->response->body_case = PERFD__V1__RESPONSE__BODY_LEDGER;
        a->response->ledger = ledger;
        return 0;
}

static int handle_subscribe(RequestContext *a, Explanation *e) {
        int r = streams_subscribe(a->requests->streams, a->connection, a->request, e);

        a->answered = r == 0;
        return r;
}

static int handle_stop(RequestContext *a, Explanation *e) {
        return refuse(e, REFUSED_INVALID, "bad-request", "stop and room are only valid on a stream: send subscribe first");
}

/* Whether a request waits for the one that runs (supervisor/operations/operations.h). */
typedef enum RequestTurn {
        AT_ONCE,   /* it needs no other thread */
        LOOK,      /* it asks other threads for what they know: an operation, but for in the middle of one, where it is at once */
        LISTING,   /* as LOOK, or as ALONE, if it takes long */
        ALONE,     /* as LOOK, but never in the middle of another one, where nobody could be served while it waits */
        EMITTING,  /* at once, but never in the middle of a step; or an operation, if it takes long */
        OPERATION, /* it changes what is traced or subscribed */
        TRIAL,     /* an operation that changes nothing, and may take as long as one that does */
} RequestTurn;

/* What access.rules have to grant on the stream socket. */
typedef enum RequestNeed {
        NEEDS_NOTHING, /* or the handler looks at what it is about */
        NEEDS_STATUS,
        NEEDS_OFFERS,  /* the same, or who may add something: what there is to add */
        NEEDS_OWN,     /* an event of one's own may be added: the handler looks which it is about */
        NEEDS_CONTROL, /* nothing grants it */
} RequestNeed;

typedef struct RequestKind {
        Perfd__V1__Request__BodyCase kind;
        const char *name;
        bool changes; /* only on the control socket, unless rules grant it, and logged */
        RequestNeed need;
        RequestTurn turn;
        Handler handle;
} RequestKind;

static const RequestKind requests[] = {
        { PERFD__V1__REQUEST__BODY_HELLO, "hello", false, NEEDS_NOTHING, AT_ONCE, handle_hello },
        { PERFD__V1__REQUEST__BODY_STATUS, "status", false, NEEDS_NOTHING, LOOK, handle_status },
        { PERFD__V1__REQUEST__BODY_LIST, "list", false, NEEDS_NOTHING, LISTING, handle_list },
        { PERFD__V1__REQUEST__BODY_AVAILABLE, "available", false, NEEDS_OFFERS, TRIAL, handle_available },
        { PERFD__V1__REQUEST__BODY_ADD, "add", true, NEEDS_OWN, OPERATION, handle_add },
        { PERFD__V1__REQUEST__BODY_REMOVE, "remove", true, NEEDS_OWN, OPERATION, handle_remove },
        { PERFD__V1__REQUEST__BODY_ENABLE, "enable", true, NEEDS_OWN, OPERATION, handle_enable },
        { PERFD__V1__REQUEST__BODY_DISABLE, "disable", true, NEEDS_OWN, OPERATION, handle_enable },
        { PERFD__V1__REQUEST__BODY_SET_FILTER, "set-filter", true, NEEDS_CONTROL, OPERATION, handle_set_filter },
        { PERFD__V1__REQUEST__BODY_SUBSCRIBE, "subscribe", false, NEEDS_NOTHING, OPERATION, handle_subscribe },
        { PERFD__V1__REQUEST__BODY_STOP, "stop", false, NEEDS_NOTHING, AT_ONCE, handle_stop },
        { PERFD__V1__REQUEST__BODY_ROOM, "room", false, NEEDS_NOTHING, AT_ONCE, handle_stop },
        { PERFD__V1__REQUEST__BODY_LEDGER, "ledger", false, NEEDS_STATUS, ALONE, handle_ledger },
        { PERFD__V1__REQUEST__BODY_DOCTOR, "doctor", false, NEEDS_STATUS, TRIAL, handle_doctor },
        { PERFD__V1__REQUEST__BODY_KERNEL_NAMES, "kernel-names", false, NEEDS_NOTHING, TRIAL, handle_kernel_names },
        { PERFD__V1__REQUEST__BODY_EVENT_FORMATS, "event-formats", false, NEEDS_NOTHING, TRIAL, handle_event_formats },
        { PERFD__V1__REQUEST__BODY_VALIDATE, "validate", false, NEEDS_STATUS, TRIAL, handle_validate },
        { PERFD__V1__REQUEST__BODY_PLAN, "plan", false, NEEDS_STATUS, TRIAL, handle_plan },
        { PERFD__V1__REQUEST__BODY_APPLY, "apply", true, NEEDS_CONTROL, OPERATION, handle_apply },
        { PERFD__V1__REQUEST__BODY_SET_PERIOD, "set-period", true, NEEDS_CONTROL, OPERATION, handle_set_period },
        { PERFD__V1__REQUEST__BODY_RELOAD, "reload", true, NEEDS_CONTROL, OPERATION, handle_reload },
        { PERFD__V1__REQUEST__BODY_EMIT, "emit", true, NEEDS_NOTHING, EMITTING, handle_emit },
};

static uint64_t hash_text(const char *text) {
        uint64_t hash = 14695981039346656037U; /* FNV-1a */

        for (const char *c = text; *c; c++)
                hash = (hash ^ (unsigned char)*c) * 1099511628211U;
        return hash;
}

/*
 * A name that perfd does not know is asked for twice: perfctl looks for its group and adds again, and what nobody knows is refused
 * in the same words. One error of a user is one line.
 */
static bool is_repeated(const RequestContext *a, const Explanation *e) {
        UnknownSaid *said = &a->requests->unknown_said;
        const UnknownSaid now = { connection_id(a->connection), hash_text(e->text) };
        const bool is_repeated = said->connection == now.connection && said->hash == now.hash;

        if (!e->reason || strcmp(e->reason, "unknown-event") != 0)
                return false;
        *said = now;
        return is_repeated;
}

/*
 * That this machine cannot count an event is said once until perfd is started again, and of several that a client asks for only
 * the first: `perfctl stat` asks for four each time, on every virtual machine.
 */
static bool is_known(const RequestContext *a, const Explanation *e) {
        UncountedSaid *said = &a->requests->uncounted_said;
        const uint64_t connection = connection_id(a->connection), hash = hash_text(e->text);
        bool is_known;

        if (!e->reason || strcmp(e->reason, "no-counter") != 0)
                return false;
        is_known = connection == said->connection;
        said->connection = connection;
        for (size_t i = 0; i < ARRAY_SIZE(said->hashes); i++)
                if (said->hashes[i] == hash)
                        return true;
        said->hashes[said->next++ % ARRAY_SIZE(said->hashes)] = hash;
        return is_known;
}

static void log_change(const RequestContext *a, const char *kind, const char *what, int r, const Explanation *e) {
        char outcome[640], events[512];

        if (r == 0) {
                request_outcome(a, outcome, sizeof(outcome));
                request_events(a, events, sizeof(events));
                log_print_with(LOG_INFO, MESSAGE_CHANGED, LOG_FIELDS({ "REQUEST", kind }, { "EVENT", *events ? events : NULL }),
                               "%s: %s", what, outcome);
        } else if (!is_known(a, e) && !is_repeated(a, e)) /* an invalid configuration has a line for each error */
                log_print_lines(LOG_ERR, MESSAGE_CHANGE_REFUSED, LOG_FIELDS({ "REQUEST", kind }, { "REASON", e->reason }), what,
                                e->text);
}

/* What else than the other socket would allow it. */
static const char *advise_on_rules(const RequestKind *kind) {
        if (kind->need == NEEDS_OWN)
                return ", or have perfd's administrator write a rule that grants own-processes, for events on your own processes, or "
                       "stat, for counts: access.rules in perfd.yaml(5)";
        return kind->turn == EMITTING ? ", or have perfd's administrator write a rule whose emit grants the event: access.rules in perfd.yaml(5)" : "";
}

static int check_need(const Access *access, const RequestKind *kind, Explanation *e) {
        const bool granted[] = {
                [NEEDS_NOTHING] = true,
                [NEEDS_STATUS] = access_has_status(access),
                [NEEDS_OFFERS] = access_has_status(access) || access_may_add(access),
                [NEEDS_OWN] = access_may_add(access),
                [NEEDS_CONTROL] = false,
        };

        if (granted[kind->need])
                return 0;
        return access->limit && kind->changes ? access_refuse_change(access, kind->name, e) : access_refuse(access, kind->name, e);
}

/* NULL, and refused: there is none, or not for this peer. */
static const RequestKind *find_kind(RequestContext *a, int *ret_refusal, Explanation *e) {
        const RequestKind *kind = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(requests) && !kind; i++)
                if (requests[i].kind == a->request->body_case)
                        kind = &requests[i];
        if (!kind)
                *ret_refusal = refuse(e, REFUSED_INVALID, "bad-request", "the request has no body that this daemon knows: it may "
                        "be for a newer version");
        else if ((*ret_refusal = access_of(a->requests->settings->access, a->connection, &a->access, e)) != 0)
                kind = NULL;
        else if (a->access.is_limited)
                kind = (*ret_refusal = check_need(&a->access, kind, e)) == 0 ? kind : NULL;
        else if (kind->changes && !connection_peer(a->connection)->may_change) {
                *ret_refusal = refuse(e, REFUSED_DENIED, "read-only",
                                      "%s changes what perfd does, and this is the stream socket: use the control "
                                      "socket%s", kind->name, advise_on_rules(kind));
                kind = NULL;
        }
        return kind;
}

static OperationKind operation_kind(RequestTurn turn) {
        switch (turn) {
        case LOOK:
                return OPERATION_GLANCE;
        case OPERATION:
                return OPERATION_CHANGE;
        case TRIAL:
                return OPERATION_TRIAL;
        case AT_ONCE:
        case LISTING:
        case ALONE:
        case EMITTING:
                break;
        }
        return OPERATION_LOOK;
}

/* Of this request. */
static RequestTurn find_turn(const RequestContext *a, const RequestKind *kind) {
        if (kind->turn != LISTING)
                return kind->turn;
        return list_takes_long(a->requests, a->request->list) ? ALONE : LOOK;
}

/* It waits for a turn of its own. */
static bool has_to_wait(const RequestContext *a, RequestTurn turn) {
        const Requests *s = a->requests;

        switch (turn) {
        case AT_ONCE:
                return false;
        case LOOK:
                return !operations_may_look(s->operations, a->connection);
        case EMITTING:
                return s->operations->is_in_step || emit_takes_long(s, a->request->emit);
        case LISTING:
        case ALONE:
        case OPERATION:
        case TRIAL:
                break;
        }
        return true;
}

/* At once, or when it is its turn; until then nothing is answered. */
static int dispatch(RequestContext *a, Explanation *e) {
        Requests *s = a->requests;
        const RequestKind *kind;
        RequestTurn turn;
        char what[128];
        int r = request_check_texts(a->request, e);

        kind = r == 0 ? find_kind(a, &r, e) : NULL;
        if (!kind)
                return request_absorb_no_memory(a, "a request", r, e);
        turn = find_turn(a, kind);
        if (has_to_wait(a, turn) && !operations_has_turn(s->operations, a->connection)) {
                r = operations_add(s->operations, a->connection, operation_kind(turn), e);
                a->answered = r == 0;
                return r;
        }
        (void)snprintf(what, sizeof(what), "%s by %s", kind->name, connection_peer(a->connection)->text);
        r = turn == TRIAL || turn == ALONE || turn == OPERATION ? request_check_memory(a, e) : 0;
        if (r == 0)
                r = error_trace_of(kind->handle(a, e), "request %s", kind->name);
        if (turn == TRIAL)
                r = request_absorb_no_memory(a, what, r, e);
        if (operations_has_turn(s->operations, a->connection)) { /* what is answered in the middle of an operation has none of its own */
                if (r > 0) /* nothing was left out: the refusal says what was wrong, and once */
                        notes_forget(&s->operations->notes);
                notes_say(&s->operations->notes, what);
        }
        if (r == REFUSED_CANCELLED && operations_is_overdue(s->operations))
                r = refuse(e, REFUSED_EXHAUSTED, "too-long", "it took 10 s, and requests of other users wait: request less at "
                        "once");
        else if (r == REFUSED_CANCELLED) /* there is nobody else to read it */
                (void)refuse(e, r, "shutting-down", "perfd is stopping");
        if (kind->changes && r >= 0 && kind->handle != handle_emit) /* samples are no change */
                log_change(a, kind->name, what, r, e);
        return r;
}

static bool is_stopping(const Requests *s) {
        return s->operations->is_stopping || s->operations->is_due[CHANGE_STOP];
}

int requests_on_request(void *userdata, Connection *c, const Perfd__V1__Request *request) {
        Perfd__V1__Response *response = malloc(sizeof(*response));
        RequestContext a = { .requests = userdata, .connection = c, .request = request, .response = response };
        Explanation e = EXPLANATION_NULL;
        LogCause before;
        int r;

        if (!response) {
                connection_give_up(c, "no memory for its request");
                return 0;
        }
        perfd__v1__response__init(response);
        response->id = request->id;
        before = log_charge(connection_cause(c));
        r = is_stopping(a.requests) ? refuse(&e, REFUSED_EXHAUSTED, "shutting-down", "perfd is stopping") : dispatch(&a, &e);
        (void)log_charge(before);
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
        if (r >= 0) /* a long one takes as long to be packed as to be freed */
                r = operations_serve_sometimes(a.requests->operations);
        perfd__v1__response__free_unpacked(response, NULL);
        return r < 0 ? r : 0;
}
