/*
 * The queue of main. sd_event_run(3) must not be called from a handler of the same loop: so operations run between two
 * iterations, and a checkpoint in one of them may run the loop. What the loop has that could change something then only
 * leaves a mark, and its change is made when the operation is over.
 *
 * Fairness: clients of the control socket are before those of the stream socket, who may only look. Among equals the uids
 * take turns: the n-th request that a uid has waiting is in the n-th round from now. A uid whose requests have made readers work for
 * longer than their share of a CPU (model/read-budget.h) is passed over until that is paid for; root never is.
 *
 * A trial, which changes nothing and may take long, is suspended at its checkpoints: what waits and is no trial itself runs
 * there, on the trial's stack, and the trial goes on behind it with all that it has found. It goes on in any case when others
 * have had as long as it had before, so that nobody can hold it. Between two of its checkpoints all that is registered may have
 * changed: a trial keeps nothing of that over a checkpoint, or says so (operations_set_pinned()).
 */
#include "daemon/supervisor/operations/operations.h"

#include <assert.h>
#include <stdlib.h>

#include "daemon/base/checkpoint.h"
#include "daemon/base/log.h"
#include "daemon/supervisor/operations/postponed.h"

#define TRIALS_PER_UID 16  /* that wait; each may take seconds */
#define TURN_MAX 64        /* sources of the loop that are served at one checkpoint */
#define TRIAL_NSEC (10 * NSEC_PER_SEC) /* of one that others wait for, who want to try something too */
#define TURN_NSEC (10 * NSEC_PER_MSEC)

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
                      "%zu requests of uid %u that examine the whole host are already waiting: try again when they are answered", n,
                      (unsigned)uid);
}

int operations_add(Operations *o, Connection *c, OperationKind kind, Explanation *e) {
        const Peer *peer = connection_peer(c);
        Operation *added;
        int r;

        thread_assert(THREAD_MAIN);
        r = kind == OPERATION_TRIAL ? check_trials(o, peer->uid, e) : 0;
        if (r != 0)
                return r;
        added = calloc(1, sizeof(*added));
        if (!added)
                return refuse(e, REFUSED_EXHAUSTED, "no-memory", "perfd has no memory for another request that waits: try again");
        *added = (Operation){ .connection = c,
                              .connection_id = connection_id(c),
                              .uid = peer->uid,
                              .is_control = peer->may_change,
                              .is_look = kind <= OPERATION_LOOK,
                              .is_glance = kind == OPERATION_GLANCE,
                              .is_trial = kind == OPERATION_TRIAL };
        find_round(o, added);
        append(o, added);
        o->are_postponed = false; /* maybe not this one */
        connection_defer(c);
        return 0;
}

void operations_drop(Operations *o, uint64_t connection_id) {
        for (Operation **p = &o->waiting; *p; p = &(*p)->next)
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

/* NULL: none waits, or all that do are postponed, or, while a trial is suspended, trials. */
static Operation *take_next(Operations *o) {
        const nsec_t now = clock_now(CLOCK_MONOTONIC);
        Operation **best = NULL, *taken;
        nsec_t until;

        for (Operation **p = &o->waiting; *p; p = &(*p)->next)
                if (!(o->running && (*p)->is_trial) && (!best || is_before(o, *p, *best)) && !operations_is_postponed(o, *p, now, &until))
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

bool operations_are_waiting(const Operations *o) {
        return (o->waiting && !o->are_postponed) || find_due(o) >= 0;
}

bool operations_has_turn(const Operations *o, const Connection *c) {
        return o->running && o->running->connection == c;
}

/* ---- changes of no client ---------------------------------------------------------------------------------------- */

void operations_set_handler(Operations *o, ChangeKind kind, int (*make)(void *userdata), void *userdata) {
        o->handlers[kind] = (ChangeHandler){ .make = make, .userdata = userdata };
}

void operations_set_due(Operations *o, ChangeKind kind) {
        o->is_due[kind] = true;
}

typedef struct Listening {
        Operations *operations;
        ChangeKind kind;
} Listening;

/* The source is off from here on, until the change is made: sd_event_source_set_enabled(3), SD_EVENT_ONESHOT. */
static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        const Listening *l = userdata;

        operations_set_due(l->operations, l->kind);
        return 0;
}

int operations_listen(Operations *o, ChangeKind kind, int fd) {
        Listening *l = malloc(sizeof(*l));
        sd_event_source **source = &o->sources[kind];
        int r;

        if (!l)
                return error_origin(-ENOMEM);
        *l = (Listening){ .operations = o, .kind = kind };
        r = error_origin(sd_event_add_io(o->event, source, fd, EPOLLIN, on_readable, l));
        if (r < 0) {
                free(l);
                return r;
        }
        (void)sd_event_source_set_destroy_callback(*source, free); /* does not fail of one that was just made */
        r = error_origin(sd_event_source_set_enabled(*source, SD_EVENT_ONESHOT));
        return r < 0 ? r : 0;
}

void operations_unlisten(Operations *o, ChangeKind kind) {
        o->sources[kind] = sd_event_source_disable_unref(o->sources[kind]);
        o->is_due[kind] = false;
}

static int make_change(Operations *o, ChangeKind kind) {
        int r;

        o->is_due[kind] = false;
        r = o->handlers[kind].make(o->handlers[kind].userdata);
        notes_say(&o->notes, "what has changed");
        if (r >= 0 && o->sources[kind])
                r = error_origin(sd_event_source_set_enabled(o->sources[kind], SD_EVENT_ONESHOT));
        return r < 0 ? r : 0;
}

/* ---- in the middle of an operation ------------------------------------------------------------------------------- */

bool operations_uid(const Operations *o, uint64_t *ret) {
        if (!o->running)
                return false;
        *ret = o->running->uid;
        return true;
}

bool operations_is_trial(const Operations *o) {
        return o->is_trying || (o->running && o->running->is_trial);
}

void operations_set_trying(Operations *o, bool on) {
        o->is_trying = on;
        o->n_planned = 0;
        notes_forget(&o->notes);
}

int operations_client(const Operations *o, Credentials *own, const Credentials **ret, Explanation *e) {
        const Operation *running = o->running;
        int r;

        *ret = NULL;
        if (!running || running->is_control || running->uid == 0)
                return 0;
        r = connection_credentials(running->connection, own, e);
        if (r == 0)
                *ret = own;
        return r;
}

void operations_set_final(Operations *o) {
        o->is_final = true;
}

void operations_set_pinned(Operations *o, bool on) {
        o->is_pinned = on;
}

bool operations_is_overdue(const Operations *o) {
        return o->is_overdue;
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

static int check_cancelled(Operations *o, Explanation *e) {
        if (o->is_due[CHANGE_STOP] || sd_event_get_state(o->event) == SD_EVENT_FINISHED)
                return refuse(e, REFUSED_CANCELLED, "shutting-down", "perfd is stopping");
        if (o->running && connection_is_gone(o->running->connection))
                return refuse(e, REFUSED_CANCELLED, "cancelled", "the connection was closed");
        o->is_overdue = o->is_overdue || is_overdue(o);
        return o->is_overdue ? refuse(e, REFUSED_CANCELLED, "cancelled", "others wait") : 0;
}

/* The next glance, out of the list; NULL: none waits. It asks nothing of readers, so that whose it is does not matter. */
static Operation *take_glance(Operations *o) {
        Operation **best = NULL, *taken;

        for (Operation **p = &o->waiting; *p; p = &(*p)->next)
                if ((*p)->is_glance && (!best || is_before(o, *p, *best)))
                        best = p;
        if (!best)
                return NULL;
        taken = *best;
        *best = taken->next;
        return taken;
}

/*
 * Those that came before what runs had its turn, for a while: each may take as long as all events need to be listed, and there may
 * be as many as there are connections. The others have this checkpoint's successors.
 */
static int answer_glances(Operations *o) {
        const nsec_t end = clock_now(CLOCK_MONOTONIC) + TURN_NSEC;
        Operation *glance;
        int r = 0;

        while (r >= 0 && clock_now(CLOCK_MONOTONIC) < end && (glance = take_glance(o))) {
                Connection *c = glance->connection;

                free(glance);
                o->at_once_until = end;
                r = connection_resume(c);
                if (r == 0)
                        r = connection_go_on(c); /* what its client asked next is answered, or waits at the end of the list */
        }
        return r;
}

/* What is ready in the loop, for a while; usec: how long to wait until something is. */
static int serve(Operations *o, uint64_t usec) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + TURN_NSEC, began = clock_now(CLOCK_THREAD_CPUTIME_ID);
        LogCause charged = log_charge(LOG_CAUSE_NOBODY);
        int r = 1, code;

        o->is_serving = true; /* what is answered in between has no checkpoints: sd_event_run(3) does not nest */
        o->at_once_until = 0;
        for (int i = 0; i < TURN_MAX && r > 0 && sd_event_get_state(o->event) != SD_EVENT_FINISHED; i++) {
                r = error_origin(sd_event_run(o->event, usec));
                usec = 0;
                if (clock_now(CLOCK_MONOTONIC) >= end)
                        break;
        }
        if (r >= 0 && sd_event_get_exit_code(o->event, &code) >= 0 && code < 0)
                r = code; /* a source has failed: what runs would only fail in turn, at a loop that is over */
        if (r >= 0)
                r = answer_glances(o);
        o->is_serving = false;
        o->served_at = clock_now(CLOCK_MONOTONIC);
        o->served += clock_now(CLOCK_THREAD_CPUTIME_ID) - began;
        o->has_failed |= r < 0;
        (void)log_charge(charged);
        return r < 0 ? r : 0;
}

/* ---- one by one, or one in the middle of a trial ------------------------------------------------------------------ */

static int run_request(Operations *o, Operation *next, Connection **ret_served) {
        uint64_t *round = &o->rounds[next->is_control];
        int r;

        *ret_served = next->connection; /* it is there as long as its request runs */
        o->running = next;
        *round = next->round > *round ? next->round : *round; /* one that waits behind a trial may be of an earlier one */
        r = connection_resume(next->connection);
        o->running = NULL;
        free(next);
        return r;
}

/* A change that is due, or else the next request. False: there is neither. */
static bool find_one(Operations *o, int *ret_kind, Operation **ret_next) {
        *ret_kind = find_due(o);
        *ret_next = *ret_kind < 0 ? take_next(o) : NULL;
        return *ret_kind >= 0 || *ret_next;
}

/* As find_one() says. */
static int run_one(Operations *o, int kind, Operation *next, Connection **ret_served) {
        o->running = NULL;
        o->is_final = kind >= 0 && kind < CHANGE_RELOAD; /* the host has changed already */
        o->n_planned = 0;
        o->worked = 0;
        o->is_overdue = false;
        o->resumed = o->served_at = clock_now(CLOCK_MONOTONIC);
        return kind >= 0 ? make_change(o, (ChangeKind)kind) : run_request(o, next, ret_served);
}

/* Behind its end, so that what its client has asked next waits for a turn of its own. */
static int go_on(Connection *c, int r) {
        return r == 0 && c ? connection_go_on(c) : r;
}

/* In the middle of a trial, which is as it was afterwards. */
static int run_between(Operations *o, int kind, Operation *next) {
        Operation *trial = o->running;
        const Notes notes = o->notes;
        size_t n_planned = o->n_planned;
        nsec_t worked = o->worked;
        LogCause charged = log_charge(LOG_CAUSE_NOBODY);
        Connection *served = NULL;
        int r;

        notes_forget(&o->notes);
        r = run_one(o, kind, next, &served);
        o->running = trial;
        o->is_final = false;
        o->n_planned = n_planned;
        o->worked = worked;
        o->is_overdue = false;
        o->notes = notes;
        o->is_serving = true; /* as answer_glances() */
        o->at_once_until = 0;
        r = go_on(served, r);
        o->is_serving = false;
        o->has_failed |= r < 0;
        (void)log_charge(charged);
        return r;
}

/* A trial's client is asked for behind each, and it goes on when they have had as long as it had: whoever else waits then is next. */
static int give_way(Operations *o, Explanation *e) {
        nsec_t began = clock_now(CLOCK_MONOTONIC), had = began - o->resumed;
        Operation *next;
        int r, kind;

        o->worked += had;
        o->resumed = began;
        r = check_cancelled(o, e);
        if (r != 0 || !o->running || !o->running->is_trial || o->is_pinned)
                return r;
        while (r == 0 && find_one(o, &kind, &next)) {
                r = run_between(o, kind, next);
                if (r == 0)
                        r = check_cancelled(o, e);
                if (clock_now(CLOCK_MONOTONIC) - began >= had)
                        break;
        }
        o->resumed = clock_now(CLOCK_MONOTONIC);
        return r;
}

static int serve_others(void *userdata, Explanation *e) {
        Operations *o = userdata;
        int r;

        if (!o->is_running || o->is_serving) /* at the start, or a handler that answers at once */
                return 0;
        r = serve(o, 0);
        if (r < 0 || o->is_final)
                return r;
        return give_way(o, e);
}

bool operations_may_serve(const Operations *o) {
        return o->is_running && !o->is_serving;
}

int operations_serve(Operations *o) {
        int r;

        o->is_in_step = true;
        r = serve(o, 0);
        o->is_in_step = false;
        return r;
}

int operations_serve_sometimes(Operations *o) {
        if (!operations_may_serve(o) || clock_now(CLOCK_MONOTONIC) - o->served_at < TURN_NSEC)
                return 0;
        return operations_serve(o);
}

bool operations_may_look(Operations *o, const Connection *c) {
        nsec_t now;

        if (!o->is_serving || connection_peer(c)->may_change)
                return o->is_serving;
        now = clock_now(CLOCK_MONOTONIC);
        if (o->at_once_until == 0)
                o->at_once_until = now + TURN_NSEC;
        return now < o->at_once_until;
}

bool operations_is_between(const Operations *o) {
        return o->is_serving;
}

int operations_wait(Operations *o, uint64_t usec, Explanation *e) {
        int r;

        if (!o->is_running || o->is_serving)
                return refuse(e, REFUSED_CANCELLED, "cancelled", "it is not possible to wait here");
        closer_go(o->closer);
        r = serve(o, usec);
        closer_hold(o->closer);
        return r < 0 ? r : give_way(o, e);
}

int operations_run(Operations *o) {
        Connection *served = NULL;
        Operation *next;
        int kind, r;

        thread_assert(THREAD_MAIN);
        if (!find_one(o, &kind, &next))
                return operations_postpone(o);
        checkpoint_set(serve_others, o);
        o->is_running = true;
        r = run_one(o, kind, next, &served);
        o->is_running = false;
        checkpoint_set(NULL, NULL);
        r = go_on(served, r);
        return r < 0 ? r : operations_postpone(o);
}

void operations_deinit(Operations *o) {
        for (int kind = 0; kind < _CHANGE_KIND_MAX; kind++)
                operations_unlisten(o, (ChangeKind)kind);
        o->timer = sd_event_source_disable_unref(o->timer);
        for (Operation *next; o->waiting; o->waiting = next) {
                next = o->waiting->next;
                free(o->waiting);
        }
}
