/*
 * The queue of main. sd_event_run(3) must not be called from a handler of the same loop: so operations run between two
 * iterations, and a checkpoint in one of them may run the loop. What the loop has that could change something then only
 * leaves a mark, and its change is made when the operation is over.
 *
 * Fairness: clients of the control socket are before those of the stream socket, who may only look. Among equals the uids
 * take turns: the n-th request that a uid has waiting is in the n-th round from now.
 *
 * A trial, which changes nothing and may take long, is suspended at its checkpoints: what waits and is no trial itself runs
 * there, on the trial's stack, and the trial goes on behind it with all that it has found. It goes on in any case when others
 * have had as long as it had before, so that nobody can hold it. Between two of its checkpoints all that is registered may have
 * changed: a trial keeps nothing of that over a checkpoint, or says so (operations_set_pinned()).
 */
#include "daemon/supervisor/supervisor.h"

#include "daemon/base/checkpoint.h"
#include "daemon/base/log.h"

#define TRIALS_PER_UID 16  /* that wait; each may take seconds */
#define TURN_MAX 64        /* sources of the loop that are served at one checkpoint */
#define TRIAL_NSEC (10 * NSEC_PER_SEC) /* of one that others wait for, who want to try something too */
#define TURN_NSEC (10 * NSEC_PER_MSEC)

static const struct {
        int (*make)(Supervisor *s);
} changes[_CHANGE_KIND_MAX] = {
        [CHANGE_STOP] = { supervisor_say_goodbye },
        [CHANGE_READERS] = { supervisor_on_answers },
        [CHANGE_HOTPLUG] = { supervisor_on_hotplug },
        [CHANGE_NOTICES] = { supervisor_on_notices },
        [CHANGE_CGROUPS] = { supervisor_on_cgroups },
        [CHANGE_ORPHANS] = { supervisor_remove_orphans },
        [CHANGE_RELOAD] = { supervisor_reload_on_signal },
        [CHANGE_PENDING] = { supervisor_retry_pending },
        [CHANGE_LOSSES] = { supervisor_on_losses },
};

/* ---- who waits --------------------------------------------------------------------------------------------------- */

static void find_round(const Operations *o, Operation *added) {
        added->round = o->rounds[added->is_control] + (o->running && o->running->uid == added->uid);
        for (const Operation *p = o->waiting; p; p = p->next)
                if (p->uid == added->uid && p->is_control == added->is_control && p->round >= added->round)
                        added->round = p->round + 1;
}

static void append(Operations *o, Operation *added) {
        Operation **end = &o->waiting;

        while (*end)
                end = &(*end)->next;
        added->next = NULL;
        *end = added;
}

/* Other requests are bounded by connections.per-uid: a connection has one at a time. */
static int check_trials(const Operations *o, uid_t uid, Explanation *e) {
        size_t n = 0;

        for (const Operation *p = o->waiting; p; p = p->next)
                n += p->uid == uid && p->is_trial;
        if (uid == 0 || n < TRIALS_PER_UID)
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "too-many-requests",
                      "%zu requests of uid %u that look at the whole host wait already: ask again when they are answered", n,
                      (unsigned)uid);
}

int operations_add(Supervisor *s, Connection *c, OperationKind kind, Explanation *e) {
        const Peer *peer = connection_peer(c);
        Operation *added;
        int r;

        thread_assert(THREAD_MAIN);
        r = kind == OPERATION_TRIAL ? check_trials(&s->operations, peer->uid, e) : 0;
        if (r != 0)
                return r;
        added = calloc(1, sizeof(*added));
        if (!added)
                return error_origin(-ENOMEM);
        *added = (Operation){ .connection = c, .connection_id = connection_id(c), .uid = peer->uid,
                              .is_control = peer->may_change, .is_look = kind <= OPERATION_LOOK, .is_glance = kind == OPERATION_GLANCE,
                              .is_trial = kind == OPERATION_TRIAL };
        find_round(&s->operations, added);
        append(&s->operations, added);
        connection_defer(c);
        return 0;
}

void operations_drop(Supervisor *s, uint64_t connection_id) {
        for (Operation **p = &s->operations.waiting; *p; p = &(*p)->next)
                if ((*p)->connection_id == connection_id) {
                        Operation *gone = *p;

                        *p = gone->next;
                        free(gone);
                        return;
                }
}

/* `a` before `b`, which has come before it. */
static bool is_before(const Operations *o, const Operation *a, const Operation *b) {
        if (a->is_look != b->is_look)
                return a->is_look != o->has_looked;
        return a->is_control != b->is_control ? a->is_control : a->round < b->round;
}

/* NULL: none waits, or, while a trial is suspended, only trials do. */
static Operation *take_next(Operations *o) {
        Operation **best = NULL, *taken;

        for (Operation **p = &o->waiting; *p; p = &(*p)->next)
                if (!(o->running && (*p)->is_trial) && (!best || is_before(o, *p, *best)))
                        best = p;
        if (!best)
                return NULL;
        taken = *best;
        *best = taken->next;
        o->has_looked = taken->is_look;
        return taken;
}

static int find_due(const Operations *o) {
        for (int kind = 0; kind < _CHANGE_KIND_MAX; kind++)
                if (o->is_due[kind])
                        return kind;
        return -1;
}

bool operations_are_waiting(const Supervisor *s) {
        return s->operations.waiting || find_due(&s->operations) >= 0;
}

bool operations_has_turn(const Supervisor *s, const Connection *c) {
        return s->operations.running && s->operations.running->connection == c;
}

/* ---- changes of no client ---------------------------------------------------------------------------------------- */

void operations_set_due(Supervisor *s, ChangeKind kind) {
        s->operations.is_due[kind] = true;
}

typedef struct Listening {
        Supervisor *supervisor;
        ChangeKind kind;
} Listening;

/* The source is off from here on, until the change is made: sd_event_source_set_enabled(3), SD_EVENT_ONESHOT. */
static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        const Listening *l = userdata;

        operations_set_due(l->supervisor, l->kind);
        return 0;
}

int operations_listen(Supervisor *s, ChangeKind kind, int fd) {
        Listening *l = malloc(sizeof(*l));
        sd_event_source **source = &s->operations.sources[kind];
        int r;

        if (!l)
                return error_origin(-ENOMEM);
        *l = (Listening){ .supervisor = s, .kind = kind };
        r = error_origin(sd_event_add_io(s->event, source, fd, EPOLLIN, on_readable, l));
        if (r < 0) {
                free(l);
                return r;
        }
        (void)sd_event_source_set_destroy_callback(*source, free); /* does not fail of one that was just made */
        r = error_origin(sd_event_source_set_enabled(*source, SD_EVENT_ONESHOT));
        return r < 0 ? r : 0;
}

void operations_unlisten(Supervisor *s, ChangeKind kind) {
        s->operations.sources[kind] = sd_event_source_disable_unref(s->operations.sources[kind]);
        s->operations.is_due[kind] = false;
}

static int make_change(Supervisor *s, ChangeKind kind) {
        int r;

        s->operations.is_due[kind] = false;
        r = changes[kind].make(s);
        notes_say(s, "what has changed");
        if (r >= 0 && s->operations.sources[kind])
                r = error_origin(sd_event_source_set_enabled(s->operations.sources[kind], SD_EVENT_ONESHOT));
        return r < 0 ? r : 0;
}

/* ---- in the middle of an operation ------------------------------------------------------------------------------- */

bool operations_is_trial(const Supervisor *s) {
        return s->operations.running && s->operations.running->is_trial;
}

int operations_client(const Supervisor *s, Credentials *own, const Credentials **ret, Explanation *e) {
        const Operation *o = s->operations.running;
        int r;

        *ret = NULL;
        if (!o || o->is_control || o->uid == 0)
                return 0;
        r = connection_credentials(o->connection, own, e);
        if (r == 0)
                *ret = own;
        return r;
}

void operations_set_final(Supervisor *s) {
        s->operations.is_final = true;
}

void operations_set_pinned(Supervisor *s, bool on) {
        s->operations.is_pinned = on;
}

bool operations_is_overdue(const Supervisor *s) {
        return s->operations.is_overdue;
}

static bool has_trial_of_others(const Operations *o) {
        for (const Operation *p = o->waiting; p; p = p->next)
                if (p->is_trial && p->uid != o->running->uid)
                        return true;
        return false;
}

/* Root's own are not bounded. */
static bool is_overdue(const Operations *o) {
        return o->running && o->running->is_trial && o->running->uid != 0 && o->worked > TRIAL_NSEC && has_trial_of_others(o);
}

static int check_cancelled(Supervisor *s, Explanation *e) {
        Operations *o = &s->operations;

        if (o->is_due[CHANGE_STOP] || sd_event_get_state(s->event) == SD_EVENT_FINISHED)
                return refuse(e, REFUSED_CANCELLED, "shutting-down", "perfd is stopping");
        if (o->running && connection_is_gone(o->running->connection))
                return refuse(e, REFUSED_CANCELLED, "cancelled", "the connection is gone");
        o->is_overdue = o->is_overdue || is_overdue(o);
        return o->is_overdue ? refuse(e, REFUSED_CANCELLED, "cancelled", "others wait") : 0;
}

/* Those that came before what runs had its turn. */
static int answer_glances(Operations *o) {
        int r = 0;

        for (Operation **p = &o->waiting; *p && r >= 0;) {
                Operation *glance = *p;
                Connection *c = glance->connection;

                if (!glance->is_glance) {
                        p = &glance->next;
                        continue;
                }
                *p = glance->next;
                free(glance);
                r = connection_resume(c);
                if (r == 0)
                        r = connection_go_on(c); /* what its client asked next is answered, or waits at the end of the list */
        }
        return r;
}

/* What is ready in the loop, for a while; usec: how long to wait until something is. */
static int serve(Supervisor *s, uint64_t usec) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + TURN_NSEC;
        LogCause charged = log_charge(LOG_CAUSE_NOBODY);
        int r = 1;

        s->operations.is_serving = true; /* what is answered in between has no checkpoints: sd_event_run(3) does not nest */
        for (int i = 0; i < TURN_MAX && r > 0 && sd_event_get_state(s->event) != SD_EVENT_FINISHED; i++) {
                r = error_origin(sd_event_run(s->event, usec));
                usec = 0;
                if (clock_now(CLOCK_MONOTONIC) >= end)
                        break;
        }
        if (r >= 0)
                r = answer_glances(&s->operations);
        s->operations.is_serving = false;
        (void)log_charge(charged);
        return r < 0 ? r : 0;
}

/* ---- one by one, or one in the middle of a trial ------------------------------------------------------------------ */

static int run_request(Supervisor *s, Operation *o, Connection **ret_served) {
        uint64_t *round = &s->operations.rounds[o->is_control];
        int r;

        *ret_served = o->connection; /* it is there as long as its request runs */
        s->operations.running = o;
        *round = o->round > *round ? o->round : *round; /* one that waits behind a trial may be of an earlier one */
        r = connection_resume(o->connection);
        s->operations.running = NULL;
        free(o);
        return r;
}

/* kind: of a change, or negative. What is waiting has one that may run. */
static int run_one(Supervisor *s, int kind, Connection **ret_served) {
        Operations *o = &s->operations;
        Operation *next = kind < 0 ? take_next(o) : NULL;

        o->running = NULL;
        o->is_final = kind >= 0 && kind < CHANGE_RELOAD; /* the host has changed already */
        o->n_planned = 0;
        o->worked = 0;
        o->is_overdue = false;
        o->resumed = clock_now(CLOCK_MONOTONIC);
        return kind >= 0 ? make_change(s, (ChangeKind)kind) : run_request(s, next, ret_served);
}

/* Behind its end, so that what its client has asked next waits for a turn of its own. */
static int go_on(Connection *c, int r) {
        return r == 0 && c ? connection_go_on(c) : r;
}

/* In the middle of a trial, which is as it was afterwards. */
static int run_between(Supervisor *s, int kind) {
        Operations *o = &s->operations;
        Operation *trial = o->running;
        const Notes notes = s->notes;
        size_t n_planned = o->n_planned;
        nsec_t worked = o->worked;
        LogCause charged = log_charge(LOG_CAUSE_NOBODY);
        Connection *served = NULL;
        int r;

        notes_forget(s);
        r = run_one(s, kind, &served);
        o->running = trial;
        o->is_final = false;
        o->n_planned = n_planned;
        o->worked = worked;
        o->is_overdue = false;
        s->notes = notes;
        o->is_serving = true; /* as answer_glances() */
        r = go_on(served, r);
        o->is_serving = false;
        (void)log_charge(charged);
        return r;
}

static bool has_other_than_trial(const Operations *o) {
        const Operation *p = o->waiting;

        while (p && p->is_trial)
                p = p->next;
        return p || find_due(o) >= 0;
}

/* A trial's client is asked for behind each, and it goes on when they have had as long as it had: whoever else waits then is next. */
static int give_way(Supervisor *s, Explanation *e) {
        Operations *o = &s->operations;
        nsec_t began = clock_now(CLOCK_MONOTONIC), had = began - o->resumed;
        int r;

        o->worked += had;
        o->resumed = began;
        r = check_cancelled(s, e);
        if (r != 0 || !o->running || !o->running->is_trial || o->is_pinned)
                return r;
        while (r == 0 && has_other_than_trial(o)) {
                r = run_between(s, find_due(o));
                if (r == 0)
                        r = check_cancelled(s, e);
                if (clock_now(CLOCK_MONOTONIC) - began >= had)
                        break;
        }
        o->resumed = clock_now(CLOCK_MONOTONIC);
        return r;
}

static int serve_others(void *userdata, Explanation *e) {
        Supervisor *s = userdata;
        int r;

        if (!s->operations.is_running || s->operations.is_serving) /* at the start, or a handler that answers at once */
                return 0;
        r = serve(s, 0);
        if (r < 0 || s->operations.is_final)
                return r;
        return give_way(s, e);
}

bool operations_may_serve(const Supervisor *s) {
        return s->operations.is_running && !s->operations.is_serving;
}

int operations_serve(Supervisor *s) {
        int r;

        s->operations.is_in_step = true;
        r = serve(s, 0);
        s->operations.is_in_step = false;
        return r;
}

bool operations_is_between(const Supervisor *s) {
        return s->operations.is_serving;
}

int operations_wait(Supervisor *s, uint64_t usec, Explanation *e) {
        int r;

        if (!s->operations.is_running || s->operations.is_serving)
                return refuse(e, REFUSED_CANCELLED, "cancelled", "nothing can be waited for here");
        closer_go(&s->closer);
        r = serve(s, usec);
        closer_hold(&s->closer);
        return r < 0 ? r : give_way(s, e);
}

int operations_run(Supervisor *s) {
        Operations *o = &s->operations;
        Connection *served = NULL;
        int kind, r;

        thread_assert(THREAD_MAIN);
        kind = find_due(o);
        if (kind < 0 && !o->waiting)
                return 0;
        checkpoint_set(serve_others, s);
        o->is_running = true;
        r = run_one(s, kind, &served);
        o->is_running = false;
        checkpoint_set(NULL, NULL);
        return go_on(served, r);
}

void operations_deinit(Supervisor *s) {
        for (int kind = 0; kind < _CHANGE_KIND_MAX; kind++)
                operations_unlisten(s, (ChangeKind)kind);
        for (Operation *next; s->operations.waiting; s->operations.waiting = next) {
                next = s->operations.waiting->next;
                free(s->operations.waiting);
        }
}
