/*
 * What the clients of one uid make perfd hold in events and their fds, counted anew for each question: adding is rare, and a
 * sum that is kept beside what it counts could be wrong. Root's clients are not limited, who may raise every limit, and
 * neither is the configuration.
 */
#include "daemon/supervisor/events/quota.h"

#include "daemon/supervisor/events/charges.h"
#include "daemon/supervisor/events/room.h"

#define TRIAL_CLOSING_MAX 128 /* fds: the last close of a tracepoint takes tens of ms (closer.h), and who stops waits for all */
#define TRIAL_WAIT_USEC 20000

typedef struct Held {
        size_t n_events, n_fds; /* fds that are being closed, or kept for a reader, are among them */
} Held;

/* Those of a change in its middle are not the client's, and those of a cgroup that is gone are about to be closed. */
static size_t count_fds(const Registration *g) {
        size_t n = 0;

        for (size_t i = 0; i < g->opened.n; i++)
                n += !g->opened.fds[i].leaves;
        return n;
}

static Held count_held(const Events *s, uint32_t uid) {
        Held held = { .n_fds = events_charged_fds(s, uid) };

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

static int check_fds_of(const Events *s, uint32_t uid, const char *what, size_t n_fds, Explanation *e) {
        uint64_t most = s->settings->config->fds_per_uid;
        Held held = count_held(s, uid);

        if (held.n_fds <= most && n_fds <= most - held.n_fds)
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                      "%s needs %zu fds (tasks or cgroups times CPUs times members): the events of uid %u have %zu, including "
                      "those being closed, and fds.per-uid allows %llu; trace fewer tasks, CPUs or events, remove some, move "
                      "them to the configuration, or raise the limit", what, n_fds, (unsigned)uid, held.n_fds,
                      (unsigned long long)most);
}

int events_check_fd_quota(const Events *s, const Registration *g, size_t n_fds, Explanation *e) {
        return is_limited(g) ? check_fds_of(s, g->event->spec.uid, g->event->spec.name, n_fds, e) : 0;
}

int events_check_quota(Events *s, const Registration *list, Explanation *e) {
        uint64_t most = s->settings->config->events_per_uid;
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
        r = events_check_fd_quota(s, list, n_fds, e);
        if (r == 0)
                r = events_count_room(s, list, &n_fds, e);
        return r == 0 ? events_check_fd_quota(s, list, n_fds, e) : r;
}

int events_check_trial_quota(const Events *s, const char *what, size_t n_fds, Explanation *e) {
        uint32_t uid = events_charged_uid(s);

        return uid != 0 ? check_fds_of(s, uid, what, n_fds, e) : 0;
}

static int wait_for_closer(Events *s, uint32_t uid, size_t n_fds, Explanation *e) {
        const Closer *c = s->operations->closer;
        int r = 0;

        while (r == 0 && (atomic_load_explicit(&c->n_pending, memory_order_relaxed) > TRIAL_CLOSING_MAX ||
                          (uid != 0 && *events_closing_of(s, uid) > 0 &&
                           count_held(s, uid).n_fds + n_fds > s->settings->config->fds_per_uid)))
                r = operations_wait(s->operations, TRIAL_WAIT_USEC, e);
        return r;
}

int events_wait_for_trial_room(Events *s, const char *what, size_t n_fds, Explanation *e) {
        uint32_t uid = events_charged_uid(s);
        int r;

        if (uid != 0 && !events_closing_of(s, uid))
                return error_origin(-ENOMEM);
        r = wait_for_closer(s, uid, n_fds, e);
        return r == 0 && uid != 0 ? check_fds_of(s, uid, what, n_fds, e) : r;
}
