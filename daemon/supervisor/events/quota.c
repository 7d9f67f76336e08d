/*
 * What the clients of one uid make perfd hold in events and their fds, counted anew for each question: adding is rare, and a
 * sum that is kept beside what it counts could be wrong. Root's clients are not limited, who may raise every limit, and
 * neither is the configuration.
 */
#include "daemon/supervisor/events/quota.h"

#define TRIAL_CLOSING_MAX 128 /* fds: the last close of a tracepoint takes tens of ms (closer.h), and who stops waits for all */
#define TRIAL_WAIT_USEC 20000

/* What of one uid is not closed yet. */
typedef struct UidCharge {
        struct UidCharge *next;
        uint32_t uid;
        _Atomic(size_t) n_closing; /* the closer has them */
        size_t n_kept;             /* for readers that do not answer */
} UidCharge;

static size_t closing(const UidCharge *c) {
        return atomic_load_explicit(&c->n_closing, memory_order_relaxed);
}

/* NULL: of root, or there is no memory. */
static UidCharge *charge_of(Supervisor *s, uint32_t uid) {
        UidCharge *c = s->charges, *idle = NULL;

        thread_assert(THREAD_MAIN);
        if (uid == 0)
                return NULL;
        for (; c && c->uid != uid; c = c->next)
                idle = closing(c) + c->n_kept == 0 ? c : idle;
        if (!c && idle) { /* so there are no more than uids whose fds are being closed */
                c = idle;
                c->uid = uid;
        }
        if (!c) {
                c = calloc(1, sizeof(*c));
                if (!c)
                        return NULL;
                *c = (UidCharge){ .next = s->charges, .uid = uid };
                s->charges = c;
        }
        return c;
}

_Atomic(size_t) *supervisor_closing_of(Supervisor *s, uint32_t uid) {
        UidCharge *c = charge_of(s, uid);

        return c ? &c->n_closing : NULL;
}

void supervisor_charge_kept(Supervisor *s, uint32_t uid, ptrdiff_t n_fds) {
        UidCharge *c = charge_of(s, uid);

        if (c) /* without memory it was not charged before */
                c->n_kept = n_fds < 0 && c->n_kept < (size_t)-n_fds ? 0 : c->n_kept + (size_t)n_fds;
}

void supervisor_free_charges(Supervisor *s) {
        for (UidCharge *next; s->charges; s->charges = next) {
                next = s->charges->next;
                free(s->charges);
        }
}

uint32_t supervisor_charged_uid(const Supervisor *s) {
        return s->operations.running ? s->operations.running->uid : 0;
}

typedef struct Held {
        size_t n_events, n_fds; /* fds that are being closed, or kept for a reader, are among them */
} Held;

/* Those of a change in its middle are not the client's, and those of a cgroup that is gone are about to be closed. */
static size_t count_fds(const Registration *g) {
        size_t n = 0;

        for (size_t i = 0; i < g->opened.n; i++)
                n += !g->opened.streams[i].leaves;
        return n;
}

static Held count_held(const Supervisor *s, uint32_t uid) {
        Held held = { .n_events = 0 };

        for (const UidCharge *c = s->charges; c; c = c->next)
                held.n_fds += c->uid == uid ? closing(c) + c->n_kept : 0;
        for (const Registration *g = s->registrations; g; g = g->next)
                if (g->event->spec.has_uid && g->event->spec.uid == uid) {
                        held.n_events++;
                        held.n_fds += count_fds(g);
                }
        for (const PendingEvent *w = s->pending.first; w; w = w->next)
                held.n_events += w->spec->added_by_case == PERFD__V1__EVENT_SPEC__ADDED_BY_UID && w->spec->uid == uid;
        return held;
}

static bool is_limited(const Registration *g) {
        return g->event->spec.has_uid && g->event->spec.uid != 0;
}

static int check_fds_of(const Supervisor *s, uint32_t uid, const char *what, size_t n_fds, Explanation *e) {
        uint64_t most = s->config->fds_per_uid;
        Held held = count_held(s, uid);

        if (held.n_fds <= most && n_fds <= most - held.n_fds)
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                      "%s needs %zu fds (tasks or cgroups times CPUs times members): the events of uid %u have %zu, including "
                      "those being closed, and fds.per-uid allows %llu; trace fewer tasks, CPUs or events, remove some, move "
                      "them to the configuration, or raise the limit", what, n_fds, (unsigned)uid, held.n_fds,
                      (unsigned long long)most);
}

int supervisor_check_fd_quota(const Supervisor *s, const Registration *g, size_t n_fds, Explanation *e) {
        return is_limited(g) ? check_fds_of(s, g->event->spec.uid, g->event->spec.name, n_fds, e) : 0;
}

int supervisor_check_quota(Supervisor *s, const Registration *list, Explanation *e) {
        uint64_t most = s->config->events_per_uid;
        size_t n = 0, n_fds = 0;
        Held held;
        int r;

        if (!list || !is_limited(list))
                return 0;
        for (const Registration *g = list; g; g = g->next)
                n++;
        held = count_held(s, list->event->spec.uid);
        if (held.n_events + n > most)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-events",
                              "%zu more events: uid %u has added %zu, and events.per-uid allows %llu; remove some, move them to "
                              "the configuration, or raise the limit", n, (unsigned)list->event->spec.uid, held.n_events,
                              (unsigned long long)most);
        for (const Registration *g = list; g; g = g->next) /* before any of these processes is looked at */
                n_fds += (g->event->spec.n_pids + g->event->spec.n_tids) * g->plan.n_attrs;
        r = supervisor_check_fd_quota(s, list, n_fds, e);
        if (r == 0)
                r = supervisor_count_room(s, list, &n_fds, e);
        return r == 0 ? supervisor_check_fd_quota(s, list, n_fds, e) : r;
}

int supervisor_check_trial_quota(const Supervisor *s, const char *what, size_t n_fds, Explanation *e) {
        uint32_t uid = supervisor_charged_uid(s);

        return uid != 0 ? check_fds_of(s, uid, what, n_fds, e) : 0;
}

static int wait_for_closer(Supervisor *s, uint32_t uid, size_t n_fds, Explanation *e) {
        const Closer *c = &s->closer;
        int r = 0;

        while (r == 0 && (atomic_load_explicit(&c->n_pending, memory_order_relaxed) > TRIAL_CLOSING_MAX ||
                          (uid != 0 && *supervisor_closing_of(s, uid) > 0 &&
                           count_held(s, uid).n_fds + n_fds > s->config->fds_per_uid)))
                r = operations_wait(&s->operations, TRIAL_WAIT_USEC, e);
        return r;
}

int supervisor_wait_for_trial_room(Supervisor *s, const char *what, size_t n_fds, Explanation *e) {
        uint32_t uid = supervisor_charged_uid(s);
        int r;

        if (uid != 0 && !supervisor_closing_of(s, uid))
                return error_origin(-ENOMEM);
        r = wait_for_closer(s, uid, n_fds, e);
        return r == 0 && uid != 0 ? check_fds_of(s, uid, what, n_fds, e) : r;
}
